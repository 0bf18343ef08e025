"""The goals on the desktop, and the plans that reach them."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.desktop.goals.table import (
        GOALS,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"turngym.envs.desktop.goals.table": ("GOALS",)},
    )

__all__ = ["GOALS"]
