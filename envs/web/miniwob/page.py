"""A page of MiniWoB++ in a tab: started from a seed, played turn by turn, restored by replaying."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from turngym.envs.web.driver.actions import read
from turngym.envs.web.driver.hands import act
from turngym.envs.web.driver.keeper import TabKeeper
from turngym.envs.web.driver.page import Node, read_nodes
from turngym.envs.web.driver.tab import BrowserFault, BrowserGone, Tab
from turngym.envs.web.driver.tree import Tree
from turngym.envs.web.miniwob.screen import Screen
from turngym.envs.web.miniwob.tasks import REWOUND, address, pages_folder, style_images

HIDDEN = ("query", "reward-display", "sync-task-cover", "click-canvas")
_READY = "(__turngym.advance(20), core.cover_div !== null && WOB_TASK_READY)"
_MOST_WAITS = 100
_PATIENCE = 0.02
# Nothing of a page is sent anywhere: a form that would be is left as it is, for the page to handle.
# A page that is rewound instead of loaded: see the table REWOUND.
_REWIND = """(() => {
  if (!__turngym.rewind()) return false;
  core.cover_div = document.getElementById("sync-task-cover");
  core.cover_div.onclick = () => core.startEpisodeReal();
  core.clickTrackCtx = core.attentionCtx = undefined;
  core.wob_latest = "-";
  core.wob_scores = [];
  core.EP_TIMER = core.CD_TIMER = core.ept0 = null;
  core.previousDOMInfo = {};
  return true;
})()"""
_START = """(async () => {
  await __turngym.preload(%s);
  Math.seedrandom(%d); core.EPISODE_MAX_TIME = %d;
  addEventListener("submit", event => event.preventDefault());
  core.startEpisodeReal();
  __turngym.advance(%d);
  await __turngym.pictures();
  return %s;
})()"""
_TURN = """(async () => {
  if (__turngym.isStale()) return { mouse: __turngym.mouse() };
  __turngym.advance(%d);
  await __turngym.pictures();
  return { mouse: __turngym.isStale() && __turngym.mouse(), screen: %s };
})()"""
_MOST_MOVES = 4
_LOOK = """(__turngym.mark(), {
  page: __turngym.observe(%s), goal: core.getUtterance(), done: WOB_DONE_GLOBAL, started: core.ept0 !== null,
  raw: Number(WOB_RAW_REWARD_GLOBAL), decayed: Number(WOB_REWARD_GLOBAL), reason: String(WOB_REWARD_REASON || "")})"""
LOOK = _LOOK % json.dumps(HIDDEN)
_SETTLE_MS = 20


_TOLD = {
    "dialog": "dialog was dismissed",
    "accepted": "dialog was accepted",
    "popup": "window was closed",
    "download": "download was cancelled",
}


class MiniWoBPage(TabKeeper):
    """The page behind one environment.

    Args:
        viewport: Width and height.
        turn_ms: How far a turn moves the page's clock.
        limit_ms: When the page's clock ends the episode.
        with_image: Whether every turn takes a screenshot.
        with_tree: Whether every turn reads the accessibility tree.
    """

    def __init__(
        self, viewport: tuple[int, int], turn_ms: int, limit_ms: int, *, with_image: bool, with_tree: bool = False
    ) -> None:
        super().__init__(viewport)
        self.turn_ms, self.limit_ms, self.with_image = turn_ms, limit_ms, with_image
        self._tree = Tree(HIDDEN) if with_tree else None
        self.events: Counter[str] = Counter()
        self._task, self._seed = "", 0
        self._nodes: tuple[Node, ...] = ()
        self._shot = b""
        self.rewound = REWOUND
        """Tasks whose page is rewound instead of loaded."""
        self._loaded: tuple[Tab, str] | None = None

    def picture(self) -> bytes:
        """Return the latest screenshot as PNG, taking one where turns do not."""
        return self._shot if self.with_image else self.run(self._take())

    # Where the browsers are.

    async def start(self, task: str, seed: int) -> Screen:
        """Start an episode on a clean page."""
        self._task, self._seed = task, seed
        return await self.surely(self._start)

    async def play(self, action: str, before: Sequence[str]) -> Screen:
        """Take one turn.

        Args:
            action: An action that can be read.
            before: The actions of the episode so far; they are played again where the browser has ended.
        """

        async def again() -> Screen:
            await self.replay(self._task, self._seed, before)
            return await self._turn(action)

        return await self.surely(again if self._tab is None else lambda: self._turn(action), again)

    async def replay(self, task: str, seed: int, actions: Sequence[str]) -> Screen:
        """Bring a page to where these actions lead."""
        screen = await self.start(task, seed)
        try:
            for action in actions:
                screen = await self._turn(action)
        except BrowserFault:
            await self.close()
            raise
        return screen

    async def _take(self) -> bytes:
        return b"" if self._tab is None else await self._tab.screenshot()

    async def _start(self) -> Screen:
        tab = await self.open_tab([f"{pages_folder().as_uri()}/"], is_reset=True)
        tab.resets += 1
        tab.answer = None
        if self._tree:
            self._tree.forget()
        await tab.mouse("mouseMoved", self.viewport[0] - 1, self.viewport[1] - 1)
        if not await self._rewind(tab):
            await self._load(tab)
        images = json.dumps(style_images(self._task))
        patience = _PATIENCE if images != "[]" else None
        told = await tab.ask(_START % (images, self._seed, self.limit_ms, _SETTLE_MS, LOOK), frames_after=patience)
        tab.require_home()
        return await self._screen(tab, told)

    async def _rewind(self, tab: Tab) -> bool:
        """Bring the page back to how it was when it had loaded; False where it has to be loaded."""
        if self._task not in self.rewound or self._loaded != (tab, self._task):
            return False
        self._loaded = None
        if not await tab.ask(_REWIND):
            return False
        self._loaded = tab, self._task
        return True

    async def _load(self, tab: Tab) -> None:
        self._loaded = None
        await tab.goto(address(self._task))
        for _ in range(_MOST_WAITS):
            if await tab.ask(_READY):
                break
        else:
            raise BrowserFault(f"the page of {self._task} does not become ready")
        if self._task in self.rewound:
            await tab.tool("keep")
            self._loaded = tab, self._task

    async def _turn(self, action: str) -> Screen:
        tab = self._tab
        if tab is None:
            raise BrowserGone("the page was closed")
        tried = Counter(tab.events)
        parsed = read(action)
        problem = "it is no action" if parsed is None else await act(tab, parsed, self._nodes)
        screen = await self._look(tab, problem)
        if parsed is not None and parsed.kind != "accept":
            tab.answer = None
        new = tab.events - tried
        if new:
            self.events.update(new)
            told = ", a ".join(_TOLD[kind] for kind in sorted(new) if kind in _TOLD)
            said = f" It said {tab.asked!r}." if {"dialog", "accepted"} & new.keys() else ""
            way = " To accept such dialogs, write accept, or accept TEXT, before the action." if "dialog" in new else ""
            return replace(screen, notice=f"A {told}.{said}{way}")
        return screen

    async def _look(self, tab: Tab, problem: str) -> Screen:
        """Let the turn's time pass, and return what the page shows when all that follows from it has happened."""
        span, told = self.turn_ms, None
        for _ in range(_MOST_MOVES):
            try:
                answer = await tab.ask(_TURN % (span, LOOK))
            finally:
                tab.require_home()
            if told := answer.get("screen"):
                span = 0
            if not answer["mouse"]:
                break
            await tab.mouse("mouseMoved", *answer["mouse"])
        if told is None or span:  # what is under the mouse changes whenever it is notified: time passes all the same
            told = await tab.ask(f"(__turngym.advance({span}), {LOOK})")
        return await self._screen(tab, told, problem)

    async def _screen(self, tab: Tab, told: dict[str, Any], problem: str = "") -> Screen:
        nodes = read_nodes(told["page"]["nodes"])
        tree = asyncio.ensure_future(self._tree.read(tab, nodes)) if self._tree else None
        try:
            if self.with_image:
                self._shot = await tab.screenshot(is_marked=True)
        finally:
            branches = await tree if tree else None
        self._nodes = nodes
        goal = told["goal"]
        if isinstance(goal, dict):  # tasks in people's own words also name their parts
            goal = goal["utterance"]
        if not told["started"]:  # the page has loaded itself again: whatever was done in it is lost
            self._loaded = None
            return Screen(goal, nodes, True, -1.0, -1.0, problem, "The page was left.", branches)
        is_done = bool(told["done"])
        raw, decayed = (float(told["raw"]), float(told["decayed"])) if is_done else (0.0, 0.0)
        return Screen(goal, nodes, is_done, raw, decayed, problem, "", branches)
