"""Conversations as a folder that Hugging Face's ``load_dataset`` reads, and the hub takes as it is."""

from __future__ import annotations

from pathlib import Path

from turngym.benchmarks.exports import EXPORTS
from turngym.benchmarks.exports.conversations import conversations
from turngym.benchmarks.exports.parquet import write_table
from turngym.benchmarks.exports.source import Source
from turngym.errors import ConfigError
from turngym.storage.files import write_atomic

_TABLE = "data/train-00000-of-00001.parquet"
_CARD = """---
configs:
- config_name: default
  data_files:
  - split: train
    path: data/train-*
tags:
- turngym
---
Episodes played with turngym, one per row: `messages` (rules, observations, completions), `rewards`, `valid` and
`advantages` of each completion, `success`, `score` and `return` of the episode.
"""


@EXPORTS.register("hf")
def export_hf(source: Source, out: Path) -> list[Path]:
    """Write a data set with one split, ``train``.

    Args:
        source: Folder of an evaluation or a training run.
        out: A folder.

    Raises:
        ConfigError: It is a file or holds something other than an earlier export, or there is no episode.
        MissingExtra: Neither pyarrow nor polars is installed.
    """
    if out.suffix or out.is_file():
        raise ConfigError(f"a data set is a folder, got {str(out)!r}.")
    if out.is_dir() and any(out.iterdir()) and not (out / _TABLE).exists():
        raise ConfigError(f"{out} holds other files: pass a new folder, or that of an earlier export, as --out.")
    write_table(conversations(source), out / _TABLE)
    write_atomic(out / "README.md", _CARD)
    return [out / _TABLE, out / "README.md"]
