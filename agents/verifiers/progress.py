"""Verifier by the progress of the task at the end, which depends only on facts known to the agent."""

from __future__ import annotations

from turngym.agents.core import Agent
from turngym.agents.players import AgentSettings
from turngym.agents.trajectory import Trajectory
from turngym.agents.verifiers import VERIFIERS

_PER_TURN = 1e-6


class Progress:
    """Prefers more progress and, for equal progress, the shorter attempt.

    >>> from turngym.agents.trajectory import EpisodeSpec
    >>> Progress().score(Trajectory(EpisodeSpec(0, 0), progress=0.5))
    0.5
    """

    def score(self, trajectory: Trajectory) -> float:
        """Return the progress at the end; NaN if the environment reports none."""
        return trajectory.progress - _PER_TURN * len(trajectory.turns)


@VERIFIERS.register("progress")
def make(argument: str, settings: AgentSettings, agent: Agent) -> Progress:
    """Return a verifier by the environment's progress."""
    return Progress()
