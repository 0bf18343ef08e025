"""What keeps a tab: work is repeated where the browser itself ended, and told where the page broke."""

import asyncio
from collections.abc import Sequence

import pytest

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
        ([BrowserGone("ended"), BrowserGone("ended again")], ("ended again", 2, 2)),
    ],
)
def test_work_is_repeated_once_and_only_where_the_browser_ended(
    errors: list[Exception], found: tuple[str, int, int]
) -> None:
    assert attempt(errors) == found


def test_a_keeper_without_a_tab_has_nothing_to_close() -> None:
    keeper = TabKeeper((400, 300))
    keeper.shut()
    keeper.let_go()
    asyncio.run(keeper.close())
