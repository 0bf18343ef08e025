"""Questions and passages from files.

A folder holds a set as JSON lines: ``NAME.train.jsonl``, ``NAME.dev.jsonl``, ``NAME.test.jsonl``, gzipped or not. Each
line has ``id``, ``question`` and ``answers``; where known ``supporting_ids`` (passages that hold the answer),
``decomposition`` (sub-questions, ``#1`` standing for the first answer), else ``evidence_triples`` or
``supporting_titles``, and ``choices`` with ``answer_letter``.
Passages are in ``corpus_NAME.jsonl`` in the same folder; an option selects the corpus.

A name with the prefix ``hf:`` is a data set for Hugging Face's ``datasets`` (:mod:`.hub`), with the same columns.
Answers may also stand in ``golden_answers`` or ``answer``: a text, a list, SQuAD's or TriviaQA's form.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from turngym.envs.data_files import data_file, read_lines
from turngym.envs.hub import PREFIX, read_rows
from turngym.envs.search.documents import Document, document_of, read_documents
from turngym.envs.search.questions import Question
from turngym.envs.search.retriever import LocalRetriever, make_retriever
from turngym.errors import ConfigError, nearest


@lru_cache(maxsize=16)
def read_set(folder: str, name: str, split: str) -> tuple[Question, ...]:
    """Return the questions of a set.

    Raises:
        ConfigError: It is not there, or damaged.
        MissingExtra: It is one for the package ``datasets``, which is not installed.
    """
    if name.startswith(PREFIX):
        return _questions(read_rows(name, split), name)
    path = data_file(folder, name, split)
    return _questions(read_lines(path), str(path))


def _questions(rows: Iterable[Mapping[str, Any]], place: str) -> tuple[Question, ...]:
    try:
        found = tuple(map(_question, rows))
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{place} has no questions ({error!r}): they need id, question, answers.") from error
    if not found:
        raise ConfigError(f"{place} has no questions: it is empty.")
    return found


def _answers(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the accepted answers, in any of the usual forms."""
    known = [raw[key] for key in ("answers", "golden_answers", "answer") if raw.get(key) is not None]
    if not known:
        raise KeyError("answers")
    found = known[0]
    if isinstance(found, Mapping):
        found = found["text"] if "text" in found else [found["value"], *found["aliases"]]
    return (found,) if isinstance(found, str) else tuple(map(str, found))


def _question(raw: Mapping[str, Any]) -> Question:
    choices = _choices(raw.get("choices")) if raw.get("answer_letter") else ()
    return Question(
        text=str(raw["question"]),
        answers=(str(raw["answer_letter"]),) if choices else _answers(raw),
        kind=str(raw.get("type") or raw.get("set") or ""),
        gold=tuple(raw.get("supporting_ids") or ()),
        queries=_filled(raw["decomposition"]) if raw.get("decomposition") else _looked_up(raw),
        choices=choices,
    )


def _choices(raw: Any) -> tuple[str, ...]:
    """Return the options in the order of their letters."""
    if isinstance(raw, Mapping):
        return tuple(str(raw[letter]) for letter in string.ascii_uppercase if letter in raw)
    return tuple(map(str, raw or ()))


def _looked_up(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """Return search queries where no sub-questions are known: entities with relations, or titles."""
    triples = [f"{thing} {relation}" for thing, relation, _ in raw.get("evidence_triples") or ()]
    return tuple(dict.fromkeys(triples or map(str, raw.get("supporting_titles") or ())))


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
def _read_corpus(folder: str, name: str) -> tuple[Document, ...]:
    """Return the passages of a corpus.

    Raises:
        ConfigError: It is not there, or damaged.
        MissingExtra: It is one for the package ``datasets``, which is not installed.
    """
    if not name.startswith(PREFIX):
        return read_documents(_corpus_file(Path(folder).expanduser(), name))
    try:
        return tuple(map(document_of, read_rows(name, "train")))
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{name} is not a corpus ({error!r}): it needs id, title and text.") from error


@lru_cache(maxsize=2)
def by_id(folder: str, name: str) -> Mapping[str, Document]:
    """Return the passages of a corpus by their ids.

    Raises:
        ConfigError: It is not there, or damaged.
    """
    return {document.id: document for document in _read_corpus(folder, name)}


@lru_cache(maxsize=2)
def open_corpus(folder: str, name: str, engine: str) -> LocalRetriever:
    """Return a corpus with its index, made once in a process.

    Raises:
        ConfigError: It is not there, or damaged.
    """
    return make_retriever(_read_corpus(folder, name), engine)


def _corpus_file(folder: Path, name: str) -> Path:
    """Return the file of a corpus.

    Raises:
        ConfigError: It is not there.
    """
    for ending in ("", ".gz"):
        if (path := folder / f"corpus_{name}.jsonl{ending}").is_file():
            return path
    known = sorted(path.name.split(".")[0].removeprefix("corpus_") for path in folder.glob("corpus_*.jsonl*"))
    raise ConfigError(f"{str(folder)!r} has no corpus {name!r}. {nearest(name, known)}")
