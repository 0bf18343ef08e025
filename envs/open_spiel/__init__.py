"""The games of OpenSpiel between seats."""

from turngym.envs.registration import Spec

SPECS: dict[str, Spec] = {
    "turngym/OpenSpiel-v0": Spec(
        "turngym.envs.open_spiel.game:OpenSpiel",
        {},
        "Any game of the package open_spiel, by its name there.",
        "openspiel",
    ),
}
