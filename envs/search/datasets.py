"""Questions from a folder of JSON lines: ``NAME.train.jsonl``, ``NAME.dev.jsonl``, ``NAME.test.jsonl``, gzipped or not.

Each line has ``id``, ``question`` and ``answers``; where known ``supporting_ids`` (passages that hold the answer),
``decomposition`` (sub-questions, ``#1`` standing for the first answer) and ``choices`` with ``answer_letter``.
Passages lie beside them in ``corpus_NAME.jsonl``; which of them a set searches is an option.
"""

from __future__ import annotations

import gzip
import json
import string
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from turngym.envs.search.documents import Document, read_documents
from turngym.envs.search.questions import Question
from turngym.envs.search.retriever import LocalRetriever, make_retriever
from turngym.errors import ConfigError, nearest


def questions_file(folder: Path, name: str, split: str) -> Path:
    """Return the file of a set and split.

    Raises:
        ConfigError: It is not there.
    """
    for ending in ("", ".gz"):
        if (path := folder / f"{name}.{split}.jsonl{ending}").is_file():
            return path
    known = sorted({path.name.split(".")[0] for path in folder.glob(f"*.{split}.jsonl*")})
    raise ConfigError(f"{str(folder)!r} has no set {name!r} with the split {split!r}. {nearest(name, known)}")


@lru_cache(maxsize=16)
def read_questions(path: Path) -> tuple[Question, ...]:
    """Return the questions of a file.

    Raises:
        ConfigError: The file is damaged.
    """
    try:
        with gzip.open(path, "rt", encoding="utf8") if path.suffix == ".gz" else path.open(encoding="utf8") as file:
            return tuple(_question(json.loads(line)) for line in file)
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        raise ConfigError(f"{path} has no questions in JSON lines ({error!r}): id, question, answers.") from error


def _question(raw: Mapping[str, Any]) -> Question:
    steps = raw.get("decomposition") or ()
    choices = _choices(raw.get("choices")) if "answer_letter" in raw else ()
    return Question(
        text=str(raw["question"]),
        answers=(str(raw["answer_letter"]),) if choices else tuple(map(str, raw["answers"])),
        kind=str(raw.get("type") or raw.get("set") or ""),
        gold=tuple(raw.get("supporting_ids") or ()),
        queries=_filled(steps),
        choices=choices,
    )


def _choices(raw: Any) -> tuple[str, ...]:
    """Return the options in the order of their letters."""
    if isinstance(raw, Mapping):
        return tuple(str(raw[letter]) for letter in string.ascii_uppercase if letter in raw)
    return tuple(map(str, raw or ()))


def _filled(steps: Sequence[Any]) -> tuple[str, ...]:
    """Return the sub-questions with the earlier answers filled in."""
    asked: list[str] = []
    for step in steps:
        text = str(step["question"] if isinstance(step, Mapping) else step)
        for number in range(len(asked), 0, -1):
            earlier = steps[number - 1]
            if isinstance(earlier, Mapping) and earlier.get("answer"):
                text = text.replace(f"#{number}", str(earlier["answer"]))
        asked.append(text.replace(" >> ", " "))
    return tuple(asked)


@lru_cache(maxsize=2)
def by_id(path: Path) -> Mapping[str, Document]:
    """Return the passages of a corpus by their ids.

    Raises:
        ConfigError: The file is missing or damaged.
    """
    return {document.id: document for document in read_documents(path)}


@lru_cache(maxsize=2)
def open_corpus(path: Path, engine: str) -> LocalRetriever:
    """Return a corpus with its index, made once in a process.

    Raises:
        ConfigError: The file is missing or damaged.
    """
    return make_retriever(read_documents(path), engine)


def corpus_file(folder: Path, name: str) -> Path:
    """Return the file of a corpus.

    Raises:
        ConfigError: It is not there.
    """
    for ending in ("", ".gz"):
        if (path := folder / f"corpus_{name}.jsonl{ending}").is_file():
            return path
    known = sorted(path.name.split(".")[0].removeprefix("corpus_") for path in folder.glob("corpus_*.jsonl*"))
    raise ConfigError(f"{str(folder)!r} has no corpus {name!r}. {nearest(name, known)}")
