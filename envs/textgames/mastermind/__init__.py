"""Mastermind."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.textgames.mastermind.env import (
        Mastermind,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"turngym.envs.textgames.mastermind.env": ("Mastermind",)},
    )

__all__ = ["Mastermind"]
