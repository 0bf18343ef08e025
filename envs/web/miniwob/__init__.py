"""MiniWoB++: small tasks on web pages."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.web.miniwob.env import (
        SUCCESS,
        MiniWoB,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.envs.web.miniwob.env": (
                "SUCCESS",
                "MiniWoB",
            )
        },
    )

__all__ = ["SUCCESS", "MiniWoB"]
