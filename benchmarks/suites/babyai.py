"""BabyAI's levels in words, one for each skill, with the package's own limits on turns."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

LEVELS = (
    *("GoToLocal", "PickupLoc", "PutNextLocal", "OpenDoor", "GoToObjMaze", "UnlockPickup", "GoToSeqS5R2"),
    *("MiniBossLevel", "BossLevel"),
)

SUITES.register("babyai")(
    Suite(
        name="babyai",
        version=1,
        description="50 missions of each of nine of BabyAI's levels, in words, from one room to the last level.",
        entries=tuple(SuiteEntry("turngym/BabyAI-v0", {"level": level}, episodes=50) for level in LEVELS),
        metric="success",
        protocol=(
            "Default options, each level's own limit on turns, one attempt at each mission. Missions are those of the "
            "test split. The expert is BabyAI's bot, which sees what the agent sees."
        ),
    )
)
