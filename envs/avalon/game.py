"""Avalon as a game for a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from turngym.envs.avalon.course import Course
from turngym.envs.avalon.redeal import Past, other_world
from turngym.envs.avalon.roles import ASSASSIN, EVIL, GOOD, MERLIN, dealt
from turngym.envs.avalon.saved import checked_quests
from turngym.envs.avalon.text import CARDS, NAME, QUESTS, SAY, VOTES, read_speech, read_team
from turngym.envs.multiagent.game import InvalidAction, Line
from turngym.envs.parsing.thinking import THINKING
from turngym.envs.settings import worded
from turngym.envs.tablegames.reading import read_choice
from turngym.types import JSONValue

_PLAYERS = "turngym.envs.avalon.players"
_READ = 10_000


class Avalon(Course):
    """Hidden-role game: evil seats know each other, Merlin knows them, and good wins only if he stays unknown.

    There are up to five quests. The leader proposes a team of the quest's size, all speak once (with ``talk``), and all
    vote at once; more than half must approve, else the next seat proposes. The seats of the team play a card at once,
    good ones always success; only the number of fails is shown. One fails the quest, two in the fourth quest with seven
    seats or more. After three failed quests, or the fifth proposal of a quest rejected (``fifth="counts"``), evil has
    won. After three successes the evil seats learn who is good, and the assassin names one of them: evil wins if that
    is Merlin, else good does.

    Speech is any text, which all hear, quoted as one line: the legal action ``say`` stands for it, and as an answer is
    silence. Rewards are 1 for winners and -1 for others at the end, or 1 and -1 divided among the seats of a side
    (``rewards="zero_sum"``). A seat that forfeits has lost and continues without a word: it proposes any team, rejects,
    and plays success; an assassin that has forfeited names nobody. A side whose seats have all forfeited has lost; with
    ``zero_sum`` the winners that are left share what forfeited seats have lost. The anchor is every line that the seat
    has read.

    >>> from turngym.envs.multiagent.table import Table
    >>> table = Table(Avalon(talk=False))
    >>> roles = ["merlin", "assassin", "servant", "percival", "morgana"]
    >>> table.reset(np.random.default_rng(0), {"roles": roles, "leader": 0})
    >>> for text in ("[player_0, player_1]", *["approve"] * 5, "success", "fail"):
    ...     answer = table.answer(table.pending[0], text)
    >>> table.log[-2].text
    'Quest 1 fails: 1 fail among 2 cards.'
    """

    file_options = worded("roles")
    players: ClassVar[Mapping[str, str]] = {
        "reasoner": f"{_PLAYERS}:Reasoner",
        "rule_based": f"{_PLAYERS}:RuleBased",
    }

    def instructions(self, seat: int) -> str:
        """Return the rules, the same for all."""
        return self._rules

    # Decisions.

    def phase(self) -> str:
        """Return ``"propose"``, ``"discuss"``, ``"vote"``, ``"quest"``, ``"assassinate"`` or ``"over"``."""
        return "over" if self.winner else self._phase

    def is_speech(self, seat: int) -> bool:
        """Return whether the seats discuss."""
        return self._phase == "discuss"

    def asked(self) -> tuple[int, ...]:
        """Return the leader, the next seat that speaks, all that vote, the seats of the team, or the assassin."""
        if self.winner:
            return ()
        if self._phase == "vote":
            return self.everyone
        if self._phase == "quest":
            return self.party
        if self._phase == "discuss":
            return (self._queue[0],)
        return (self.leader if self._phase == "propose" else self.roles.index(ASSASSIN),)

    def prompt(self, seat: int) -> str:
        """Return the question."""
        if self._phase == "propose":
            return f"Propose a team of {self.sizes[len(self.quests)]}."
        if self._phase == "assassinate":
            return f"Who is Merlin? Name one of {self.names(self.side(GOOD))}."
        cards = "success" if self.team(seat) == GOOD else "success or fail"
        return {
            "discuss": f"The team is {self.names(self.party)}. Say something to all.",
            "vote": f"The team is {self.names(self.party)}. Approve or reject it.",
            "quest": f"You are in the team. Play {cards}.",
        }[self._phase]

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return proposals, votes, cards or names; in talk only silence, for any words may follow it."""
        if self._phase == "propose":
            return tuple(self._proposals[self.sizes[len(self.quests)]])
        if self._phase == "vote":
            return ("approve", "reject")
        if self._phase == "quest":
            return ("success",) if self.team(seat) == GOOD else ("success", "fail")
        if self._phase == "assassinate":
            return tuple([f"{NAME}{self.seats[each]}" for each in self.side(GOOD)])
        return (SAY,)

    def read(self, seat: int, text: str) -> str:
        """Return what an answer means: ``"propose player_0, player_2"``, ``"approve"``, ``"fail"``, ``"say ..."`` ...

        Raises:
            InvalidAction: It means nothing here, names no team of this size, or is not for this seat.
        """
        text = THINKING.without(text)[:_READ]
        if self._phase == "discuss":
            return read_speech(text)
        if self._phase == "propose":
            size = self.sizes[len(self.quests)]
            return text if text in self._proposals[size] else read_team(text, size, self.seats)
        action = read_choice(text, {"vote": VOTES, "quest": CARDS}.get(self._phase, self._targets))
        if self._phase != "vote" and action not in self.legal_actions(seat):
            if self._phase == "quest":
                raise InvalidAction("You are good: you must play success.")
            raise InvalidAction(f"{action.removeprefix(NAME)} is evil: name one of {self.names(self.side(GOOD))}.")
        return action

    def default(self, seat: int) -> str:
        """Return what a seat does that has forfeited: it proposes the first team, rejects, and plays success."""
        if self._phase == "propose":
            return self.legal_actions(seat)[0]
        return {"vote": "reject", "quest": "success"}.get(self._phase, SAY)

    # What is known about the game.

    def anchor(self, seat: int) -> str:
        """Return every line that the seat has read."""
        return "\n".join([line.text for line in self._told if seat in line.to])

    def progress(self, seat: int) -> float:
        """Return the share of the quests that are over."""
        return 1.0 if self.winner else len(self.quests) / QUESTS

    def winners(self) -> tuple[int, ...]:
        """Return the seats of the side that has won."""
        return self.side(self.winner)

    def metrics(self) -> dict[str, float]:
        """Return who won, how quests and proposals ended, and whether the assassin named somebody, and Merlin."""
        succeeded = sum(quest.succeeded for quest in self.quests)
        return {
            "evil_wins": float(self.winner == EVIL),
            "quests_succeeded": float(succeeded),
            "quests_failed": float(len(self.quests) - succeeded),
            "proposals_rejected": float(self.rejected),
            "assassin_names": float(self.named >= 0),
            "assassin_hits": float(self.named >= 0 and self.roles[self.named] == MERLIN),
        }

    def state(self) -> JSONValue:
        """Return roles, quests, the open decision and what was said."""
        return {
            "roles": list(self.roles),
            "leader": self.leader,
            "quests": [[list(quest.team), list(quest.fails), quest.succeeded] for quest in self.quests],
            "proposal": self.proposal,
            "rejected": self.rejected,
            "party": list(self.party),
            "winner": self.winner,
            "named": self.named,
            "phase": self._phase,
            "queue": list(self._queue),
            "told": [[list(line.to), line.text] for line in self._told],
        }

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned.

        Raises:
            ValueError: No game can be in this state.
        """
        quests = checked_quests(self, state)
        self._set_up(state["roles"], state["leader"])
        self.quests = quests
        self.proposal, self.rejected, self.party = state["proposal"], state["rejected"], tuple(state["party"])
        self.winner, self.named, self._phase = state["winner"], state["named"], state["phase"]
        self._queue = list(state["queue"])
        self._told = [Line(tuple(to), text) for to, text in state["told"]]

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Give other seats other roles and cards that fit what the seat has read; their private lines are forgotten."""
        if self.winner:
            return False
        past = Past(self.roles, self.quests, self.forfeited, self._phase == "assassinate")
        world = other_world(past, seat, generator)
        if world is None:
            return False
        roles, self.quests = world
        self.roles = tuple(roles)
        kept = self._told[self.num_seats :]
        known = [line for line in kept if len(line.to) == self.num_seats or seat in line.to]
        self._told = [Line((other,), dealt(other, roles)) for other in self.everyone] + known
        return True
