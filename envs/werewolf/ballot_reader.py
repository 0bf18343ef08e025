"""A second rule-based player of Werewolf, which ignores the discussion and looks at who voted for whom."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView
from turngym.envs.werewolf.public import fact
from turngym.envs.werewolf.roles import WEREWOLF

_BALLOT = re.compile(r"player_([0-9]+) -> player_([0-9]+)")
_SPEECHES = {"talk": "say", "bid": "bid 0"}


class BallotReader(Player):
    """Plays every role by fixed rules, from ballots, deaths and what its own role reads; it says nothing.

    A held-out opponent for policies that have trained against ``rule_based``, with which it shares no rule of the vote.

    A villager votes for a seat that it knows to be a werewolf; else for the seat with the most ballots of the day; else
    for a seat that has voted against it; else for a random seat that it does not know to be innocent. Werewolves join
    the most ballots against other seats, and kill seats that have voted against one of them. The seer looks at seats
    that it has not seen yet, and the doctor protects itself.
    """

    name = "ballot_reader"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Forget the last game. Everything but the generator follows from the lines."""
        self._random = generator.random
        self._seat, self._role = view.seat, view.role
        self._read = 0
        self._pack: tuple[int, ...] = (view.seat,)
        self._seen: dict[int, bool] = {}
        self._today: list[tuple[int, int]] = []
        self._accusers: dict[int, set[int]] = {}

    def act(self, view: SeatView) -> str:
        """Return the answer that the rules give."""
        for line in view.lines[self._read :]:
            self._take(line)
        self._read = len(view.lines)
        if view.phase in _SPEECHES:
            return _SPEECHES[view.phase]
        legal = {_target(action): action for action in view.legal_actions if action != "abstain"}
        if view.phase == "vote":
            return legal[self._vote(list(legal))]
        return legal[self._deed(list(legal))]

    def _take(self, line: str) -> None:
        if line.startswith("Vote"):
            ballots = [(int(voter), int(named)) for voter, named in _BALLOT.findall(line)]
            self._today += ballots
            for voter, named in ballots:
                self._accusers.setdefault(named, set()).add(voter)
            return
        found = None if line.startswith("[Day") else fact(line)
        if found is None:
            return
        if found.kind == "living":
            self._today = []
        elif found.kind == "pack":
            self._pack = found.seats
        elif found.kind == "seen":
            self._seen[found.seats[0]] = found.is_claim

    def _any(self, seats: Sequence[int]) -> int:
        return seats[int(self._random() * len(seats))]

    def _vote(self, possible: Sequence[int]) -> int:
        counts = dict.fromkeys(possible, 0)
        for _, named in self._today:
            if named in counts:
                counts[named] += 1
        if self._role == WEREWOLF:
            others = [seat for seat in possible if seat not in self._pack] or list(possible)
            most = max(counts[seat] for seat in others)
            return self._any([seat for seat in others if counts[seat] == most])
        if wolves := [seat for seat in possible if self._seen.get(seat)]:
            return wolves[0]
        unknown = [seat for seat in possible if seat not in self._seen] or list(possible)
        most = max(counts[seat] for seat in unknown)
        if most:
            return next(named for _, named in self._today if named in unknown and counts[named] == most)
        against = [seat for seat in unknown if seat in self._accusers.get(self._seat, ())]
        return self._any(against or unknown)

    def _deed(self, possible: Sequence[int]) -> int:
        """Return whom to kill, look at or protect in the night."""
        if self._role == WEREWOLF:
            foes = {voter for wolf in self._pack for voter in self._accusers.get(wolf, ())}
            return self._any([seat for seat in possible if seat in foes] or possible)
        if self._seat in possible:
            return self._seat
        return self._any([seat for seat in possible if seat not in self._seen] or possible)


def _target(action: str) -> int:
    return int(action.rpartition("_")[2])
