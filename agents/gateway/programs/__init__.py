"""Agent programs: started for each episode, with a gateway as their model and an environment of ours to play."""

from __future__ import annotations

from turngym.agents.agent_program import ProgramConfig
from turngym.agents.gateway.programs.agent import ProgramAgent, playing, programs_of, require_startable
from turngym.agents.gateway.programs.episodes import VerifierJudge, with_tokens

__all__ = [
    "ProgramAgent",
    "ProgramConfig",
    "VerifierJudge",
    "playing",
    "programs_of",
    "require_startable",
    "with_tokens",
]
