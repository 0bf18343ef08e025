"""The folder of an arena: its definition, a folder for each game, and the results.

The folder of a game is that of a tournament, whose matches the arena schedules: ``turngym view`` and ``turngym report``
work on it. Its lines are written as soon as their games are over. Everything else follows from them and the definition.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from turngym.agents.recordings.shapes import Kinds, MalformedData, shape
from turngym.benchmarks.arena.plan import Arena
from turngym.benchmarks.tournaments.folder import TournamentFolder
from turngym.benchmarks.tournaments.submission import game_problems
from turngym.errors import CheckpointError, ConfigError
from turngym.storage.bounded import read_json
from turngym.storage.files import write_json
from turngym.storage.folders import is_free, require_folder, require_kind
from turngym.system.locks import FolderLock
from turngym.text import valid_text

CONFIG, RESULTS, COSTS, PAGE, GAMES = "config.json", "results.json", "costs.json", "page.html", "games"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")
_MOST_MATCHES = 100_000
_CONFIG: Kinds = {
    "arena": int,
    "games": dict,
    "players": dict,
    "game_order": list,
    "player_order": list,
    "stages": list,
    "matches": int,
    "seed": int,
    "retries": int,
    "round": int,
}
_GAME: Kinds = {"game": str, "options": dict, "sides": str, "ruleset_hash": str, "players": list}
_PLAYER: Kinds = {"player": str, "settings": dict}
_STAGE: Kinds = {"start": int, "held": list, "games": list, "players": list}


def require_name(name: str) -> str:
    """Return the name of a game, which names a folder.

    Raises:
        ConfigError: It cannot.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"a game needs a name of letters, digits and _ . - that starts with a letter or digit, got {name!r:.80}: "
            "pass it as NAME=GAME."
        )
    return name


class _GameFolder(TournamentFolder):
    """The folder of a game, whose definition follows from that of the arena."""

    def _require_same(self, path: Path, plan: Mapping[str, Any]) -> None:
        require_kind(path, "tournament")

    def require_record(self, record: Mapping[str, Any], place: str) -> None:
        """Raise if a stored game, from which later matches are chosen, is damaged.

        Raises:
            CheckpointError: It is.
        """
        if problem := next(game_problems(record, place), None):
            raise CheckpointError(f"{problem.place}: {problem.message}: the file is damaged.")


class ArenaFolder:
    """Stores an arena.

    Args:
        path: The folder; it may be empty, or not exist.

    Raises:
        ConfigError: It holds something else, or its definition is damaged.
        FolderInUse: Another process writes it.
        CheckpointError: The stored games are damaged.
    """

    def __init__(self, path: Path) -> None:
        require_folder(path)
        self.path = path
        self.records: dict[int, tuple[str, dict[str, Any]]] = {}
        """Number of a match -> game and record, for those that are over."""
        self._games: dict[str, _GameFolder] = {}
        path.mkdir(parents=True, exist_ok=True)
        self._lock = FolderLock(path, "arena")
        try:
            self.arena = None if is_free(path) else _read(path)
            for name in self.arena.games if self.arena else ():
                self._open(name)
        except BaseException:
            self.close()
            raise

    def _open(self, name: str) -> None:
        assert self.arena is not None
        content = self.arena.plan_of(name).content()
        folder = _GameFolder(self.path / GAMES / require_name(name), content, resume=True)
        self._games[name] = folder
        for record in folder.records.values():
            if type(number := record.get("block_id")) is not int:
                raise CheckpointError(f"a line of {folder.path} has no number of a match: the file is damaged.")
            self.records[number] = name, record

    def begin(self, arena: Arena) -> None:
        """Store a definition, before its first match."""
        write_json(self.path / CONFIG, arena.content())
        self.arena = arena
        for name in arena.games:
            if name in self._games:
                self._games[name].close()
            self._open(name)

    def add(self, name: str, record: dict[str, Any]) -> None:
        """Store a match that is over."""
        self._games[name].add(record)
        self.records[record["block_id"]] = name, record

    def of_game(self, name: str) -> list[dict[str, Any]]:
        """Return the records of a game in the order of their numbers."""
        return [record for _, (game, record) in sorted(self.records.items()) if game == name]

    def finish(self, games: Mapping[str, Mapping[str, Any]], results: Mapping[str, Any], costs: Any) -> None:
        """Put the games into order and write the results, those of the arena last."""
        for name, found in games.items():
            self._games[name].finish(self.of_game(name), found)
        write_json(self.path / COSTS, costs)
        write_json(self.path / RESULTS, results)

    def close(self) -> None:
        """Close the files, and let others write the folder."""
        for folder in self._games.values():
            folder.close()
        self._lock.release()


def _read(path: Path) -> Arena:
    require_kind(path, "arena")
    arena, problems = read_arena(path)
    if arena is None:
        first = problems[0]
        raise ConfigError(f"{path} holds no arena ({first.place}: {first.message}): pass another folder.")
    return arena


def read_arena(path: Path) -> tuple[Arena | None, list[MalformedData]]:
    """Return the definition in a folder, or None with all that is wrong with its shape."""
    try:
        content = read_json(path / CONFIG)
    except FileNotFoundError:
        return None, [MalformedData(CONFIG, "the file is missing")]
    except (OSError, ValueError, RecursionError) as error:
        return None, [MalformedData(CONFIG, f"the file is not JSON that can be read: {error}")]
    if valid_text(text := json.dumps(content, ensure_ascii=False)) != text:
        return None, [MalformedData(CONFIG, "a text has characters that no file can hold")]
    problems = list(shape(content, _CONFIG, CONFIG)) or _parts(content) or _bounds(content)
    if problems:
        return None, problems
    try:
        return Arena.from_content(content), []
    except ConfigError as error:
        return None, [MalformedData(CONFIG, str(error))]


def _parts(content: Mapping[str, Any]) -> list[MalformedData]:
    found: list[MalformedData] = []
    for number, stage in enumerate(content["stages"]):
        found += shape(stage, _STAGE, f"{CONFIG}, stage {number}")
    for key, kinds in (("games", _GAME), ("players", _PLAYER)):
        for name, each in content[key].items():
            found += [*shape(each, kinds, f"{CONFIG}, {key}, {name}"), *_unknown(each, kinds, key)]
        if sorted(map(str, content[f"{key[:-1]}_order"])) != sorted(content[key]):
            found.append(MalformedData(f"{CONFIG}, {key[:-1]}_order", f"it must name each of the {key} once"))
    return found


def _unknown(each: Any, kinds: Kinds, key: str) -> list[MalformedData]:
    more = sorted(set(each).difference(kinds)) if isinstance(each, dict) else []
    return [MalformedData(f"{CONFIG}, {key}", f"there is no setting {name!r:.60}") for name in more]


def _bounds(content: Mapping[str, Any]) -> list[MalformedData]:
    found: list[MalformedData] = []
    for key in ("players", "games", "stages"):
        if not content[key]:
            found.append(MalformedData(f"{CONFIG}, {key}", "there must be one at least"))
    for stage in content["stages"]:
        names = [("games", content["games"]), ("players", content["players"])]
        bad = [name for key, known in names for name in stage[key] if not isinstance(name, str) or name not in known]
        numbers = range(stage["start"] + 1, _MOST_MATCHES)
        held = [number for number in stage["held"] if type(number) is not int or number not in numbers]
        if bad or held or not 0 <= stage["start"] <= _MOST_MATCHES:
            found.append(
                MalformedData(f"{CONFIG}, stages", "a stage names games and players of the arena, and matches")
            )
    starts = [stage["start"] for stage in content["stages"]]
    if starts != sorted(starts):
        found.append(MalformedData(f"{CONFIG}, stages", "their starts must not fall"))
    for name, game in content["games"].items():
        others = [each for each in game["players"] if not isinstance(each, str) or each not in content["players"]]
        if others or not _NAME.fullmatch(name):
            message = f"{name!r:.60} needs another name, or has unknown players"
            found.append(MalformedData(f"{CONFIG}, games", message))
    return found


def as_stored(value: Any) -> Any:
    """Return a value as it is after it was stored.

    >>> as_stored({"a": (1, 2)})
    {'a': [1, 2]}
    """
    return json.loads(json.dumps(value))
