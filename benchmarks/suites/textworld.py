"""Games that TextWorld generates, as they are used in papers: coins, treasures, recipes and quests."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry

GAMES = {
    "coin_collector": ("level=5", "level=10", "level=110"),
    "treasure_hunter": ("level=5", "level=15"),
    "cooking": (
        "recipe=1,take=1,go=1,cut=1",
        "recipe=1,take=1,go=6,open=1,cook=1",
        "recipe=3,take=3,go=6,open=1,cook=1,cut=1",
    ),
    "custom": ("world_size=5,nb_objects=10,quest_length=5",),
}
"""Game -> parameters of its entries."""

SUITES.register("textworld")(
    Suite(
        name="textworld",
        version=1,
        description="20 games of each of nine kinds that TextWorld generates, with seeds that training never uses.",
        entries=tuple(
            SuiteEntry("turngym/TextWorld-v0", {"game": game, "params": params, "games": 20}, episodes=20)
            for game, kinds in GAMES.items()
            for params in kinds
        ),
        metric="score",
        protocol=(
            "50 turns, one attempt at each game; the score is the share of the game's points. Games are those of the "
            "test split; each is built when it is first played, in a few seconds. Needs the extra textworld."
        ),
    )
)
