"""Points: make a number of the cards, one token at a time."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.textgames.ez_points.env import (
        EZPoints,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"turngym.envs.textgames.ez_points.env": ("EZPoints",)},
    )

__all__ = ["EZPoints"]
