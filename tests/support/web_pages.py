"""Pages of our own whose button does what a script says, and the tabs that show them."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from turngym.envs.web.driver.tab import Tab
from turngym.envs.web.driver.thread import BrowserThread

T = TypeVar("T")
PAGE = """<!doctype html><title>t</title><body style="margin:0">
<button id=b style="width:200px;height:100px">go</button>
<p id=said>quiet</p><script>
const act = () => { %s };
document.getElementById("b").onclick = () => { document.getElementById("said").textContent = "loud"; act(); };
</script>"""
MIDDLE = (100.0, 50.0)


async def hang(tab: Tab) -> None:
    """Let a page compute for ever; what is sent to it from now on comes after that."""
    asking = asyncio.ensure_future(tab._session.send("Runtime.evaluate", {"expression": "for (;;) {}"}))
    asking.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.sleep(0)  # it is sent once its task has begun


class Pages:
    """Opens pages whose button does what a script says."""

    def __init__(self, thread: BrowserThread, folder: Path) -> None:
        self.thread, self.folder = thread, folder / "site"
        self.folder.mkdir()
        self.tabs: list[Tab] = []

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.thread.run(work)

    def open(self, script: str = "", *, is_steered: bool = False) -> Tab:
        file = self.folder / f"page{len(self.tabs)}.html"
        file.write_text(PAGE % script, "utf8")
        tab = self.run(self.thread.pool.open([self.folder.as_uri() + "/"], is_steered=is_steered))
        self.tabs.append(tab)
        self.run(tab.goto(file.as_uri()))
        return tab

    def said(self, tab: Tab) -> str:
        told: str = self.run(tab.ask("document.getElementById('said').textContent"))
        return told
