"""The games of TextArena between seats."""

from turngym.envs.registration import Spec

SPECS: dict[str, Spec] = {
    "turngym/TextArenaGame-v0": Spec(
        "turngym.envs.text_arena.game:TextArenaGame",
        {},
        "Any game of TextArena for two players or more, by its id there.",
        "textarena",
    ),
}
