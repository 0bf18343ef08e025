"""Agents in seats of games: one agent answers for all its seats at all tables in one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from turngym.agents.core import Agent, Decision, Request
from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView
from turngym.errors import TurngymError
from turngym.types import JSONValue


class PlayerFault(TurngymError):
    """A player cannot answer because its prompt cannot be built."""


class SeatPlayer(Player):
    """Player that lets an agent play one seat; samples depend only on the seat's generator.

    Args:
        agent: The agent; may also play other seats.
    """

    name = "agent"

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._episode, self._turn = -1, 0

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Start a new episode of the agent, with a number drawn by the generator."""
        self.end()
        self._episode, self._turn = int(generator.integers(2**62)), 0

    def request(self, view: SeatView) -> Request:
        """Return the agent's next request."""
        info = {
            "anchor": view.anchor,
            "legal_actions": view.legal_actions,
            "action_is_valid": not view.why_again,
            "success": -1,
            "progress": view.progress,
            "score": 0.0,
            "fault": "",
        }
        seen = view.observation, info, view.instructions
        return Request(view.seat, self._episode, self._turn, *seen, finds_action=view.finds_action)

    def act(self, view: SeatView) -> str:
        """Return the agent's answer to a single request."""
        [decision] = act_together([(self, self.request(view))])
        if why := decision.fault or decision.too_long:
            raise PlayerFault(why)
        return decision.action

    def end(self) -> None:
        """Let the agent forget the game; does nothing without a game."""
        if self._episode >= 0:
            self.agent.forget(self._episode)
        self._episode = -1

    def state(self) -> JSONValue:
        """Return the numbers of episode and turn; the agent's own memory is not included."""
        return [self._episode, self._turn]

    def load(self, state: JSONValue) -> None:
        """Restore a state returned by :meth:`state`."""
        self._episode, self._turn = state


def act_together(asked: Sequence[tuple[SeatPlayer, Request]]) -> list[Decision]:
    """Return one decision per request, in order; every agent is called once with all its requests.

    Args:
        asked: Seats with the results of :meth:`SeatPlayer.request`.

    Raises:
        ValueError: The number of an agent's decisions is not that of its requests.
        TypeError: A decision has another type, or its action is not a string.
    """
    by_agent: dict[int, list[int]] = {}
    for index, (player, _) in enumerate(asked):
        by_agent.setdefault(id(player.agent), []).append(index)
    decisions: dict[int, Decision] = {}
    for members in by_agent.values():
        agent = asked[members[0]][0].agent
        found = agent.act([asked[index][1] for index in members])
        if len(found) != len(members):
            raise ValueError(f"{type(agent).__name__} gave {len(found)} decisions to {len(members)} requests.")
        for decision in found:
            if not isinstance(decision, Decision) or not isinstance(decision.action, str):
                raise TypeError(f"{type(agent).__name__} gave {decision!r:.100} instead of a Decision with a text.")
        exact = [replace(each, action=str.__str__(each.action)) for each in found]
        decisions.update(zip(members, exact, strict=True))
    for player, _ in asked:
        player._turn += 1
    return [decisions[index] for index in range(len(asked))]
