"""Household tasks: find objects, clean, heat or cool them, and put them where they belong.

``env`` uses generated households, ``alfworld`` those of the ALFWorld data set. Both run on the engine in ``rules``;
``world`` defines a game's contents, ``goals`` when it is won, and ``planner`` how to win it.
"""

from turngym.envs.registration import Spec

_ENTRY = "turngym.envs.household.env:Household"
SPECS: dict[str, Spec] = {
    "turngym/Household-v0": Spec(
        _ENTRY, {}, "Find things in a generated household and tidy, clean, heat or cool them."
    ),
    "turngym/HouseholdEasy-v0": Spec(
        _ENTRY,
        {"kind": "pick_and_place_simple", "receptacles": 5, "distractors": 3, "max_turns": 20},
        "Find one thing in a small household and put it elsewhere.",
    ),
    "turngym/HouseholdHard-v0": Spec(
        _ENTRY,
        {"rooms": 3, "receptacles": 24, "distractors": 30, "subtasks": 2, "max_turns": 100},
        "Two tasks in one large household of three rooms.",
    ),
    "turngym/ALFWorld-v0": Spec(
        "turngym.envs.household.alfworld:ALFWorld",
        {},
        "Games of the ALFWorld data set, from your own copy of it.",
        "alfworld",
    ),
}
