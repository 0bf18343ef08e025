"""Games on small grids whose rules and goal are not given: the agent finds them out by acting.

``game`` draws the rules of a game, ``mechanics`` applies them, ``layout`` draws levels, ``solver`` solves them,
``view`` draws what they look like, ``env`` is the environment.
"""

from turngym.envs.registration import Spec

_ENTRY = "turngym.envs.rules.env:RulesGame"
SPECS: dict[str, Spec] = {
    "turngym/Rules-v0": Spec(_ENTRY, {}, "Solve four levels of a grid game whose rules and goal are not given."),
    "turngym/RulesEasy-v0": Spec(
        _ENTRY,
        {"difficulty": 1, "reward": "dense", "max_turns": 100},
        "Solve three levels of a simple game without given rules; each step towards the goal is rewarded.",
    ),
    "turngym/RulesHard-v0": Spec(
        _ENTRY, {"difficulty": 3, "max_turns": 240}, "Solve five levels of a game without given rules, of many parts."
    ),
}
