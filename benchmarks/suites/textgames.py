"""The native text games, small enough for a laptop: every instance where there are few, else held-out ones."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

SUITES.register("textgames")(
    Suite(
        name="textgames",
        version=1,
        description="Four native text games; a few minutes for a small model, seconds for the random agent.",
        entries=(
            SuiteEntry("turngym/FrozenLake-v0", episodes=100),
            SuiteEntry("turngym/GuessTheNumber-v0", episodes=100),
            SuiteEntry("turngym/Sokoban-v0", episodes=100),
            SuiteEntry("turngym/TowerOfHanoi-v0", {"start": "random"}, episodes=26),
        ),
        metric="success",
        protocol=(
            "Default options and turn limits, one attempt at each task. GuessTheNumber and TowerOfHanoi have so few "
            "instances that all of them are played, FrozenLake and Sokoban play distinct instances; only Sokoban's are "
            "held out from training."
        ),
    )
)
