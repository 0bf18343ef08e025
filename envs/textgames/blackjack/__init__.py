"""Blackjack against a dealer."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.textgames.blackjack.env import (
        ACTIONS,
        Blackjack,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.envs.textgames.blackjack.env": (
                "ACTIONS",
                "Blackjack",
            )
        },
    )

__all__ = ["ACTIONS", "Blackjack"]
