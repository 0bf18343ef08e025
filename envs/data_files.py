"""Tasks from a folder of JSON lines: ``NAME.train.jsonl``, ``NAME.dev.jsonl``, ``NAME.test.jsonl``, gzipped or not."""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from turngym.errors import ConfigError, nearest


def data_file(folder: str, name: str, split: str) -> Path:
    """Return the file of a set and split.

    Raises:
        ConfigError: The file is missing.
    """
    place = Path(folder).expanduser()
    for ending in ("", ".gz"):
        if (path := place / f"{name}.{split}.jsonl{ending}").is_file():
            return path
    known = sorted({path.name.split(".")[0] for path in place.glob(f"*.{split}.jsonl*")})
    hint = nearest(name, known) if known else "There is no such file at all."
    raise ConfigError(f"{folder!r} has no set {name!r}: expected the file {name}.{split}.jsonl or .jsonl.gz. {hint}")


@lru_cache(maxsize=16)
def read_lines(path: Path) -> tuple[dict[str, Any], ...]:
    """Return the objects of a file, one per line.

    Raises:
        ConfigError: The file is missing or damaged.
    """
    try:
        with gzip.open(path, "rt", encoding="utf8") if path.suffix == ".gz" else path.open(encoding="utf8") as file:
            found = tuple(json.loads(line) for line in file)
    except (OSError, ValueError, EOFError, RecursionError) as error:
        raise ConfigError(f"{path} holds no JSON lines ({error!r}).") from error
    if not found or not all(isinstance(line, dict) for line in found):
        raise ConfigError(f"{path} must hold one JSON object on every line.")
    return found
