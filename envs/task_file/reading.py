"""Reading a file of tasks: JSON Lines, one task a line, strictly checked."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NoReturn

from turngym.envs.instances import canonical_text, instance_hash
from turngym.errors import ConfigError, nearest
from turngym.text import valid_text
from turngym.types import SPLITS, Split, StrPath

_FIELDS = ("id", "instruction", "prompt", "question", "answer", "files", "split")
_TEXTS = ("instruction", "prompt", "question")
_LONGEST_ID, _LONGEST_NAME = 200, 200
_MOST_FILES, _MOST_FILE_CHARACTERS = 1000, 2**24
_SHARE = 10
"""One task of so many belongs to dev, and one to test."""


@dataclass(frozen=True)
class FileTask:
    """A task of a file.

    Args:
        id: Its name.
        instruction: Task.
        answers: Accepted answers; none where a judge of one's own decides.
        files: Name -> content of the files that an agent program finds in its folder.
        split: Share of the tasks that it belongs to; empty for all, in a file with fewer than three questions.
    """

    id: str
    instruction: str
    answers: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    split: Split | Literal[""] = ""


def read_tasks(path: StrPath) -> tuple[FileTask, ...]:
    """Return the tasks of a file.

    A line is ``{"id", "instruction", "answer", "files", "split"}``. ``prompt`` and ``question`` are other names of
    ``instruction``, which alone is required; the id is the number of the line unless given; ``answer`` is a text, a
    number or a list of accepted ones; ``files`` maps names to texts. Without splits one task of ten, at least one,
    belongs to ``dev`` and to ``test`` each, picked by a hash of instruction and files; equal ones share a split. A file
    that names splits need not have tasks of each.

    Args:
        path: The file.

    Raises:
        ConfigError: It cannot be read; the message has the number of the line.
    """
    place = Path(path).expanduser()
    try:
        state = place.stat()
        if not place.is_file():
            raise ConfigError(f"{path} is no file: pass a file of tasks, one JSON object a line.")
    except (OSError, ValueError) as error:
        raise ConfigError(f"the file of tasks {str(path)!r} cannot be read: {error}.") from error
    return _read(place.resolve(), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=16)
def _read(path: Path, changed: int, size: int) -> tuple[FileTask, ...]:
    try:
        lines = path.read_text("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the file of tasks {path} cannot be read: {error}.") from error
    found: dict[str, tuple[int, FileTask]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            task = _task(_object(line), number)
        except _Unreadable as error:
            raise ConfigError(f"{path}, line {number}: {error}") from None
        if task.id in found:
            raise ConfigError(f"{path}, line {number}: line {found[task.id][0]} has the id {task.id!r} already.")
        found[task.id] = number, task
    if not found:
        raise ConfigError(f"{path} holds no tasks: write one JSON object a line, with an instruction and an answer.")
    tasks = [task for _, task in found.values()]
    if not any(task.split for task in tasks):
        return tuple(_shared_out(tasks))
    for number, task in found.values():
        if not task.split:
            raise ConfigError(f"{path}, line {number}: other lines name a split and this one does not: name it too.")
    return tuple(tasks)


class _Unreadable(Exception):
    """Error of a line."""


def _object(line: str) -> dict[str, Any]:
    try:  # numbers stay as they are written, so that answers keep all of their digits
        content = json.loads(line, parse_int=str, parse_float=str, parse_constant=_no_constant)
    except RecursionError:
        raise _Unreadable("it is nested too deep.") from None
    except ValueError as error:
        raise _Unreadable(f"it is no JSON ({str(error)[:200]}).") from None
    if not isinstance(content, dict):
        raise _Unreadable("it is no JSON object.")
    return content


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _task(content: Mapping[str, Any], number: int) -> FileTask:
    for name in content:
        if name not in _FIELDS:
            raise _Unreadable(f"a task has no {name[:60]!r}. {nearest(name[:60], _FIELDS)}")
    texts = [name for name in _TEXTS if content.get(name) is not None]
    if len(texts) != 1:
        raise _Unreadable("it needs one of instruction, prompt and question.")
    split = content.get("split", "")
    if split not in SPLITS and "split" in content:
        raise _Unreadable(f"split must be one of {', '.join(SPLITS)}, got {str(split)[:60]!r}.")
    id = _text(content["id"], "id") if content.get("id") is not None else str(number)
    if not id or len(id) > _LONGEST_ID:
        raise _Unreadable(f"id must have 1 to {_LONGEST_ID} characters, got {len(id)}.")
    instruction = _text(content[texts[0]], texts[0])
    if not instruction.strip():
        raise _Unreadable(f"{texts[0]} is empty.")
    return FileTask(id, instruction, _answers(content.get("answer")), _files(content.get("files")), split)


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise _Unreadable(f"{name} must be a text, got {_kind(value)}.")
    return valid_text(value)


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", bool: "a truth value"}
    return names.get(type(value), "null")


def _answers(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        return (_text(value, "answer"),)
    if not value:
        raise _Unreadable("answer is an empty list: leave it out if there is none.")
    return tuple(_text(each, "each answer") for each in value)


def _files(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _Unreadable(f"files must be an object of names and texts, got {_kind(value)}.")
    found = {_name(name): _text(content, f"the file {name[:60]!r}") for name, content in value.items()}
    if len(found) > _MOST_FILES or sum(map(len, found.values())) > _MOST_FILE_CHARACTERS:
        raise _Unreadable(f"a task has at most {_MOST_FILES} files with {_MOST_FILE_CHARACTERS:,} characters in all.")
    for name in found:
        above = {str(parent) for parent in PurePosixPath(name).parents}
        if above & found.keys():
            raise _Unreadable(f"the file {name[:60]!r} lies below another file.")
    return found


def _name(name: str) -> str:
    path = PurePosixPath(name)
    is_inside = name and not path.is_absolute() and ".." not in path.parts and str(path) == name and name != "."
    if not is_inside or not name.isprintable() or len(name.encode("utf8", "replace")) > _LONGEST_NAME:
        raise _Unreadable(f"{name[:60]!r} is no name of a file below the folder of the task.")
    return valid_text(name)


def _shared_out(tasks: Sequence[FileTask]) -> list[FileTask]:
    """Return tasks with splits, which depend on what they ask alone; fewer than three questions belong to all."""
    keys = [_question(task) for task in tasks]
    counts = Counter(keys)
    if len(counts) < len(SPLITS):
        return list(tasks)
    few = max(len(tasks) // _SHARE, 1)
    ordered = sorted(counts)
    splits: dict[str, Split] = {}
    shares: tuple[tuple[Split, int], ...] = (("test", 2), ("dev", 1))
    for split, left in shares:  # so many questions are left for the other splits
        held = 0
        while held < few and len(ordered) > left:
            key = ordered.pop(0)
            splits[key] = split
            held += counts[key]
    return [replace(task, split=splits.get(key, "train")) for task, key in zip(tasks, keys, strict=True)]


def _question(task: FileTask) -> str:
    """Return a hash of what a task asks, whatever its blanks, case and form of Unicode."""
    words = " ".join(unicodedata.normalize("NFKC", task.instruction).casefold().split())
    return instance_hash(canonical_text([words, dict(task.files)]))
