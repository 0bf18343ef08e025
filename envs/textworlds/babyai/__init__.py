"""BabyAI: missions in a grid world, as text."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.textworlds.babyai.env import (
        ACTIONS,
        NOTHING_HAPPENS,
        UNKNOWN_ACTION,
        BabyAI,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.envs.textworlds.babyai.env": (
                "ACTIONS",
                "NOTHING_HAPPENS",
                "UNKNOWN_ACTION",
                "BabyAI",
            )
        },
    )

__all__ = ["ACTIONS", "NOTHING_HAPPENS", "UNKNOWN_ACTION", "BabyAI"]
