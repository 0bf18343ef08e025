"""Players of Undercover that know associations of words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView
from turngym.envs.wordgames.words import features, partners, says

_WORD = re.compile(r'Your word is "([a-z]+)"')
_SAID = re.compile(r'player_([0-9]) says: "It has to do with ([a-z]+)\.')
_BORED = "I have no better idea."


class Vague(Player):
    """Says no more than what its word is, and votes at random."""

    name = "vague"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Keep the generator; everything else is in the lines."""
        self._random = generator.random

    def act(self, view: SeatView) -> str:
        """Return a speech or a vote."""
        lines = view.lines
        found = _WORD.search(lines[0])
        assert found is not None
        said: dict[int, list[str]] = {}
        for each in filter(None, map(_SAID.match, lines)):
            said.setdefault(int(each[1]), []).append(each[2])
        if view.phase == "vote":
            return self.vote(view, found[1], said)
        return _BORED if view.phase == "discuss" else self.describe(view, found[1], said)

    def describe(self, view: SeatView, word: str, said: Mapping[int, Sequence[str]]) -> str:
        """Return a description: here, of the category."""
        return _sentence([features()[word][0]], word, self._random())

    def vote(self, view: SeatView, word: str, said: Mapping[int, Sequence[str]]) -> str:
        """Return a vote: here, a random one."""
        return self._one_of(view.legal_actions)

    def _one_of(self, found: Sequence[str]) -> str:
        return sorted(found)[int(self._random() * len(found))]


class Associate(Vague):
    """Says what its word has to do with, and votes for those whose descriptions fit its word least, or say least.

    Where the descriptions of most seats do not fit, it takes itself for the undercover: it looks for the word that they
    fit best, and describes that one.
    """

    name = "associate"

    def describe(self, view: SeatView, word: str, said: Mapping[int, Sequence[str]]) -> str:
        """Return what the civilians' word has to do with, and nobody has said if possible."""
        likely = self._likely(view.seat, word, said)
        both = [each for each in features()[likely] if likely == word or each in features()[word]]
        heard = {each for of_seat in said.values() for each in of_seat}
        fresh = [each for each in both[1:] if each not in heard and not says(each, word)]
        return _sentence(fresh or both, word, self._random())

    def vote(self, view: SeatView, word: str, said: Mapping[int, Sequence[str]]) -> str:
        """Return a vote for one of those with the most descriptions that do not fit the civilians' word."""
        likely = self._likely(view.seat, word, said)
        others = {int(vote.rpartition("_")[2]): vote for vote in view.legal_actions}
        category = features()[likely][0]
        odd = {
            seat: 2 * _misfits(likely, said.get(seat, ())) + list(said.get(seat, ())).count(category) for seat in others
        }
        return self._one_of([others[seat] for seat in others if odd[seat] == max(odd.values())])

    def _likely(self, seat: int, word: str, said: Mapping[int, Sequence[str]]) -> str:
        """Return the word that the civilians have, as far as their descriptions show."""
        others = {other: each for other, each in said.items() if other != seat}
        strange = [other for other, each in others.items() if _misfits(word, each)]
        if 2 * len(strange) <= len(others) or len(others) < 2:
            return word
        heard = [each for of_seat in others.values() for each in of_seat]
        return min((word, *partners(word)), key=lambda each: _misfits(each, heard))


def _misfits(word: str, said: Sequence[str]) -> int:
    """Return how many descriptions have nothing to do with a word."""
    return sum(each not in features()[word] for each in said)


def _sentence(found: Sequence[str], word: str, chance: float) -> str:
    """Return a sentence with one of some features that does not say the word."""
    allowed = [each for each in found if not says(each, word)] or ["something"]
    return f"It has to do with {allowed[int(chance * len(allowed))]}."
