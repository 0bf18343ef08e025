"""The native text games, small enough for a laptop: every instance where there are few, else held-out ones."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

SUITES.register("textgames")(
    Suite(
        name="textgames",
        version=1,
        description="Four native text games; every instance of the two small ones, held-out instances of the others.",
        entries=(
            SuiteEntry("turngym/FrozenLake-v0", episodes=100),
            SuiteEntry("turngym/GuessTheNumber-v0", episodes=100),
            SuiteEntry("turngym/Sokoban-v0", episodes=100),
            SuiteEntry("turngym/TowerOfHanoi-v0", {"start": "random"}, episodes=26),
        ),
        metric="success",
        protocol=(
            "Default options and turn limits, one attempt at each task. FrozenLake and Sokoban play instances of the "
            "test split, which training on other splits never shows; GuessTheNumber and TowerOfHanoi are so small that "
            "all their instances are played and none of them is held out."
        ),
    )
)
