"""A light server of a policy: token ids in and out, over the routes of vLLM that training uses."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.agents.models.serving.engine import Engine
    from turngym.agents.models.serving.server import PolicyServer
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.agents.models.serving.engine": ("Engine",),
            "turngym.agents.models.serving.server": ("PolicyServer",),
        },
    )

__all__ = ["Engine", "PolicyServer"]
