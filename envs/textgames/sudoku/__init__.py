"""Sudoku."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.textgames.sudoku.env import (
        FEWEST_CLUES,
        Moves,
        Sudoku,
        moves,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.envs.textgames.sudoku.env": (
                "FEWEST_CLUES",
                "Moves",
                "Sudoku",
                "moves",
            )
        },
    )

__all__ = ["FEWEST_CLUES", "Moves", "Sudoku", "moves"]
