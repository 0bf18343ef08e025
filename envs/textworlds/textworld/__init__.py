"""TextWorld: generated text adventures."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.textworlds.textworld.env import (
        REWARDS,
        TextWorld,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.envs.textworlds.textworld.env": (
                "REWARDS",
                "TextWorld",
            )
        },
    )

__all__ = ["REWARDS", "TextWorld"]
