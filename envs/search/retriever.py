"""Finding passages: one protocol, several engines behind it.

retriever = make_retriever(documents)               # tantivy if it is installed, else bm25s, else SQLite
hits = retriever.search(["who wrote it"], top_k=3)  # a list of hits for every query
"""

from __future__ import annotations

import importlib.util
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from typing import ClassVar

from turngym.envs.search.documents import Document, Hit, content_hash
from turngym.errors import ConfigError
from turngym.registry import Registry

MOST_WORDS = 64
"""Words of a query that count; the rest is cut off."""
_WORD = re.compile(r"\w+")
_FILLERS = """a about after also an and are as at be been before being between but by can could did do does during for
from had has have he her his how i if in into is it its may might must no not of on or our shall she should such than
that the their them then there these they this those to was we were what when where which who whom whose why will with
would you your"""
_LEFT_OUT = frozenset(_FILLERS.split())


def query_words(query: str) -> list[str]:
    """Return the words to look for, each once, in lower case: fillers only if there are no others.

    Leaving them out makes a search several times faster, and finds no less.

    >>> query_words("Who wrote The Old Man and the Sea?"), query_words("To be or not to be")
    (['wrote', 'old', 'man', 'sea'], ['to', 'be', 'or', 'not'])
    """
    found = islice(_WORD.finditer(query.lower()), MOST_WORDS)  # a list of all words of a long text stops other threads
    words = list(dict.fromkeys(match[0] for match in found))
    return [word for word in words if word not in _LEFT_OUT] or words


class Retriever(ABC):
    """Finds passages of one corpus; safe to call from several threads."""

    @property
    @abstractmethod
    def version(self) -> str:
        """Name of the corpus by its content."""

    @abstractmethod
    def search(self, queries: Sequence[str], top_k: int) -> list[list[Hit]]:
        """Return the best passages for each query, best first, at most ``top_k``; equal ones in the corpus' order."""


class LocalRetriever(Retriever):
    """An engine in this process.

    Args:
        documents: The corpus.
        argument: The part of the engine's name after the colon.
    """

    argument: ClassVar[str] = ""
    """Suffix allowed after an engine's name, in words; empty for none."""

    def __init__(self, documents: Sequence[Document], argument: str = "") -> None:
        self.documents = tuple(documents)

    @cached_property
    def version(self) -> str:
        """Name of the corpus by its content."""
        return content_hash(self.documents)

    @cached_property
    def by_id(self) -> dict[str, Document]:
        """Id -> document."""
        return {document.id: document for document in self.documents}


RETRIEVERS: Registry[type[LocalRetriever]] = Registry("retriever", "turngym.envs.search.engines", extra="search")
_PREFERRED = (("tantivy", "tantivy"), ("bm25s", "bm25s"))


def default_engine() -> str:
    """Return the best engine that is installed."""
    return next((name for name, package in _PREFERRED if importlib.util.find_spec(package)), "fts5")


def make_retriever(documents: Sequence[Document], engine: str = "auto") -> LocalRetriever:
    """Index a corpus.

    Args:
        documents: The corpus.
        engine: ``"tantivy"``, ``"bm25s"``, ``"fts5"``, or ``"auto"`` for the first of them that is installed;
            ``"dense"`` (MiniLM) or ``"hybrid"`` (both fused), optionally with a local model, as in ``"hybrid:FOLDER"``;
            ``"qdrant:URL"`` for a database of vectors.

    Raises:
        UnknownName: There is no such engine.
        ConfigError: The corpus is empty, or the engine takes nothing after a colon.
        MissingExtra: The engine's package is not installed.

    >>> tea = [Document("1", "Tea", "A drink made of leaves."), Document("2", "Mug", "People drink from it.")]
    >>> make_retriever(tea, "fts5").search(["leaves"], 1)[0][0].document.title
    'Tea'
    """
    if not documents:
        raise ConfigError("a corpus needs at least one document.")
    name, _, argument = (default_engine() if engine == "auto" else engine).partition(":")
    made = RETRIEVERS[name]
    if argument and not made.argument:
        raise ConfigError(f"the engine {name} takes nothing after a colon, got {engine!r}.")
    return made(documents, argument)
