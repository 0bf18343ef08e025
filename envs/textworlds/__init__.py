"""Adapters of text worlds that others wrote."""

from turngym.envs.registration import Spec

SPECS: dict[str, Spec] = {
    "turngym/ScienceWorld-v0": Spec(
        "turngym.envs.textworlds.scienceworld:ScienceWorld",
        {},
        "Thirty tasks of school science in a simulated house: boil, measure, wire, grow, mix, find.",
        "scienceworld",
    ),
    "turngym/TextWorldExpress-v0": Spec(
        "turngym.envs.textworlds.textworld_express:TextWorldExpress",
        {},
        "Eight text games in procedurally generated houses: find, sort, cook, tidy up, read a map.",
        "text",
    ),
}
