"""The native text games, small enough for a laptop: every instance if there are few, else held-out ones."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

SUITES.register("textgames")(
    Suite(
        name="textgames",
        version=3,
        description="The native text games; every instance of the four smallest, held-out instances of the others.",
        entries=(
            SuiteEntry("turngym/BernoulliBandit-v0", episodes=100),
            SuiteEntry("turngym/Blackjack-v0", episodes=100),
            SuiteEntry("turngym/ContextualBandit-v0", episodes=100),
            SuiteEntry("turngym/EZPoints-v0", episodes=19),
            SuiteEntry("turngym/FifteenPuzzle-v0", episodes=100),
            SuiteEntry("turngym/FrozenLake-v0", episodes=100),
            SuiteEntry("turngym/Game2048-v0", episodes=100),
            SuiteEntry("turngym/GaussianBandit-v0", episodes=100),
            SuiteEntry("turngym/GuessTheNumber-v0", episodes=100),
            SuiteEntry("turngym/Hangman-v0", episodes=100),
            SuiteEntry("turngym/Mastermind-v0", episodes=100),
            SuiteEntry("turngym/Maze-v0", episodes=100),
            SuiteEntry("turngym/Minesweeper-v0", episodes=100),
            SuiteEntry("turngym/NumberLine-v0", episodes=30),
            SuiteEntry("turngym/Points24-v0", episodes=40),
            SuiteEntry("turngym/Sokoban-v0", episodes=100),
            SuiteEntry("turngym/Sudoku-v0", episodes=100),
            SuiteEntry("turngym/TowerOfHanoi-v0", {"start": "random"}, episodes=26),
            SuiteEntry("turngym/Wordle-v0", episodes=100),
        ),
        metric="success",
        protocol=(
            "Default options and turn limits, one attempt at each task. The episodes are instances of the test split, "
            "which training on other splits never shows. EZPoints, GuessTheNumber, NumberLine and TowerOfHanoi are so "
            "small that all their instances are played and none is held out. In Blackjack and in the bandits "
            "luck takes part, so that nobody solves every task."
        ),
    )
)
