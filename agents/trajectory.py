"""Turns, trajectories, and the specifications of the episodes to play."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from turngym.agents.chat import Note
from turngym.agents.usage import Usage
from turngym.arithmetic import float_sum
from turngym.columns import Value
from turngym.display import data_frame, html_table

TruncationReason: TypeAlias = Literal["", "environment", "context", "fault"]
"""Reason for truncation: the environment (mostly the turn limit), a prompt that does not fit, or a fault."""


@dataclass(frozen=True, slots=True)
class EpisodeSpec:
    """Specification of an episode to play.

    Args:
        episode: Number of the episode, unique within a rollout; part of the key of its sampling generator.
        seed: Seed of the environment's reset; equal seeds give identical initial states.
        group: Episodes of the same group are compared with each other.
        options: Options of the environment's reset.
        branch: Branching point in another episode; None for a reset.
    """

    episode: int
    seed: int
    group: int = 0
    options: Mapping[str, Any] | None = None
    branch: Branch | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Branch:
    """A turn of a finished episode from which another episode starts.

    Args:
        trajectory: The finished episode; its turns have snapshots.
        turn: Index of the turn in the trajectory; the new episode decides it again.
    """

    trajectory: Trajectory = field(repr=False)
    turn: int


@dataclass(slots=True)
class Turn:
    """One prompt, one completion, one step of the environment.

    Args:
        observation: Observation of the agent.
        anchor: The anchor state before the action.
        action: The action text passed to the environment.
        completion: The whole text produced, reasoning included.
        prompt_ids: Token ids of the whole prompt; empty for agents without tokens.
        completion_ids: Token ids exactly as sampled, including the end token if sampled.
        logprobs: The sampler's log-probability of each completion token, temperature included.
        reward: Reward of this turn.
        action_is_valid: True if the action was parsed and legal.
        agent: The seat that acted.
        usage: Cost of the completion; None if not counted.
        notes: Other text of the model, such as a summary.
        staleness: Training iterations between the policy that sampled the turn and the current one; 0 if fresh.
        policy_version: Iteration whose policy sampled the turn; -1 if unknown.
        entropies: Entropy of each token's sampling distribution, relative to its maximum; empty unless requested.
        snapshot: Exact state of the environment before the action; empty unless requested.
        progress: Progress of the task before the action, in [0, 1]; NaN if unknown.
        columns: Named numbers and strings from the environment, the agent or a method's ``collect``, or tuples with one
            number per token. A name starting with ``reward/`` is a component of the reward.
        cut_off: True if the completion reached the maximum length without an end token.
        restricted: True if tokens were sampled from part of the vocabulary (top-p, top-k, min-p), so ``logprobs`` are
            not those of the sampling distribution.
        pictures: The images in the prompt as PNG files, in the order of their placeholders in ``prompt_ids``.
    """

    observation: str
    anchor: str
    action: str
    completion: str = ""
    prompt_ids: tuple[int, ...] = ()
    completion_ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    reward: float = 0.0
    action_is_valid: bool = True
    agent: str = "player_0"
    usage: Usage | None = field(default=None, compare=False)
    notes: tuple[Note, ...] = ()
    staleness: int = 0
    policy_version: int = field(default=-1, compare=False)
    entropies: tuple[float, ...] = ()
    snapshot: bytes = field(default=b"", compare=False, repr=False)
    progress: float = field(default=math.nan, compare=False)
    columns: Mapping[str, Value | tuple[float, ...]] = field(default_factory=dict)
    cut_off: bool = False
    restricted: bool = False
    pictures: tuple[bytes, ...] = field(default=(), repr=False)

    @property
    def image_hashes(self) -> list[str]:
        """SHA-256 of each image in the prompt, stored in records instead of the image."""
        return [hashlib.sha256(picture).hexdigest() for picture in self.pictures]


@dataclass(slots=True)
class Trajectory:
    """The turns of one agent in one episode, in order, and how the episode ended.

    Args:
        spec: Specification of the episode.
        env_id: The environment.
        instance: Hash of the task instance's canonical text.
        turns: The turns in order.
        terminated: True if the rules ended the episode.
        truncated: True if a limit or fault ended the episode.
        truncation_reason: Reason for the truncation; empty without one. ``context`` means that the next prompt did not
            fit; if it was the first, the episode has no turn.
        truncation_detail: With reason ``context``: length of the prompt, and remedy.
        success: 1 solved, 0 not, -1 unknown (the episode did not end).
        score: The benchmark's number.
        fault: Cause of the fault; faulted episodes are excluded from loss and statistics.
        final_observation: Observation after the last action.
        final_prompt_ids: The next prompt of a truncated episode, for the critic. Empty if it does not fit: the value of
            the last turn's prompt is used instead.
        final_pictures: The images in that prompt.
        role: The seat's role in a multi-agent game, or its name if the game has no roles; else empty.
        policy: Name of the policy that acted; empty if there is only one.
        progress: Progress of the task at the end, in [0, 1]; NaN if unknown.
        final_anchor: The anchor state after the last turn.
        columns: Named numbers and strings about the whole episode.
        instructions: Rules shown to the agent; empty if not recorded.
        retried_fault: Fault of the earlier attempt that this one replaces; empty for a first attempt.
    """

    spec: EpisodeSpec
    env_id: str = ""
    instance: str = ""
    turns: list[Turn] = field(default_factory=list)
    terminated: bool = False
    truncated: bool = False
    success: int = -1
    score: float = 0.0
    fault: str = ""
    final_observation: str = ""
    final_prompt_ids: tuple[int, ...] = ()
    role: str = ""
    policy: str = ""
    progress: float = field(default=math.nan, compare=False)
    final_anchor: str = field(default="", compare=False)
    truncation_reason: TruncationReason = ""
    truncation_detail: str = field(default="", compare=False)
    columns: Mapping[str, Value] = field(default_factory=dict)
    instructions: str = field(default="", compare=False, repr=False)
    final_pictures: tuple[bytes, ...] = field(default=(), repr=False)
    retried_fault: str = field(default="", compare=False)

    @property
    def earlier_turns(self) -> tuple[Turn, ...]:
        """Turns of the episode that this one branches from; empty if it started with a reset."""
        branch = self.spec.branch
        if branch is None:
            return ()
        return (*branch.trajectory.earlier_turns, *branch.trajectory.turns[: branch.turn])

    @property
    def reward_sum(self) -> float:
        """Undiscounted return of the episode since its reset."""
        return float_sum(turn.reward for turn in (*self.earlier_turns, *self.turns))

    def rows(self) -> list[dict[str, Any]]:
        """Return the turns as rows of a table."""
        return [
            {
                "turn": number,
                "observation": turn.observation,
                "completion": turn.completion,
                "action": turn.action,
                "reward": turn.reward,
                "action_is_valid": turn.action_is_valid,
            }
            for number, turn in enumerate(self.turns)
        ]

    def to_frame(self) -> Any:
        """Return the turns as a data frame of polars or pandas."""
        return data_frame(self.rows())

    def _repr_html_(self) -> str:
        end = {1: "solved", 0: "not solved"}.get(self.success, "unfinished")
        title = f"{self.env_id}, seed {self.spec.seed}: {end} after {len(self.turns)} turns, score {self.score:g}"
        return html_table(title, self.rows())
