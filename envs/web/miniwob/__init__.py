"""MiniWoB++: small tasks on web pages."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.web.miniwob.env import (
        OBSERVATIONS,
        SUCCESS,
        MiniWoB,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.envs.web.miniwob.env": (
                "OBSERVATIONS",
                "SUCCESS",
                "MiniWoB",
            )
        },
    )

__all__ = ["OBSERVATIONS", "SUCCESS", "MiniWoB"]
