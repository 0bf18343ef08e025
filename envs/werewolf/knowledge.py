"""Knowledge of one seat of Werewolf, from the lines that it has read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from turngym.envs.werewolf.public import Fact, fact


class Knowledge:
    """What the moderator and the players have said to a seat, by the grammar of :mod:`turngym.envs.werewolf.public`."""

    def start(self, seat: int, role: str) -> None:
        """Begin a game with nothing read."""
        self.seat, self.role = seat, role
        self._read = 0
        self.living: tuple[int, ...] = ()
        self.wolves: tuple[int, ...] = ()
        self.candidates: tuple[int, ...] = ()
        self.seen: dict[int, bool] = {}
        self.claims: list[int] = []
        self.calls: dict[int, dict[int, bool]] = {}
        self.said: list[Fact] = []
        self.votes: Mapping[int, int] = {}

    def hear(self, lines: Sequence[str]) -> None:
        """Read all lines of the game up to now, from the first one that has not been read."""
        for line in lines[self._read :]:
            found = None if line.startswith("Vote") else fact(line)  # ballots say nothing that tallies do not
            if found is None:
                continue
            if found.kind == "said":
                self.said.append(found)
                if found.is_claim or found.calls:
                    self._hear_a_seer(found)
            else:
                self._note(found)
        self._read = len(lines)

    def _hear_a_seer(self, found: Fact) -> None:
        """Remember what somebody claims, or says of others as a seer does."""
        if found.calls:
            self.calls.setdefault(found.seat, {}).update(found.calls)
        if found.is_claim and found.seat not in self.claims:
            self.claims = sorted([*self.claims, found.seat])

    def _note(self, found: Fact) -> None:
        """Remember what the moderator says."""
        kind, seats, seat, votes, _, is_werewolf = found
        if kind == "living":
            self.living, self.candidates = seats, ()
        elif kind == "day":
            if seats:
                self.living = tuple([other for other in self.living if other not in seats])
            self.said = []
        elif kind == "tally":
            self.living = tuple([other for other in self.living if other != seat])
            self.votes, self.candidates = votes, seats
        elif kind == "pack":
            self.wolves = seats
        else:
            self.seen[seats[0]] = is_werewolf

    def believed(self) -> dict[int, bool]:
        """Return what the claimant that this seat believes has said of others: True of a werewolf."""
        if self.seen:
            return self.seen
        if not self.claims:
            return {}
        return self.calls.get(self.claims[self.seat % len(self.claims)], {})

    def accusers(self) -> dict[int, set[int]]:
        """Return who has accused whom today, in the order of the accusations."""
        found: dict[int, set[int]] = {}
        for speech in self.said:
            for accused in speech.seats:
                if accused in found:
                    found[accused].add(speech.seat)
                else:
                    found[accused] = {speech.seat}
        return found
