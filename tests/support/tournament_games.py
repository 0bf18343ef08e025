"""A team game that is over in one round, rules that break, and players of every kind, for tests of tournaments."""

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from turngym.benchmarks.tournaments.plan import TournamentPlan
from turngym.envs.multiagent import Game, InvalidAction, Player, SeatView
from turngym.types import JSONValue

DIGITS = tuple("0123456789")


class HighDigits(Game):
    """Three seats are many and two are few, drawn at the beginning. Everybody names a digit at once.

    The team with the higher mean wins. The few have a bonus. One of the many is the leader.

    Args:
        bonus: What is added to the mean of the few.
    """

    name = "high_digits"
    is_simultaneous = True
    players: ClassVar[Mapping[str, str]] = {"ace": f"{__name__}:Ace"}

    def __init__(self, bonus: float = 0.0) -> None:
        super().__init__(5)
        self.bonus = bonus

    def instructions(self, seat: int) -> str:
        return "Name a digit."

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        self.roles = [str(role) for role in generator.permutation(["leader", "many", "many", "few", "few"])]
        self.luck = int(generator.integers(10))
        self.said: list[str] = []
        for seat in self.everyone:
            self.tell((seat,), f"You are {self.roles[seat]}.")

    def asked(self) -> tuple[int, ...]:
        return () if self.said else self.everyone

    def prompt(self, seat: int) -> str:
        return "Which digit?"

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        return DIGITS

    def read(self, seat: int, text: str) -> str:
        if text not in DIGITS:
            raise InvalidAction("That is no digit.", "unreadable")
        return text

    def default(self, seat: int) -> str:
        return "0"

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        self.said = [actions[seat] for seat in self.everyone]
        self.tell(self.everyone, f"The digits are {' '.join(self.said)}.")
        return [float(seat in self.winners()) for seat in self.everyone]

    def anchor(self, seat: int) -> str:
        return self.roles[seat]

    def mean_of(self, team: str) -> float:
        return float(np.mean([int(self.said[seat]) for seat in self.everyone if self.team(seat) == team]))

    def winners(self) -> tuple[int, ...]:
        if not self.said:
            return ()
        lead = self.mean_of("few") + self.bonus - self.mean_of("many")
        return tuple(seat for seat in self.everyone if lead * (1 if self.team(seat) == "few" else -1) > 0)

    def role(self, seat: int) -> str:
        return self.roles[seat]

    def team(self, seat: int) -> str:
        return "few" if self.roles[seat] == "few" else "many"

    def metrics(self) -> dict[str, float]:
        return {"sum": float(sum(map(int, self.said))), "ace_share": self.said.count("9") / 5, "unknown": float("nan")}

    def state(self) -> JSONValue:
        return [self.roles, self.luck, self.said]

    def load(self, state: JSONValue) -> None:
        self.roles, self.luck, self.said = state


class BreaksAtTheEnd(HighDigits):
    """Raises at the end of the games whose luck is below 3."""

    name = "breaks_at_the_end"

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        if self.luck < 3:
            raise ZeroDivisionError("no luck")
        return super().commit(actions)


class BreaksOnce(HighDigits):
    """Raises at the end of its very first game."""

    name = "breaks_once"
    tries: ClassVar["itertools.count[int]"] = itertools.count()

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        if next(self.tries) == 0:
            raise ZeroDivisionError("only once")
        return super().commit(actions)


class BreaksAsking(HighDigits):
    """Raises when it is to ask, in the games whose luck is below 3: inside of a player's turn."""

    name = "breaks_asking"

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        if self.luck < 3:
            raise ZeroDivisionError("no luck")
        return DIGITS


class Ace(Player):
    """Always names 9."""

    name = "ace"

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        self.turn = 0

    def act(self, view: SeatView) -> str:
        self.turn += 1
        return "9"


class _Trap(str):
    """A text that raises where its length is read."""

    def __len__(self) -> int:
        raise ValueError("no length")


class Trapped(Ace):
    """Names 9 as an instance of a subclass of str."""

    def act(self, view: SeatView) -> str:
        return _Trap("9")


class Stubborn(Ace):
    """Names no digit."""

    def act(self, view: SeatView) -> str:
        return "nine"


class Broken(Ace):
    """Raises whenever it is asked."""

    def act(self, view: SeatView) -> str:
        raise OSError("out of order")


class Flaky(Ace):
    """Raises when it is asked first."""

    def act(self, view: SeatView) -> str:
        self.turn += 1
        if self.turn == 1:
            raise OSError("only once")
        return "9"


class Wordless(Ace):
    """Answers with a number instead of a text."""

    def act(self, view: SeatView) -> str:
        number: Any = 9
        return number  # type: ignore[no-any-return]


class Absent(Ace):
    """Cannot even begin."""

    def begin(self, view: SeatView, generator: np.random.Generator) -> None:
        raise OSError("not here")


HIGH_DIGITS = f"{__name__}:HighDigits"
_TIMED = ("started", "latency")


def plan(*players: str, game: str = HIGH_DIGITS, blocks: int = 6, **settings: Any) -> TournamentPlan:
    """Return a plan whose players are called by the last part of their description, in lower case."""
    return TournamentPlan(game, {name.rpartition(":")[2].lower(): name for name in players}, blocks, **settings)


def of(name: str) -> str:
    return f"{__name__}:{name}"


def timeless(value: Any) -> Any:
    """Return records or results without what the clock put there."""
    if isinstance(value, dict):
        return {key: timeless(one) for key, one in value.items() if not key.startswith(_TIMED)}
    return [timeless(one) for one in value] if isinstance(value, list | tuple) else value


def same(a: Any, b: Any) -> bool:
    """Compare as JSON, where a nan equals itself, without what the clock put there."""
    return json.dumps(timeless(a), sort_keys=True) == json.dumps(timeless(b), sort_keys=True)
