"""TextWorld-Express: fast text games in a Java process."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.textworlds.textworld_express.env import (
        UNKNOWN_ACTION,
        TextWorldExpress,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.envs.textworlds.textworld_express.env": (
                "UNKNOWN_ACTION",
                "TextWorldExpress",
            )
        },
    )

__all__ = ["UNKNOWN_ACTION", "TextWorldExpress"]
