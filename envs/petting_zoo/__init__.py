"""The games of PettingZoo between seats."""

from turngym.envs.registration import Spec

SPECS: dict[str, Spec] = {
    "turngym/PettingZoo-v0": Spec(
        "turngym.envs.petting_zoo.game:PettingZoo",
        {},
        "Any PettingZoo environment whose actions are numbered, by its module.",
    ),
}
