"""Repeated games of two seats with a payoff matrix."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.tablegames.matrix_games.game import (
        SILENT,
        BattleOfTheSexes,
        Chicken,
        MatchingPennies,
        MatrixGame,
        PrisonersDilemma,
        RockPaperScissors,
        StagHunt,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.envs.tablegames.matrix_games.game": (
                "SILENT",
                "BattleOfTheSexes",
                "Chicken",
                "MatchingPennies",
                "MatrixGame",
                "PrisonersDilemma",
                "RockPaperScissors",
                "StagHunt",
            )
        },
    )

__all__ = [
    "SILENT",
    "BattleOfTheSexes",
    "Chicken",
    "MatchingPennies",
    "MatrixGame",
    "PrisonersDilemma",
    "RockPaperScissors",
    "StagHunt",
]
