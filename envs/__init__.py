"""Environments: single, vectorised and multi-agent."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.core import Outcome, TextEnv
    from turngym.envs.registration import register_env
    from turngym.envs.spaces import Unicode
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.envs.core": ("Outcome", "TextEnv"),
            "turngym.envs.registration": ("register_env",),
            "turngym.envs.spaces": ("Unicode",),
        },
    )

__all__ = ["Outcome", "TextEnv", "Unicode", "register_env"]
