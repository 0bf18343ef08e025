"""Repeated matrix games: both seats choose simultaneously, optionally after talking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np

from turngym.arithmetic import float_sum
from turngym.envs.multiagent.speech import quoted, safe_speech
from turngym.envs.settings import worded
from turngym.envs.tablegames.matrix_games import rules as matrix_rules
from turngym.envs.tablegames.matrix_games.rules import Payoffs
from turngym.envs.tablegames.reading import first_object, read_choice
from turngym.envs.tablegames.two_seats import TwoSeats
from turngym.options import between
from turngym.types import JSONValue

SILENT = "silent"
_SAY = "say "
_PLAYERS = "turngym.envs.tablegames.matrix_games.players"


class MatrixGame(TwoSeats):
    """A payoff matrix, played for a number of rounds that both seats know.

    Rewards are the payoffs of every round, the score is their mean. A seat that forfeits gets the lowest payoff in all
    rounds that are left, the other the highest. The seat with the larger sum has won, for
    tournaments; the score and the metrics measure how well a seat or both together did. The game's reference player
    never gets less than the other seat, or plays the equilibrium. The anchor is the list of all choices so far, the
    seat's own first, and what was said in this round.

    >>> game = PrisonersDilemma(rounds=2)
    >>> game.begin(np.random.default_rng(0), {})
    >>> game.commit({0: game.read(0, "[Cooperate]"), 1: game.read(1, '{"action": "defect"}')})
    (0.0, 5.0)
    """

    class Options(TwoSeats.Options):
        rounds: Annotated[int, between(1, 1000)] = 10
        """Rounds of a game."""
        talk: Annotated[int, between(0, 10)] = 0
        """Number of messages that each seat sends before each choice."""

    options: Options

    file_options = worded()

    is_simultaneous = True
    payoffs: ClassVar[Payoffs]
    """Payoffs of both seats by their actions."""

    def setup(self) -> None:
        """Prepare the actions."""
        self.rounds, self.talk = self.options.rounds, self.options.talk
        paid = [gain for pair in self.payoffs.values() for gain in pair]
        self.score_range = (float(min(paid)), float(max(paid)))
        self.actions = tuple(dict.fromkeys(pair[0] for pair in self.payoffs))
        """The actions of both seats."""
        self._meanings = {
            form: action for action in self.actions for form in (action, f"i {action}", f"i play {action}")
        }
        self.history: list[tuple[str, str]] = []
        """The actions of both seats in every round that is over."""
        self._said: list[tuple[str, str]] = []

    def instructions(self, seat: int) -> str:
        """Return the rules with the table of payoffs."""
        rows = [
            f"{self.seats[0]} {one}, {self.seats[1]} {other}: {paid[0]:g} and {paid[1]:g}"
            for (one, other), paid in self.payoffs.items()
        ]
        times = {0: "", 1: " Before each choice, both say one thing to each other."}
        talk = times.get(self.talk, f" Before each choice, both say {self.talk} things to each other.")
        rounds = "one round" if self.rounds == 1 else f"{self.rounds} rounds"
        return (
            f"Two players choose at once, for {rounds}; nobody sees the other's choice before both are made.{talk} "
            f"Points of {self.seats[0]} and {self.seats[1]}:\n" + "\n".join(rows) + "\n"
            f"When you choose, answer with one of these words in brackets: {', '.join(self.actions)}."
        )

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Start the first round; there are no options."""
        self._restart(options)
        self.history, self._said = [], []
        for seat in self.everyone:
            self.tell((seat,), f"You are {self.seats[seat]}.")

    def phase(self) -> str:
        """Return ``"talk"`` or ``"choice"``."""
        return "talk" if len(self._said) < self.talk else "choice"

    def asked(self) -> tuple[int, ...]:
        """Return both seats."""
        return () if self._is_over else self.everyone

    def prompt(self, seat: int) -> str:
        """Return the round and the question."""
        title = f"Round {len(self.history) + 1} of {self.rounds}."
        if self.phase() == "talk":
            return f"{title} What do you say to {self._other_name(seat)}?"
        return f"{title} {' or '.join(self.actions)}?"

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return the words of the choice; nothing while the seats talk."""
        return () if self.phase() == "talk" else self.actions

    def read(self, seat: int, text: str) -> str:
        """Return the chosen word, or ``"say ..."`` with whatever was said."""
        if self.phase() == "choice":
            return read_choice(text, self._meanings)
        found = first_object(text[:10_000]) if text.lstrip().startswith("{") else None
        said = found.get("message") if found else None
        speech = safe_speech(said if isinstance(said, str) else text.removeprefix(_SAY))
        return f"{_SAY}{speech}" if speech and text != SILENT else SILENT

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Deliver both messages, or pay for both choices."""
        if self.phase() == "talk":
            said = actions[0].removeprefix(_SAY), actions[1].removeprefix(_SAY)
            self._said.append((actions[0], actions[1]))
            for seat in self.everyone:
                if actions[seat] != SILENT:
                    self.tell(self.everyone, quoted(self.seats[seat], said[seat]))
            return 0.0, 0.0
        pair = actions[0], actions[1]
        self.history.append(pair)
        self._said = []
        paid = self.payoffs[pair]
        chosen = [f"{self.seats[seat]} {pair[seat]} ({paid[seat]:g})" for seat in self.everyone]
        self.tell(self.everyone, f"Round {len(self.history)}: {', '.join(chosen)}.")
        self._earn(paid)
        if len(self.history) == self.rounds:
            self._is_over = True
            self.tell(self.everyone, f"Points in the end: {self._earned[0]:g} and {self._earned[1]:g}.")
        return float(paid[0]), float(paid[1])

    def _walkover(self, seat: int, is_winner: bool) -> float:
        payoffs = [paid[seat] for paid in self.payoffs.values()]
        return (max if is_winner else min)(payoffs) * (self.rounds - len(self.history))

    def anchor(self, seat: int) -> str:
        """Return all choices, the seat's own first, and what was said in this round."""
        pairs = [f"{pair[seat]}/{pair[1 - seat]}" for pair in self.history]
        lines = [f"you are {self.seats[seat]}: {' '.join(pairs) or 'no choices'}"]
        lines += [f"you {pair[seat]}; other {pair[1 - seat]}" for pair in self._said]
        return "\n".join(lines)

    def progress(self, seat: int) -> float:
        """Return the share of the rounds that are over, with the talk of the present one."""
        if self._is_over:
            return 1.0
        return (len(self.history) + len(self._said) / (self.talk + 1)) / self.rounds

    def score(self, seat: int) -> float:
        """Return the mean payoff of the rounds that are over; after a forfeit, of all rounds."""
        return self._earned[seat] / (self.rounds if self.forfeited else max(1, len(self.history)))

    def metrics(self) -> dict[str, float]:
        """Return the mean payoff of both seats together, and how often each chose the first action."""
        count = self.rounds if self.forfeited else max(1, len(self.history))
        rates = {
            f"first_action_rate_{seat}": sum(pair[seat] == self.actions[0] for pair in self.history) / count
            for seat in self.everyone
        }
        return {"joint_payoff": float_sum(self._earned) / count, **rates}

    def state(self) -> JSONValue:
        """Return choices and talk."""
        return {
            "history": [list(pair) for pair in self.history],
            "said": [list(pair) for pair in self._said],
            "earned": list(self._earned),
            "is_over": self._is_over,
        }

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned."""
        self.history = [(one, other) for one, other in state["history"]]
        self._said = [(one, other) for one, other in state["said"]]
        self._is_over = state["is_over"]
        self._load_earned(state["earned"])


def _beaten_by(player: str) -> dict[str, str]:
    return dict.fromkeys(
        (player, "last winner's first action", "winners' most frequent action"),
        "a seat that never does the friendly thing never gets less than the other seat.",
    )


class PrisonersDilemma(MatrixGame):
    """Defecting pays more whatever the other does, but both get more if both cooperate."""

    name = "prisoners_dilemma"
    payoffs = matrix_rules.PRISONERS_DILEMMA
    beaten_by = _beaten_by("alphabetically last")
    players: ClassVar[Mapping[str, str]] = {
        "always_defect": f"{_PLAYERS}:AlwaysSecond",
        "always_cooperate": f"{_PLAYERS}:AlwaysFirst",
        "tit_for_tat": f"{_PLAYERS}:TitForTat",
        "grim": f"{_PLAYERS}:Grim",
    }


class StagHunt(MatrixGame):
    """Hunting the stag together is best for both, hunting the hare alone is safe."""

    name = "stag_hunt"
    payoffs = matrix_rules.STAG_HUNT
    beaten_by = _beaten_by("alphabetically first")
    players: ClassVar[Mapping[str, str]] = {
        "always_hare": f"{_PLAYERS}:AlwaysSecond",
        "always_stag": f"{_PLAYERS}:AlwaysFirst",
        "tit_for_tat": f"{_PLAYERS}:TitForTat",
        "grim": f"{_PLAYERS}:Grim",
    }


class Chicken(MatrixGame):
    """Game of chicken: going straight alone pays most, going straight together least."""

    name = "chicken"
    payoffs = matrix_rules.CHICKEN
    beaten_by = _beaten_by("alphabetically first")
    players: ClassVar[Mapping[str, str]] = {
        "always_straight": f"{_PLAYERS}:AlwaysSecond",
        "always_swerve": f"{_PLAYERS}:AlwaysFirst",
        "tit_for_tat": f"{_PLAYERS}:TitForTat",
        "grim": f"{_PLAYERS}:Grim",
    }


class BattleOfTheSexes(MatrixGame):
    """Coordination game in which each player prefers its own place."""

    name = "battle_of_the_sexes"
    payoffs = matrix_rules.BATTLE_OF_THE_SEXES
    players: ClassVar[Mapping[str, str]] = {
        "tit_for_tat": f"{_PLAYERS}:TitForTat",
        "always_opera": f"{_PLAYERS}:AlwaysFirst",
        "always_football": f"{_PLAYERS}:AlwaysSecond",
    }


class MatchingPennies(MatrixGame):
    """Seat 0 wins with equal sides, seat 1 with different ones; the only equilibrium is to toss the coin."""

    name = "matching_pennies"
    payoffs = matrix_rules.MATCHING_PENNIES
    players: ClassVar[Mapping[str, str]] = {
        "equilibrium": f"{_PLAYERS}:UniformPlayer",
        "always_heads": f"{_PLAYERS}:AlwaysFirst",
        "always_tails": f"{_PLAYERS}:AlwaysSecond",
    }


class RockPaperScissors(MatrixGame):
    """Rock, paper, scissors: every action beats one other and loses to the third."""

    name = "rock_paper_scissors"
    payoffs = matrix_rules.ROCK_PAPER_SCISSORS
    players: ClassVar[Mapping[str, str]] = {
        "equilibrium": f"{_PLAYERS}:UniformPlayer",
        "always_rock": f"{_PLAYERS}:AlwaysFirst",
        "always_paper": f"{_PLAYERS}:AlwaysSecond",
        "tit_for_tat": f"{_PLAYERS}:TitForTat",
    }
