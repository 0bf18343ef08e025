"""Environments: single, vectorised and multi-agent."""

from turngym.envs.core import Outcome, TextEnv
from turngym.envs.spaces import Unicode

__all__ = ["Outcome", "TextEnv", "Unicode"]
