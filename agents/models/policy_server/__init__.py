"""A light server of a policy: token ids in and out, over the routes of vLLM that training uses."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.agents.models.policy_server.engine import Engine
    from turngym.agents.models.policy_server.server import PolicyServer
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.agents.models.policy_server.engine": ("Engine",),
            "turngym.agents.models.policy_server.server": ("PolicyServer",),
        },
    )

__all__ = ["Engine", "PolicyServer"]
