"""Kuhn poker."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.tablegames.kuhn_poker.game import (
        KuhnPoker,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {"turngym.envs.tablegames.kuhn_poker.game": ("KuhnPoker",)},
    )

__all__ = ["KuhnPoker"]
