"""Episodes that continue recorded ones: the recorded actions are replayed, then the agent decides."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from turngym.agents.core import Agent, Decision, EagerAgent, Request
from turngym.agents.usage import Usage
from turngym.envs.vector import TextVectorEnv
from turngym.errors import TurngymError

_SHOWN = 80


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """A turn of a recorded episode.

    Args:
        observation: Observation before the action.
        action: The action.
        completion: The completion it was parsed from; empty if not from a model.
    """

    observation: str
    action: str
    completion: str = ""


@dataclass(frozen=True, slots=True)
class Beginning:
    """The first turns of a recorded episode, from which another one continues.

    Args:
        name: Name of the recorded episode, for messages.
        turns: The turns before the state.
        observation: Observation in the state.

    >>> start = Beginning("runs/a:3", (RecordedTurn("a door", "open"),), "a room")
    >>> start.require_same(1, "a room")
    """

    name: str
    turns: tuple[RecordedTurn, ...]
    observation: str

    @property
    def digest(self) -> str:
        """Hash of observations and actions; identifies the state together with the seed."""
        told = [*([turn.observation, turn.action] for turn in self.turns), self.observation]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    def require_same(self, turn: int, observation: str) -> None:
        """Raise if an observation differs from the recorded one before a turn, counted from 0.

        Raises:
            TurngymError: It differs; the message shows the first difference.
        """
        recorded = self.turns[turn].observation if turn < len(self.turns) else self.observation
        if observation == recorded:
            return
        pairs = enumerate(zip(observation, recorded, strict=False))
        start = next((i for i, (a, b) in pairs if a != b), min(len(observation), len(recorded)))
        shown, expected = (text[start : start + _SHOWN] for text in (observation, recorded))
        raise TurngymError(
            f"the replay of {self.name} differs at turn {turn + 1}: from character {start} on it shows {shown!r}, "
            f"recorded was {expected!r}. The environment has changed since, or does not repeat under its seed: record "
            "the episode again."
        )


class Continuing(EagerAgent):
    """Agent that replays the recorded turns of episodes, followed by the inner agent, which then decides.

    Args:
        agent: The agent.
        beginnings: Episode number -> its recorded turns; other episodes are played by the agent alone.
    """

    def __init__(self, agent: Agent, beginnings: Mapping[int, Beginning]) -> None:
        self.agent = agent
        self.beginnings = beginnings
        self._ready: list[tuple[Request, Decision]] = []

    def begin(self, requests: Sequence[Request]) -> None:
        """Answer requests of recorded turns immediately, and pass on later requests.

        Raises:
            TurngymError: An observation differs from the recorded one.
            ConfigError: The agent does not support recorded turns.
        """
        own = []
        for request in requests:
            start = self.beginnings.get(request.episode)
            if start is None or request.turn > len(start.turns):
                own.append(request)
                continue
            start.require_same(request.turn, request.observation)
            if request.turn == len(start.turns):
                own.append(request)
            else:
                self._ready.append((request, self._followed(request, start.turns[request.turn])))
        if own and isinstance(self.agent, EagerAgent):
            self.agent.begin(own)
        elif own:
            self._ready += zip(own, self.agent.act(own), strict=True)

    def _followed(self, request: Request, turn: RecordedTurn) -> Decision:
        decision = self.agent.follow(request, turn.action, turn.completion)
        return replace(decision, completion=turn.completion, usage=Usage())

    def decided(self, wait: bool) -> list[tuple[Request, Decision]]:
        """Return recorded turns, and newly answered requests."""
        found, self._ready = self._ready, []
        if isinstance(self.agent, EagerAgent):
            found += self.agent.decided(wait and not found)
        return found

    def abandon(self) -> None:
        """Cancel all pending requests immediately."""
        self._ready = []
        if isinstance(self.agent, EagerAgent):
            self.agent.abandon()

    def attach(self, vector: TextVectorEnv) -> None:
        """Set the vector of the following requests."""
        self.agent.attach(vector)

    def room(self) -> int:
        """Return the agent's limit."""
        return self.agent.room()

    def pictures_of(self, request: Request) -> tuple[bytes, ...]:
        """Return the images in the latest prompt of a request's episode."""
        return self.agent.pictures_of(request)

    def final_prompt(self, request: Request) -> tuple[int, ...]:
        """Return the prompt that ``request`` would get."""
        return self.agent.final_prompt(request)

    def forget(self, episode: int) -> None:
        """Drop the memory of a finished episode."""
        self.agent.forget(episode)
