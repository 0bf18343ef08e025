"""Minesweeper."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.textgames.minesweeper.env import (
        Minesweeper,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"turngym.envs.textgames.minesweeper.env": ("Minesweeper",)},
    )

__all__ = ["Minesweeper"]
