"""The pool of browsers, against pages that do all they can to break out, hang or take the browser with them."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from web_pages import MIDDLE, Pages

from turngym.envs.web.driver.chromium import PROGRAMS
from turngym.envs.web.driver.tab import BrowserFault, BrowserGone, Tab
from turngym.envs.web.driver.thread import BrowserThread
from turngym.system.processes import descendants

pytest.importorskip("playwright", reason="needs the optional package playwright")
if not any(map(shutil.which, PROGRAMS)):
    pytest.skip("needs the browser Chromium: apt-get install chromium-headless-shell", allow_module_level=True)
pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def thread() -> Iterator[BrowserThread]:
    running = BrowserThread(timeout_seconds=8.0)
    yield running
    running.stop()


@pytest.fixture
def pages(thread: BrowserThread, tmp_path: Path) -> Iterator[Pages]:
    made = Pages(thread, tmp_path)
    yield made
    for tab in made.tabs:
        thread.run(thread.pool.release(tab))
    assert all(not host.tabs for host in thread.pool.browsers)


def settle(pages: Pages, tab: Tab) -> None:
    """Let the browser tell what it has to tell of a tab."""
    for _ in range(5):
        pages.run(asyncio.sleep(0.05))
        pages.run(tab.ask("1"))


def test_a_click_reaches_the_page_and_contexts_share_nothing(pages: Pages) -> None:
    one, other = pages.open("sessionStorage.x = document.cookie = 'x=1'"), pages.open()
    pages.run(one.click(*MIDDLE))
    assert pages.said(one) == "loud" and pages.said(other) == "quiet"
    assert one.context is not other.context
    assert pages.run(other.ask("String(sessionStorage.x) + document.cookie")) == "undefined"


@pytest.mark.parametrize(
    ("kind", "script"),
    [
        ("dialog", "alert('hello')"),
        ("dialog", "document.title = String(confirm('sure?')) + String(prompt('name?'))"),
        ("popup", "window.open('about:blank')"),
        ("popup", "const a = document.createElement('a'); a.href = location.href; a.target = '_blank'; a.click()"),
    ],
)
def test_what_a_page_opens_is_closed_and_counted_and_the_page_goes_on(pages: Pages, kind: str, script: str) -> None:
    tab = pages.open(script)
    before = pages.thread.pool.counts[kind]
    pages.run(tab.click(*MIDDLE))
    settle(pages, tab)
    assert tab.events[kind] >= 1 and pages.thread.pool.counts[kind] > before
    assert pages.said(tab) == "loud" and not tab.fault
    assert len(tab.context.pages) == 1


def test_a_download_is_refused_and_leaves_no_file(pages: Pages) -> None:
    script = "const a = document.createElement('a'); a.href = 'data:text/plain,x'; a.download = 'x.txt'; a.click()"
    tab = pages.open(script)
    pages.run(tab.click(*MIDDLE))
    settle(pages, tab)
    assert tab.events["download"] == 1 and pages.said(tab) == "loud"


@pytest.mark.parametrize(
    "target", ["http://example.com/", "file:///etc/hosts", "data:text/html,away", "chrome://version"]
)
def test_a_page_that_leaves_its_addresses_is_a_fault(pages: Pages, target: str) -> None:
    tab = pages.open(f"location.href = {target!r}")
    pages.run(tab.click(*MIDDLE))
    if target.startswith(("data:", "chrome:")):  # the browser itself refuses these
        settle(pages, tab)
        assert pages.said(tab) == "loud"
        return
    with pytest.raises(BrowserFault, match="the page"):
        for _ in range(100):
            pages.run(asyncio.sleep(0.05))
            pages.run(tab.ask("1"))
            tab.require_home()


def test_a_tab_opens_only_what_it_may_show(pages: Pages) -> None:
    tab = pages.open()
    with pytest.raises(BrowserFault, match="none of the addresses"):
        pages.run(tab.goto("file:///etc/hosts"))


def test_no_request_leaves_the_allowed_addresses(pages: Pages) -> None:
    tab = pages.open()
    answer = pages.run(tab.ask("fetch('http://127.0.0.1:9/').then(() => 'reached', error => 'refused')"))
    assert answer == "refused"


def test_a_tab_of_a_server_reaches_that_server_alone(thread: BrowserThread) -> None:
    async def serve() -> tuple[Any, int, list[bytes]]:
        seen: list[bytes] = []

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.append(await reader.readline())
            body = b"<p id=said>served</p>"
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n" + body)
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        return server, server.sockets[0].getsockname()[1], seen

    own, port, _ = thread.run(serve())
    foreign, other_port, seen = thread.run(serve())
    tab = thread.run(thread.pool.open([f"http://127.0.0.1:{port}/"]))
    try:
        thread.run(tab.goto(f"http://127.0.0.1:{port}/"))
        assert thread.run(tab.ask("document.getElementById('said').textContent")) == "served"
        ask = f"fetch('http://127.0.0.1:{other_port}/', {{mode: 'no-cors'}}).then(() => 'reached', error => 'refused')"
        assert thread.run(tab.ask(ask)) == "refused" and not seen
    finally:
        thread.run(thread.pool.release(tab))
        own.close()
        foreign.close()


def test_a_page_that_hangs_is_a_fault_in_time_and_its_neighbour_goes_on(tmp_path: Path) -> None:
    thread = BrowserThread(timeout_seconds=2.0)
    made = Pages(thread, tmp_path)
    try:
        hung, neighbour = made.open("for (;;) {}"), made.open()
        with pytest.raises(BrowserFault, match="does not answer"):
            made.run(hung.click(*MIDDLE))
        assert thread.pool.counts["hang"] >= 1
        made.run(neighbour.click(*MIDDLE))
        assert made.said(neighbour) == "loud"
        made.run(thread.pool.release(hung))
        assert made.said(neighbour) == "loud"
        with pytest.raises(BrowserFault):
            made.run(hung.ask("1"))
        made.run(thread.pool.release(neighbour))
        process = thread.pool.browsers[0].process if thread.pool.browsers else 0
        assert not process or len(descendants(process)) < 12
    finally:
        thread.stop()


def test_no_frame_is_on_its_way_when_the_work_that_it_was_drawn_for_is_done(pages: Pages) -> None:
    """A page that gets input while a frame is drawn may never end the frame, nor let its neighbours be drawn."""
    tab = pages.open(is_steered=True)
    if tab._frames is None:
        pytest.skip("only the program chromium-headless-shell draws when it is told to")
    brush = tab._frames._brush

    async def ask() -> tuple[int, bool]:
        return await tab.ask("7", frames_after=0.0), brush.locked()

    assert [pages.run(ask()) for _ in range(40)] == [(7, False)] * 40


def test_a_renderer_that_is_killed_is_a_fault_of_its_tab_alone(pages: Pages) -> None:
    one, other = pages.open(), pages.open()
    host = next(each for each in pages.thread.pool.browsers if one in each.tabs)
    before = set(descendants(host.process))
    extra = pages.open()
    renderers = [each for each in descendants(host.process) if each not in before and "renderer" in command(each)]
    for process in renderers:
        os.kill(process, signal.SIGKILL)
    with pytest.raises(BrowserFault) as caught:
        for _ in range(200):
            pages.run(asyncio.sleep(0.05))
            pages.run(extra.ask("1"))
    assert not isinstance(caught.value, BrowserGone)
    assert pages.said(one) == pages.said(other) == "quiet"


def command(process: int) -> str:
    try:
        return Path("/proc", str(process), "cmdline").read_text()
    except OSError:
        return ""


def test_a_browser_that_is_killed_is_replaced_and_leaves_no_process(tmp_path: Path) -> None:
    thread = BrowserThread()
    made = Pages(thread, tmp_path)
    try:
        tab = made.open()
        process = thread.pool.browsers[0].process
        family = descendants(process)
        assert len(family) > 2
        os.kill(process, signal.SIGKILL)
        with pytest.raises(BrowserGone):
            for _ in range(200):
                made.run(asyncio.sleep(0.05))
                made.run(tab.ask("1"))
        made.run(thread.pool.release(tab))
        fresh = made.open()
        assert made.said(fresh) == "quiet"
        assert thread.pool.counts["launched"] == 2
        assert gone(family)
    finally:
        thread.stop()


def gone(processes: list[int]) -> bool:
    deadline = time.monotonic() + 120
    while any(is_alive(each) for each in processes) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not any(is_alive(each) for each in processes)


def is_alive(process: int) -> bool:
    try:
        return ") Z " not in Path("/proc", str(process), "stat").read_text()
    except OSError:
        return False


def test_stopping_leaves_no_process(tmp_path: Path) -> None:
    thread = BrowserThread()
    made = Pages(thread, tmp_path)
    made.open()
    family = descendants(thread.pool.browsers[0].process)
    thread.stop()
    thread.stop()
    assert gone(family)


CHILD = """
import sys, time
from turngym.envs.web.driver.thread import shared_pool
thread = shared_pool()
thread.run(thread.pool.open(["file:///nowhere/"]))
from turngym.envs.web.driver.chromium import descendants
import os
print(*descendants(os.getpid())[1:], flush=True)
if sys.argv[1] == "wait":
    time.sleep(600)
"""


@pytest.mark.parametrize("how", ["exit", "wait"])
def test_a_process_that_ends_or_is_killed_takes_its_browser_with_it(how: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", CHILD, how], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    family = [int(each) for each in child.stdout.readline().split()]
    assert len(family) > 3
    if how == "wait":
        child.kill()
    child.wait(60)
    child.stdout.close()
    assert gone(family)
