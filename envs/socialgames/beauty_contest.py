"""Beauty contest: the guess closest to two thirds of the mean guess wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, ClassVar

from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.players import Player
from turngym.envs.socialgames.numbers import NumberGame, NumberPlayer
from turngym.errors import ConfigError
from turngym.options import between

_PLAYERS = "turngym.envs.socialgames"
TWO_THIRDS = Fraction(2, 3)
_DEEPEST, _MOST_DIGITS = 20, 3


class BeautyContest(NumberGame):
    """The seats whose guesses are closest to two thirds of the mean guess share 1 point in each round.

    Naming 0 is the equilibrium: it survives the repeated removal of dominated guesses. Against others, a level more
    than theirs is better: level 0 names the middle, each level two thirds of the one below.

    >>> BeautyContest(num_seats=3).payoffs([50, 33, 22]), BeautyContest(num_seats=3).payoffs([0, 30, 0])
    ([0.0, 0.0, 1.0], [0.5, 0.0, 0.5])
    """

    name = "beauty_contest"
    verb = "guess"
    beaten_by: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("last winner's first action", "winners' most frequent action"),
        "a guess somewhat below the middle often wins against random guesses.",
    )
    players: ClassVar[Mapping[str, str]] = {
        "last_target": f"{_PLAYERS}.beauty_contest:LastTargetPlayer",
        "equilibrium": f"{_PLAYERS}.numbers:ZeroPlayer",
        "level": f"{_PLAYERS}.beauty_contest:LevelPlayer",
    }

    class Options(NumberGame.Options):
        largest: Annotated[int, between(1, 1000)] = 100
        """Largest guess."""

    options: Options

    @property
    def highest(self) -> int:
        """Largest guess."""
        return self.options.largest

    @property
    def payoff_range(self) -> tuple[float, float]:
        """Nothing, or the whole point."""
        return 0.0, 1.0

    def rules(self) -> str:
        """Return what a round pays."""
        return (
            "The player whose number is closest to two thirds of the mean of all numbers gets 1 point; equally close "
            "ones share it."
        )

    def exact_payoffs(self, numbers: Sequence[int]) -> list[Fraction]:
        """Return the payoff of each seat in a round."""
        target = TWO_THIRDS * sum(numbers) / len(numbers)
        off = [abs(number - target) for number in numbers]
        share = Fraction(1, off.count(min(off)))
        return [share if each == min(off) else Fraction(0) for each in off]


class LevelPlayer(NumberPlayer):
    """Names what is best against players of one level less; ``level:2`` is of level 2, which is also the default."""

    name = "level"

    def __init__(self, level: int = 2) -> None:
        self.level = level

    @classmethod
    def from_argument(cls, argument: str, game: Game) -> Player:
        """Return the player of a level.

        Raises:
            ConfigError: It is not a whole number from 0 to 20.
        """
        if not argument:
            return cls()
        is_number = argument.isascii() and argument.isdecimal() and len(argument) <= _MOST_DIGITS
        if not is_number or int(argument) > _DEEPEST:
            raise ConfigError(f"level:K takes a whole number from 0 to {_DEEPEST}, got {argument!r:.80}.")
        return cls(int(argument))

    def number(self, seat: int, numbers: Sequence[Sequence[int]]) -> int:
        """Return the number of the level: half of the largest, times two thirds for each level."""
        return int(TWO_THIRDS**self.level * self.highest / 2)


class LastTargetPlayer(NumberPlayer):
    """Names a third of the largest number first, then two thirds of two thirds of the last mean, rounded down."""

    name = "last_target"

    def number(self, seat: int, numbers: Sequence[Sequence[int]]) -> int:
        """Return what would have been a step ahead in the last round."""
        if not numbers:
            return int(TWO_THIRDS * self.highest / 2)
        return int(TWO_THIRDS**2 * sum(numbers[-1]) / len(numbers[-1]))
