"""An agent at the seats of games: one agent answers for all its seats at all tables in one batch."""

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
    """A player has no answer because its prompt cannot be built."""


class SeatPlayer(Player):
    """Lets an agent play one seat. What it samples depends only on the seat's generator.

    Args:
        agent: Agent; it may play at other seats too.
    """

    name = "agent"

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self._episode, self._turn = -1, 0

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Start a new episode of the agent, numbered by the generator."""
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
        """Let the agent forget the game; does nothing if there was none."""
        if self._episode >= 0:
            self.agent.forget(self._episode)
        self._episode = -1

    def state(self) -> JSONValue:
        """Return the number of the episode and of the turn; what the agent itself remembers stays with the agent."""
        return [self._episode, self._turn]

    def load(self, state: JSONValue) -> None:
        """Restore what :meth:`state` returned."""
        self._episode, self._turn = state


def act_together(asked: Sequence[tuple[SeatPlayer, Request]]) -> list[Decision]:
    """Return one decision for each request, in order; every agent is called once, with all its requests.

    Args:
        asked: Seats with what :meth:`SeatPlayer.request` gave for them.

    Raises:
        ValueError: An agent gave more or fewer decisions than requests.
        TypeError: One of them is not a decision, or its action is not text.
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
