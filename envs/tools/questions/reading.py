"""Reading questions: JSON Lines, one object a line, strictly checked, or a data set of Hugging Face."""

from __future__ import annotations

import json
import unicodedata
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple, NoReturn

from turngym.envs.hub import PREFIX, open_dataset
from turngym.envs.hub import SPLITS as HUB_SPLITS
from turngym.envs.instances import canonical_text, instance_hash
from turngym.errors import ConfigError, nearest
from turngym.imports import collection_paused
from turngym.text import valid_text
from turngym.types import SPLITS, Split, StrPath

EXAMPLE = "example"
"""The questions that come with turngym."""
_EXAMPLE_FILE = Path(__file__).parent / "data" / "example.jsonl"
_FIELDS = frozenset({"id", "instruction", "prompt", "question", "answer", "files", "split", "metadata"})
_TEXTS = ("instruction", "prompt", "question")
_HUB_TEXTS = (*_TEXTS, "problem", "input")
_HUB_ANSWERS = ("answers", "golden_answers", "answer", "solution", "target", "output", "label")
_FINAL_ANSWER = "####"
"""Mark of the answer at the end of a worked solution, as in GSM8K."""
_LONGEST_ID, _LONGEST_NAME = 200, 200
_MOST_FILES, _MOST_FILE_CHARACTERS = 1000, 2**24
_SHARE = 10
"""One task of so many belongs to dev, and one to test."""


_EMPTY: Mapping[str, Any] = {}


def _nothing() -> Mapping[str, Any]:
    return _EMPTY


@dataclass(frozen=True, slots=True)
class FileTask:
    """A task of a file.

    Args:
        id: Its name.
        instruction: Task.
        answers: Accepted answers; none where a custom judge decides.
        files: Name -> content of the files that an agent program finds in its folder.
        split: Share of the tasks that it belongs to; empty for all, in a file with fewer than three questions.
        metadata: Anything else that a reward may need.
    """

    id: str
    instruction: str
    answers: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=_nothing)
    split: Split | Literal[""] = ""
    metadata: Mapping[str, Any] = field(default_factory=_nothing)


class TaskSet:
    """The tasks of a file or a data set; read once in a process and shared by all environments.

    Args:
        tasks: The tasks, with unique ids.
    """

    def __init__(self, tasks: tuple[FileTask, ...]) -> None:
        self.tasks = tasks
        self.splits = tuple(sorted({task.split for task in tasks}))
        """Splits that the tasks name or belong to."""
        self._of: dict[str, Mapping[str, FileTask]] = {}
        self._names: dict[str, tuple[str, ...]] = {}

    def of(self, split: str) -> Mapping[str, FileTask]:
        """Return id -> task of a split."""
        if split not in self._of:
            self._of[split] = {task.id: task for task in self.tasks if task.split in ("", split)}
        return self._of[split]

    def names(self, split: str) -> tuple[str, ...]:
        """Return the ids of a split, in the order of the file."""
        if split not in self._names:
            self._names[split] = tuple(self.of(split))
        return self._names[split]


def read_tasks(path: StrPath) -> tuple[FileTask, ...]:
    """Return the tasks of a file or a data set.

    A line is ``{"id", "question", "answer", "metadata", "files", "split"}``. ``prompt`` and ``instruction`` are other
    names of ``question``, which alone is required; the id is the number of the line unless given; ``answer`` is a text,
    a number or a list of accepted ones; ``metadata`` is an object for rewards; ``files`` maps names to texts. Without
    splits one task of ten, at least one, belongs to ``dev`` and to ``test`` each, picked by a hash of question and
    files; equal ones share a split. A file that names splits need not have tasks of each.

    Args:
        path: The file, or ``hf:`` and a data set: ``hf:NAME``, ``hf:NAME#CONFIG``, ``hf:NAME:SPLIT``. Of a data set
            with several splits these are kept; the tasks of a single one are shared out as those of a file.

    Raises:
        ConfigError: It cannot be read; the message has the number of the line.
        MissingExtra: It is a data set, and the package ``datasets`` is missing.
    """
    return read_set(path).tasks


def read_set(path: StrPath) -> TaskSet:
    """Return the tasks as :func:`read_tasks` does, as the one set that all environments of a process share."""
    if str(path).startswith(PREFIX):
        return _read_hub(str(path))
    if not str(path):
        raise ConfigError("data is empty: pass a file of questions, one JSON object a line, or hf:NAME.")
    place = _EXAMPLE_FILE if str(path) == EXAMPLE else Path(path).expanduser()
    try:
        state = place.stat()
    except (OSError, ValueError) as error:
        raise ConfigError(f"the file of questions {str(path)!r} cannot be read: {error}.") from error
    if not place.is_file():
        raise ConfigError(f"{path} is not a file: pass a file of questions, one JSON object a line.")
    return _read(place.resolve(), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4)
def _read(path: Path, changed: int, size: int) -> TaskSet:
    def rows(lines: Iterable[bytes]) -> Iterator[Row]:
        for number, line in enumerate(lines, 1):
            bare = line.removeprefix(BOM_UTF8) if number == 1 else line
            if not bare.isspace() and bare:
                yield Row("line", number, str(number), partial(_object, bare))

    try:
        with path.open("rb") as lines, collection_paused():
            return _checked(str(path), rows(lines))
    except OSError as error:
        raise ConfigError(f"the file of questions {path} cannot be read: {error}.") from error


@lru_cache(maxsize=4)
def _read_hub(name: str) -> TaskSet:
    place, wanted = _place_and_split(name.removeprefix(PREFIX))
    found = open_dataset(place)
    splits: Mapping[str, Any] = found if isinstance(found, Mapping) else {wanted or "train": found}
    if wanted and wanted not in splits:
        raise ConfigError(f"the data set {place!r} has no split {wanted!r}. {nearest(wanted, splits)}")
    chosen = {wanted: splits[wanted]} if wanted else splits
    known = {theirs: ours for ours, names in HUB_SPLITS.items() for theirs in names if theirs in chosen}
    if len(known) < 2 and len(chosen) > 1:
        raise ConfigError(f"the data set {place!r} has the splits {', '.join(splits)}: pick one, hf:{place}:SPLIT.")
    is_split = len(chosen) > 1

    def rows() -> Iterator[Row]:
        for split in known if is_split else chosen:
            for number, row in enumerate(chosen[split], 1):
                id = f"{split}-{number}" if is_split else str(number)
                yield Row(
                    f"split {split}, row", number, id, partial(_hub_object, row, known[split] if is_split else "")
                )

    return _checked(name, rows())


def _place_and_split(name: str) -> tuple[str, str]:
    """Return the data set and the split.

    >>> _place_and_split("openai/gsm8k#main:train"), _place_and_split("sets/mine")
    (('openai/gsm8k#main', 'train'), ('sets/mine', ''))
    """
    place, sign, split = name.rpartition(":")
    return (place, split) if sign and place and "/" not in split and "\\" not in split else (name, "")


class Row(NamedTuple):
    """An unread question.

    Args:
        noun: Word for its place in messages.
        number: Number of the line or row.
        id: Its id unless it names another.
        read: Returns its fields.
    """

    noun: str
    number: int
    id: str
    read: Callable[[], dict[str, Any]]


def _hub_object(row: Mapping[str, Any], split: str) -> dict[str, Any]:
    """Return the fields of a row of a data set; columns with other names are its metadata."""
    texts = [name for name in _HUB_TEXTS if isinstance(row.get(name), str)]
    answers = [name for name in _HUB_ANSWERS if row.get(name) is not None]
    if not texts:
        raise _Unreadable(f"expected a column {', '.join(_HUB_TEXTS)} of texts, got {', '.join(map(str, row))[:200]}.")
    content: dict[str, Any] = {"question": row[texts[0]], "metadata": {}}
    if answers:
        content["answer"] = _hub_answer(row[answers[0]])
    if split:
        content["split"] = split
    for name, value in row.items():
        if name not in (texts[0], *answers[:1]) and _is_json(value):
            content["metadata"][name] = value
    return content


def _hub_answer(value: Any) -> Any:
    """Return the answers in a column: texts, numbers, lists, SQuAD's and TriviaQA's form, GSM8K's worked solutions."""
    if isinstance(value, Mapping):
        value = value["text"] if "text" in value else [value.get("value"), *value.get("aliases", ())]
    if isinstance(value, str):
        return value.rpartition(_FINAL_ANSWER)[2].strip() if _FINAL_ANSWER in value else value
    if isinstance(value, list | tuple):
        return [each if isinstance(each, str) else json.dumps(each) for each in value if each is not None] or None
    return json.dumps(value)


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _checked(place: str, rows: Iterable[Row]) -> TaskSet:
    tasks: list[FileTask] = []
    places: dict[str, int] = {}
    for noun, number, id, read in rows:
        try:
            task = _task(read(), id)
            if task.id in places:
                raise _Unreadable(f"{noun} {places[task.id]} has the id {task.id!r} already.")
            if tasks and bool(task.split) != bool(tasks[0].split):
                raise _Unreadable("some lines name a split and others do not: name it in all or none.")
        except _Unreadable as error:
            raise ConfigError(f"{place}, {noun} {number}: {error}") from None
        places[task.id] = number
        tasks.append(task)
    if not tasks:
        raise ConfigError(f"{place} holds no questions: write one JSON object a line, with a question and an answer.")
    return TaskSet(tuple(tasks if tasks[0].split else _shared_out(tasks)))


class _Unreadable(Exception):
    """Error of a line."""


def _object(line: bytes) -> dict[str, Any]:
    try:  # numbers stay as they are written, so that answers keep all of their digits
        content = _DECODER.decode(line.decode("utf8"))
        if isinstance(content, dict) and content.get("metadata") is not None:
            content["metadata"] = json.loads(line)["metadata"]
    except RecursionError:
        raise _Unreadable("expected one JSON object, got one that is nested too deep.") from None
    except ValueError as error:
        shown = line.decode("utf8", "replace").strip()[:60]
        raise _Unreadable(f"expected one JSON object, got {shown!r}, which is not JSON ({str(error)[:200]}).") from None
    if not isinstance(content, dict):
        raise _Unreadable(f"expected one JSON object, got {_kind(content)}.")
    return content


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        name = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {name[:60]!r} is given twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_table, parse_int=str, parse_float=str, parse_constant=_no_constant)


def _task(content: Mapping[str, Any], id: str) -> FileTask:
    if not content.keys() <= _FIELDS:
        name = next(name for name in content if name not in _FIELDS)
        raise _Unreadable(f"there is no key {name[:60]!r}. {nearest(name[:60], _FIELDS)} Keep others in metadata.")
    texts = [name for name in _TEXTS if content.get(name) is not None]
    if len(texts) != 1:
        got = " and ".join(texts) or ", ".join(content) or "none"
        raise _Unreadable(f"expected one of question, prompt and instruction, got {got[:100]}.")
    split = content.get("split", "")
    if split not in SPLITS and "split" in content:
        raise _Unreadable(f"split must be one of {', '.join(SPLITS)}, got {str(split)[:60]!r}.")
    id = _text(content["id"], "id") if content.get("id") is not None else id
    if not id or len(id) > _LONGEST_ID:
        raise _Unreadable(f"id must have 1 to {_LONGEST_ID} characters, got {len(id)}.")
    question = _text(content[texts[0]], texts[0])
    if not question.strip():
        raise _Unreadable(f"{texts[0]} is empty.")
    metadata = content.get("metadata") or _EMPTY
    if not isinstance(metadata, dict):
        raise _Unreadable(f"metadata must be an object, got {_kind(metadata)}.")
    return FileTask(id, question, _answers(content.get("answer")), _files(content.get("files")), split, metadata)


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise _Unreadable(f"{name} must be a string, got {_kind(value)}.")
    return valid_text(value)


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", bool: "a truth value", str: "a text or number"}
    return names.get(type(value), "null")


def _answers(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        return (_text(value, "answer"),)
    if not value:
        raise _Unreadable("answer is an empty list: leave it out if there is none.")
    return tuple(_text(each, "each answer") for each in value)


def _files(value: object) -> Mapping[str, str]:
    if value is None:
        return _EMPTY
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
        raise _Unreadable(f"{name[:60]!r} is not a name of a file below the folder of the task.")
    return valid_text(name)


def _shared_out(tasks: Sequence[FileTask]) -> list[FileTask]:
    """Return tasks with splits, which depend on what they ask alone; fewer than three questions belong to all."""
    keys = [_question(task) for task in tasks]
    counts = Counter(keys)
    if len(counts) < len(SPLITS):
        return list(tasks)
    few = max(len(tasks) // _SHARE, 1)
    ordered, place = sorted(counts), 0
    splits: dict[str, Split] = {}
    shares: tuple[tuple[Split, int], ...] = (("test", 2), ("dev", 1))
    for split, left in shares:  # so many questions are left for the other splits
        held = 0
        while held < few and place < len(ordered) - left:
            splits[ordered[place]] = split
            held += counts[ordered[place]]
            place += 1
    return [
        FileTask(each.id, each.instruction, each.answers, each.files, splits.get(key, "train"), each.metadata)
        for each, key in zip(tasks, keys, strict=True)
    ]


def _question(task: FileTask) -> str:
    """Return a hash of what a task asks, whatever its blanks, case and form of Unicode."""
    words = " ".join(unicodedata.normalize("NFKC", task.instruction).casefold().split())
    return instance_hash(canonical_text([words, dict(task.files)]))
