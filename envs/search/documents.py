"""Passages that can be searched for."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from turngym.errors import ConfigError


class Document(NamedTuple):
    """One passage.

    Args:
        id: Its name within the corpus.
        title: What it is about.
        text: What it says.
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


def content_hash(documents: Sequence[Document]) -> str:
    """Return a name for a corpus that changes with every byte of it.

    >>> content_hash([Document("1", "a", "b")]) != content_hash([Document("1", "a", "c")])
    True
    """
    digest = hashlib.sha256()
    for document in documents:
        digest.update(json.dumps(document, ensure_ascii=False).encode("utf8", "surrogatepass"))
    return digest.hexdigest()[:16]


def read_documents(path: Path) -> tuple[Document, ...]:
    """Read a corpus: JSON lines with ``id``, ``title`` and ``text``, or ``id`` and ``contents`` (title, newline, text).

    Raises:
        ConfigError: The file is missing or damaged.
    """
    try:
        with gzip.open(path, "rt", encoding="utf8") if path.suffix == ".gz" else path.open(encoding="utf8") as file:
            return tuple(_document(json.loads(line)) for line in file)
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        raise ConfigError(f"{path} is no corpus in JSON lines ({error!r}): it needs id, title and text.") from error


def _document(raw: dict[str, str]) -> Document:
    if "contents" in raw:
        title, _, text = raw["contents"].partition("\n")
        return Document(str(raw["id"]), title.strip('"'), text)
    return Document(str(raw["id"]), raw["title"], raw["text"])
