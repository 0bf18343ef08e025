"""ALFWorld's games on disk: opened by their index, read one at a time.

Two layouts are read. The official one has a folder for each game with the file ``game.tw-pddl``; the compact one has a
file ``games.FOLD.jsonl.xz`` for each fold, next to the grammar ``alfred.twl2``. Slow work is done once and kept in the
user's cache: finding which official games are solvable, and unpacking a compact file so that single games can be read
from it.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import re
import shutil
import tempfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from turngym.envs.household.pddl import read_problem
from turngym.envs.household.world import KINDS, World
from turngym.errors import ConfigError, MissingExtra
from turngym.storage import files

VARIABLE = "ALFWORLD_DATA"
FOLDS = {"train": "train", "dev": "valid_seen", "test": "valid_unseen"}
"""Split -> ALFWorld's fold."""
_FORMAT = 1
_GAME = "game.tw-pddl"
_UNSUPPORTED = ("movable", "Sliced")
_SOLVABLE = re.compile(rb'"solvable"\s*:\s*true')
_WELCOME = re.compile(r'"intro"\s*:\s*\[\s*\{\s*"rhs"\s*:\s*"((?:[^"\\]|\\.)*?)#look')
_TASK = re.compile(r'"task"\s*:\s*\[\s*\{\s*"rhs"\s*:\s*"((?:[^"\\]|\\.)*)"')
_HELP = re.compile(r'action\s+help\s*\{.*?feedback\s*::\s*"(.*?)"\s*;', re.DOTALL)
_SLOT = "{goal_text}"


@dataclass(frozen=True)
class Game:
    """A game as its file states it.

    Args:
        name: Names of its folders: the task's and the trial's.
        world: The household and its goal.
        walkthrough: Commands that win it.
        welcome: Text before the first observation.
        help_text: Answer of ``help``.
    """

    name: str
    world: World
    walkthrough: tuple[str, ...]
    welcome: str
    help_text: str


class Games(ABC):
    """The games of one fold, in the order of their names.

    Args:
        kinds: Name -> kind of task.
    """

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self.kinds = dict(sorted(kinds.items()))

    @abstractmethod
    def read(self, name: str) -> Game:
        """Return a game.

        Raises:
            ConfigError: Its file is damaged.
        """

    @abstractmethod
    def raw(self, name: str) -> dict[str, Any]:
        """Return what a game's file says, unread."""


class _Official(Games):
    """Games in folders."""

    def __init__(self, folder: Path) -> None:
        found = {}
        for task in os.scandir(folder):
            kind = task.name.split("-")[0]
            if kind not in KINDS or not task.is_dir() or any(word in task.name for word in _UNSUPPORTED):
                continue
            for trial in os.scandir(task.path):
                path = os.path.join(trial.path, _GAME)
                if os.path.isfile(path):
                    found[f"{task.name}/{trial.name}"] = kind
        self._folder = folder
        solvable = set(self._solvable(sorted(found)))
        super().__init__({name: kind for name, kind in found.items() if name in solvable})

    def _solvable(self, names: list[str]) -> list[str]:
        """Return the games that are marked as solvable; their files are read once, and again when one has changed."""
        marks = [(name, *self._stamp(name)) for name in names]
        cache = cache_folder() / f"solvable-{_digest(str(self._folder.resolve()), marks)}.json"
        try:
            return [str(name) for name in json.loads(cache.read_bytes())]
        except (OSError, ValueError):
            found = [name for name in names if _SOLVABLE.search((self._folder / name / _GAME).read_bytes())]
        _keep(cache, json.dumps(found).encode())
        return found

    def _stamp(self, name: str) -> tuple[int, int]:
        state = (self._folder / name / _GAME).stat()
        return state.st_size, state.st_mtime_ns

    def raw(self, name: str) -> dict[str, Any]:
        return dict(json.loads((self._folder / name / _GAME).read_bytes()))

    def read(self, name: str) -> Game:
        try:
            content = self.raw(name)
            return _game(name, content, str(content["grammar"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise _damaged(self._folder / name / _GAME, error) from error


class _Compact(Games):
    """Games in one packed file, unpacked individually in the cache."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._grammar = (path.parent / "alfred.twl2").read_text(encoding="utf8")
        except (OSError, ValueError) as error:
            raise _damaged(path.parent / "alfred.twl2", error) from error
        state = path.stat()
        self._store = cache_folder() / f"games-{_digest(str(path.resolve()), state.st_size, state.st_mtime_ns)}"
        self._places = self._open()
        super().__init__({name: kind for name, (kind, _, _) in self._places.items()})

    def _open(self) -> dict[str, tuple[str, int, int]]:
        """Return name -> kind, offset and length, unpacking the file if necessary."""
        index = self._store / "index.json"
        if not index.is_file():
            self._unpack()
        return {str(name): (str(kind), int(at), int(size)) for name, kind, at, size in json.loads(index.read_bytes())}

    def _unpack(self) -> None:
        try:
            self._store.parent.mkdir(parents=True, exist_ok=True)
            part = Path(tempfile.mkdtemp(prefix=".part-", dir=self._store.parent))
        except OSError as error:
            raise ConfigError(
                f"the games of {self._path} are unpacked into {self._store.parent}, which cannot be written ({error}): "
                "set XDG_CACHE_HOME to a folder that can."
            ) from error
        try:
            rows = list(_pack(self._path, part / "games"))
            (part / "index.json").write_text(json.dumps(rows), encoding="utf8")
            try:
                part.rename(self._store)
            except OSError:
                if not (self._store / "index.json").is_file():  # else another process was faster
                    raise
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def raw(self, name: str) -> dict[str, Any]:
        _, offset, size = self._places[name]
        with (self._store / "games").open("rb") as file:
            file.seek(offset)
            return dict(json.loads(zlib.decompress(file.read(size))))

    def read(self, name: str) -> Game:
        try:
            return _game(name, self.raw(name), self._grammar)
        except (OSError, ValueError, KeyError, TypeError, zlib.error) as error:
            raise _damaged(self._store / "games", error) from error


def _pack(path: Path, target: Path) -> Iterator[tuple[str, str, int, int]]:
    """Write the games of a packed file one by one, and yield name, kind, offset and length of each."""
    try:
        with lzma.open(path, "rb") as file, target.open("wb") as packed:
            for line in file:
                content = json.loads(line)
                name, kind = str(content["id"]), str(content["task_type"])
                if kind not in KINDS:
                    raise KeyError(kind)
                offset = packed.tell()
                yield name, kind, offset, packed.write(zlib.compress(line, 1))
    except (OSError, ValueError, KeyError, TypeError, EOFError, lzma.LZMAError) as error:
        raise _damaged(path, error) from error


def _game(name: str, content: Mapping[str, Any], grammar: str) -> Game:
    task = _first(_TASK, grammar).replace(_SLOT, str(content.get("goal_text", "")))
    help_text = _HELP.search(grammar)
    return Game(
        name,
        read_problem(content["pddl_problem"], task),
        tuple(map(str, content["walkthrough"])),
        _first(_WELCOME, grammar),
        help_text[1].lstrip("\n") if help_text else "",
    )


def _first(pattern: re.Pattern[str], grammar: str) -> str:
    found = pattern.search(grammar)
    return str(json.loads(f'"{found[1]}"')) if found else ""


def _damaged(path: Path, error: Exception) -> ConfigError:
    return ConfigError(f"{path} has no games of ALFWorld ({error!r}): download or copy it anew.")


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr((_FORMAT, *parts)).encode()).hexdigest()[:24]


def _keep(path: Path, content: bytes) -> None:
    """Write a cache file atomically; without a cache it is recomputed the next time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(content)
        os.replace(file.name, path)
    except OSError:
        return


def cache_folder() -> Path:
    """Return the cache folder."""
    return files.cache_folder("alfworld")


def find_data(folder: str) -> Path:
    """Return the folder of the games: the one given, else that of the environment variable.

    Raises:
        MissingExtra: There is none.
    """
    given = folder or os.environ.get(VARIABLE, "")
    path = Path(given).expanduser()
    if given and path.is_dir():
        return path
    said = f"{str(path)!r} is not a folder" if given else f"neither data=... nor {VARIABLE} names their folder"
    raise MissingExtra(
        f'ALFWorld needs its games, and {said}: pip install "turngym[alfworld]" && alfworld-download, then set '
        f"{VARIABLE} to where they are."
    )


def open_games(folder: Path, fold: str) -> Games:
    """Return the games of a fold; opened once in a process.

    Raises:
        MissingExtra: The folder has no such fold.
        ConfigError: A file is damaged.
    """
    if (packed := folder / f"games.{fold}.jsonl.xz").is_file():
        return _open_compact(packed)
    for base in (folder, *sorted(folder.glob("json_*"), reverse=True)):
        if (base / fold).is_dir():
            return _open_official(base / fold)
    raise MissingExtra(
        f"{folder} has no games of ALFWorld's fold {fold!r}, neither as the folder {fold} or json_2.1.1/{fold} nor as "
        f'the file games.{fold}.jsonl.xz: pip install "turngym[alfworld]" && alfworld-download.'
    )


_open_compact = lru_cache(maxsize=8)(_Compact)
_open_official = lru_cache(maxsize=8)(_Official)


@lru_cache(maxsize=256)
def read_game(folder: Path, fold: str, name: str) -> Game:
    """Return a game; the last 256 are kept.

    Raises:
        ConfigError: Its file is damaged.
    """
    return open_games(folder, fold).read(name)
