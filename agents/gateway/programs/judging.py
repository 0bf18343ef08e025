"""Verifiers as judges of what agent programs did."""

from __future__ import annotations

from dataclasses import replace

from turngym.agents.core import Agent
from turngym.agents.players import AgentSettings
from turngym.agents.trajectory import Trajectory
from turngym.agents.verifiers import judge, make_verifier
from turngym.arithmetic import is_finite

_SOLVED = 0.5


class VerifierJudge:
    """Rewards episodes with the scores of a verifier, which sees what was asked and answered and not the outcome.

    Args:
        description: The verifier, such as ``model:openai:MODEL@URL``.
        settings: Settings of the agent that plays.
        agent: Agent whose model the programs call.

    Raises:
        UnknownName: There is no such verifier.
        ConfigError: It cannot be made, or is no verifier.
    """

    def __init__(self, description: str, settings: AgentSettings, agent: Agent) -> None:
        self._verifier = make_verifier(description, settings, agent)

    def judged(self, played: Trajectory) -> Trajectory:
        """Return an episode with the score on its last turn; a score from 0.5 is a success, none at all is a fault."""
        if played.fault or not played.turns:
            return played
        score = judge(self._verifier, played).score
        if not is_finite(score):
            return replace(played, fault="the verifier gave no score")
        last = replace(played.turns[-1], reward=played.turns[-1].reward + score)
        return replace(played, turns=[*played.turns[:-1], last], score=score, success=int(score >= _SOLVED))
