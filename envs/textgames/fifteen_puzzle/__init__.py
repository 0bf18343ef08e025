"""The fifteen puzzle."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.textgames.fifteen_puzzle.env import (
        FifteenPuzzle,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"turngym.envs.textgames.fifteen_puzzle.env": ("FifteenPuzzle",)},
    )

__all__ = ["FifteenPuzzle"]
