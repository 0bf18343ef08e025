"""Base of the games of two seats."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from turngym.envs.multiagent.game import Game
from turngym.options import Options as BaseOptions
from turngym.types import JSONValue


class TwoSeats(Game):
    """A game between ``player_0`` and ``player_1`` that counts what each has earned.

    The seat that has earned more by the end has won; equal sums are a draw. A forfeit ends the game: the other seat
    has won.
    """

    class Options(BaseOptions):
        """Options of a game of two seats; by default none."""

    options: Options

    def __init__(self, *positional: Any, **options: Any) -> None:
        self.take_options(self.name, options, positional)
        super().__init__(2)
        self._is_over = False
        self._earned = [0.0, 0.0]
        self.setup()

    _constructor = __init__

    def _restart(self, options: Mapping[str, Any], known: Collection[str] = ()) -> None:
        """Forget the last game, and refuse options that the game does not have."""
        self.require_known(options, known)
        self.news.clear()
        self._is_over = False
        self._earned = [0.0, 0.0]

    def _earn(self, amounts: Sequence[float]) -> None:
        self._earned = [old + new for old, new in zip(self._earned, amounts, strict=True)]

    def _load_earned(self, earned: JSONValue) -> None:
        """Restore what each seat has earned.

        Raises:
            ValueError: It is not two numbers.
        """
        if len(earned) != 2 or not all(type(amount) in (int, float) for amount in earned):
            raise ValueError(f"earned must be two numbers, got {earned!r}")
        self._earned = list(earned)

    def forfeit(self, seats: Sequence[int]) -> Sequence[float]:
        """End the game, won by the seat that has not forfeited, if there is one."""
        self._is_over = True
        for seat in seats:
            self.tell(self.everyone, f"{self.seats[seat]} gave no legal action and forfeits the game.")
        paid = [self._walkover(seat, seat not in seats) for seat in self.everyone]
        self._earned = [old + new for old, new in zip(self._earned, paid, strict=True)]
        return paid

    @abstractmethod
    def _walkover(self, seat: int, is_winner: bool) -> float:
        """Return what a seat earns from a forfeit: the most or the least that the rest of the game could bring it."""

    def winners(self) -> tuple[int, ...]:
        """Return the seat that has earned more when the game is over, or the one that has not forfeited."""
        if self.forfeited:
            return tuple([seat for seat in self.everyone if seat not in self.forfeited])
        first, second = self._earned
        if not self._is_over or first == second:
            return ()
        return (0,) if first > second else (1,)

    def _other_name(self, seat: int) -> str:
        return self.seats[1 - seat]


def signs(first: float, second: float) -> tuple[float, float]:
    """Return +1 for the seat with the larger number and -1 for the other, zeros if they are equal.

    >>> signs(3, 1), signs(2, 2)
    ((1.0, -1.0), (0.0, 0.0))
    """
    sign = float((first > second) - (first < second))
    return sign, 0.0 - sign
