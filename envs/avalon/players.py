"""Players of Avalon: one by fixed rules, one that reasons about who can be evil."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from turngym.envs.avalon.roles import EVIL, GOOD, MERLIN, NUM_EVIL, PERCIVAL, TEAM_SIZES, fails_needed
from turngym.envs.avalon.text import NAME, PROPOSE
from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView

_LEADS = re.compile(r"Quest (\d) of \d, proposal (\d) of \d")
_RESULT = re.compile(r"Quest \d (succeeds|fails): (no|\d) fail")
_SEATS = re.compile(r"player_(\d)")
_LAST = 5
"""Number of the proposal whose rejection may lose the game."""
_ODDS = 1.5
"""Odds, as a reasoner sees them, that a vote fits whether the team has an evil seat."""


class Ended(NamedTuple):
    """A quest that is over: its team, and the number of fails."""

    team: tuple[int, ...]
    fails: int


def _seats(text: str) -> tuple[int, ...]:
    return tuple(map(int, _SEATS.findall(text)))


class RuleBased(Player):
    """Plays by fixed rules, from the lines that its seat has read and nothing else, and says fixed phrases.

    Good seats approve teams without themselves only as the last proposal, and never seats of failed teams before it;
    Merlin rejects evil seats that he sees. Evil seats approve teams with an evil seat, and from the second quest on
    the first of them plays fail. The assassin names the good seat whose votes fit best who is evil.
    """

    name = "rule_based"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Forget the last game. Everything but the generator follows from the lines, so there is no other memory."""
        self._random = generator.random

    def act(self, view: SeatView) -> str:
        """Return the answer that the rules give."""
        self._hear(view)
        if view.phase == "propose":
            return f"{PROPOSE}{self._named(sorted(self.proposed()))}"
        if view.phase == "discuss":
            return self._speech()
        if view.phase == "vote":
            return "approve" if (self.proposal == _LAST and self.side == GOOD) or self.approves() else "reject"
        if view.phase == "quest":
            return "fail" if self.side == EVIL and self.fails() else "success"
        return f"{NAME}player_{self._merlin(_seats(' '.join(view.legal_actions)))}"

    # What the lines say.

    def _hear(self, view: SeatView) -> None:
        lines = view.lines
        self.number = int(view.instructions.partition(" ")[0])
        self.seat, self.role, self.seen = view.seat, view.role, _seats(lines[0])[1:]
        self.side = EVIL if " evil. " in lines[0] else GOOD
        self.quests: list[Ended] = []
        self.votes: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        """Team and approving seats of every vote."""
        self.team: tuple[int, ...] = ()
        for line in lines[1:]:
            if found := _LEADS.match(line):
                self.quest, self.proposal = int(found[1]) - 1, int(found[2])
            elif " proposes " in line and line.startswith("player_") and " says: " not in line:
                self.team = _seats(line)[1:]
            elif line.startswith("Votes: "):
                self.votes.append((self.team, _seats(line.partition("; reject ")[0])))
            elif found := _RESULT.match(line):
                self.quests.append(Ended(self.team, 0 if found[2] == "no" else int(found[2])))
            elif line.startswith("The evil seats are "):
                self.seen = tuple([seat for seat in _seats(line) if seat != self.seat])

    @property
    def evil(self) -> set[int]:
        """The seats that this seat knows to be evil."""
        known = set() if self.role == PERCIVAL else {*self.seen}
        return known | ({self.seat} if self.side == EVIL else set())

    @property
    def size(self) -> int:
        """Size of the next team."""
        return TEAM_SIZES[self.number][self.quest]

    def _failed(self, quest: int) -> bool:
        return self.quests[quest].fails >= fails_needed(self.number, quest)

    def suspects(self) -> set[int]:
        """Return seats of failed teams, and evil ones."""
        failed = {seat for number, quest in enumerate(self.quests) if self._failed(number) for seat in quest.team}
        return (failed | self.evil) - {self.seat}

    def _shuffled(self, seats: Sequence[int]) -> list[int]:
        drawn = {seat: self._random() for seat in seats}
        return sorted(seats, key=drawn.__getitem__)

    def _named(self, seats: Sequence[int]) -> str:
        return ", ".join([f"player_{seat}" for seat in seats])

    # Decisions, which a subclass may make otherwise.

    def proposed(self) -> Sequence[int]:
        """Return the team to propose: itself, then seats that are not suspected."""
        avoided = self.suspects()
        others = self._shuffled([seat for seat in range(self.number) if seat != self.seat])
        return [self.seat, *sorted(others, key=avoided.__contains__)][: self.size]

    def approves(self) -> bool:
        """Return whether to approve the team before the last proposal."""
        if self.side == EVIL:
            return bool(self.evil & {*self.team})
        return self.seat in self.team and not self.suspects() & {*self.team}

    def fails(self) -> bool:
        """Return whether an evil seat plays fail: the first known ones of the team, from the second quest on."""
        able = sorted(self.evil & {*self.team})
        return self.quest > 0 and self.seat in able[: fails_needed(self.number, self.quest)]

    def _merlin(self, good: Sequence[int]) -> int:
        """Return the good seat whose votes fit best who is evil."""
        evil = self.evil
        fit = {seat: sum((seat in yes) != bool(evil & {*team}) for team, yes in self.votes) for seat in good}
        return max(self._shuffled(good), key=fit.__getitem__)

    def _speech(self) -> str:
        others = [seat for seat in range(self.number) if seat != self.seat]
        avoided = self.suspects() if self.side == GOOD else {*others} - self.evil
        accused = [seat for seat in others if seat in avoided]
        return f"I suspect player_{self._shuffled(accused)[0]}." if accused else "I suspect nobody yet."


class Reasoner(RuleBased):
    """Weighs all sets of evil seats that fit what it has seen, and hides its side where it is evil.

    A set must hold as many seats of each team as there were fails; each card of success of one of its seats halves its
    weight, and votes that do not fit it lower it. Good seats approve teams that are nearly as likely to be free of evil
    as the best one; Merlin votes in the first quest as if he knew nothing. Evil seats judge as somebody who knows
    nothing would, approve teams with one of them that are not too suspect, propose themselves with trusted seats, and
    let a first team of two succeed.
    """

    name = "reasoner"

    def _weights(self, knows: bool) -> Mapping[frozenset[int], float]:
        """Return set of evil seats -> weight, from this seat's knowledge or that of all."""
        found: dict[frozenset[int], float] = {}
        for drawn in combinations(range(self.number), NUM_EVIL[self.number]):
            evil = frozenset(drawn)
            if knows and (not self.evil <= evil or (self.side == GOOD and self.seat in evil)):
                continue
            if knows and self.role == PERCIVAL and len(self.seen) == 2 and len(evil & {*self.seen}) != 1:
                continue
            able = [(len(evil & {*quest.team}), quest.fails) for quest in self.quests]
            if all(present >= fails for present, fails in able):
                found[evil] = 0.5 ** sum(present - fails for present, fails in able) * self._likelihood(evil)
        return found

    def _likelihood(self, evil: frozenset[int]) -> float:
        """Return how well votes fit a set: evil seats mostly approve teams with evil, good ones mostly do not."""
        odds = 0
        for team, yes in self.votes:
            fitting = self.number - len(evil) - len(yes) + 2 * len(evil.intersection(yes))
            odds += fitting if not evil.isdisjoint(team) else self.number - fitting
        return _ODDS**odds

    def _clean(self, team: Sequence[int], weights: Mapping[frozenset[int], float]) -> float:
        """Return the share of the weight of sets without a seat of the team."""
        return sum(weight for evil, weight in weights.items() if not evil & {*team}) / (sum(weights.values()) or 1.0)

    def _risk(self, weights: Mapping[frozenset[int], float]) -> dict[int, float]:
        return {seat: 1.0 - self._clean((seat,), weights) for seat in range(self.number)}

    def _best(self, weights: Mapping[frozenset[int], float]) -> list[int]:
        """Return this seat and those that are least likely to be evil."""
        risk = self._risk(weights)
        others = self._shuffled([seat for seat in range(self.number) if seat != self.seat])
        return [self.seat, *sorted(others, key=risk.__getitem__)][: self.size]

    def proposed(self) -> Sequence[int]:
        """Return itself and the least suspect seats; an evil seat leaves out others that it knows."""
        if self.side == GOOD:
            return self._best(self._weights(knows=True))
        risk = self._risk(self._weights(knows=False))
        others = self._shuffled([seat for seat in range(self.number) if seat != self.seat])
        return [self.seat, *sorted(others, key=lambda seat: (seat in self.evil, risk[seat]))][: self.size]

    def approves(self) -> bool:
        """Return whether the team is nearly as good as the best, or has an evil seat without being too suspect."""
        weights = self._weights(knows=self.side == GOOD and not (self.role == MERLIN and self.quest == 0))
        best = self._clean(self._best(weights), weights)
        if self.side == GOOD:
            return self._clean(self.team, weights) >= 0.75 * best and best > 0
        return bool(self.evil & {*self.team}) and self._clean(self.team, weights) >= 0.25 * best

    def fails(self) -> bool:
        """Return whether an evil seat plays fail: the first known ones, unless so few seats would tell too much."""
        lost = sum(not self._failed(number) for number in range(len(self.quests))) == 2
        able = sorted(self.evil & {*self.team})
        hides = self.quest == 0 and len(self.team) == 2
        return (lost or not hides) and self.seat in able[: fails_needed(self.number, self.quest)]
