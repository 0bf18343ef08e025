"""ALFWorld's two folds for evaluation, whole, as the papers report them."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

GAMES = {"test": 134, "dev": 140}
"""Split -> number of games: ALFWorld's valid_unseen and valid_seen."""

SUITES.register("alfworld")(
    Suite(
        name="alfworld",
        version=1,
        description="All games of ALFWorld's valid_unseen (134) and valid_seen (140), from your copy of them.",
        entries=tuple(
            SuiteEntry("turngym/ALFWorld-v0", {"split": split}, episodes=count) for split, count in GAMES.items()
        ),
        metric="success",
        protocol=(
            "50 turns, one attempt at each game; success is ALFWorld's own. The suite's number weighs the two folds "
            "equally; papers quote them apart. Set ALFWORLD_DATA to the folder of the games."
        ),
    )
)
