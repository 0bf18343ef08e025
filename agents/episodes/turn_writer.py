"""Writes turns for rollouts, self-play, tournaments and integrations."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Any

from turngym.agents.core import Agent, Decision, Request, build_each
from turngym.agents.trajectory import Trajectory, Turn
from turngym.agents.usage import Usage
from turngym.columns import Value, columns_of

_LONGEST_ANCHOR = 16_384
_END = 4096


def bounded_anchor(info: Mapping[str, Any]) -> str:
    """Return the anchor in an info table, a long one shortened to its start, a hash of the whole, and its end.

    If anchors contain all earlier observations, the memory of an episode would grow with the square of its turns.
    Different anchors stay different.

    >>> one, two = ({"anchor": "room 1, " * 9_000 + door + "room 2, " * 9_000} for door in ("door", "gate"))
    >>> len(bounded_anchor(one)), bounded_anchor(one) == bounded_anchor(two), bounded_anchor({"anchor": "room 1"})
    (8267, False, 'room 1')
    """
    anchor = str(info.get("anchor", ""))
    if len(anchor) <= _LONGEST_ANCHOR:
        return anchor
    digest = hashlib.sha256(anchor.encode("utf8", "surrogatepass")).hexdigest()
    return f"{anchor[:_END]}\n[{len(anchor)} {digest}]\n{anchor[-_END:]}"


class TurnWriter:
    """Writes the trajectory of one agent in one episode: decisions, rewards and end.

    Args:
        trajectory: The trajectory to write.
        agent: The seat that acts.

    >>> from turngym.agents.trajectory import EpisodeSpec
    >>> writer = TurnWriter(Trajectory(EpisodeSpec(0, seed=7)))
    >>> turn = writer.decided(Request(0, 0, 0, "a door", {"anchor": "room 1"}, ""), Decision("open"))
    >>> writer.earned(1.0, {"action_is_valid": True})
    >>> writer.end("outside", {"success": 1, "score": 1.0}, terminated=True)
    >>> writer.trajectory.turns[0].action, writer.trajectory.reward_sum, writer.trajectory.success
    ('open', 1.0, 1)
    """

    def __init__(self, trajectory: Trajectory, agent: str = "player_0") -> None:
        self.trajectory = trajectory
        self.agent = agent
        self._open: Turn | None = None

    @property
    def num_turns(self) -> int:
        """Number of complete turns, including those before the branch."""
        played = len(self.trajectory.turns)
        return played if self.trajectory.spec.branch is None else played + len(self.trajectory.earlier_turns)

    def decided(
        self,
        request: Request,
        decision: Decision,
        *,
        latency: float = 0.0,
        columns: Mapping[str, Value] | None = None,
        snapshot: bytes = b"",
    ) -> Turn:
        """Start a turn with an observation and a decision, and return it; :meth:`earned` completes it.

        Args:
            request: Observation of the agent.
            decision: Answer of the agent.
            latency: Duration in seconds, for agents that do not count their own costs.
            columns: Columns of the turn known so far, in addition to those of the decision.
            snapshot: State of the environment before the action.
        """
        tokens = len(decision.prompt_ids), len(decision.completion_ids)
        self.trajectory.instructions = request.instructions
        self._open = Turn(
            observation=request.observation,
            anchor=bounded_anchor(request.info),
            action=decision.action,
            completion=decision.completion,
            prompt_ids=decision.prompt_ids,
            completion_ids=decision.completion_ids,
            logprobs=decision.logprobs,
            agent=self.agent,
            columns={**decision.columns, **(columns or {})},
            usage=decision.usage or Usage(*tokens, calls=1, latency=latency),
            notes=decision.notes,
            entropies=decision.entropies,
            cut_off=decision.cut_off,
            restricted=decision.restricted,
            snapshot=snapshot,
            progress=_progress(request.info),
            pictures=decision.pictures,
            policy_version=decision.policy_version,
        )
        return self._open

    @property
    def open_turn(self) -> Turn | None:
        """The turn that waits for its reward; None without one."""
        return self._open

    @property
    def is_open(self) -> bool:
        """True if a turn waits for its reward."""
        return self._open is not None

    def earned(self, reward: float, info: Mapping[str, Any]) -> None:
        """Complete the open turn with its whole reward and the resulting info table."""
        turn, self._open = self._open, None
        assert turn is not None
        turn.reward = reward
        turn.action_is_valid = bool(info["action_is_valid"])
        if found := columns_of(info):
            turn.columns = {**turn.columns, **found}
        self.trajectory.turns.append(turn)

    def end(
        self,
        observation: str,
        info: Mapping[str, Any],
        *,
        terminated: bool = False,
        fault: str = "",
        columns: Mapping[str, Value] | None = None,
    ) -> None:
        """Close the trajectory of an episode that ended by the rules, a limit or a fault.

        Args:
            observation: Last observation.
            info: The last info table.
            terminated: True if the rules ended the episode, otherwise it is truncated.
            fault: Cause of the fault.
            columns: Columns of the episode.
        """
        closed = self.trajectory
        closed.terminated = terminated
        closed.success, closed.score = int(info["success"]), float(info["score"])
        closed.columns = {**closed.columns, **(columns or {})}
        self._close(observation, info, terminated, fault)

    def end_without_room(self, request: Request, why: str) -> None:
        """Close the trajectory of an episode whose next prompt does not fit: not solved, with a score of at most 0.

        Args:
            request: Observation meant for the agent.
            why: Length of the prompt, and remedy.
        """
        closed = self.trajectory
        closed.success, closed.score = 0, min(0.0, float(request.info.get("score", 0.0)))
        self._close(request.observation, request.info, False, "")
        closed.truncation_reason, closed.truncation_detail = "context", why

    def _close(self, observation: str, info: Mapping[str, Any], terminated: bool, fault: str) -> None:
        closed = self.trajectory
        closed.fault, closed.truncated = fault, not terminated
        closed.truncation_reason = "" if terminated else "fault" if fault else "environment"
        closed.progress, closed.final_observation = _progress(info), observation
        closed.final_anchor = bounded_anchor(info)

    def keep_final_prompt(self, agent: Agent, request: Request) -> None:
        """Keep the next prompt of a truncated episode for the critic, unless it does not fit.

        A prompt that cannot be built is a fault.
        """
        [prompt] = build_each([request], agent.final_prompt)
        if isinstance(prompt, tuple):
            self.trajectory.final_prompt_ids = prompt
            self.trajectory.final_pictures = agent.pictures_of(request)
        elif prompt.fault:
            self.trajectory.fault, self.trajectory.truncation_reason = prompt.fault, "fault"


def _progress(info: Mapping[str, Any]) -> float:
    return float(info.get("progress", math.nan))
