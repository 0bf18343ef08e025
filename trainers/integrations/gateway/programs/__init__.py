"""Agent programs: started for each episode, with a gateway as their model and an environment of ours to play."""

from __future__ import annotations

from turngym.trainers.integrations.gateway.programs.agent import ProgramAgent, playing, require_startable
from turngym.trainers.integrations.gateway.programs.judging import VerifierJudge
from turngym.trainers.integrations.gateway.programs.model import programs_of
from turngym.trainers.integrations.gateway.programs.tokens import with_tokens
from turngym.trainers.settings.agent_program import ProgramConfig

__all__ = [
    "ProgramAgent",
    "ProgramConfig",
    "VerifierJudge",
    "playing",
    "programs_of",
    "require_startable",
    "with_tokens",
]
