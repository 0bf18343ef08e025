"""Continuous rollouts: episodes come from a feed while others are in progress."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from turngym.agents.core import Agent, EagerAgent
from turngym.agents.episodes.rollout import Runner
from turngym.agents.trajectory import Branch, EpisodeSpec, Trajectory, Turn
from turngym.envs.vector import TextVectorEnv
from turngym.errors import SnapshotUnsupported

_POLL_SECONDS = 0.05
"""Waiting time for environments before the next call of the feed, in seconds."""
_GLANCE_SECONDS = 0.005
"""The same while completions may arrive."""


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A turn that has been decided and whose action is about to be sent.

    Args:
        spec: The episode.
        index: Position of the turn in the episode.
        turn: The turn; its reward is not known yet.
        before: The previous turn, which is complete.
        state: State of the environment before the turn; empty if it cannot be saved.
    """

    spec: EpisodeSpec
    index: int
    turn: Turn
    before: Turn | None
    state: bytes


class StreamAgent(EagerAgent):
    """An eager agent that supports waiting with a timeout."""

    @abstractmethod
    def is_working(self) -> bool:
        """Return True if an answer is pending."""

    @abstractmethod
    def rest(self, seconds: float) -> None:
        """Wait for an answer, at most that long."""


class Feed(ABC):
    """Source and destination of the episodes of a stream."""

    @abstractmethod
    def take(self, free: int, wait: bool) -> Sequence[EpisodeSpec] | None:
        """Return episodes to start now, at most ``free``; None ends the stream immediately.

        Args:
            free: Free slots.
            wait: True if no episode is in progress, so the feed may block.
        """

    @abstractmethod
    def decided(self, turns: Sequence[OpenTurn]) -> None:
        """Called with decided turns before their actions are sent."""

    @abstractmethod
    def ended(self, trajectory: Trajectory) -> None:
        """Called with the trajectory of each episode as soon as it ends, including turns before a resume."""


def continued(spec: EpisodeSpec, turns: Sequence[Turn], state: bytes) -> EpisodeSpec:
    """Return the specification of an episode resumed before the last of its turns.

    Args:
        spec: The episode.
        turns: Its turns so far; the last one is open.
        state: State of the environment before the last turn.
    """
    before = Trajectory(spec, turns=[*turns[:-1], replace(turns[-1], snapshot=state)])
    return replace(spec, branch=Branch(before, len(turns) - 1))


def _in_one_piece(trajectory: Trajectory) -> Trajectory:
    """Return a resumed episode with its earlier turns, as if never interrupted."""
    if trajectory.spec.branch is None:
        return trajectory
    turns = [*trajectory.earlier_turns, *trajectory.turns]
    return replace(trajectory, spec=replace(trajectory.spec, branch=None), turns=turns)


def play_stream(vector: TextVectorEnv, agent: Agent, feed: Feed, *, snapshots: bool, final_prompts: bool) -> None:
    """Play the episodes of a feed until it ends; episodes in progress then are abandoned.

    The agent acts for every slot that is ready. Groups from the feed are passed to the agent in one call; an agent that
    works in the background answers requests separately, so no episode waits for another.

    Args:
        vector: A vector with autoreset mode DISABLED.
        agent: Picks the actions.
        feed: Source and destination of episodes.
        snapshots: Provide the environment's state before turns, if it can be saved.
        final_prompts: Keep the next prompt of truncated episodes.
    """
    agent.attach(vector)
    _Stream(vector, agent, feed, snapshots, final_prompts).play_feed()


class _Stream(Runner):
    """A runner with episodes from a feed."""

    def __init__(self, vector: TextVectorEnv, agent: Agent, feed: Feed, snapshots: bool, final_prompts: bool) -> None:
        super().__init__(vector, agent, deque(), self._ended, snapshots, final_prompts)
        self.feed = feed

    def play_feed(self) -> None:
        """Play until the feed ends."""
        eager = self.agent if isinstance(self.agent, StreamAgent) else None
        try:
            while (specs := self.feed.take(len(self.free) - len(self.queue), wait=not self.slots)) is not None:
                self.queue.extend(specs)
                self.fill()
                if eager is None:
                    self.act()
                    self.collect(wait_for_all=False, timeout=_POLL_SECONDS)
                else:
                    self.act_eagerly(wait=False)
                    self._look(eager)
        finally:
            if eager is not None:
                eager.abandon()

    def _look(self, agent: StreamAgent) -> None:
        """Wait briefly for a result of an environment or an answer."""
        if self.in_flight:
            self.collect(wait_for_all=False, timeout=_GLANCE_SECONDS if agent.is_working() else _POLL_SECONDS)
        elif agent.is_working():
            agent.rest(_POLL_SECONDS)

    def _ended(self, trajectory: Trajectory) -> None:
        del self.finished[trajectory.spec.episode]
        self.feed.ended(_in_one_piece(trajectory))

    def _save(self, slots: list[int]) -> None:
        try:
            super()._save(slots)
        except SnapshotUnsupported:
            self.snapshots = False

    def deciding(self, slots: Sequence[int]) -> None:
        """Pass on the open turns; only an episode's newest turn keeps its snapshot."""
        found = []
        for slot in slots:
            writer = self.slots[slot].writer
            turn, state = writer.open_turn, self.slots[slot].snapshot
            assert turn is not None
            turn.snapshot = b""
            played = [*writer.trajectory.earlier_turns, *writer.trajectory.turns]
            before = played[-1] if played else None
            found.append(OpenTurn(writer.trajectory.spec, len(played), turn, before, state))
        self.feed.decided(found)
