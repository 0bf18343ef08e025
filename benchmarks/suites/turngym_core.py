"""Half an hour on two cores: six families of games with three environments each, without Java, browser or GPU."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

FAMILIES = {
    "grids": ("FrozenLake-v0", "Maze-v0", "Sokoban-v0"),
    "puzzles": ("FifteenPuzzle-v0", "Minesweeper-v0", "Sudoku-v0"),
    "words and codes": ("Hangman-v0", "Mastermind-v0", "Wordle-v0"),
    "numbers and chance": ("BernoulliBandit-v0", "ContextualBandit-v0", "Points24-v0"),
    "boards": ("ConnectFourSeat-v0", "ConnectFourSmallSeat-v0", "TicTacToeSeat-v0"),
    "worlds": ("Household-v0", "SearchQA-v0", "WebSite-v0"),
}
"""Family -> its environments. Each was taken because its expert is far above random play; see ``PROTOCOL``."""

EPISODES = 25
OPPONENT = "attentive"
"""The player that the seats of board games meet: one column or row filled without thought beats the random player."""

PROTOCOL = (
    "Default turn limits, one attempt at each task. The tasks are instances of the test split, which training on other "
    "splits never shows. Seats of board games meet the attentive player, which completes lines and blocks them; all "
    "other options are the default ones. Every environment weighs the same, and so does every family; normalised "
    "results take random play as 0 and the expert as 100. Left out are games in which 25 episodes cannot tell the "
    "expert from random play, such as Werewolf for one seat of five, Kuhn poker and Blackjack, and those that are won "
    "without skill, such as the prisoner's dilemma and bargaining with the random player."
)


def _entry(name: str, family: str) -> SuiteEntry:
    return SuiteEntry(f"turngym/{name}", {"opponents": OPPONENT} if family == "boards" else {}, episodes=EPISODES)


_ENTRIES = {family: [_entry(name, family) for name in names] for family, names in FAMILIES.items()}

SUITES.register("turngym-core")(
    Suite(
        name="turngym-core",
        version=3,
        description="Six families with three games each, for half an hour without Java, browser or GPU.",
        entries=tuple(entry for entries in _ENTRIES.values() for entry in entries),
        metric="success",
        protocol=PROTOCOL,
        families={family: tuple(entry.label for entry in entries) for family, entries in _ENTRIES.items()},
    )
)
