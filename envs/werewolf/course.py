"""The course of a game of Werewolf: its state, and the effects of answers.

The phases, each asking some seats at once:

- ``night``: living werewolves one after another, each reading what the earlier ones chose. Seer and doctor are asked
  together with the last one, for none of the three can influence the others. So every night takes as many questions as
  there are living werewolves, whoever else lives, and nothing that a seat reads tells it how many answers others gave.
- ``talk``: one seat, or all at once; before it ``bid`` where the right to speak is bid for.
- ``vote``: all at once, or one after another; a run-off is another talk and vote.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np

from turngym.envs.multiagent.game import FORFEITED, Game, Line
from turngym.envs.werewolf import lines, rules
from turngym.envs.werewolf.parser import PLAIN
from turngym.envs.werewolf.rewards import SCALES, forfeit_reward, pay_ballots, pay_exile, pay_result, pay_survivors
from turngym.envs.werewolf.roles import DOCTOR, SEER, WEREWOLF, checked_roles, seats_of
from turngym.envs.werewolf.rules import NOBODY
from turngym.errors import ConfigError
from turngym.options import OptionError, at_least
from turngym.options import Options as BaseOptions


class Course(Game, ABC):
    """The course of a game; the subclass defines what seats read and may answer."""

    name = "werewolf"

    class Options(BaseOptions):
        num_seats: int | None = None
        """From 5 to 15; None for as many as there are ``roles``, or 7."""
        roles: tuple[str, ...] | None = None
        """Roles in any order, dealt to the seats at random; None for one third werewolves, a seer, a doctor and
        villagers."""
        talk_protocol: Literal["seat_order", "random", "bidding", "parallel"] = "seat_order"
        """Speaking order."""
        talk_rounds: Annotated[int, at_least(0)] = 1
        """Speeches of each living seat per day, without bidding."""
        bid_turns: Annotated[int, at_least(0)] = 8
        """Maximum number of speeches per day with bidding."""
        vote_protocol: Literal["simultaneous", "sequential"] = "simultaneous"
        """With ``sequential`` each ballot is read by those who vote later."""
        wolf_protocol: Literal["sequential", "simultaneous"] = "sequential"
        """With ``sequential`` each werewolf reads what earlier ones chose; with ``simultaneous`` a night is a single
        question to all who act in it."""
        exile: Literal["plurality", "majority"] = "plurality"
        """Whether the most votes suffice or more than half of the living must agree."""
        tie: Literal["none", "random", "runoff"] = "none"
        """Nobody is exiled, one of the tied at random, or there is a runoff after they spoke once more."""
        reveal: Literal["none", "team", "role"] = "none"
        """Information revealed about the dead."""
        doctor_self: bool = True
        """Whether the doctor may protect itself."""
        doctor_repeat: bool = True
        """Whether the doctor may protect the same seat in two nights running."""
        max_days: Annotated[int, at_least(1)] = 10
        """Days after which a game without a winner is a draw."""
        rewards: Literal["team", "zero_sum", "shaped", "lspo"] = "team"
        """``team`` (1 to the winners, -1 to the losers), ``zero_sum`` (each team shares it), ``shaped`` (0.1 more for
        each village ballot on a werewolf, less on another) or ``lspo``."""
        rewards_at: Literal["turn", "end"] = "turn"
        """With ``end`` nothing is paid before the game is over: what a seat earns by its ballots tells it roles."""

        def check(self) -> None:
            if self.exile == "majority" and self.tie != "none":
                raise OptionError(
                    "tie", f"must be 'none' with exile='majority', which leaves no tie, got {self.tie!r}."
                )

    options: Options

    def __init__(self, *positional: Any, **options: Any) -> None:
        self.take_options(self.name, options, positional)
        self.cast = checked_roles(self.options.num_seats, self.options.roles)
        """The roles of the table, in no order that says anything."""
        self.roles: list[str] = []
        """The role of each seat; empty before the first reset."""
        super().__init__(len(self.cast))
        self.setup()

    _constructor = __init__

    def setup(self) -> None:
        """Prepare what follows from the options."""
        options = self.options
        self.talk_protocol, self.talk_rounds, self.bid_turns = (
            options.talk_protocol,
            options.talk_rounds,
            options.bid_turns,
        )
        self.votes_in_turn = options.vote_protocol == "sequential"
        self.wolves_in_turn = options.wolf_protocol == "sequential"
        self.exile, self.tie, self.reveal, self.max_days = options.exile, options.tie, options.reveal, options.max_days
        self.doctor_self, self.doctor_repeat = options.doctor_self, options.doctor_repeat
        self.pays_at_once = options.rewards_at == "turn"
        self._scale = SCALES[options.rewards]
        self._nothing = (0.0,) * self.num_seats
        self._instructions: dict[str, str] = {}
        self._commit = {
            "night": self._commit_night,
            "bid": self._commit_bids,
            "talk": self._commit_talk,
            "vote": self._commit_votes,
        }

    def tell(self, to: Sequence[int], text: str) -> None:
        """Address a line to seats, and remember it for their anchors."""
        line = Line(tuple(to), text)
        self.news.append(line)
        self.told.append(line)

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Deal the roles, or take those of ``options["roles"]``, one per seat; the first night starts."""
        self.require_known(options, ["roles"])
        order = generator.permutation(self.num_seats).tolist()  # always sampled, so later numbers do not depend on it
        dealt = [self.cast[card] for card in order]
        if options.get("roles") is not None:
            dealt = list(options["roles"])
            if sorted(dealt) != sorted(self.cast):
                raise ConfigError(f"the roles must be {sorted(self.cast)} in the order of the seats, got {dealt!r}.")
        self._generator = generator
        self.told: list[Line] = []
        self.roles = dealt
        self.living = self.everyone
        self.day, self._phase, self.winner = 0, "night", ""
        self._asking: tuple[int, ...] = ()
        self._won: tuple[int, ...] = ()
        self._pack: tuple[int, ...] = ()
        self.proposals: dict[int, int] = {}
        self.ballots: dict[int, int] = {}
        self.candidates: tuple[int, ...] = ()
        self._queue: list[int] = []
        self._turns_left, self._last_speech = 0, ""
        self._spoken: dict[int, int] = {}
        self.nights: list[tuple[int, int, int]] = []
        """Target, protected seat and victim of every night."""
        self.exiles: list[int] = []
        """Seat exiled on each day, NOBODY if none."""
        self.checks: list[int] = []
        """Whom the seer has looked at."""
        self._due, self._is_due = [0.0] * self.num_seats, False
        self._hits = [0, 0]
        self.find_powers()
        for seat in self.everyone:
            self.tell((seat,), lines.dealt(seat, dealt))
        self._start_night()

    def find_powers(self) -> None:
        """Note who is seer and who is doctor."""
        self.seer = self.roles.index(SEER) if SEER in self.roles else NOBODY
        self.doctor = self.roles.index(DOCTOR) if DOCTOR in self.roles else NOBODY

    # What the answers bring.

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Take the actions of all seats that are asked."""
        self._is_due = False
        self._commit[self._phase](actions)
        if not self._is_due:
            return self._nothing
        due, self._due = self._due, [0.0] * self.num_seats
        return due

    def forfeit(self, seats: Sequence[int]) -> Sequence[float]:
        """Pay defeat; the game continues, and the seats skip whatever they may skip."""
        paid = [0.0] * self.num_seats
        for seat in seats:
            self.tell((seat,), FORFEITED)
            paid[seat] = forfeit_reward(self._scale, self.roles, seat, self.max_days - self.day + 1)
        return paid

    def _start_night(self) -> None:
        self.day += 1
        self._phase, self.proposals = "night", {}
        self._pack = tuple([seat for seat in self.living if self.roles[seat] == WEREWOLF])
        self.tell(self.everyone, lines.night(self.day, self.living))
        self._ask_night()

    def _ask_night(self) -> None:
        rest = self._pack[len(self.proposals) :]
        if self.wolves_in_turn and len(rest) > 1:
            self._asking = rest[:1]
        else:
            self._asking = (*rest, *[seat for seat in (self.seer, self.doctor) if seat in self.living])

    def _commit_night(self, actions: Mapping[int, str]) -> None:
        for seat, action in actions.items():
            if self.roles[seat] == WEREWOLF:
                self.proposals[seat] = PLAIN[action].number
                self.tell(self._pack, lines.proposal(seat, self.proposals[seat]))
        if len(self.proposals) < len(self._pack):
            self._ask_night()
            return
        target, protected = self.proposals[self._pack[-1]], NOBODY
        self.tell(self._pack, lines.target(target))
        if self.seer in actions:
            seen = _named(actions[self.seer])
            if seen != NOBODY:
                self.checks.append(seen)
            self.tell((self.seer,), lines.seen(seen, seen != NOBODY and self.roles[seen] == WEREWOLF))
        if self.doctor in actions:
            protected = _named(actions[self.doctor])
            self.tell((self.doctor,), lines.protected(protected))
        victim = rules.victim_of(target, protected)
        self.nights.append((target, protected, victim))
        self.tell(self.everyone, lines.morning(self.day, victim, self._bury(victim)))
        if not self._has_ended():
            self._start_day()

    def _bury(self, seat: int) -> str:
        """Take a seat from the living, and return what is shown of it."""
        if seat == NOBODY:
            return ""
        self.living = tuple([other for other in self.living if other != seat])
        return lines.revealed(self.roles[seat], self.reveal)

    def _start_day(self) -> None:
        self.candidates, self._last_speech, self._spoken = (), "", {}
        living = self.living
        self._queue = []
        self._turns_left = {"bidding": self.bid_turns, "parallel": self.talk_rounds}.get(self.talk_protocol, 0)
        if self.talk_protocol == "seat_order":
            self._queue = list(living) * self.talk_rounds
        elif self.talk_protocol == "random":
            for _ in range(self.talk_rounds):
                self._queue += [living[place] for place in self._generator.permutation(len(living)).tolist()]
        self._next_talk()

    def _next_talk(self) -> None:
        self._phase = "talk"
        if self._queue:
            self._asking = (self._queue.pop(0),)
        elif not self._turns_left:
            self._start_vote()
        else:
            self._asking = self.living
            if self.talk_protocol == "bidding":
                self._phase = "bid"
            else:
                self._turns_left -= 1

    def _commit_bids(self, actions: Mapping[int, str]) -> None:
        bids = {seat: PLAIN[action].number for seat, action in actions.items()}
        for seat, bid in bids.items():
            self.tell((seat,), lines.own_bid(bid))
        speaker = rules.next_speaker(bids, self._last_speech, self._spoken, self._generator)
        if speaker == NOBODY:
            self._start_vote()
        else:
            self._turns_left -= 1
            self._phase, self._asking = "talk", (speaker,)

    def _commit_talk(self, actions: Mapping[int, str]) -> None:
        for seat, action in actions.items():
            said = action[4:]
            self.tell(self.everyone, lines.speech(self.day, seat, said))
            self._last_speech = said
            self._spoken[seat] = self._spoken.get(seat, 0) + 1
        self._next_talk()

    def _start_vote(self) -> None:
        self._phase, self.ballots, self._turns_left = "vote", {}, 0
        self._queue = list(self.living[1:]) if self.votes_in_turn else []
        self._asking = self.living[:1] if self.votes_in_turn else self.living

    def _commit_votes(self, actions: Mapping[int, str]) -> None:
        for seat, action in actions.items():
            self.ballots[seat] = PLAIN[action].number
            if self.votes_in_turn:
                self.tell(self.everyone, lines.ballot(seat, self.ballots[seat]))
        if self._queue:
            self._asking = (self._queue.pop(0),)
            return
        if not self.votes_in_turn:
            self.tell(self.everyone, lines.ballots(self.ballots))
        self._count_ballots()
        counts = rules.tally(self.ballots)
        tied = rules.leaders(counts)
        if len(tied) > 1 and self.tie == "runoff" and not self.candidates:
            self.candidates = tied
            self.tell(self.everyone, lines.run_off(counts, tied))
            speaks = self.bid_turns if self.talk_protocol == "bidding" else self.talk_rounds
            self._queue = list(tied) if speaks else []
            self._next_talk()
            return
        self._exile(counts, tied)

    def _count_ballots(self) -> None:
        """Pay for the ballots, and count how well the village votes."""
        pay_ballots(self._due, self._scale, self.roles, self.ballots)
        self._is_due = self.pays_at_once
        for seat, target in self.ballots.items():
            if target != NOBODY and self.roles[seat] != WEREWOLF:
                self._hits[0] += 1
                self._hits[1] += self.roles[target] == WEREWOLF

    def _exile(self, counts: Mapping[int, int], tied: Sequence[int]) -> None:
        exiled = NOBODY
        if len(tied) == 1:
            agreed = self.exile == "plurality" or rules.has_majority(counts[tied[0]], len(self.living))
            exiled = tied[0] if agreed else NOBODY
        elif tied and self.tie == "random":
            exiled = tied[int(self._generator.integers(len(tied)))]
        if exiled != NOBODY:
            pay_exile(self._due, self._scale, self.roles, self.living, exiled)
        self.exiles.append(exiled)
        self.tell(self.everyone, lines.tallied(counts, exiled, self._bury(exiled)))
        pay_survivors(self._due, self._scale, self.living)
        if self._has_ended():
            return
        if self.day >= self.max_days:
            self._end()
        else:
            self._start_night()

    def _has_ended(self) -> bool:
        """Return whether a team has won; if so, the game is over."""
        self.winner = rules.winner(self.roles, self.living)
        if not self.winner:
            return False
        if self._phase == "night":
            pay_survivors(self._due, self._scale, self.living)
        self._end()
        return True

    def _end(self) -> None:
        self._phase, self._asking, self._is_due = "over", (), True
        self._won = seats_of(self.winner, self.roles)
        pay_result(self._due, self._scale, self.roles, self.winner)
        self.tell(self.everyone, lines.game_over(self.winner, self.roles))


def _named(action: str) -> int:
    """Return the seat that an action names, NOBODY if it names none."""
    return PLAIN[action].number if action in PLAIN else NOBODY
