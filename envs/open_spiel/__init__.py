"""The games of OpenSpiel between seats."""

from turngym.envs.registration import Spec

SPECS: dict[str, Spec] = {
    "turngym/OpenSpiel-v0": Spec(
        "turngym.envs.open_spiel.game:OpenSpiel",
        {},
        "Any game of the package open_spiel, by its name there.",
        "openspiel",
    ),
    "turngym/Chess-v0": Spec(
        "turngym.envs.open_spiel.game:OpenSpiel",
        {"rules": "chess"},
        "Chess, the position as FEN and moves in algebraic notation.",
        "openspiel",
    ),
    "turngym/Othello-v0": Spec(
        "turngym.envs.open_spiel.game:OpenSpiel",
        {"rules": "othello"},
        "Othello on 8 by 8 squares.",
        "openspiel",
    ),
}
