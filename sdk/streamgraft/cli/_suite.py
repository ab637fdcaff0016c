"""`streamgraft suite`: run a TestSuite, and tell how its tests end."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamgraft.cli import _options as options

if TYPE_CHECKING:
    from streamgraft.cli._cluster import Cluster
    from streamgraft_common.resources import SuiteStatus

SuiteFile = Annotated[Path, typer.Argument(metavar="SUITE.YAML")]
Bundles = Annotated[
    list[Path] | None,
    typer.Option(
        "--bundle",
        metavar="APP.PY|BUNDLE.ZIP",
        help="Application to upload, as the suite's ConfigMap NAME-bundle.",
    ),
]
JUnit = Annotated[
    Path | None,
    typer.Option(
        "--junit", dir_okay=False, writable=True, help="File for the results as JUnit XML."
    ),
]


def suite(
    context: typer.Context,
    file: SuiteFile,
    bundle: Bundles = None,
    junit: JUnit = None,
    timeout: options.Timeout = 3600.0,
    output_format: options.Output = "text",
    namespace: options.Namespace = None,
) -> None:
    """Run a TestSuite anew and wait for its end; exit code 1 unless all tests pass."""
    from streamgraft.cli import _output as output

    output.use(output_format)
    if junit and not junit.parent.is_dir():
        raise output.CommandError(f"{junit.parent}: there is no such folder")
    target = options.target(context, namespace)
    if not asyncio.run(_run(target, file, bundle or [], timeout, junit)):
        raise typer.Exit(1)


async def _run(
    target: options.Target, file: Path, bundles: list[Path], seconds: float, results: Path | None
) -> bool:
    """Return whether all tests passed; `results`: for what is known in the end, as JUnit XML."""
    from streamgraft._builder import check_size
    from streamgraft.cli import _output as output
    from streamgraft.cli import _submit
    from streamgraft.cli._cluster import MANAGER, connected, until
    from streamgraft.cli._output import CommandError
    from streamgraft_common.resources import TEST_SUITE, SuiteStatus

    manifest = _manifest(file)
    name = manifest["metadata"]["name"]
    built = [_submit.Request(path) for path in bundles]
    uploads = [(request, *_submit.read_request(request)) for request in built]
    for _, data, _ in uploads:  # before the results of the last run go
        check_size(data)
    async with connected(target) as cluster:
        await _forget(cluster, name, seconds)
        path = TEST_SUITE.path(cluster.namespace, name)
        applied = await cluster.client.apply(path, manifest, MANAGER)
        for request, data, adl in uploads:  # jobs wait for theirs
            await _submit.upload(cluster, _submit.job_name(request, adl), data, applied)
        output.say(f"TestSuite {name} submitted to {cluster.place}")
        status, told = SuiteStatus(), set[str]()

        async def ended() -> bool:
            nonlocal status
            item = await cluster.client.find(path)
            if item is None:
                raise CommandError(f"TestSuite {name} was deleted")
            status = SuiteStatus.model_validate(item.get("status") or {})
            _tell(status, told)
            return status.phase in ("Passed", "Failed")

        try:
            await until(f"TestSuite {name} has not ended", ended, seconds)
        finally:  # also if time is over, or somebody has enough
            _write(results, name, status)
        output.result(await cluster.client.get(path))
        return status.phase == "Passed"


def _write(results: Path | None, name: str, status: "SuiteStatus") -> None:
    from streamgraft_common.junit import junit

    if results:
        results.write_text(junit(name, status))


def _manifest(file: Path) -> dict[str, Any]:
    import yaml

    from streamgraft.cli._output import CommandError

    try:
        item = yaml.safe_load(file.read_text())
    except yaml.YAMLError as error:
        raise CommandError(f"{file} is no YAML: {error}") from error
    if not isinstance(item, dict) or item.get("kind") != "TestSuite":
        raise CommandError(f"{file} has no TestSuite: write one as docs/use/test-suites.md shows")
    if not isinstance(metadata := item.get("metadata"), dict) or not metadata.get("name"):
        raise CommandError(f"{file}: the TestSuite needs a metadata.name")
    return item


async def _forget(cluster: "Cluster", name: str, seconds: float) -> None:
    """Delete the last run of a suite, and wait until its pods and results are gone.

    The pod of an aborted test is there until its clean-up is done.
    """
    from streamgraft.cli import _output as output
    from streamgraft.cli._cluster import until
    from streamgraft.cli._output import CommandError
    from streamgraft_common import names
    from streamgraft_common.resources import TEST_SUITE, SuiteStatus

    path = TEST_SUITE.path(cluster.namespace, name)
    if (last := await cluster.client.find(path)) is None:
        return
    if SuiteStatus.model_validate(last.get("status") or {}).phase not in ("Passed", "Failed"):
        raise CommandError(f"TestSuite {name} is running: wait for it, or delete it")
    await cluster.client.delete(path)
    output.say(f"The last run of TestSuite {name} goes, with its pods and results")

    async def gone() -> bool:
        label = f"{names.LABEL_TEST_SUITE}={name}"
        for plural in ("pods", "configmaps"):
            if (await cluster.client.get(cluster.core(plural), labelSelector=label))["items"]:
                return False
        return await cluster.client.find(path) is None

    await until(f"the last run of TestSuite {name} is still there", gone, seconds)


def _tell(status: "SuiteStatus", told: set[str]) -> None:
    """Print what is new."""
    from streamgraft.cli import _output as output

    runs = {run.name: run for run in status.runs}
    ended = len(status.passed) + len(status.failed) + len(status.aborted)
    tests = ended + len(status.pending) + len(status.running)
    for name in status.running:
        _once(told, name, f"{name} runs; {ended} of {tests} tests have ended")
    for state in ("passed", "failed", "aborted"):
        for name in getattr(status, state):
            run = runs.get(name)
            took = f" after {run.seconds:.1f} s" if run and run.seconds is not None else ""
            why = f": {run.message}" if run and run.message else ""
            line = f"{name} {state}{took}{why}"
            _once(told, line, line)
    for condition in status.conditions:
        if condition.status == "False" and f"{condition.reason}{condition.message}" not in told:
            told.add(f"{condition.reason}{condition.message}")
            output.warn(f"{condition.reason}: {condition.message}")


def _once(told: set[str], key: str, line: str) -> None:
    from streamgraft.cli import _output as output

    if key not in told:
        told.add(key)
        output.say(line)
