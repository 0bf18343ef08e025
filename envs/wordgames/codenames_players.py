"""Players of Codenames that know associations of words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from turngym.arithmetic import float_sum
from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView
from turngym.envs.wordgames.clues import MOST
from turngym.envs.wordgames.codenames import ASSASSIN, NEUTRAL, PASS, TEAMS
from turngym.envs.wordgames.words import features

_TEAM = re.compile(r"You are the (red|blue) ")
_COSTS = {NEUTRAL: 1.0, ASSASSIN: 5.0}
_OPPONENT = 2.0


class Sight(NamedTuple):
    """A board as a seat sees it.

    Args:
        kinds: Kind, or ``Words`` for a guesser -> words that are not revealed.
        clue: Word of the last clue; empty before the first.
        number: Its number.
        named: Words named after it.
    """

    kinds: Mapping[str, Sequence[str]]
    clue: str
    number: int
    named: int

    @classmethod
    def of(cls, anchor: str) -> Sight:
        """Read an anchor."""
        found = {}
        for line in anchor.split("\n"):
            name, _, rest = line.rstrip(".").partition(": ")
            found[name] = [] if rest == "none" else rest.split(", ")
        clues, named = found.pop("Clues"), found.pop("Named after the last clue")
        found.pop("Revealed")
        _, clue, number = clues[-1].split(" ") if clues else ("", "", "0")
        return cls(found, clue, int(number), int(named[0]))


class Associate(Player):
    """As spymaster gives the clue associated with most of the team's words and no others; guesses by it.

    As guesser it names words associated with the clue, up to its number, and passes.
    """

    name = "associate"
    largest: ClassVar[int] = MOST
    """Largest number of a clue."""

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Keep the generator; everything else is in the anchor and the rules."""
        self._random = generator.random

    def act(self, view: SeatView) -> str:
        """Return a clue or a guess."""
        sight = Sight.of(view.anchor)
        if view.phase == "guess":
            return self._guess(view, sight)
        team = _TEAM.search(view.instructions)
        assert team is not None
        return self._clue(view, sight, team[1])

    def _clue(self, view: SeatView, sight: Sight, team: str) -> str:
        other = TEAMS[1 - TEAMS.index(team)]
        hidden = [word for words in sight.kinds.values() for word in words]
        best, values = "", {}
        for clue in sorted({each for word in sight.kinds[team] for each in features()[word]}):
            if any(clue in word or word in clue for word in hidden):
                continue
            count = min(_count(clue, sight.kinds[team]), self.largest)
            costs = {**_COSTS, other: _OPPONENT}
            wrong = float_sum(cost * _count(clue, sight.kinds[kind]) for kind, cost in costs.items())
            values[f"{clue} {count}"] = count - 2 * wrong
        best = max(values, key=lambda each: values[each], default="")
        return best or view.legal_actions[0]

    def _guess(self, view: SeatView, sight: Sight) -> str:
        fitting = [word for word in sight.kinds["Words"] if sight.clue in features()[word]]
        if sight.named and (sight.named >= max(sight.number, 1) or not fitting):
            return PASS
        found = fitting or sight.kinds["Words"]
        return found[int(self._random() * len(found))]


class Single(Associate):
    """Like ``associate``, but gives clues for one word at a time."""

    name = "single"
    largest: ClassVar[int] = 1


def _count(clue: str, words: Sequence[str]) -> int:
    """Return how many words are associated with a clue."""
    return sum(clue in features()[word] for word in words)
