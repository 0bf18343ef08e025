"""Evaluations and training runs in the formats of other tools, one file a format.

None of these files imports the tool that reads them: what they write is plain JSON or Parquet, so that a folder can be
exported anywhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from turngym.agents.recordings.submission import Submission, key_of
from turngym.benchmarks.exports.source import Source, shown
from turngym.errors import ConfigError, TurngymError
from turngym.registry import Registry
from turngym.storage.files import path_of, write_atomic
from turngym.types import StrPath


class Export(Protocol):
    """Writes a folder in a format."""

    def __call__(self, source: Source, out: Path) -> list[Path]:
        """Write files and return them.

        Args:
            source: Folder to read.
            out: File or folder to write.

        Raises:
            ConfigError: ``out`` is of the wrong kind.
        """
        ...


EXPORTS: Registry[Export] = Registry("export format", "turngym.benchmarks.exports")


def export(folder: StrPath, format: str, out: StrPath, success: bool = False) -> list[Path]:
    """Write a folder in another format and return the files.

    Args:
        folder: Folder written by ``turngym eval ... --out FOLDER``; for ``chat``, ``sft``, ``preference``,
            ``parquet`` and ``hf`` also that of a training run.
        format: A name of :data:`EXPORTS`.
        out: Output path; a file or folder, depending on the format.
        success: Whether only solved episodes are exported; for ``chat``, ``sft``, ``parquet`` and ``hf``.

    Raises:
        UnknownName: There is no such format.
        ConfigError: The folder holds neither, or is damaged, or ``out`` is of the wrong kind or part of the folder.
    """
    source, target = path_of(folder, "folder"), path_of(out, "out")
    write = EXPORTS[str(format)]
    if target.exists() and source.resolve() in (target.resolve(), *target.resolve().parents):
        raise ConfigError(f"{out} is part of {folder} and would be overwritten: pass another --out (out in Python).")
    try:
        return write(Source(source, success), target)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, TurngymError):
            raise
        raise ConfigError(
            f"{folder} lacks what an export needs ({error!r}): `turngym verify {folder}` shows what is wrong."
        ) from error


def digest(content: Any) -> str:
    """Return a hash of a JSON value.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1}), len(digest(0))
    (True, 64)
    """
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def episodes(submission: Submission) -> Iterator[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]], str]]:
    """Yield each episode with its turns and what was seen at its end, environment by environment and task by task.

    Without transcripts a turn has its action alone.
    """
    told = {key_of(each): each for each in submission.transcripts or ()}
    for environment in submission.config["environments"]:
        for row in submission.of(environment["label"]):
            transcript = told.get(key_of(row))
            if transcript is None:
                yield (
                    row,
                    [{"observation": "", "completion": action, "action": action} for action in row["actions"]],
                    "",
                )
            else:
                yield row, transcript["turns"], shown(transcript.get("final_observation", ""))


def transcripts(
    submission: Submission,
) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]]:
    """Yield a name for a file, environment, row and transcript of each episode that has a turn.

    Raises:
        ConfigError: There are no transcripts.
    """
    if submission.transcripts is None:
        raise ConfigError(f"{submission.path} has no transcripts.jsonl, which this format needs.")
    told = {key_of(each): each for each in submission.transcripts}
    for number, environment in enumerate(submission.config["environments"]):
        for row in submission.of(environment["label"]):
            transcript = told.get(key_of(row), {"turns": ()})
            if transcript["turns"]:
                yield f"{number}-{row['task']}-{row['attempt']}", environment, row, transcript


def write_episodes(out: Path, texts: Iterable[tuple[str, str]]) -> list[Path]:
    """Write one file an episode into a new folder, and return the files.

    Args:
        out: A folder, absent or empty.
        texts: Name and content of each file.

    Raises:
        ConfigError: The folder is a file, or not empty.
    """
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise ConfigError(f"the export is a new folder with one file an episode, and {out} exists: pass another --out.")
    files = []
    for name, text in texts:
        out.mkdir(parents=True, exist_ok=True)
        files.append(out / name)
        write_atomic(files[-1], text)
    return files


def numbers(submission: Submission) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield label, metric and number of everything in ``results.json`` that has a value, what counts first."""
    main = submission.config["suite"]["metric"]
    for environment in submission.config["environments"]:
        label = environment["label"]
        table = submission.results["environments"].get(label, {})
        for metric, number in sorted(table.items(), key=lambda item: (item[0] != main, item[0])):
            if isinstance(number, Mapping) and isinstance(number.get("value"), int | float):
                yield label, metric, number
