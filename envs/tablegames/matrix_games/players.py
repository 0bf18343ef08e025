"""Players of matrix games: they say nothing, and choose by the history that their anchor shows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np

from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView


def choices(anchor: str) -> list[tuple[str, str]]:
    """Return own and other action of every round that an anchor shows.

    >>> choices("you are player_1: stag/hare hare/hare")
    [('stag', 'hare'), ('hare', 'hare')]
    """
    _, _, shown = anchor.partition("\n")[0].partition(": ")
    if shown == "no choices":
        return []
    return [(own, other) for own, _, other in (pair.partition("/") for pair in shown.split(" "))]


class HistoryPlayer(Player):
    """Chooses by what both seats have chosen; silent while they talk."""

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Keep the generator."""
        self._random = generator.random

    def act(self, view: SeatView) -> str:
        """Return a choice, or silence."""
        if not view.legal_actions:
            return "silent"
        question = view.observation.rpartition(". ")[2]  # the friendly action stands first; lists have any order
        return self.choose(question.rstrip("?").split(" or "), choices(view.anchor))

    @abstractmethod
    def choose(self, actions: Sequence[str], history: Sequence[tuple[str, str]]) -> str:
        """Return one of the actions.

        Args:
            actions: The game's actions, the friendly one first.
            history: Own and other action of every round.
        """


class TitForTat(HistoryPlayer):
    """Starts with the first action, then does what the other did last."""

    name = "tit_for_tat"

    def choose(self, actions: Sequence[str], history: Sequence[tuple[str, str]]) -> str:
        """Return the other's last action."""
        return history[-1][1] if history else actions[0]


class Grim(HistoryPlayer):
    """Plays the first action until the other has once done something else, then the second for ever."""

    name = "grim"

    def choose(self, actions: Sequence[str], history: Sequence[tuple[str, str]]) -> str:
        """Return the first action if the other always did the same."""
        return actions[int(any(other != actions[0] for _, other in history))]


class AlwaysFirst(HistoryPlayer):
    """Plays the first action: cooperate, stag, swerve, heads."""

    name = "always_first"

    def choose(self, actions: Sequence[str], history: Sequence[tuple[str, str]]) -> str:
        """Return the first action."""
        return actions[0]


class AlwaysSecond(HistoryPlayer):
    """Plays the second action: defect, hare, straight, tails."""

    name = "always_second"

    def choose(self, actions: Sequence[str], history: Sequence[tuple[str, str]]) -> str:
        """Return the second action."""
        return actions[1]


class UniformPlayer(HistoryPlayer):
    """Plays all actions with equal probability."""

    name = "equilibrium"

    def choose(self, actions: Sequence[str], history: Sequence[tuple[str, str]]) -> str:
        """Return any action."""
        return actions[int(self._random() * len(actions))]
