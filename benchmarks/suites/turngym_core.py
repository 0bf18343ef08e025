"""Half an hour on two cores: six families of games with three environments each, without Java, browser or GPU."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

FAMILIES = {
    "grids": ("FrozenLake-v0", "Maze-v0", "Sokoban-v0"),
    "puzzles": ("FifteenPuzzle-v0", "Minesweeper-v0", "Sudoku-v0"),
    "words and codes": ("Hangman-v0", "Mastermind-v0", "Wordle-v0"),
    "numbers and chance": ("BernoulliBandit-v0", "ContextualBandit-v0", "Points24-v0"),
    "boards": ("ConnectFourSeat-v0", "ConnectFourSmallSeat-v0", "TicTacToeSeat-v0"),
    "bargains": ("BargainingHiddenSeat-v0", "PrisonersDilemmaTalkSeat-v0", "SimpleNegotiationFiveSeat-v0"),
}
"""Family -> its environments. Each was taken because its expert is far above random play; see ``PROTOCOL``."""

EPISODES = 25

PROTOCOL = (
    "Default options and turn limits, one attempt at each task. The tasks are instances of the test split, which "
    "training on other splits never shows. Seats of two-player games meet the random player. Every environment weighs "
    "the same, and so does every family; normalised results take random play as 0 and the expert as 100. Games in "
    "which 25 episodes cannot tell the expert from random play, such as Werewolf for one seat of five, Kuhn poker and "
    "Blackjack, are left out."
)

SUITES.register("turngym-core")(
    Suite(
        name="turngym-core",
        version=2,
        description="Six families with three games each, for half an hour without Java, browser or GPU.",
        entries=tuple(
            SuiteEntry(f"turngym/{name}", episodes=EPISODES) for names in FAMILIES.values() for name in names
        ),
        metric="success",
        protocol=PROTOCOL,
        families={family: tuple(f"turngym/{name}" for name in names) for family, names in FAMILIES.items()},
    )
)
