"""Bargaining over a pie that shrinks."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.tablegames.bargaining.game import (
        Bargaining,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"turngym.envs.tablegames.bargaining.game": ("Bargaining",)},
    )

__all__ = ["Bargaining"]
