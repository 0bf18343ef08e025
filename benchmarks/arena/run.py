"""Playing an arena: matches chosen by uncertainty, played round by round, stored one by one.

The results depend on the commands alone, not on the number of tables or on how often they were killed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from turngym.benchmarks.arena.folder import ArenaFolder
from turngym.benchmarks.arena.hall import WatchedTables
from turngym.benchmarks.arena.plan import Arena, Change, changed, rounds, started
from turngym.benchmarks.arena.results import arena_results, costs, game_results
from turngym.benchmarks.arena.schedule import Scheduler
from turngym.benchmarks.tournaments.pairings import Match
from turngym.errors import ConfigError
from turngym.types import StrPath

SECONDS = 300.0


class PlaysMatches(Protocol):
    """What the matches are played at; see :class:`turngym.benchmarks.arena.hall.WatchedTables`."""

    def play(self, game: str, matches: Sequence[Match]) -> Iterator[dict[str, Any]]:
        """Yield the record of each match of a game as it ends."""
        ...

    def close(self) -> None:
        """End what plays."""
        ...


def play_arena(
    folder: StrPath,
    change: Change | None = None,
    *,
    fixed: Mapping[str, int | None] = MappingProxyType({}),
    tables: int = 16,
    seconds: float = SECONDS,
    on_match: Callable[[int, int], None] | None = None,
    at: Callable[[Arena, int, float], PlaysMatches] = WatchedTables,
) -> dict[str, Any]:
    """Start an arena or change it, play its matches as far as they are not over, and rate its players.

    Args:
        folder: Folder of the arena; it may be empty, or not exist.
        change: Games, players and matches to add, players to retire.
        fixed: ``seed``, ``retries`` and ``round`` of an arena that starts; one that exists must have the same.
        tables: Number of parallel games.
        seconds: Time for an answer, after which its player forfeits.
        on_match: Called after every match with the number of those that are over, and that of all.
        at: Makes what the matches are played at.

    Returns:
        The content of ``results.json``.

    Raises:
        ConfigError: A setting is wrong, or the folder holds something else.
        UnknownName: There is no such game or player.
        FolderInUse: Another process plays this arena.
    """
    if tables < 1:
        raise ConfigError(f"an arena needs one table at least, got {tables}.")
    if not 0 < seconds < 1e7:
        raise ConfigError(f"the time for an answer must be above 0 and below 1e7 seconds, got {seconds:g}.")
    store = ArenaFolder(Path(folder))
    try:
        arena = changed(_settled(store.arena, fixed), change or Change(), store.records.keys())
        left = arena.matches > len(store.records)
        hall = at(arena, tables, seconds) if left else None  # says what is wrong with players before anything is stored
        try:
            store.begin(arena)
            if hall is not None:
                _play(arena, store, hall, on_match)
        finally:
            if hall is not None:
                hall.close()
        records = {name: mine for name in arena.games if (mine := store.of_game(name))}
        games = game_results(arena, records)
        found = arena_results(arena, records, games)
        store.finish(games, found, costs(arena, records))
    finally:
        store.close()
    return found


def _play(arena: Arena, store: ArenaFolder, hall: PlaysMatches, on_match: Callable[[int, int], None] | None) -> None:
    """Play the matches of the last stage that are not over."""
    stage = arena.stages[-1]
    with closing(Scheduler(arena)) as scheduler:
        for numbers in rounds(arena, stage, arena.matches):
            left: dict[str, list[Match]] = {}
            if all(number in store.records for number in numbers):
                continue
            for name, match in scheduler.round(stage, numbers, store.records):
                if match.block not in store.records:
                    left.setdefault(name, []).append(match)
            for name, matches in left.items():
                for record in hall.play(name, matches):
                    store.add(name, record)
                    if on_match is not None:
                        on_match(len(store.records), arena.matches)


def _settled(arena: Arena | None, fixed: Mapping[str, int | None]) -> Arena:
    """Return the arena, or one that starts; settings that were given must be those of an arena that exists.

    Raises:
        ConfigError: They are not.
    """
    given = {name: value for name, value in fixed.items() if value is not None}
    if arena is None:
        return started(**given)
    for name, value in given.items():
        if getattr(arena, name) != value:
            raise ConfigError(
                f"the arena has {name} {getattr(arena, name)}, not {value}: it cannot change. Start another arena."
            )
    return arena
