"""The rule-based player of Werewolf: it talks in four fixed phrases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView
from turngym.envs.werewolf.public import CLAIM, Fact, fact
from turngym.envs.werewolf.roles import SEER, WEREWOLF
from turngym.envs.werewolf.rules import NOBODY


class RuleBasedPlayer(Player):
    """Plays every role by fixed rules, from the lines that its seat has read and nothing else.

    A seer looks at seats that it has not seen, and says what it knows as soon as it has found a werewolf or got the
    most votes. The doctor protects a lone claimant to be the seer, otherwise itself. The village votes for whom
    a lone claimant accuses, otherwise for the most accused seat; two claims split it by seat number. Werewolves kill
    claimants, accuse at random, and vote with the village, against their own too, where that changes nothing.
    """

    name = "rule_based"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        """Forget the last game. Everything but the generator follows from the lines, so there is no other memory."""
        self._random = generator.random
        self._seat, self._role = view.seat, view.role
        self._read = 0
        self._living: tuple[int, ...] = ()
        self._wolves: tuple[int, ...] = ()
        self._candidates: tuple[int, ...] = ()
        self._seen: dict[int, bool] = {}
        self._claims: list[int] = []
        self._calls: dict[int, dict[int, bool]] = {}
        self._said: list[Fact] = []
        self._votes: Mapping[int, int] = {}

    def act(self, view: SeatView) -> str:
        """Return the answer that the rules give."""
        lines = view.lines
        for line in lines[self._read :]:
            found = None if line.startswith("Vote") else fact(line)  # ballots say nothing that tallies do not
            if found is None:
                continue
            if found.kind == "said":
                self._said.append(found)
                if found.is_claim or found.calls:
                    self._hear_a_seer(found)
            else:
                self._note(found)
        self._read = len(lines)
        phase = view.phase
        if phase == "vote":
            target = self._vote()
            return "abstain" if target == NOBODY else f"vote player_{target}"
        if phase == "talk":
            return f"say {self._speech()}"
        if phase == "bid":
            return f"bid {self._bid()}"
        return self._deed(view)

    # Reading.

    def _hear_a_seer(self, found: Fact) -> None:
        """Remember what somebody claims, or says of others as a seer does."""
        if found.calls:
            self._calls.setdefault(found.seat, {}).update(found.calls)
        if found.is_claim and found.seat not in self._claims:
            self._claims = sorted([*self._claims, found.seat])

    def _note(self, found: Fact) -> None:
        """Remember what the moderator says."""
        kind, seats, seat, votes, _, is_werewolf = found
        if kind == "living":
            self._living, self._candidates = seats, ()
        elif kind == "day":
            if seats:
                self._living = tuple([other for other in self._living if other not in seats])
            self._said = []
        elif kind == "tally":
            self._living = tuple([other for other in self._living if other != seat])
            self._votes, self._candidates = votes, seats
        elif kind == "pack":
            self._wolves = seats
        else:
            self._seen[seats[0]] = is_werewolf

    # Deciding.

    def _any(self, seats: Sequence[int]) -> int:
        return seats[int(self._random() * len(seats))] if seats else NOBODY

    def _believed(self) -> dict[int, bool]:
        """Return what the claimant that this seat believes has said of others: True of a werewolf."""
        if self._seen:
            return self._seen
        if not self._claims:
            return {}
        return self._calls.get(self._claims[self._seat % len(self._claims)], {})

    def _accusers(self) -> dict[int, set[int]]:
        """Return who has accused whom today, in the order of the accusations."""
        found: dict[int, set[int]] = {}
        for speech in self._said:
            for accused in speech.seats:
                if accused in found:
                    found[accused].add(speech.seat)
                else:
                    found[accused] = {speech.seat}
        return found

    def _target(self, believed: dict[int, bool], possible: Sequence[int], accusers: dict[int, set[int]]) -> int:
        """Return whom the village would exile, as far as this seat knows; NOBODY if nothing speaks against anybody."""
        for seat, is_wolf in believed.items():
            if is_wolf and seat in possible:
                return seat
        best, most = NOBODY, 0
        for seat, against in accusers.items():
            if len(against) > most and seat in possible and seat not in believed and seat not in self._claims:
                best, most = seat, len(against)
        return best

    def _vote(self) -> int:
        possible = [seat for seat in self._candidates or self._living if seat != self._seat]
        believed, accusers = self._believed(), self._accusers()
        target = self._target(believed, possible, accusers)
        if self._role == WEREWOLF and (target == NOBODY or target in self._wolves):
            if target != NOBODY and self._is_lost(target, accusers):
                return target
            possible = [seat for seat in possible if seat not in self._wolves]
            believed = {}
            target = self._target(believed, possible, accusers)
        if target != NOBODY:
            return target
        unknown = [seat for seat in possible if seat not in believed and seat not in self._claims]
        return self._any(unknown or possible if self._role == WEREWOLF else unknown)

    def _is_lost(self, seat: int, accusers: dict[int, set[int]]) -> bool:
        """Return whether the village would exile a seat anyway: a lone claimant or more than half accuse it."""
        if len(self._claims) == 1 and self._calls.get(self._claims[0], {}).get(seat):
            return True
        return 2 * len(accusers.get(seat, ())) > len(self._living)

    def _speech(self) -> str:
        others = [seat for seat in self._living if seat != self._seat]
        if self._role == WEREWOLF:
            return f"I suspect player_{self._any([seat for seat in others if seat not in self._wolves])}."
        if self._role == SEER and self._has_reason_to_claim():
            known = [f"player_{seat} is {'a wolf' if wolf else 'clear'}." for seat, wolf in self._seen.items()]
            return " ".join([CLAIM, *known])
        believed = self._believed()
        if believed or self._claims:
            accused = [seat for seat in others if believed.get(seat)]
            others = accused or [s for s in others if s not in believed and s not in self._claims] or others
        return f"I suspect player_{self._any(others)}."

    def _has_reason_to_claim(self) -> bool:
        if any(self._seen.values()) or self._seat in self._claims:
            return True
        return self._votes.get(self._seat, 0) > 0 and self._votes[self._seat] == max(self._votes.values())

    def _bid(self) -> int:
        if any(speech.seat == self._seat for speech in self._said):
            return 0
        if self._role == SEER and self._has_reason_to_claim():
            return 4
        return 2 if self._role == WEREWOLF else 1

    def _deed(self, view: SeatView) -> str:
        """Return what to do in the night."""
        claims = [seat for seat in self._claims if seat in self._living]
        if self._role == WEREWOLF:
            prey = [seat for seat in self._living if seat not in self._wolves]
            return f"kill player_{self._any([seat for seat in claims if seat in prey] or prey)}"
        if self._role == SEER:
            others = [seat for seat in self._living if seat != self._seat]
            return f"see player_{self._any([seat for seat in others if seat not in self._seen] or others)}"
        return self._save(view.legal_actions, claims)

    def _save(self, legal: Sequence[str], claims: Sequence[int]) -> str:
        """Return whom the doctor protects: a lone living claimant, otherwise itself, otherwise anybody."""
        wishes = [*(claims if len(self._claims) == 1 else ()), self._seat]
        for wish in wishes:
            if f"save player_{wish}" in legal:
                return f"save player_{wish}"
        return legal[int(self._random() * len(legal))]
