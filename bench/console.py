"""How quick the console is with 1,027 processing elements: `make bench-console`.

Real: API server, adapter, Chromium (Debian's package `chromium`). Not: the PEs, which are hollow
(`hollow_node`) and have no metrics.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from tests.browser import PROGRAM, Browser, browser

from bench import report
from bench.cluster import NAMESPACE, running_cluster
from bench.lifecycle import hollow
from bench.lifecycle_run import LifeCycle
from bench.pipelines import pipelines
from streamgraft.cli._console import link
from streamgraft.cli._options import Target
from streamgraft_common.kube import KubeClient, load_config
from streamgraft_local import Cluster

SIZE = 32
PES = SIZE * SIZE + 3
NAME = "wide"
USER = "reader"
RIGHTS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
ROUNDS = 20
CELLS = "document.querySelectorAll('.cell').length"
OPENED = f"""(async () => {{
  const began = performance.now();
  location.hash = '#/{NAMESPACE}/{NAME}';
  while ({CELLS} < {PES}) await new Promise((done) => setTimeout(done, 5));
  return performance.now() - began;
}})()"""
"""Milliseconds from a click on the job until every PE has its cell."""
ASKED = f"""(async () => {{
  const {{ readJob }} = await import('/console/api.js');
  const began = performance.now();
  window.found = await readJob('{NAMESPACE}', '{NAME}');
  return performance.now() - began;
}})()"""
"""Milliseconds for what the page asks every few seconds."""
DRAWN = """(async () => {
  const { graph } = await import('/console/graph.js');
  const place = document.querySelector('.graph'), began = performance.now();
  place.replaceChildren(graph(window.found, null, () => null));
  place.getBoundingClientRect();
  return performance.now() - began;
})()"""
"""Milliseconds for the picture, laid out."""


async def account(client: KubeClient) -> str:
    """Create a service account that may do all; return its full name."""
    name = {"metadata": {"name": USER}}
    await client.create(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", name)
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"kind": "ServiceAccount", "namespace": NAMESPACE, "name": USER}
    await client.create(RIGHTS, {**name, "roleRef": role, "subjects": [subject]})
    return f"{NAMESPACE}/{USER}"


async def measured(page: Browser, url: str) -> dict[str, float]:
    """Open the job from the list of jobs, then ask and draw again and again."""
    await page.go(url)
    await page.until("document.querySelector('#space')")
    await page.run(f"location.hash = '#/{NAMESPACE}'")
    await page.until("document.querySelector('tbody a')")
    opened = await page.run(OPENED)
    asked = [await page.run(ASKED) for _ in range(ROUNDS)]
    drawn = [await page.run(DRAWN) for _ in range(ROUNDS)]
    size = await page.run("JSON.stringify(window.found).length")
    assert page.errors == [], page.errors
    return {
        "pes": PES,
        "opened_ms": round(opened, 1),
        "asked_ms_p50": round(report.percentile(asked, 0.5), 1),
        "asked_ms_p95": round(report.percentile(asked, 0.95), 1),
        "drawn_ms_p50": round(report.percentile(drawn, 0.5), 1),
        "drawn_ms_p95": round(report.percentile(drawn, 0.95), 1),
        "answer_kb": round(size / 1000, 1),
    }


async def run(cluster: Cluster, folder: Path) -> dict[str, float]:
    """Measure on a cluster with a hollow node."""
    async with (
        hollow(cluster),
        KubeClient(load_config(cluster.kubeconfig)) as client,
    ):
        for component in ("prometheus", "adapter"):
            await asyncio.to_thread(cluster.start, component)
        began = time.monotonic()
        await LifeCycle(cluster, client, folder).started(NAME, pipelines(SIZE, SIZE, SIZE))
        Console().print(f"{PES} PEs after {time.monotonic() - began:.0f} s")
        target = Target(kubeconfig=cluster.kubeconfig)
        url = await link(target, cluster.adapter_url, await account(client))
        async with browser(folder / "profile") as page:
            return await measured(page, url)


async def main() -> None:
    """Measure; write the figures."""
    if PROGRAM is None:
        sys.exit("there is no Chromium here: apt-get install chromium")
    with tempfile.TemporaryDirectory(prefix="streamgraft-bench-") as name:
        folder = Path(name)
        async with running_cluster(folder / "cluster") as cluster:
            figures = await run(cluster, folder)
    report.write("console", {"rounds": ROUNDS}, figures)


if __name__ == "__main__":
    asyncio.run(main())
