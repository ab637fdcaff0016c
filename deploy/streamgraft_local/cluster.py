"""One embedded environment: bring it up, look at it, take it down."""

import importlib.util
import shutil
import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from streamgraft_local import graph, kubeconfig, pki, ports, resources, toolchain
from streamgraft_local.components import Component, components
from streamgraft_local.components.all import PORTS, STOP_ORDER
from streamgraft_local.components.model import Setting
from streamgraft_local.errors import LocalError
from streamgraft_local.locks import exclusive
from streamgraft_local.processes import Process, members, stop
from streamgraft_local.progress import Report, reported, silent
from streamgraft_local.runner import Runner
from streamgraft_local.spec import ClusterSpec, ClusterState

_GRACE_SECONDS = 40.0
"""For each component of a release that we do not know."""


@dataclass(frozen=True)
class ComponentStatus:
    """How a component is."""

    name: str
    pid: int | None
    """None: it does not run."""
    problem: str | None
    """Why it does not serve; None: it does."""
    log: Path


class Cluster:
    """A cluster by its spec. All methods may be called from any process, again and again."""

    def __init__(self, spec: ClusterSpec | None = None) -> None:
        self.spec = spec or ClusterSpec()
        self.home = self.spec.home

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig, for kubectl and all else."""
        return self.home.kubeconfig("admin")

    @property
    def checkpoints(self) -> Path:
        """The volume that all processing elements share."""
        return self.home.checkpoints

    @property
    def api_url(self) -> str:
        """The API server."""
        return self.state().addresses["kubernetes"]

    @property
    def bootstrap_servers(self) -> str:
        """What Kafka clients connect to."""
        return self.state().addresses["kafka"]

    @property
    def prometheus_url(self) -> str:
        """Prometheus."""
        return self.state().addresses["prometheus"]

    @property
    def adapter_url(self) -> str:
        """The metrics adapter (https; `pki/ca.crt` signs it)."""
        return self.state().addresses["adapter"]

    @property
    def operator_url(self) -> str:
        """The operator's metrics."""
        return self.state().addresses["operator"]

    def state(self) -> ClusterState:
        """Return what is remembered. Raises LocalError if no cluster of this release was up."""
        state = ClusterState.load(self.home.state_file)
        if state is None:
            if self.leftovers():
                raise _of_another_release()
            raise LocalError(
                f"no cluster {self.spec.name!r} in {self.home.root}: run `streamgraft up` first"
            )
        return state

    def up(self, report: Report = silent) -> None:
        """Start everything that does not run, building and fetching what is missing.

        Raises LocalError (a ComponentError with the log's tail) if something does not start.
        """
        _check_packages()
        tools = toolchain.prepare(report)
        with exclusive(self.home.root / ".lock"):
            self.home.create()
            before = ClusterState.load(self.home.state_file)
            state = self._next_state(before, tools)
            state.save(self.home.state_file)
            pki.ensure(self.home.pki)
            name, server = f"streamgraft-{self.spec.name}", state.addresses["kubernetes"]
            kubeconfig.write_all(self.home, name, server)
            runner = Runner(self.home, state.id)
            tasks = {
                name: graph.Task(partial(_start, runner, component, report), component.needs)
                for name, component in components(self._setting(state)).items()
            }
            graph.run_all(tasks | self._resource_tasks(state, report))

    def down(self, *, delete: bool = False, report: Report = silent) -> None:
        """End every process of the cluster, pods included; `delete` its folder too.

        What it kept (jobs, topics, checkpoints) is there again at the next `up`, unless deleted.
        """
        if cluster_id := ClusterState.id_in(self.home.state_file):
            with exclusive(self.home.root / ".lock"):
                runner, grace = Runner(self.home, cluster_id), self._grace()
                for names in STOP_ORDER:
                    known = {name: grace[name] for name in names if name in grace}
                    running = [name for name in known if runner.process(name)]
                    with _stop_reported(report, running):
                        runner.stop(known)
                stop(members(cluster_id), grace_seconds=5.0)
        if delete and self.home.root.exists():
            with reported(report, f"delete {self.home.root}"):
                shutil.rmtree(self.home.root, ignore_errors=True)

    def leftovers(self) -> list[Process]:
        """Return every process that carries the cluster's id, except ourselves."""
        cluster_id = ClusterState.id_in(self.home.state_file)
        return members(cluster_id) if cluster_id else []

    def status(self) -> list[ComponentStatus]:
        """Return how each component is, in the order in which they are started."""
        state = self.state()
        runner = Runner(self.home, state.id)
        return [
            self._status(runner, component)
            for component in components(self._setting(state)).values()
        ]

    def start(self, name: str) -> None:
        """Start one component and wait until it serves. Raises ComponentError, LocalError."""
        state = self.state()
        Runner(self.home, state.id).start(self._component(state, name))

    def stop(self, name: str) -> None:
        """End one component, and only it. Raises LocalError if there is none of that name."""
        state = self.state()
        component = self._component(state, name)
        Runner(self.home, state.id).stop({name: component.grace_seconds})

    def _grace(self) -> dict[str, float]:
        """Return how long each component may take to end."""
        state = ClusterState.load(self.home.state_file)
        if state is None:
            return {name: _GRACE_SECONDS for names in STOP_ORDER for name in names}
        return {c.name: c.grace_seconds for c in components(self._setting(state)).values()}

    def _component(self, state: ClusterState, name: str) -> Component:
        known = components(self._setting(state))
        if name not in known:
            raise LocalError(f"no component {name!r}; there are {', '.join(known)}")
        return known[name]

    def _status(self, runner: Runner, component: Component) -> ComponentStatus:
        process = runner.process(component.name)
        problem = component.probe() if process else "not running"
        log = self.home.log(component.name)
        return ComponentStatus(component.name, process.pid if process else None, problem, log)

    def _setting(self, state: ClusterState) -> Setting:
        # What an earlier release has started lacks new ports, and can be ended all the same.
        return Setting(state.spec, self.home, dict.fromkeys(PORTS, 0) | state.ports, state.tools)

    def _next_state(self, before: ClusterState | None, tools: toolchain.Tools) -> ClusterState:
        if self.leftovers():
            if before is None or before.ports.keys() != set(PORTS):
                raise _of_another_release()
            return before  # something runs with these ports and tools: only complete it
        chosen = ports.choose(PORTS, before.ports if before else {})
        return ClusterState(
            spec=self.spec,
            id=before.id if before else uuid.uuid4().hex,
            ports=chosen,
            tools=tools,
            addresses={
                "kubernetes": f"https://127.0.0.1:{chosen['apiserver']}",
                "kafka": f"127.0.0.1:{chosen['kafka']}",
                "prometheus": f"http://127.0.0.1:{chosen['prometheus']}",
                "operator": f"http://127.0.0.1:{chosen['operator']}",
                "adapter": f"https://127.0.0.1:{chosen['adapter']}",
            },
        )

    def _resource_tasks(self, state: ClusterState, report: Report) -> dict[str, graph.Task]:
        authority = (self.home.pki / "ca.crt").read_bytes()
        signer = [(self.home.pki / f"pe-ca.{part}").read_bytes() for part in ("crt", "key")]
        base = partial(resources.apply_base, self.kubeconfig, resources.pe_authority(*signer))
        steps = [("resources", base, "kube-apiserver")]
        for name, manifest, port, server in (
            ("custom-metrics", resources.CUSTOM_METRICS, "adapter", "adapter"),
            ("resource-metrics", resources.RESOURCE_METRICS, "node-metrics", "node"),
        ):
            known = (self.kubeconfig, manifest, state.ports[port], authority)
            steps.append((name, partial(resources.apply_api_services, *known), server))
        return {
            name: graph.Task(partial(_reported, name, run, report), (need,))
            for name, run, need in steps
        }


def _of_another_release() -> LocalError:
    return LocalError("another release runs: end it first with `streamgraft down`")


_OF_EXTRAS = ("fastapi", "obstore", "pyspark")
"""A module of each part that the embedded environment runs."""


def _check_packages() -> None:
    missing = [name for name in _OF_EXTRAS if importlib.util.find_spec(name) is None]
    if missing:
        named = ", ".join(missing)
        raise LocalError(
            f"it needs more packages ({named}): install Streamgraft with the extra `local`"
            " (from its checkout: pip install '.[local]')"
        )


def _stop_reported(report: Report, running: Sequence[str]) -> AbstractContextManager[None]:
    return reported(report, f"stop {', '.join(running)}") if running else nullcontext()


def _start(runner: Runner, component: Component, report: Report) -> None:
    _reported(component.name, partial(runner.start, component), report)


def _reported(name: str, run: Callable[[], None], report: Report) -> None:
    with reported(report, name):
        run()
