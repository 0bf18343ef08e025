"""Persuasion of a buyer by a seller that knows the quality."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.tablegames.persuasion.game import (
        Persuasion,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"turngym.envs.tablegames.persuasion.game": ("Persuasion",)},
    )

__all__ = ["Persuasion"]
