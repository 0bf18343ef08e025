"""Tic-Tac-Toe in which three in a row lose."""

from collections.abc import Sequence

from turngym.envs.tablegames.tic_tac_toe import TicTacToe


class Misere(TicTacToe):
    """Whoever completes a row loses."""

    name = "misere"
    players = {}  # noqa: RUF012  (a perfect player of the other game is none here)

    def instructions(self, seat: int) -> str:
        return super().instructions(seat).replace("column or diagonal win", "column or diagonal lose")

    def _earn(self, amounts: Sequence[float]) -> None:
        super()._earn([-amount for amount in amounts])
