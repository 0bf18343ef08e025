"""The kind of a folder that a command has written, recognised by its ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from turngym.errors import ConfigError, RunFolderExists
from turngym.storage.bounded import read_json
from turngym.system.locks import LOCK_FILE

Kind = Literal["training run", "evaluation", "tournament", "arena"]


def folder_kind(folder: Path) -> Kind | None:
    """Return what a folder holds; None where it is nothing that is known.

    Args:
        folder: The folder, which need not exist.
    """
    config = _config(folder)
    if "pairing" in config:
        return "tournament"
    if "arena" in config and "stages" in config:
        return "arena"
    if "suite" in config and "environments" in config:
        return "evaluation"
    if {"env", "algorithm"} <= config.keys() or (folder / "metrics.jsonl").is_file():
        return "training run"
    return None


def require_kind(folder: Path, wanted: Kind) -> None:
    """Refuse a folder of another kind; one of no known kind is let through.

    Args:
        folder: The folder.
        wanted: Expected content.

    Raises:
        ConfigError: It holds something else.
    """
    found = folder_kind(folder)
    if found not in (None, wanted):
        article = "an" if found in ("evaluation", "arena") else "a"
        raise ConfigError(f"{folder} is the folder of {article} {found}, not of a {wanted}: pass another folder.")


def is_folder(path: Path) -> bool:
    """Return whether there is a folder at a path; one of too long a name is none.

    >>> is_folder(Path("x" * 300)), is_folder(Path("."))
    (False, True)
    """
    try:
        return path.is_dir()
    except OSError:
        return False


def is_free(path: Path) -> bool:
    """Return whether a folder is absent or empty; its lock and half a file that a kill left do not count."""
    if not path.exists():
        return True
    return path.is_dir() and all(is_left_over(file.name) for file in path.iterdir())


def is_left_over(name: str) -> bool:
    """Return whether a file is a lock, or one that a kill left half written.

    >>> is_left_over(".config.json.4711.tmp"), is_left_over("config.json")
    (True, False)
    """
    return name == LOCK_FILE or (name.startswith(".") and name.endswith(".tmp"))


def require_folder(path: Path) -> None:
    """Refuse a path that is something else than a folder; one that does not exist yet is let through.

    Raises:
        RunFolderExists: There is a file of that name.
    """
    if path.exists() and not path.is_dir():
        raise RunFolderExists(f"{path} is a file, where a folder is needed: pass another name.")


def require_file(path: Path, default: str) -> None:
    """Refuse a path where no file can be written, as a folder is there or the place of its folder is taken.

    Args:
        path: The file to write.
        default: A good name for it.

    Raises:
        ConfigError: There is a folder of that name.
        RunFolderExists: Its folder is a file.
    """
    if path.is_dir():
        raise ConfigError(f"{path} is a folder: pass the file to write, such as {path / default}.")
    require_folder(path.parent)


def _config(folder: Path) -> Mapping[str, Any]:
    try:
        found = read_json(folder / "config.json")
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
