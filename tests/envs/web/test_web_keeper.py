"""Tabs: work is repeated where the browser itself failed, and raises where the page broke."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from turngym.envs.web.driver import frames
from turngym.envs.web.driver.frames import Frames, FrameStuck
from turngym.envs.web.driver.keeper import TabKeeper
from turngym.envs.web.driver.tab import BrowserFault, BrowserGone


class Counting(TabKeeper):
    """Counts how often its tab is given up."""

    def __init__(self) -> None:
        super().__init__((400, 300))
        self.closed = 0

    async def close(self) -> None:
        self.closed += 1
        await super().close()


def attempt(errors: Sequence[Exception]) -> tuple[str, int, int]:
    """Return what comes of work whose first attempts end so, and how often it was tried and the tab given up."""
    keeper, left, tried = Counting(), list(errors), [0]

    async def work() -> str:
        tried[0] += 1
        if left:
            raise left.pop(0)
        return "done"

    async def run() -> str:
        try:
            return await keeper.surely(work)
        except BrowserFault as error:
            return str(error)

    return asyncio.run(run()), tried[0], keeper.closed


@pytest.mark.parametrize(
    ("errors", "found"),
    [
        ([], ("done", 1, 0)),
        ([BrowserGone("ended")], ("done", 2, 1)),
        ([BrowserFault("broken")], ("broken", 1, 1)),
        ([BrowserGone("ended"), BrowserFault("broken")], ("broken", 2, 2)),
        ([BrowserGone("ended"), BrowserGone("ended again")], ("done", 3, 2)),
        ([BrowserGone("ended"), BrowserGone("ended again"), BrowserGone("at last")], ("at last", 3, 3)),
    ],
)
def test_work_is_repeated_twice_and_only_where_the_browser_ended(
    errors: list[Exception], found: tuple[str, int, int]
) -> None:
    assert attempt(errors) == found


def test_a_keeper_without_a_tab_has_nothing_to_close() -> None:
    keeper = TabKeeper((400, 300))
    keeper.shut()
    keeper.let_go()
    asyncio.run(keeper.close())


class LosesFrames:
    """A session to a page that loses every frame; its scripts run or not.

    Chromium itself does so sometimes on a busy machine, which no test can bring about.
    """

    def __init__(self, do_scripts_run: bool) -> None:
        self.do_scripts_run = do_scripts_run

    async def send(self, method: str, options: dict[str, Any]) -> dict[str, Any]:
        if method == "Runtime.evaluate" and self.do_scripts_run:
            return {}
        await asyncio.Event().wait()
        return {}


@pytest.mark.parametrize(("do_scripts_run", "error"), [(True, FrameStuck), (False, TimeoutError)])
def test_a_lost_frame_is_the_browsers_fault_where_scripts_run(
    do_scripts_run: bool, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "_STUCK_SECONDS", 0.01)
    monkeypatch.setattr(frames, "_ANSWER_SECONDS", 0.01)

    async def draw() -> None:
        session: Any = LosesFrames(do_scripts_run)
        await Frames(session, asyncio.Lock(), 0.05).draw()

    with pytest.raises(TimeoutError) as caught:
        asyncio.run(draw())
    assert type(caught.value) is error
