"""Hangman."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.textgames.hangman.env import (
        Hangman,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"turngym.envs.textgames.hangman.env": ("Hangman",)},
    )

__all__ = ["Hangman"]
