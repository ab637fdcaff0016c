"""The console on the real API server: who signs in how, who may do what, and in a real Chromium.

The region and its pod are played, so nothing has to be computed for it.
"""

import asyncio
import json
import math
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from tests.browser import PROGRAM, Browser, browser
from tests.metrics_adapter.conftest import JOB as NAME
from tests.metrics_adapter.conftest import MAX_WIDTH, PlayedRegion
from tests.metrics_adapter.played_job import CHANNELS, OTHERS, play_elements, play_job

from streamgraft.cli._console import link
from streamgraft.cli._options import Target
from streamgraft_common.kube import KubeClient
from streamgraft_common.resources import JOB, SAVEPOINT
from streamgraft_local import Cluster

pytestmark = pytest.mark.integration

RBAC = "/apis/rbac.authorization.k8s.io/v1"
API = "/console/api"


async def account(kube: KubeClient, namespace: str, name: str, *verbs: str) -> str:
    """Make a service account that may do this with all in the namespace; return its full name."""
    await kube.create(
        f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": name}}
    )
    rule = {"apiGroups": ["*"], "resources": ["*"], "verbs": list(verbs)}
    roles = f"{RBAC}/namespaces/{namespace}"
    await kube.create(f"{roles}/roles", {"metadata": {"name": name}, "rules": [rule]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    subject = {"kind": "ServiceAccount", "namespace": namespace, "name": name}
    binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
    await kube.create(f"{roles}/rolebindings", binding)
    return f"{namespace}/{name}"


class Visitor:
    """Plain HTTP as a browser sends it."""

    def __init__(self, cluster: Cluster) -> None:
        self._url = cluster.adapter_url
        self._authority = str(cluster.home.pki / "ca.crt")
        self.session = requests.Session()
        self.csrf = ""

    def send(self, method: str, path: str, **more: Any) -> requests.Response:
        """Send a request with the cookies that there are, and the page's word."""
        headers = {"X-Streamgraft-Csrf": self.csrf} if self.csrf else {}
        headers |= more.pop("headers", {})
        more |= {"headers": headers, "verify": self._authority, "timeout": 30}
        return self.session.request(method, self._url + path, **more)

    def sign_in(self, ticket: str) -> requests.Response:
        """Use a ticket."""
        headers = {"X-Streamgraft-Ticket": ticket}
        answer = self.send("POST", f"{API}/session", headers=headers)
        if answer.ok:
            self.csrf = answer.json()["csrf"]
        return answer


async def linked(cluster: Cluster, account: str) -> str:
    """Return a link as the command line prints it."""
    return await link(Target(kubeconfig=cluster.kubeconfig), cluster.adapter_url, account)


async def test_a_reader_reads_and_may_write_nothing(
    cluster: Cluster, kube: KubeClient, region: PlayedRegion, until: Any
) -> None:
    """A ticket is good once; a cookie alone is worth nothing; the API server refuses all writes."""
    namespace = region.namespace
    await play_job(kube, namespace)
    reader = await account(kube, namespace, "reader", "get", "list", "watch")
    visitor = Visitor(cluster)
    page = visitor.send("GET", "/console/")
    assert (page.status_code, "default-src 'none'" in page.headers["Content-Security-Policy"]) == (
        200,
        True,
    )
    assert visitor.send("GET", f"{API}/jobs").status_code == 401
    ticket = (await linked(cluster, reader)).partition("ticket=")[2]
    answer = visitor.sign_in(ticket)
    assert answer.json()["user"] == f"system:serviceaccount:{namespace}:reader"
    cookie = answer.headers["Set-Cookie"]
    flags = {part.strip().lower() for part in cookie.split(";")}
    assert {"httponly", "secure", "samesite=strict", "path=/"} <= flags
    assert Visitor(cluster).sign_in(ticket).status_code == 401

    job = f"{API}/namespaces/{namespace}/jobs/{NAME}"

    async def readable() -> bool:  # the API server's own caches hear of the role a moment later
        return visitor.send("GET", job).status_code == 200

    await until(readable, 30)
    seen = visitor.send("GET", job).json()
    assert [stage["name"] for stage in seen["stages"]] == ["enrich", "read"]
    ends = [(stream["from"], stream["to"]) for stream in seen["streams"]]
    assert sorted(ends, key=str) == sorted(
        [(None, "read"), ("read", "enrich"), ("enrich", None)], key=str
    )
    assert visitor.send("GET", f"{API}/jobs").status_code == 403  # of all namespaces

    replay = "/api/v1/namespaces/{}/regions/flights-enrich/replay?targetUtilization=0.6"
    assert visitor.send("GET", replay.format(namespace)).status_code in (200, 503)  # too early yet
    assert visitor.send("GET", replay.format("default")).status_code == 403
    assert Visitor(cluster).send("GET", replay.format(namespace)).status_code == 401

    scale = f"/api/v1/namespaces/{namespace}/regions/flights-enrich/scale"
    writes = [
        ("DELETE", job, None),
        ("POST", f"{job}/savepoints", {"name": "mine"}),
        ("PUT", scale, {"width": 3}),
    ]
    refused = [visitor.send(method, path, json=body) for method, path, body in writes]
    assert [answer.status_code for answer in refused] == [403, 403, 403]
    assert "deletionTimestamp" not in (await kube.get(JOB.path(namespace, NAME)))["metadata"]
    assert (await kube.get(region.path))["spec"]["width"] == 1

    csrf, visitor.csrf = visitor.csrf, ""
    assert visitor.send("GET", job).status_code == 403
    visitor.csrf = csrf
    assert visitor.send("DELETE", f"{API}/session").status_code == 200
    assert visitor.send("GET", job).status_code == 401


async def test_an_owner_may_do_all_that_the_page_offers(
    cluster: Cluster, kube: KubeClient, region: PlayedRegion, until: Any
) -> None:
    namespace = region.namespace
    await play_job(kube, namespace)
    owner = await account(kube, namespace, "owner", "*")
    visitor = Visitor(cluster)
    assert visitor.sign_in((await linked(cluster, owner)).partition("ticket=")[2]).ok
    job = f"{API}/namespaces/{namespace}/jobs/{NAME}"

    async def readable() -> bool:
        return visitor.send("GET", job).status_code == 200

    await until(readable, 30)
    assert visitor.send("POST", f"{job}/savepoints", json={"name": "mine"}).ok
    saved = await kube.get(SAVEPOINT.path(namespace, "mine"))
    assert saved["spec"]["job"] == NAME
    scale = f"/api/v1/namespaces/{namespace}/regions/flights-enrich/scale"
    assert visitor.send("PUT", scale, json={"width": 3}).ok
    assert (await kube.get(region.path))["spec"]["width"] == 3
    assert visitor.send("DELETE", job).ok
    assert await kube.find(JOB.path(namespace, NAME)) is None


def play_load(region: PlayedRegion, arriving: float) -> None:
    """Play a load of the widened region, whose channels can do 200 records/s each."""
    region.load(arriving=arriving, processed=2 * arriving, busy=arriving / 200 / len(CHANNELS))


async def play_hills(region: PlayedRegion) -> None:
    """Play four minutes of a load that goes up and down: a picture shows more of an hour then."""
    for step in range(24):
        play_load(region, 340 + 30 * math.sin(step / 3.5))
        await asyncio.sleep(10)


async def widen(region: PlayedRegion) -> None:
    """Play an operator that answers more than twice the load with two more channels: 85 % of what
    the one with two of the four shards can do, so that this width is kept."""
    play_load(region, 340)
    kube, namespace = region.kube, region.namespace
    for pe in CHANNELS[1:]:
        await region.begin(pe.number, pe.channel or 0)
    await play_elements(kube, namespace, CHANNELS[1:], (*OTHERS, *CHANNELS))
    await kube.patch(region.path, {"spec": {"width": len(CHANNELS)}})
    ended = datetime.now(UTC)
    requested, decided, serving, finished = (
        (ended - timedelta(seconds=ago)).isoformat() for ago in (7, 2.5, 2, 0)
    )
    times = {"requestedAt": requested, "decidedAt": decided, "servingAt": serving}
    widths = {"fromWidth": 1, "toWidth": len(CHANNELS), "epoch": 2}
    change = {**widths, **times, "finishedAt": finished, "pauseSecondsMax": 0.4}
    await region.status(width=len(CHANNELS), changes=[change])


async def open_job(page: Browser, namespace: str) -> None:
    """Go to the job, its stage and a log, by keyboard; close the log."""
    await page.run(f"location.hash = '#/{namespace}'")
    await page.until("document.querySelector('tbody a')")
    await page.run("document.querySelector('tbody a').focus()")
    await page.key("Enter")
    await page.until("document.querySelectorAll('.node').length === 4")
    await page.until("document.querySelector('.plot')", 90)

    await page.run("document.querySelector('[data-key=stage-enrich]').focus()")
    await page.key("Enter")
    await page.until("document.querySelector('td button')")
    await page.run("document.querySelector('td button').click()")
    await page.until("document.querySelector('.log')?.textContent")
    await page.run("document.querySelector('td button').click()")
    await page.until("!document.querySelector('.log')")


async def sign_in_elsewhere(page: Browser, cluster: Cluster, owner: str) -> None:
    """Sign the browser in anew as another tab does: the page says so, also if it is left then."""
    for leave in (False, True):
        ticket = (await linked(cluster, owner)).partition("ticket=")[2]
        again = SIGN_IN_ELSEWHERE % (json.dumps(ticket), json.dumps(leave))
        assert await page.run(again) == 200
        await page.until("document.querySelector('.door [role=alert]')")
        words = await page.run("document.querySelector('.door [role=alert]').textContent")
        assert "another sign-in in this browser" in words
        assert await page.run("document.getElementById('leave').hidden")
        await page.go(await linked(cluster, owner))
        await page.until("document.querySelector('#space')")


@pytest.mark.skipif(
    PROGRAM is None, reason="NO CHROMIUM: apt-get install chromium to test the page"
)
async def test_in_a_browser(
    cluster: Cluster, kube: KubeClient, region: PlayedRegion, until: Any, tmp_path: Path
) -> None:
    """From the link to a width that was set by keyboard, a replay, a savepoint that is taken, and a
    job that is cancelled. On the way it takes the pictures of the documentation: those in
    docs/images are made with STREAMGRAFT_PICTURES=FOLDER, in a few minutes more, and pngquant."""
    namespace = region.namespace
    await play_job(kube, namespace, (*OTHERS, CHANNELS[0]))
    region.load(arriving=150, processed=300, busy=0.75)
    owner = await account(kube, namespace, "owner", "*")
    pictures = Path(os.environ.get("STREAMGRAFT_PICTURES", tmp_path))
    async with browser(tmp_path / "profile") as page:
        await page.dress("light")
        await page.go(await linked(cluster, owner))
        await page.until("document.querySelector('#space')")
        await open_job(page, namespace)
        await page.until("!document.getElementById('busy-flights-enrich').disabled", 90)
        await page.run("document.getElementById('busy-flights-enrich').focus()")
        await page.key("ArrowLeft")
        # Asked for anew every half minute: a replay needs a minute whose rates are known.
        verdict = "document.querySelector('output').textContent"
        await page.until(f"/75 % .* channel-hours.* Really: /.test({verdict})", 150)
        assert await page.run("document.querySelector('.plot .guess') !== null")
        await widen(region)
        bar = "document.querySelector('.change .span')"
        await page.until(f"{bar}?.ariaLabel === '{TIMELINE}' && {bar}.children.length === 3")
        decided = "document.querySelector('.why').textContent.includes('the decision is 3')"
        await page.until(f"{WIDENED}.test({FIGURES}.join()) && {decided}", 150)
        await page.until(f"{verdict}.includes('Really: 1 width change,')")
        if pictures != tmp_path:
            await play_hills(region)
        await page.run("document.activeElement.blur()")
        await page.picture(pictures / "console-light.png")
        await page.dress("dark")
        await page.until("document.documentElement.dataset.theme === 'dark'")
        await page.picture(pictures / "console-dark.png")

        field = "document.getElementById('width-flights-enrich')"
        await page.run(f"{field}.focus(), {field}.value = {MAX_WIDTH}")
        await page.key("Enter")

        async def widened() -> bool:
            return bool((await kube.get(region.path))["spec"]["width"] == MAX_WIDTH)

        await until(widened, 30)
        await page.run("document.getElementById('savepoint').click()")

        async def saved() -> bool:
            items = (await kube.get(SAVEPOINT.path(namespace)))["items"]
            return [item["spec"]["job"] for item in items] == [NAME]

        await until(saved, 30)
        assert await page.run(ALL_ARE_NAMED)
        assert await page.run(DRAW_A_THOUSAND) == 1000
        await page.run("document.getElementById('cancel').click()")
        await page.until("document.querySelector('dialog[open]')")
        await page.run("document.querySelector('dialog button[value=yes]').click()")

        async def gone() -> bool:
            return await kube.find(JOB.path(namespace, NAME)) is None

        await until(gone, 30)
        assert await page.run(DRAW_AMID_AN_EDIT) == [2, False]

        await sign_in_elsewhere(page, cluster, owner)
        await page.run("document.querySelector('#space').remove()")
        await page.call("Page.reload")
        await page.until("document.querySelector('#space')")
        assert page.errors == []


TIMELINE = "warm-up 4.50 s, shards move 0.50 s, old channels close 2.00 s"
FIGURES = "[...document.querySelectorAll('.figure b')].map((figure) => figure.textContent)"
WIDENED = "/^3 of 4,3[345].,3[345].,0,5[5678] %,3$/"
"""What the figures are then: channels, records/s, records that wait, utilization, demand."""
ALL_ARE_NAMED = """
[...document.querySelectorAll('button, input, a, [tabindex]')].every((item) =>
  item.textContent.trim() || item.ariaLabel || item.labels?.length || item.id === 'main')"""
PES = [
    {"id": n, "name": f"j-{n}", "phase": "Running", "busy": 0.5, "lag": 1, "channel": n}
    for n in range(500)
]
THOUSAND = {
    "name": "j",
    "regions": [],
    "streams": [{"from": "a", "to": "b", "topic": "t"}],
    "stages": [{"name": name, "region": None, "pes": PES} for name in "ab"],
}
AMID_AN_EDIT = {
    **THOUSAND,
    "stages": [{"name": name, "region": None, "pes": PES[:1]} for name in ("b", "new")],
    "streams": [
        {"from": "a", "to": "b", "topic": "t"},
        {"from": "b", "to": "a", "topic": "t"},
        {"from": None, "to": None, "topic": "t"},
        {"from": None, "to": "b", "topic": "t"},
        {"from": "b", "to": "new", "topic": "t"},
    ],
}
"""With streams of a stage that is not there (any more)."""
DRAW_AMID_AN_EDIT = f"""(async () => {{
  const {{ graph }} = await import('/console/graph.js');
  const drawn = graph({json.dumps(AMID_AN_EDIT)}, null, () => null);
  return [drawn.querySelectorAll('path').length, drawn.outerHTML.includes('NaN')];
}})()"""
"""How many streams are drawn, and whether places are unknown."""
SIGN_IN_ELSEWHERE = """(async () => {
  const headers = { 'X-Streamgraft-Ticket': %s };
  const answer = await fetch('/console/api/session', { method: 'POST', headers });
  if (%s) document.getElementById('leave').click();
  return answer.status;
})()"""
"""As another tab does: the word of the page stays what it was. Then maybe sign out here."""
DRAW_A_THOUSAND = f"""(async () => {{
  const {{ graph }} = await import('/console/graph.js');
  const drawn = graph({json.dumps(THOUSAND)}, null, () => null);
  return drawn.querySelectorAll('.cell').length;
}})()"""
"""The cells of the picture of a job with a thousand PEs."""
