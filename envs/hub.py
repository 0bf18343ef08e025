"""Data sets of Hugging Face's package ``datasets``, by name or as folders."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from turngym.errors import ConfigError, missing_extra

PREFIX = "hf:"
"""Prefix of the folder or name, which ``#`` and the name of a configuration may follow."""
SPLITS: Mapping[str, tuple[str, ...]] = {
    "train": ("train",),
    "dev": ("dev", "validation", "valid"),
    "test": ("test",),
}
"""Split -> what data sets call it."""


def read_rows(name: str, split: str) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a data set, without running any of its code.

    Args:
        name: Folder or name, with or without :data:`PREFIX`.
        split: ``"train"``, ``"dev"`` or ``"test"``.

    Raises:
        ConfigError: There is no such data set, or it has no such split.
        MissingExtra: The package is not installed.
    """
    found = open_dataset(name)
    if not isinstance(found, Mapping):  # saved without splits: it is the one that was asked for
        yield from found
        return
    known = [each for each in SPLITS.get(split, (split,)) if each in found]
    if not known:
        raise ConfigError(f"the data set {name!r} has no split {split!r}; it has: {', '.join(found)}.")
    yield from found[known[0]]


def open_dataset(name: str) -> Any:
    """Return a data set: rows, or a mapping of splits to rows.

    Args:
        name: Folder or name, with or without :data:`PREFIX`.

    Raises:
        ConfigError: There is no such data set.
        MissingExtra: The package is not installed.
    """
    place, _, config = name.removeprefix(PREFIX).partition("#")
    try:
        library: Any = importlib.import_module("datasets")
    except ModuleNotFoundError:
        raise missing_extra(f"the data set {name!r}", "datasets", "datasets") from None
    library.disable_progress_bars()
    try:
        return _opened(library, place, config)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"the data set {name!r} cannot be read ({type(error).__name__}: {error}).") from error


def _opened(library: Any, place: str, config: str) -> Any:
    folder = Path(place).expanduser()
    if any((folder / mark).is_file() for mark in ("dataset_dict.json", "state.json")):
        return library.load_from_disk(str(folder))
    return library.load_dataset(str(folder) if folder.is_dir() else place, config or None)
