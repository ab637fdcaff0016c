"""The console's page in a real Chromium, before an adapter that is played: what it shows and sends,
whatever the answers and the address are."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from tests.browser import PROGRAM, Browser, browser
from tests.metrics_adapter.played_adapter import API, PlayedAdapter, element

pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="NO CHROMIUM: apt-get install chromium to test the page"
)

TITLE = "document.querySelector('h1')?.firstChild.textContent"
WIDTH = "document.getElementById('width-j-r')"
SET_WIDTH = f"{WIDTH}.value = '%s', {WIDTH}.form.querySelector('button').click()"
ANSWER = "document.querySelector('dialog[open] button[value=%s]').click()"
QUESTION = "document.querySelector('dialog[open] h2')"
ARRIVE = "document.querySelectorAll('.figure b')[1]?.textContent"
"""Records/s that arrive."""
BUSY = "document.getElementById('busy-j-r')"
RELEASE = f"{BUSY}.dispatchEvent(new Event('change'))"
VERDICT = "document.querySelector('output').textContent"
OPEN_LOG = "document.querySelector('[data-key=log-p%d]').click()"
HEADING, LOG = (f"document.querySelector('{tag}').textContent" for tag in ("h3", ".log"))
OPEN_STAGE = "document.querySelector('[data-key=stage-st]').dispatchEvent(new Event('click'))"
NAMES = (
    "[...document.querySelectorAll('[aria-label=Stage] td:first-child')].map((d) => d.innerText)"
)
ALL = "document.querySelector('[data-key=all]')"
CLOCK = "document.getElementById('live').textContent"
NOTE_ANNOUNCED = """
window.heard = [];
for (const place of document.querySelectorAll('[role=status], [role=alert], [aria-live], output'))
  new MutationObserver(() => place.textContent && heard.push(place.textContent))
    .observe(place, { childList: true, characterData: true, subtree: true })"""
"""Note what screen readers say unasked."""
NOTE_LOGS = f"""
window.noted = [];
new MutationObserver(() => document.querySelector('h3') && noted.push([{HEADING}, {LOG}]))
  .observe(document.querySelector('[aria-label=Stage]'), {{ childList: true, subtree: true }})"""
"""Note each text of a log with its heading."""


@pytest.fixture
def adapter() -> PlayedAdapter:
    """An adapter."""
    return PlayedAdapter()


@pytest.fixture
async def console(adapter: PlayedAdapter) -> AsyncIterator[str]:
    """Serve the console; return its address."""
    runner = web.ServerRunner(web.Server(adapter))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/console/"
    await runner.cleanup()


@pytest.fixture
async def page(console: str, tmp_path: Path) -> AsyncIterator[Browser]:
    """A browser that is signed in, at the job. No script may have failed in the end."""
    async with browser(tmp_path / "profile") as page:
        await page.go(f"{console}#ticket=t")
        await page.until("document.querySelector('#space')")
        await at_job(page)
        yield page
        assert page.errors == []


async def at_job(page: Browser) -> None:
    """Go to the job and wait for it."""
    await page.run("location.hash = '#/n/j'")
    await page.until("document.querySelector('.plot')")


async def test_no_region_sleeps_by_mistake(page: Browser, adapter: PlayedAdapter) -> None:
    """An empty field is no width, and 0 is asked about."""
    scale = "/api/v1/namespaces/n/regions/j-r/scale"
    await page.run(SET_WIDTH % "")
    await page.run(SET_WIDTH % 0)
    await page.until(QUESTION)
    assert "region r to sleep" in await page.run(f"{QUESTION}.textContent")
    await page.run(ANSWER % "no")
    await page.until(f"!{QUESTION}")
    await page.run(SET_WIDTH % 3)
    await page.until("document.querySelector('#said div')")
    assert adapter.written == [(scale, {"width": 3})]
    await page.run(SET_WIDTH % 0)
    await page.until(QUESTION)
    await page.run(ANSWER % "yes")
    await page.until("document.querySelector('#said').innerText.includes(': 0 channels wanted')")
    assert adapter.written[1:] == [(scale, {"width": 0})]


async def test_old_rates_are_not_shown_as_current(page: Browser, adapter: PlayedAdapter) -> None:
    """By the clock of the adapter: that of the browser may be wrong."""
    await page.run("Date.now = ((now) => () => now() + 3600000)(Date.now)")
    adapter.rates[-1] = 500
    await page.until(f"{ARRIVE} === '500'")
    adapter.age = 40
    await page.until(f"{ARRIVE} === '\\u2013'")
    assert "now \u2013 records" in await page.run("document.querySelector('.plot').ariaLabel")


async def test_the_slider_replays_the_last_hour(page: Browser, adapter: PlayedAdapter) -> None:
    """In words, and drawn but where nothing is known; asked for when the slider is let go."""
    adapter.rates = [400, 400, 400, None, None, None, None, 400, 400]
    await page.until("document.querySelectorAll('.plot .rate').length === 2")
    assert await page.run(VERDICT) == "80 % of their time"
    await page.run(f"{BUSY}.value = '60', {BUSY}.dispatchEvent(new Event('input'))")
    assert await page.run(VERDICT) == "60 % of their time"
    assert not [path for path in adapter.asked if "/replay" in path]
    await page.run(RELEASE)
    await page.until(f"{VERDICT}.includes('Really')")
    assert await page.run(VERDICT) == (
        "60 % of their time: in 59 min 1 width change, 4.3 channel-hours, at most 1,234 records not"
        " committed, the longest wait 12.0 s. Really: 3 width changes, 4.0 channel-hours, at most"
        " an unknown number of records not committed"
    )
    assert await page.run("document.querySelectorAll('.plot .guess').length") == 2
    (asked,) = [path for path in adapter.asked if "/replay" in path]
    assert asked == "/api/v1/namespaces/n/regions/j-r/replay?targetUtilization=0.6"


async def test_why_there_is_no_replay_is_said(page: Browser, adapter: PlayedAdapter) -> None:
    """And the one before is not drawn any more."""
    await page.until(f"{BUSY}.disabled === false")
    await page.run(f"{BUSY}.value = '60', {RELEASE}")
    await page.until("document.querySelector('.plot .guess')")
    adapter.refusal = "no replay of n/j-r: NoData: rates of 30 s of the last hour are known"
    await page.run(f"{BUSY}.value = '40', {RELEASE}")
    await page.until(f"{VERDICT} === '40 % of their time: {adapter.refusal}'")
    assert not await page.run("document.querySelector('.plot .guess')")


async def test_a_replay_is_asked_for_anew_as_the_hour_moves_on(
    page: Browser, adapter: PlayedAdapter
) -> None:
    await page.until(f"{BUSY}.disabled === false")
    await page.run(f"{BUSY}.value = '60', {RELEASE}")
    await page.until("document.querySelector('.plot .guess')")
    adapter.refusal = "gone"
    await page.run("performance.now = () => 600000")
    await page.until(f"{VERDICT} === '60 % of their time: gone'")


async def test_a_log_stands_below_its_own_heading(page: Browser, adapter: PlayedAdapter) -> None:
    """Also while another one that was opened before is still on its way."""
    adapter.held["p1"] = asyncio.Event()
    await page.run(OPEN_STAGE)
    buttons = "[...document.querySelectorAll('[data-key^=log-]')].map((button) => button.ariaLabel)"
    assert sorted(await page.run(buttons)) == ["Log of p0", "Log of p1"]
    await page.run(NOTE_LOGS)
    await page.run(OPEN_LOG % 0)
    await page.until(f"{LOG} === 'said by p0'")
    await page.run(OPEN_LOG % 1)
    await page.until(f"{HEADING} === 'Log of p1'")
    await page.run(OPEN_LOG % 0)
    await page.until(f"{LOG} === 'said by p0'")
    adapter.held["p1"].set()
    await page.until("performance.getEntriesByType('resource').some((e) => /p1.log/.test(e.name))")
    await page.run(OPEN_LOG % 1)
    await page.until(f"{LOG} === 'said by p1'")
    seen = {tuple(item) for item in await page.run("noted")}
    texts = {(f"Log of {pod}", text) for pod in ("p0", "p1") for text in ("", f"said by {pod}")}
    assert seen == texts


async def test_what_does_not_run_stands_first(page: Browser, adapter: PlayedAdapter) -> None:
    """It has no busy time; in a wide stage all but the first rows are left out."""
    adapter.pes = [element(number, busy=number / 100) for number in range(61)]
    adapter.pes += [
        element(61, phase="Pending", busy=None),
        element(62, phase="Starting", busy=None),
        element(63, phase="Failed", busy=None, message="out of memory"),
    ]
    await page.until("document.querySelectorAll('.cell').length === 64")
    await page.run(OPEN_STAGE)
    assert await page.run(NAMES) == [f"j-{number}" for number in (63, 62, 61, *range(60, 38, -1))]
    row = "document.querySelector('[aria-label=Stage] tbody tr')"
    assert "out of memory" in await page.run(f"{row}.textContent")
    await page.run(f"{row}.querySelector('button').click()")
    await page.until(f"{LOG} === 'said by p63'")


async def test_all_of_a_wide_stage_is_shown_by_keyboard(
    page: Browser, adapter: PlayedAdapter
) -> None:
    """The button keeps the focus, also as the page is drawn anew; another stage begins short."""
    await page.run(OPEN_STAGE)
    assert not await page.run(ALL)  # of two
    adapter.pes = [element(number) for number in range(64)]
    await page.until(f"{ALL}?.innerText === 'Show all 64'")
    assert "25 of 64" in await page.run(f"{ALL}.parentElement.innerText")
    await page.run(f"{ALL}.focus()")
    await page.key("Enter")
    assert await page.run(NAMES) == [f"j-{number}" for number in range(64)]
    await page.run(f"window.drawn = {ALL}")
    await page.until(f"{ALL} !== drawn")
    assert await page.run(f"document.activeElement === {ALL}")
    await page.key("Enter")
    assert len(await page.run(NAMES)) == 25
    await page.key("Enter")
    await page.run(OPEN_STAGE)
    await page.run(OPEN_STAGE)
    assert len(await page.run(NAMES)) == 25


async def test_screen_readers_hear_when_the_page_stops_and_goes_on(
    page: Browser, adapter: PlayedAdapter
) -> None:
    """Once each, and nothing of the clock, which goes on meanwhile."""
    await page.run(NOTE_ANNOUNCED)
    for _ in range(2):
        await page.run(f"window.told = {CLOCK}")
        await page.until(f"{CLOCK} !== told")
    assert await page.run("heard") == []
    adapter.down = True
    await page.until(f"{CLOCK} === 'no API server'")
    asked = len(adapter.asked)
    async with asyncio.timeout(30):
        while len(adapter.asked) < asked + 2:
            await asyncio.sleep(0.1)
    adapter.down = False
    await page.until(f"{CLOCK}.startsWith('Live')")
    await page.run(f"window.told = {CLOCK}")
    await page.until(f"{CLOCK} !== told")
    assert await page.run("heard") == ["Not live: no API server", "Live again"]


async def test_a_region_that_an_edit_removed_goes(page: Browser, adapter: PlayedAdapter) -> None:
    regions = (
        "[...document.querySelectorAll('[aria-label^=Region]')].map((r) => r.ariaLabel).join()"
    )
    adapter.regions = ["r", "s"]
    await page.until(f"{regions} === 'Region r,Region s'")
    adapter.regions = ["s"]
    await page.until(f"{regions} === 'Region s'")
    adapter.regions = ["s", "r"]
    await page.until(f"{regions} === 'Region s,Region r'")


async def test_an_address_of_no_job_leads_to_all_jobs(
    page: Browser, adapter: PlayedAdapter
) -> None:
    for place in (
        "#/default/harmless%2F..%2F..%2F..%2Fprod%2Fjobs%2Fpayments",
        *("#/prod/jobs/payments", "#/../payments", "#//payments", "#/prod/Payments"),
        *("#/%", "#/prod/%"),
    ):
        before = len(adapter.asked)
        await page.run(f"location.hash = '{place}'")
        await page.until(f"{TITLE} === 'Jobs'")
        await page.until("document.getElementById('live').textContent")
        assert f"{API}/jobs?namespace=" in adapter.asked[before:], place
        await at_job(page)
    assert not [path for path in adapter.asked if "prod" in path or "payments" in path]


async def test_names_lead_to_no_other_path(page: Browser, adapter: PlayedAdapter) -> None:
    calls = "api.readJob(...bad), api.readRegion(...bad), api.podLog(...bad)"
    await page.run(
        f"""import('/console/api.js').then((api) => {{
        const bad = ['a/../b', '%2F?x'];
        return Promise.all([{calls}]).then(() => null); }})"""
    )
    space, name = "namespaces/a%2F..%2Fb", "%252F%3Fx"
    wanted = {f"{API}/{space}/jobs/{name}", f"/api/v1/{space}/regions/{name}"}
    assert {*wanted, f"{API}/{space}/pods/{name}/log?tail=300"} <= set(adapter.asked)


async def test_what_is_no_namespace_is_not_looked_for(
    page: Browser, adapter: PlayedAdapter
) -> None:
    await page.run("location.hash = '#/'")
    await page.until("document.querySelector('#space')")
    field = "document.querySelector('#space')"
    for text in ("%", "two words"):
        await page.run(f"{field}.value = '{text}', {field}.form.querySelector('button').click()")
        assert await page.run("location.hash") == "#/"
    asked = len(adapter.asked)
    async with asyncio.timeout(30):
        while len(adapter.asked) == asked:  # it is fresh still
            await asyncio.sleep(0.1)
    await page.run(f"{field}.value = 'n', {field}.form.querySelector('button').click()")
    await page.until("location.hash === '#/n'")


async def test_the_question_names_what_is_cancelled(page: Browser, adapter: PlayedAdapter) -> None:
    """Namespace and name are those of the answer."""
    adapter.job = ("prod", "payments")
    await page.until(f"{TITLE} === 'payments'")
    await page.run("document.getElementById('cancel').click()")
    await page.until(QUESTION)
    assert await page.run(f"{QUESTION}.textContent") == "Cancel prod/payments?"
    await page.run(ANSWER % "yes")
    await page.until("document.querySelector('#said div')")
    assert adapter.written == [(f"{API}/namespaces/prod/jobs/payments", None)]


async def test_a_jump_to_the_content_stays_on_the_page(page: Browser) -> None:
    await page.run("document.querySelector('.skip').click()")
    assert await page.run("[location.hash, document.activeElement.id]") == ["#/n/j", "main"]
