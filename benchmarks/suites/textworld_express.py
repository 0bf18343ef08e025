"""The eight games of TextWorldExpress at their default parameters."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry
from turngym.envs.textworlds.textworld_express.games import GAMES

SUITES.register("textworld-express")(
    Suite(
        name="textworld-express",
        version=1,
        description="The eight games of TextWorldExpress, 50 tasks of the package's test fold each.",
        entries=tuple(SuiteEntry("turngym/TextWorldExpress-v0", {"game": game}, episodes=50) for game in GAMES),
        metric="score",
        protocol=(
            "The package's default parameters; 50 turns, 150 in cookingworld; one attempt at each task. The score is "
            "the package's, -1 for a game that was lost. The expert is the package's gold path."
        ),
    )
)
