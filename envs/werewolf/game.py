"""Werewolf as a game for a table: what each seat is asked, may answer and knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from turngym.envs.multiagent.game import InvalidAction, Line
from turngym.envs.multiagent.speech import safe_speech
from turngym.envs.settings import worded
from turngym.envs.werewolf import lines, prompts
from turngym.envs.werewolf.abstraction import kind_of, knowledge_of, view_of
from turngym.envs.werewolf.course import Course
from turngym.envs.werewolf.knowledge import Knowledge
from turngym.envs.werewolf.parser import PLAIN, read_move
from turngym.envs.werewolf.redeal import Past, other_world
from turngym.envs.werewolf.roles import DOCTOR, SEER, VILLAGE, WEREWOLF, seats_of, team_of
from turngym.envs.werewolf.rules import NOBODY
from turngym.types import JSONValue

_VERBS = {WEREWOLF: "kill", SEER: "see", DOCTOR: "save"}
_DEFAULTS = {"vote": "abstain", "talk": "say", "bid": "bid 0"}
_TEXTS = {verb: tuple([f"{verb} {name}" for name in lines.NAMES]) for verb in ("vote", "kill", "see", "save")}
_DAY_VERBS = {"vote": "vote", "talk": "say", "bid": "bid"}
_BIDS = tuple([f"bid {amount}" for amount in range(5)])
_TUPLES = ("living", "_asking", "_pack", "candidates")
_PAIRS = ("proposals", "ballots", "_spoken")
_PLAIN = ("day", "_phase", "winner", "_turns_left", "_last_speech")
_LISTS = ("roles", "_queue", "exiles", "checks", "_due", "_hits", "nights", "told")
_SKIP = "skip"
"""The action of a seer or doctor that has forfeited; nobody may choose it."""


class Werewolf(Course):
    """Hidden-role game: werewolves know each other and kill at night; the village has a seer, a doctor and a vote."""

    file_options = worded("roles")
    finds_action = True

    __slots__ = (  # with more than 30 attributes in its dict, an instance would not share keys: slow at many tables
        "_instructions",
        "_nothing",
        "_scale",
        "bid_turns",
        "cast",
        "doctor_repeat",
        "doctor_self",
        "exile",
        "max_days",
        "pays_at_once",
        "reveal",
        "talk_protocol",
        "talk_rounds",
        "tie",
        "votes_in_turn",
        "wolves_in_turn",
    )

    players: ClassVar[Mapping[str, str]] = {
        "rule_based": "turngym.envs.werewolf.players:RuleBasedPlayer",
        "ballot_reader": "turngym.envs.werewolf.ballot_reader:BallotReader",
    }

    # What a seat is asked, and what it may answer.

    def asked(self) -> tuple[int, ...]:
        """Return the seats that decide now."""
        return self._asking

    def instructions(self, seat: int) -> str:
        """Return rules and answer format for the role of a seat; before the first reset, for all roles."""
        role = self.roles[seat] if self.roles else ""
        if role not in self._instructions:
            team = team_of(role) if role else ""
            self._instructions[role] = prompts.instructions(role, team, self.cast, vars(self.options))
        return self._instructions[role]

    def targets(self, seat: int) -> tuple[int, ...]:
        """Return the seats that a seat may name now, from what it knows."""
        living = self.living
        if self._phase == "vote":
            return tuple([other for other in self.candidates or living if other != seat])
        if self._phase != "night":
            return ()
        roles = self.roles
        role = roles[seat]
        if role == WEREWOLF:
            return tuple([other for other in living if roles[other] != WEREWOLF])
        if role == SEER:
            return tuple([other for other in living if other != seat])
        last = NOBODY if self.doctor_repeat or not self.nights else self.nights[-1][1]
        return tuple([other for other in living if other != last and (self.doctor_self or other != seat)])

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return the legal actions; in talk only the one that says nothing, for any words may follow it."""
        phase = self._phase
        if phase == "talk":
            return ("say",)
        if phase == "bid":
            return _BIDS
        if phase == "vote":
            ballots = _TEXTS["vote"]
            return (*[ballots[target] for target in self.targets(seat)], "abstain")
        deeds = _TEXTS[_VERBS[self.roles[seat]]]
        return tuple([deeds[target] for target in self.targets(seat)])

    def prompt(self, seat: int) -> str:
        """Return the question to a seat."""
        return prompts.question(self.roles[seat], self._phase, self.day, self.targets(seat))

    def read(self, seat: int, text: str) -> str:
        """Return the action that a text means, speech made safe for those who will read it."""
        phase = self._phase
        move = PLAIN.get(text)
        if move is None:
            move = read_move(text)
        elif phase == "vote" and move.verb == "vote" and move.number in self.targets(seat):
            return text  # nearly all ballots
        verb, number, speech = move
        expected = self._verb(seat, phase)
        if verb != expected and not (verb == "abstain" and phase == "vote"):
            raise InvalidAction(f"You cannot {verb} now: answer with {expected}.")
        if verb in ("say", "abstain"):
            return _spoken(speech) if verb == "say" else "abstain"
        if verb == "bid":
            if not 0 <= number <= 4:
                raise InvalidAction(f"A bid is a number from 0 to 4, not {number}.")
            return _BIDS[number]
        targets = self.targets(seat)
        if number not in targets:
            raise InvalidAction(f"You cannot {verb} player_{number} now: name one of {lines.names(targets)}.")
        return _TEXTS[verb][number]

    def _verb(self, seat: int, phase: str) -> str:
        """Return the verb of the actions that a seat may take."""
        return _VERBS[self.roles[seat]] if phase == "night" else _DAY_VERBS[phase]

    def default(self, seat: int) -> str:
        """Return what a seat does that has forfeited: the first victim, no look, no protection, no vote, no word."""
        if self._phase == "night":
            return self.legal_actions(seat)[0] if self.roles[seat] == WEREWOLF else _SKIP
        return _DEFAULTS[self._phase]

    # An abstraction of the game.

    def is_speech(self, seat: int) -> bool:
        """Return whether it is time to talk."""
        return self._phase == "talk"

    def _knowledge(self, seat: int) -> Knowledge:
        return knowledge_of(seat, self.roles[seat], [line.text for line in self.told if seat in line.to])

    def abstract_view(self, seat: int) -> str:
        """Return phase, number of the living, and how many seats of each kind there are."""
        return view_of(self._knowledge(seat), self._phase, self.targets(seat))

    def abstract_actions(self, seat: int) -> Mapping[str, Sequence[str]]:
        """Return kind of target -> the actions at such targets; other actions for themselves."""
        found: dict[str, list[str]] = {}
        known = self._knowledge(seat)
        for action in self.legal_actions(seat):
            move = PLAIN[action]
            kind = f"{move.verb} {kind_of(known, move.number)}" if move.verb in _TEXTS else action
            found.setdefault(kind, []).append(action)
        return found

    # What is known about the game.

    def anchor(self, seat: int) -> str:
        """Return every line that the seat was told, and the question to it: the seat knows this and nothing else."""
        known = [line.text for line in self.told if seat in line.to]
        if seat in self._asking:
            known.append(self.prompt(seat))
        return "\n".join(known)

    def role(self, seat: int) -> str:
        """Return the role of a seat."""
        return self.roles[seat]

    def team(self, seat: int) -> str:
        """Return ``werewolves`` or ``village``."""
        return team_of(self.roles[seat])

    def phase(self) -> str:
        """Return ``night``, ``bid``, ``talk``, ``vote`` or ``over``: everybody knows which."""
        return self._phase

    def progress(self, seat: int) -> float:
        """Return how many of the days that there can be are over."""
        return 1.0 if self._phase == "over" else (self.day - 1) / self.max_days

    def winners(self) -> tuple[int, ...]:
        """Return the seats of the team that has won, the dead included."""
        return self._won

    def metrics(self) -> dict[str, float]:
        """Return who won in how many days, and how many of the village's ballots were cast, and hit a werewolf."""
        return {
            "village_wins": float(self.winner == VILLAGE),
            "is_draw": float(not self.winner),
            "days": float(self.day),
            "village_ballots": float(self._hits[0]),
            "village_ballots_on_werewolves": float(self._hits[1]),
        }

    # Snapshots, and other worlds that look the same to a seat.

    def state(self) -> JSONValue:
        """Return the whole state but the generator's, as JSON can hold it."""
        state: dict[str, JSONValue] = {name: getattr(self, name) for name in (*_PLAIN, *_TUPLES)}
        for name in _LISTS:
            state[name] = list(getattr(self, name))
        for name in _PAIRS:
            state[name] = list(getattr(self, name).items())
        return state

    def load(self, state: JSONValue) -> None:
        """Bring back what :meth:`state` returned."""
        for name in _PLAIN:
            setattr(self, name, state[name])
        for name in _TUPLES:
            setattr(self, name, tuple(state[name]))
        for name in _LISTS:
            setattr(self, name, list(state[name]))
        for name in _PAIRS:
            setattr(self, name, dict(map(tuple, state[name])))
        self.nights = [(target, protected, victim) for target, protected, victim in state["nights"]]
        self.told = [Line(tuple(to), text) for to, text in state["told"]]
        self._won = seats_of(self.winner, self.roles)
        self.find_powers()

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Give other seats other roles, and other deeds by night, that fit everything the seat has read.

        Returns:
            Whether another such world was found. What other seats have read privately is forgotten then.
        """
        if self._phase == "over":
            return False
        world = other_world(self.past(), seat, generator)
        if world is None or not self._fits_this_night(seat, world.roles):
            return False
        was_asked = seat in self._asking
        self.roles, self.nights = world
        self.find_powers()
        if self.roles[seat] != SEER:
            self.checks = []
        if self._phase == "night":
            self._redo_night(seat, was_asked)
        everyone = len(self.everyone)
        known = [line for line in self.told[everyone:] if len(line.to) == everyone or seat in line.to]
        self.told = [Line((other,), lines.dealt(other, self.roles)) for other in self.everyone] + known
        return True

    def past(self) -> Past:
        """Return what has happened so far."""
        flags = self.doctor_self, self.doctor_repeat, self.reveal
        return Past(self.roles, self.nights, self.exiles, self.checks, *flags)

    def _fits_this_night(self, seat: int, roles: Sequence[str]) -> bool:
        """Return whether a seat is asked now if and only if it would be asked with other roles."""
        if self._phase != "night" or not self.wolves_in_turn or roles[seat] not in (SEER, DOCTOR):
            return True
        wolves = [other for other in self.living if roles[other] == WEREWOLF]
        return seat in self._asking or seat not in self.living or len(wolves) > 1

    def _redo_night(self, seat: int, was_asked: bool) -> None:
        """Let the werewolves of another world start this night, or be as far as the seat knows them to be."""
        if self.roles[seat] != WEREWOLF:
            self._pack = tuple([other for other in self.living if self.roles[other] == WEREWOLF])
            first = next(other for other in self.living if self.roles[other] != WEREWOLF)
            self.proposals = dict.fromkeys(self._pack[:-1], first) if was_asked and self.wolves_in_turn else {}
        self._ask_night()


def _spoken(speech: str) -> str:
    """Return the canonical action of saying something."""
    said = safe_speech(speech)
    return "say " + said if said else "say"
