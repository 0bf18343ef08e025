"""The course of a game of Avalon: its state, and the effects of answers."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from turngym.envs.avalon.redeal import Quest
from turngym.envs.avalon.roles import (
    ASSASSIN,
    EVIL,
    GOOD,
    MERLIN,
    TEAM_SIZES,
    checked_roles,
    dealt,
    fails_needed,
    team_of,
)
from turngym.envs.avalon.text import NAME, PROPOSALS, QUESTS, SAY, TO_WIN, instructions, proposals, targets
from turngym.envs.multiagent.game import Game, Line
from turngym.envs.multiagent.speech import quoted
from turngym.errors import ConfigError
from turngym.options import Options as BaseOptions

NOBODY = "nobody"
"""Winner of a game that all seats have forfeited."""
_FIXED = ("roles", "leader")


class Course(Game, ABC):
    """The course of a game; the subclass defines what seats read and may answer."""

    name = "avalon"

    class Options(BaseOptions):
        num_seats: int | None = None
        """From 5 to 10; None for as many as there are ``roles``, or 5."""
        roles: tuple[str, ...] | None = None
        """Roles in any order, dealt at random: ``merlin``, ``assassin``, ``servant``, ``minion``, and at most one
        ``percival``, ``morgana``, ``mordred`` and ``oberon``; None for the usual ones."""
        talk: bool = True
        """Whether all seats speak once about each proposal."""
        fifth: Literal["counts", "passes"] = "counts"
        """Whether evil wins when the fifth proposal of a quest is rejected, or that proposal passes without a vote."""
        rewards: Literal["team", "zero_sum"] = "team"
        """``team`` (1 to each winner, -1 to each loser) or ``zero_sum`` (the seats of a side share it;
        if all seats forfeit, both sides have lost)."""

    options: Options

    def __init__(self, *positional: Any, **options: Any) -> None:
        self.take_options(self.name, options, positional)
        self.cast = checked_roles(self.options.num_seats, self.options.roles)
        """The roles of the table, in no order that says anything."""
        super().__init__(len(self.cast))
        self.sizes = TEAM_SIZES[self.num_seats]
        """Size of the team of each quest."""
        self._proposals, self._targets = proposals(self.seats), targets(self.seats)
        self._rules = instructions(self.cast, self.options.talk, self.options.fifth == "counts")
        self._commit = {
            "propose": self._propose,
            "discuss": self._discuss,
            "vote": self._vote,
            "quest": self._play,
            "assassinate": self._assassinate,
        }
        self._set_up(self.cast, 0)

    _constructor = __init__

    def _set_up(self, roles: Sequence[str], leader: int) -> None:
        self.roles, self.leader = tuple(roles), leader
        """The role of each seat, and the seat that proposes."""
        self.quests: list[Quest] = []
        """The quests that are over."""
        self.proposal, self.rejected = 0, 0
        """Number of the proposal in this quest, from 0, and how many were rejected in the game."""
        self.party: tuple[int, ...] = ()
        """The team that is proposed or on its quest."""
        self.winner, self.named = "", -1
        """``"good"``, ``"evil"`` or ``"nobody"`` at the end, and the seat that the assassin has named."""
        self._phase = "propose"
        self._queue: list[int] = []
        self._told: list[Line] = []

    def names(self, seats: Sequence[int]) -> str:
        """Return the names of seats, as lines show them."""
        return ", ".join([self.seats[seat] for seat in seats])

    def side(self, side: str) -> tuple[int, ...]:
        """Return the seats of a side."""
        return tuple([seat for seat in self.everyone if self.team(seat) == side])

    def tell(self, to: Sequence[int], text: str) -> None:
        """Send a line to seats, and keep it."""
        super().tell(to, text)
        self._told.append(self.news[-1])

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Deal roles and draw the first leader; ``{"roles": ["merlin", ...], "leader": 0}`` fixes them by seat."""
        self.require_known(options, _FIXED)
        drawn = [self.cast[card] for card in generator.permutation(self.num_seats).tolist()]
        first = int(generator.integers(self.num_seats))
        roles, leader = options.get("roles", drawn), options.get("leader", first)
        if not isinstance(roles, list | tuple) or sorted(map(str, roles)) != sorted(self.cast):
            raise ConfigError(f"roles of {self.name} must be an order of {sorted(self.cast)}, got {roles!r:.200}.")
        if type(leader) is not int or leader not in self.everyone:
            raise ConfigError(f"leader of {self.name} must be a seat in 0-{self.num_seats - 1}, got {leader!r:.80}.")
        self.news.clear()
        self._set_up(roles, leader)
        for seat in self.everyone:
            self.tell((seat,), dealt(seat, self.roles))
        self._begin_proposal()

    def _begin_proposal(self) -> None:
        self._phase, self.party = "propose", ()
        quest = len(self.quests)
        twice = " Two fails fail it." if fails_needed(self.num_seats, quest) == 2 else ""
        self.tell(
            self.everyone,
            f"Quest {quest + 1} of {QUESTS}, proposal {self.proposal + 1} of {PROPOSALS}: {self.seats[self.leader]} "
            f"leads, the team has {self.sizes[quest]} seats.{twice}",
        )

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Take a proposal, a speech, all votes, the cards of the team, or a name."""
        self._commit[self._phase](actions)
        return self._rewards()

    def _propose(self, actions: Mapping[int, str]) -> None:
        self.party = self._proposals[self.sizes[len(self.quests)]][actions[self.leader]]
        is_last = self.options.fifth == "passes" and self.proposal == PROPOSALS - 1
        passes = " It passes without a vote." if is_last else ""
        self.tell(self.everyone, f"{self.seats[self.leader]} proposes {self.names(self.party)}.{passes}")
        first = self.leader
        self._queue = [(first + step) % self.num_seats for step in range(self.num_seats)]
        self._phase = "quest" if is_last else "discuss" if self.options.talk else "vote"

    def _discuss(self, actions: Mapping[int, str]) -> None:
        seat = self._queue.pop(0)
        if seat not in self.forfeited and actions[seat] != SAY:
            self.tell(self.everyone, quoted(self.seats[seat], actions[seat].removeprefix(f"{SAY} ")))
        if not self._queue:
            self._phase = "vote"

    def _vote(self, actions: Mapping[int, str]) -> None:
        sides = {each: [seat for seat, vote in actions.items() if vote == each] for each in ("approve", "reject")}
        passes = 2 * len(sides["approve"]) > self.num_seats
        shown = "; ".join([f"{each} {self.names(seats) or 'nobody'}" for each, seats in sides.items()])
        self.tell(self.everyone, f"Votes: {shown}. The team is {'approved' if passes else 'rejected'}.")
        if passes:
            self._phase = "quest"
            return
        self.rejected += 1
        self.proposal += 1
        self.leader = (self.leader + 1) % self.num_seats
        if self.proposal == PROPOSALS:
            self._end(EVIL, f"{PROPOSALS} teams in a row were rejected")
        else:
            self._begin_proposal()

    def _play(self, actions: Mapping[int, str]) -> None:
        fails = tuple([seat for seat, card in actions.items() if card == "fail"])
        number = len(self.quests)
        succeeded = len(fails) < fails_needed(self.num_seats, number)
        self.quests.append(Quest(self.party, fails, succeeded))
        for seat in self.party:
            if self.team(seat) == EVIL:
                self.tell((seat,), f"You played {actions[seat]}.")
        counted = f"{len(fails) or 'no'} fail{'s' * (len(fails) > 1)} among {len(actions)} cards"
        self.tell(self.everyone, f"Quest {number + 1} {'succeeds' if succeeded else 'fails'}: {counted}.")
        self.leader, self.proposal = (self.leader + 1) % self.num_seats, 0
        won = sum(quest.succeeded for quest in self.quests)
        if len(self.quests) - won == TO_WIN:
            self._end(EVIL, "three quests failed")
        elif won < TO_WIN:
            self._begin_proposal()
        elif self.roles.index(ASSASSIN) in self.forfeited:
            self._end(GOOD, "three quests succeeded, and the assassin names nobody")
        else:
            self._phase = "assassinate"
            self.tell(self.everyone, "Three quests succeeded: the assassin names a good seat.")
            self.tell(self.side(EVIL), f"The evil seats are {self.names(self.side(EVIL))}.")

    def _assassinate(self, actions: Mapping[int, str]) -> None:
        ((_, action),) = actions.items()
        self.named = self.seats.index(action.removeprefix(NAME))
        hit = self.roles[self.named] == MERLIN
        self._end(EVIL if hit else GOOD, f"the assassin names {self.seats[self.named]}, {'' if hit else 'not '}Merlin")

    def _end(self, winner: str, reason: str) -> None:
        self.winner = winner
        roles = ", ".join([f"{name} {role}" for name, role in zip(self.seats, self.roles, strict=True)])
        self.tell(self.everyone, f"The game is over: {reason}. {winner.capitalize()} wins. Roles: {roles}.")

    def _share(self, seat: int) -> float:
        return 1.0 / len(self.side(self.team(seat))) if self.options.rewards == "zero_sum" else 1.0

    def _rewards(self) -> list[float]:
        """Return what winners and losers get at the end; forfeited seats have already paid, to the winners left."""
        left = [seat for seat in self.everyone if seat not in self.forfeited]
        rewards = [0.0] * self.num_seats
        if self.winner:
            winners = self.side(self.winner)
            won = [seat for seat in left if seat in winners]
            pot = 2 - len(won) / len(winners) if won else 0.0
            for seat in left:
                win = pot / len(won) if won and self.options.rewards == "zero_sum" else 1.0
                rewards[seat] = win if seat in winners else -self._share(seat)
        return rewards

    def forfeit(self, seats: Sequence[int]) -> Sequence[float]:
        """Silence seats. A side without any other seat has lost; if the assassin was to name Merlin, good has won."""
        sides = {self.team(seat) for seat in self.everyone if seat not in self.forfeited}
        if not sides:
            self._end(NOBODY, "all seats have forfeited")
        elif len(sides) == 1:
            self._end(sides.pop(), "all seats of the other side have forfeited")
        elif self._phase == "assassinate":
            self._end(GOOD, "the assassin names nobody")
        else:
            self.tell(self.everyone, f"No legal action of {self.names(seats)}: forfeited, and silent from now on.")
        return [-self._share(seat) if seat in seats else paid for seat, paid in enumerate(self._rewards())]

    def role(self, seat: int) -> str:
        """Return the role of a seat."""
        return self.roles[seat]

    def team(self, seat: int) -> str:
        """Return ``"good"`` or ``"evil"``."""
        return team_of(self.roles[seat])
