"""Eight slots in one browser: what breaks in one is its fault alone, and nothing stays behind."""

import asyncio
import shutil
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import numpy as np
import pytest
from web_pages import hang

import turngym
from turngym.envs.web.driver import thread as browsers
from turngym.envs.web.driver.chromium import PROGRAMS
from turngym.envs.web.driver.tab import Tab
from turngym.envs.web.driver.thread import BrowserThread, close_shared_pool
from turngym.system.processes import OncePerProcess, descendants, has_ended

pytest.importorskip("playwright", reason="needs the optional package playwright")
if not any(map(shutil.which, PROGRAMS)):
    pytest.skip("needs the browser Chromium: apt-get install chromium-headless-shell", allow_module_level=True)
pytestmark = pytest.mark.integration
SLOTS = 8
HUNG, CRASHED, LEFT, DIALOG, DOWNLOAD, POPUP = range(6)
"""What happens in the first slots; the last two are left alone."""
BROKEN = [slot in (HUNG, CRASHED, LEFT) for slot in range(SLOTS)]


@pytest.fixture
def thread(monkeypatch: pytest.MonkeyPatch) -> Iterator[BrowserThread]:
    """Shared browsers that take a page for hung after twenty seconds."""
    close_shared_pool()
    running = BrowserThread(timeout_seconds=20.0)
    monkeypatch.setattr(browsers, "_shared", OncePerProcess(lambda: running))
    yield running
    running.stop()


async def until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so, within the patience of a slow machine."""
    for _ in range(1200):
        if is_so():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it did not happen")


async def crash(tab: Tab) -> None:
    session = await tab.context.new_cdp_session(tab.page)
    asyncio.ensure_future(session.send("Page.crash")).add_done_callback(lambda done: done.exception())
    await until(lambda: bool(tab.fault))


async def leave(tab: Tab) -> None:
    await tab.ask("void (location.href = 'http://example.com/')")
    await until(lambda: bool(tab._left))


async def do(tab: Tab, script: str, kind: str) -> None:
    """Let a page try something, and wait until that has been stopped and counted."""
    asyncio.ensure_future(tab.page.evaluate(script)).add_done_callback(lambda done: done.exception())
    await until(lambda: tab.events[kind] > 0)


SAVE = "() => { const a = document.createElement('a'); a.href = 'data:text/plain,x'; a.download = 'x.txt'; a.click(); }"


def everything(tabs: list[Tab]) -> list[Coroutine[Any, Any, None]]:
    return [
        crash(tabs[CRASHED]),
        leave(tabs[LEFT]),
        do(tabs[DIALOG], "() => { alert('hello'); }", "dialog"),
        do(tabs[DOWNLOAD], SAVE, "download"),
        do(tabs[POPUP], "() => { window.open('about:blank'); }", "popup"),
    ]


async def together(work: list[Coroutine[Any, Any, None]]) -> None:
    await asyncio.gather(*work)


def expert_actions(vector: Any) -> list[str]:
    return [str(env.expert_action()) for env in envs_of(vector)]


def envs_of(vector: Any) -> list[Any]:
    return [worker.lane.slot._env for worker in vector._backend._workers]


def same(one: Any, other: Any, slots: list[int]) -> None:
    """Demand that two answers of vectors are equal in some slots: text, reward, ends and what is told beside them."""
    for part, twin in zip(one[:-1], other[:-1], strict=True):
        assert [part[slot] for slot in slots] == [twin[slot] for slot in slots]
    for key in ("anchor", "success", "progress", "score", "fault", "action_is_valid"):
        assert [one[-1][key][slot] for slot in slots] == [other[-1][key][slot] for slot in slots]


def test_what_breaks_in_one_of_eight_slots_leaves_the_others_alone(thread: BrowserThread) -> None:
    options: dict[str, Any] = {"backend": "asyncio", "autoreset_mode": "disabled", "products": 120, "max_turns": 40}
    vector = turngym.make_vec("turngym/WebShop-v0", SLOTS, mode="browser", **options)
    twin = turngym.make_vec("turngym/WebShop-v0", SLOTS, **options)
    seeds, family = list(range(SLOTS)), set[int]()
    try:
        same(vector.reset(seed=seeds), twin.reset(seed=seeds), seeds)
        assert len(thread.pool.browsers) == 1
        family.update(descendants(thread.pool.browsers[0].process))
        actions = expert_actions(twin)
        same(vector.step(actions), twin.step(actions), seeds)

        tabs = [env._tab._tab for env in envs_of(vector)]
        thread.run(together(everything(tabs)))
        thread.run(hang(tabs[HUNG]))
        actions = expert_actions(twin)
        answer, told = vector.step(actions), twin.step(actions)
        assert not any(answer[2])
        assert [bool(text) for text in answer[4]["fault"]] == list(answer[3]) == BROKEN, list(answer[4]["fault"])
        whole = [slot for slot in seeds if not BROKEN[slot]]
        same(answer, told, whole)
        counts = thread.pool.counts
        assert all(counts[kind] >= 1 for kind in ("hang", "navigation", "dialog", "download", "popup"))

        mask = {"reset_mask": np.array(BROKEN)}
        for each in (vector, twin):
            each.reset(seed=seeds, options=mask)
        family.update(*(descendants(host.process) for host in thread.pool.browsers))
        lost = counts["browser_lost"]
        for host in list(thread.pool.browsers):
            host.kill()
        for _ in range(2):
            actions = ["search[tea]" if slot in (HUNG, CRASHED, LEFT) else "click[< prev]" for slot in seeds]
            same(vector.step(actions), twin.step(actions), seeds)
        assert counts["browser_lost"] > lost
        family.update(*(descendants(host.process) for host in thread.pool.browsers))
    finally:
        vector.close()
        twin.close()
    thread.stop()
    assert len(family) > SLOTS
    asyncio.run(until(lambda: all(map(has_ended, family))))
