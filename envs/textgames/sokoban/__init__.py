"""Sokoban."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.textgames.sokoban.env import (
        Sokoban,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"turngym.envs.textgames.sokoban.env": ("Sokoban",)},
    )

__all__ = ["Sokoban"]
