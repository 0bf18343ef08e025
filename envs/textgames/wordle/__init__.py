"""Wordle."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.textgames.wordle.env import (
        Wordle,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"turngym.envs.textgames.wordle.env": ("Wordle",)},
    )

__all__ = ["Wordle"]
