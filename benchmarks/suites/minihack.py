"""MiniHack in words: the tasks of BALROG (Paglieri et al. 2024, arXiv 2411.13543) whose levels follow from a seed."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

EPISODES = {
    "MazeWalk-9x9": 50,
    "MazeWalk-15x15": 50,
    "Corridor-R3": 50,
    "CorridorBattle-Dark": 50,
    "Quest-Easy": 50,
    "Quest-Medium": 50,
}
"""Task -> its episodes."""

SUITES.register("minihack")(
    Suite(
        name="minihack",
        version=1,
        description="300 games of six tasks of MiniHack: mazes, corridors, a battle and quests.",
        entries=tuple(
            SuiteEntry("turngym/MiniHack-v0", {"task": task}, episodes=episodes) for task, episodes in EPISODES.items()
        ),
        metric="success",
        protocol=(
            "One attempt at each of 50 games of the test split, one command a turn. Mazes and corridors end after "
            "three commands for each step of the shortest path, battles and quests after the package's own limit; the "
            "battle and Quest-Medium have nine levels, which are in every split with other dice. BALROG gives 100 "
            "steps, and has Boxoban too."
        ),
    )
)
