"""What a small policy knows of Werewolf with 5 seats and without talk: facts about seats that it may name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from facts_policy import FactsGame

SEATS = 5
ACTIONS = (*(f"{verb} player_{seat}" for verb in ("kill", "see", "save", "vote") for seat in range(SEATS)), "abstain")
_NAME = re.compile(r"player_([0-9]+)")
_BALLOT = re.compile(r"player_([0-9]+) -> (?:abstain|player_([0-9]+))")


class Told:
    """What a seat has been told, by line.

    Args:
        lines: All lines, without the question.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self.me, self.role = -1, ""
        self.living: tuple[int, ...] = ()
        self.seen: dict[int, bool] = {}
        self.today: list[tuple[int, int]] = []
        """Ballots of the day: voter and whom it named, -1 for nobody."""
        self.before: list[tuple[int, int]] = []
        """Ballots of the day before."""
        self.accusers: set[int] = set()
        """Who has voted for this seat on an earlier day."""
        self.named: set[int] = set()
        """Whom this seat has voted for on an earlier day."""
        for line in lines:
            self._take(line)

    def _take(self, line: str) -> None:
        seats = _numbers(line)
        if line.startswith("You are "):
            self.me, self.role = seats[0], line.split("Role: ")[1].split(".")[0]
        elif line.startswith("Vote: "):
            self.today += _ballots(line)
        elif line.startswith("Night "):
            self.living = seats
            self.accusers |= {voter for voter, named in self.today if named == self.me}
            self.named |= {named for voter, named in self.today if voter == self.me}
            self.before, self.today = self.today, []
        elif line.startswith("Day ") and seats:
            self.living = tuple(seat for seat in self.living if seat != seats[0])
        elif line.startswith("[seer] ") and seats:
            self.seen[seats[0]] = not line.endswith("not a werewolf.")


@lru_cache(maxsize=4096)
def _numbers(line: str) -> tuple[int, ...]:
    return tuple(int(number) for number in _NAME.findall(line))


@lru_cache(maxsize=4096)
def _ballots(line: str) -> tuple[tuple[int, int], ...]:
    return tuple((int(voter), int(named or -1)) for voter, named in _BALLOT.findall(line))


def facts(told: Told, action: str) -> list[str]:
    """Return what holds of an action, from what a seat has been told."""
    verb, _, name = action.partition(" ")
    now = Counter(named for _, named in told.today if named >= 0)
    most = max(now.values(), default=0)
    alive = f"{len(told.living)} alive"
    if not name:
        knows = "a wolf is known" if any(told.seen.get(seat) for seat in told.living) else "no wolf is known"
        return ["abstain", f"abstain, {alive}", f"abstain, {most} ballots lead", f"abstain, {knows}"]
    seat = int(name[-1])
    seen = {None: "not seen", True: "a wolf", False: "clear"}[told.seen.get(seat)]
    earlier = Counter(named for _, named in told.before)
    found = [verb, f"seat {seat}", seen, f"{min(earlier[seat], 2)} ballots before"]
    found += ["accused me before"] * (seat in told.accusers) + ["I accused it before"] * (seat in told.named)
    found += ["myself"] * (seat == told.me) + [f"{alive}, {seen}"]
    if verb != "vote":
        return [*found, "abstained before"] if (seat, -1) in told.before else found
    cast_by = dict(told.today)
    voted = "has to vote" if seat not in cast_by else "abstained" if cast_by[seat] < 0 else "has voted"
    count = min(now[seat], 3)
    leads = "leads" if count and now[seat] == most else "is behind" if most else "nobody is named"
    found += [f"{count} ballots", leads, f"{alive}, {leads}", f"{seen}, {leads}", voted, f"{voted}, {leads}"]
    return found + ["accuses me today"] * (cast_by.get(seat) == told.me)


def known(anchor: str, legal: Sequence[str]) -> dict[str, list[str]]:
    """Return the facts of each legal action, with the role of the seat that reads the anchor."""
    told = Told(anchor.splitlines()[:-1])
    return {action: [f"{told.role}: {fact}" for fact in facts(told, action)] for action in legal}


WEREWOLF = FactsGame("werewolf", ACTIONS, 2048, known)
