"""The rule-based player of Werewolf: it talks in four fixed phrases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from turngym.envs.multiagent.players import Player
from turngym.envs.multiagent.table import SeatView
from turngym.envs.werewolf.knowledge import Knowledge
from turngym.envs.werewolf.public import CLAIM
from turngym.envs.werewolf.roles import SEER, WEREWOLF
from turngym.envs.werewolf.rules import NOBODY


class RuleBasedPlayer(Knowledge, Player):
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
        self.start(view.seat, view.role)

    def act(self, view: SeatView) -> str:
        """Return the answer that the rules give."""
        self.hear(view.lines)
        phase = view.phase
        if phase == "vote":
            target = self._vote()
            return "abstain" if target == NOBODY else f"vote player_{target}"
        if phase == "talk":
            return f"say {self._speech()}"
        if phase == "bid":
            return f"bid {self._bid()}"
        return self._deed(view)

    # Deciding.

    def _any(self, seats: Sequence[int]) -> int:
        return seats[int(self._random() * len(seats))] if seats else NOBODY

    def _target(self, believed: dict[int, bool], possible: Sequence[int], accusers: dict[int, set[int]]) -> int:
        """Return whom the village would exile, as far as this seat knows; NOBODY if nothing speaks against anybody."""
        for seat, is_wolf in believed.items():
            if is_wolf and seat in possible:
                return seat
        best, most = NOBODY, 0
        for seat, against in accusers.items():
            if len(against) > most and seat in possible and seat not in believed and seat not in self.claims:
                best, most = seat, len(against)
        return best

    def _vote(self) -> int:
        possible = [seat for seat in self.candidates or self.living if seat != self.seat]
        believed, accusers = self.believed(), self.accusers()
        target = self._target(believed, possible, accusers)
        if self.role == WEREWOLF and (target == NOBODY or target in self.wolves):
            if target != NOBODY and self._is_lost(target, accusers):
                return target
            possible = [seat for seat in possible if seat not in self.wolves]
            believed = {}
            target = self._target(believed, possible, accusers)
        if target != NOBODY:
            return target
        unknown = [seat for seat in possible if seat not in believed and seat not in self.claims]
        return self._any(unknown or possible if self.role == WEREWOLF else unknown)

    def _is_lost(self, seat: int, accusers: dict[int, set[int]]) -> bool:
        """Return whether the village would exile a seat anyway: a lone claimant or more than half accuse it."""
        if len(self.claims) == 1 and self.calls.get(self.claims[0], {}).get(seat):
            return True
        return 2 * len(accusers.get(seat, ())) > len(self.living)

    def _speech(self) -> str:
        others = [seat for seat in self.living if seat != self.seat]
        if self.role == WEREWOLF:
            return f"I suspect player_{self._any([seat for seat in others if seat not in self.wolves])}."
        if self.role == SEER and self._has_reason_to_claim():
            known = [f"player_{seat} is {'a wolf' if wolf else 'clear'}." for seat, wolf in self.seen.items()]
            return " ".join([CLAIM, *known])
        believed = self.believed()
        if believed or self.claims:
            accused = [seat for seat in others if believed.get(seat)]
            others = accused or [s for s in others if s not in believed and s not in self.claims] or others
        return f"I suspect player_{self._any(others)}."

    def _has_reason_to_claim(self) -> bool:
        if any(self.seen.values()) or self.seat in self.claims:
            return True
        return self.votes.get(self.seat, 0) > 0 and self.votes[self.seat] == max(self.votes.values())

    def _bid(self) -> int:
        if any(speech.seat == self.seat for speech in self.said):
            return 0
        if self.role == SEER and self._has_reason_to_claim():
            return 4
        return 2 if self.role == WEREWOLF else 1

    def _deed(self, view: SeatView) -> str:
        """Return what to do in the night."""
        claims = [seat for seat in self.claims if seat in self.living]
        if self.role == WEREWOLF:
            prey = [seat for seat in self.living if seat not in self.wolves]
            return f"kill player_{self._any([seat for seat in claims if seat in prey] or prey)}"
        if self.role == SEER:
            others = [seat for seat in self.living if seat != self.seat]
            return f"see player_{self._any([seat for seat in others if seat not in self.seen] or others)}"
        return self._save(view.legal_actions, claims)

    def _save(self, legal: Sequence[str], claims: Sequence[int]) -> str:
        """Return whom the doctor protects: a lone living claimant, otherwise itself, otherwise anybody."""
        wishes = [*(claims if len(self.claims) == 1 else ()), self.seat]
        for wish in wishes:
            if f"save player_{wish}" in legal:
                return f"save player_{wish}"
        return legal[int(self._random() * len(legal))]
