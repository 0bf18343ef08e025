"""Abstracted decisions of a game, for methods that solve a smaller, abstract game."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from turngym.envs.multiagent.game import Game, InvalidAction

SITUATION = "situation"
"""Column of a turn."""


class Situation(NamedTuple):
    """A decision of a seat.

    Args:
        view: Abstraction of the seat's knowledge.
        is_speech: True if the seat sends a message.
        actions: Abstract action -> legal actions, except messages.
        action: Canonical text of the action; empty for none.
    """

    view: str
    is_speech: bool
    actions: Mapping[str, tuple[str, ...]]
    action: str

    def as_text(self) -> str:
        """Return a string for the columns of turns."""
        return json.dumps([self.view, self.is_speech, self.actions, self.action])

    @classmethod
    def of_text(cls, text: str) -> Situation:
        """Return the situation of a result of :meth:`as_text`.

        >>> kept = Situation("one card", False, {"hold": ("check", "fold")}, "check")
        >>> Situation.of_text(kept.as_text()) == kept
        True
        """
        view, is_speech, actions, action = json.loads(text)
        return cls(view, is_speech, {name: tuple(each) for name, each in actions.items()}, action)


def situation_of(game: Game, seat: int, answer: str) -> Situation:
    """Return the situation of the seat to act.

    Args:
        game: The game, before the answer.
        seat: The seat.
        answer: The seat's answer.
    """
    is_speech = game.is_speech(seat)
    actions = {} if is_speech else {name: tuple(each) for name, each in game.abstract_actions(seat).items()}
    try:
        action = game.read(seat, answer) if len(answer) <= game.longest_action else ""
    except InvalidAction:
        action = ""
    return Situation(game.abstract_view(seat), is_speech, actions, action)
