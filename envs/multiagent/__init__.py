"""Games between several seats: rules apart from the table that runs them, and the views that every framework knows.

Everything is imported on first use, so that the tables of games can be listed without importing any of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from turngym.envs.multiagent.aec import TableAEC
    from turngym.envs.multiagent.game import Game, InvalidAction
    from turngym.envs.multiagent.parallel import TableParallel
    from turngym.envs.multiagent.players import PLAYERS, Player, make_player
    from turngym.envs.multiagent.records import EpisodeRecord, StepRecord
    from turngym.envs.multiagent.registration import GAMES, make_aec, make_game, make_parallel
    from turngym.envs.multiagent.table import SeatRequest, SeatView, Table
    from turngym.envs.multiagent.vector import TableVector

__all__ = [
    "GAMES",
    "PLAYERS",
    "EpisodeRecord",
    "Game",
    "InvalidAction",
    "Player",
    "SeatRequest",
    "SeatView",
    "StepRecord",
    "Table",
    "TableAEC",
    "TableParallel",
    "TableVector",
    "make_aec",
    "make_game",
    "make_parallel",
    "make_player",
]

_MODULES = {
    "aec": ("TableAEC",),
    "game": ("Game", "InvalidAction"),
    "parallel": ("TableParallel",),
    "players": ("PLAYERS", "Player", "make_player"),
    "records": ("EpisodeRecord", "StepRecord"),
    "registration": ("GAMES", "make_aec", "make_game", "make_parallel"),
    "table": ("SeatRequest", "SeatView", "Table"),
    "vector": ("TableVector",),
}
_LAZY = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}. Public names: {', '.join(__all__)}.")
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
