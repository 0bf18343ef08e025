"""A short name for the agent ``transformers``, in a separate file so that it is known without torch."""

from __future__ import annotations

from turngym.agents.players import AGENTS
from turngym.agents.players.transformers import make

AGENTS.register("hf")(make)
