"""Environments: single, vectorised and multi-agent."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.core import Outcome, TextEnv
    from turngym.envs.pictures import PictureEnv
    from turngym.envs.registration import register_env
    from turngym.envs.spaces import Unicode
    from turngym.envs.tools.tool_env import ToolEnv, tool, tool_call
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.envs.core": ("Outcome", "TextEnv"),
            "turngym.envs.pictures": ("PictureEnv",),
            "turngym.envs.registration": ("register_env",),
            "turngym.envs.spaces": ("Unicode",),
            "turngym.envs.tools.tool_env": ("ToolEnv", "tool", "tool_call"),
        },
    )

__all__ = ["Outcome", "PictureEnv", "TextEnv", "ToolEnv", "Unicode", "register_env", "tool", "tool_call"]
