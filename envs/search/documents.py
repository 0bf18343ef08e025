"""Passages that can be searched for."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from turngym.errors import ConfigError


class Document(NamedTuple):
    """One passage.

    Args:
        id: Its name within the corpus.
        title: What it is about.
        text: Its text.
    """

    id: str
    title: str
    text: str

    @property
    def contents(self) -> str:
        """Title and text as one piece, as search servers exchange it."""
        return f"{self.title}\n{self.text}"


class Hit(NamedTuple):
    """A passage that was found, with its score."""

    document: Document
    score: float


class ContentHash:
    """A name for a corpus that changes with every byte of it, worked out passage by passage."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, document: Document) -> None:
        """Take in the next passage."""
        self._digest.update(json.dumps(document, ensure_ascii=False).encode("utf8", "surrogatepass"))

    def name(self) -> str:
        """Return the name."""
        return self._digest.hexdigest()[:16]


def content_hash(documents: Sequence[Document]) -> str:
    """Return a name for a corpus that changes with every byte of it.

    >>> content_hash([Document("1", "a", "b")]) != content_hash([Document("1", "a", "c")])
    True
    """
    digest = ContentHash()
    for document in documents:
        digest.add(document)
    return digest.name()


def read_documents(path: Path) -> tuple[Document, ...]:
    """Read a corpus: JSON lines with ``id``, ``title`` and ``text``, or ``id`` and ``contents`` (title, newline, text).

    Raises:
        ConfigError: The file is missing or damaged.
    """
    return tuple(_stream_documents(path))


def _stream_documents(path: Path) -> Iterator[Document]:
    """Yield the passages of a corpus that need not fit into memory, in the forms of :func:`read_documents`.

    Raises:
        ConfigError: The file is missing or damaged.
    """
    try:
        with gzip.open(path, "rt", encoding="utf8") if path.suffix == ".gz" else path.open(encoding="utf8") as file:
            yield from (document_of(json.loads(line)) for line in file)
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        raise ConfigError(f"{path} is not a corpus in JSON lines ({error!r}): it needs id, title and text.") from error


def document_of(raw: Mapping[str, Any]) -> Document:
    """Return the passage of a line or row: ``id``, ``title`` and ``text``, or ``id`` and ``contents``."""
    if "contents" in raw:
        title, _, text = raw["contents"].partition("\n")
        return Document(str(raw["id"]), title.strip('"'), text)
    return Document(str(raw["id"]), raw["title"], raw["text"])
