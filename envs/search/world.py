"""A generated world of people, places, works and events, described in documents: it cannot be known in advance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from turngym.envs.search import world_words as words
from turngym.envs.search.documents import Document
from turngym.envs.search.retriever import LocalRetriever, make_retriever
from turngym.seeding import stream

SHARES = {"person": 0.36, "city": 0.12, "country": 0.03, "work": 0.3, "university": 0.07, "event": 0.12}
"""Share of each kind among the things of a world."""
_CREATORS = "creators"
"""A third of the people has created all works, so that many have created several."""
_YEARS = {
    "birth year": (1700, 1990),
    "founding year": (900, 1690),
    "release year": (1750, 2010),
    "event year": (1750, 2010),
}


@dataclass
class Thing:
    """Somebody or something that a document is about.

    Args:
        kind: Kind: ``"person"``, ``"city"`` and so on.
        name: Its name; no two things share one.
        facts: Name of the relation -> name of a thing, or a value.
        works: Names of the works of a person.
    """

    kind: str
    name: str
    facts: dict[str, str] = field(default_factory=dict)
    works: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class World:
    """Things by name, and the documents with their facts, one for each thing.

    Args:
        seed: Which world.
        things: Name -> thing.
        documents: In the order of the things.
    """

    seed: int
    things: Mapping[str, Thing]
    documents: tuple[Document, ...]

    def of_kind(self, kind: str) -> tuple[Thing, ...]:
        """Return the things of a kind."""
        return self._groups.get(kind, ())

    @cached_property
    def _groups(self) -> Mapping[str, tuple[Thing, ...]]:
        things = self.things.values()
        return {kind: tuple(thing for thing in things if thing.kind == kind) for kind in SHARES}

    def document(self, name: str) -> Document:
        """Return the document about a thing."""
        return self.documents[self._places[name]]

    @cached_property
    def by_id(self) -> Mapping[str, Document]:
        """Id -> document."""
        return {document.id: document for document in self.documents}

    @property
    def _places(self) -> Mapping[str, int]:
        return _places(self.seed, len(self.documents))


@lru_cache(maxsize=8)
def _places(seed: int, size: int) -> Mapping[str, int]:
    return {name: place for place, name in enumerate(make_world(size, seed).things)}


@lru_cache(maxsize=8)
def make_world(size: int, seed: int) -> World:
    """Return a world, cached per process.

    Args:
        size: Number of things, and so of documents.
        seed: Which world.

    >>> world = make_world(200, 0)
    >>> len(world.documents) == len(world.things) == 200
    True
    """
    generator = stream("search world", size, seed)
    things = _things(generator, size)
    groups = {kind: [thing for thing in things.values() if thing.kind == kind] for kind in SHARES}
    people = groups["person"]
    groups[_CREATORS] = people[: max(1, len(people) // 3)]
    _marry(generator, people)
    for thing in things.values():
        _give_facts(generator, thing, groups)
    for work in (thing for thing in things.values() if thing.kind == "work"):
        things[work.facts["creator"]].works.append(work.name)
    documents = tuple(
        Document(f"d{number}", thing.name, _tell(generator, thing)) for number, thing in enumerate(things.values())
    )
    return World(seed, things, documents)


def _things(generator: np.random.Generator, size: int) -> dict[str, Thing]:
    counts = {kind: max(2, round(share * size)) for kind, share in SHARES.items()}
    counts["person"] += size - sum(counts.values())
    found: dict[str, Thing] = {}
    for kind, count in counts.items():
        while count:
            name = _name(generator, kind)
            if name not in found:
                found[name] = Thing(kind, name)
                count -= 1
    return found


def _name(generator: np.random.Generator, kind: str) -> str:
    def one(choices: tuple[str, ...]) -> str:
        return choices[int(generator.integers(len(choices)))]

    stem = one(words.FIRST) + one(words.MIDDLE)
    if kind == "person":
        return f"{stem}{one(words.LAST)} {one(words.FIRST)}{one(words.MIDDLE)}{one(words.LAST)}"
    if kind == "city":
        return stem + one(words.MIDDLE) + one(words.PLACE)
    if kind == "country":
        return stem + one(words.MIDDLE) + one(words.LAND)
    if kind == "university":
        return f"{stem}{one(words.LAST)} University"
    if kind == "work":
        return f"The {one(words.WORK_FIRST)} {one(words.WORK_SECOND)} of {stem}{one(words.LAST)}"
    return f"the {stem}{one(words.LAST)} {one(words.EVENT)}"


def _marry(generator: np.random.Generator, people: list[Thing]) -> None:
    """Make couples of half of the people."""
    order = generator.permutation(len(people))[: len(people) // 4 * 2].tolist()
    for first, second in zip(order[::2], order[1::2], strict=True):
        people[first].facts["spouse"] = people[second].name
        people[second].facts["spouse"] = people[first].name


def _give_facts(generator: np.random.Generator, thing: Thing, groups: Mapping[str, list[Thing]]) -> None:
    for name, relation in words.RELATIONS.items():
        if relation.of != thing.kind or name == "spouse":
            continue
        if relation.to == words.YEAR:
            thing.facts[name] = str(int(generator.integers(*_YEARS[name])))
        elif relation.to in words.VALUES:
            values = words.VALUES[relation.to]
            thing.facts[name] = values[int(generator.integers(len(values)))]
        else:
            others = groups[_CREATORS if name == "creator" else relation.to]
            thing.facts[name] = others[int(generator.integers(len(others)))].name


def _tell(generator: np.random.Generator, thing: Thing) -> str:
    """Return the text of a document: one sentence per fact, with random wording and order."""
    sentences = []
    for name, fact in thing.facts.items():
        choices = words.RELATIONS[name].sentences
        sentences.append(choices[int(generator.integers(len(choices)))].format(s=thing.name, o=fact))
    if thing.works:
        sentence = words.WORKS[int(generator.integers(len(words.WORKS)))]
        sentences.append(sentence.format(s=thing.name, o=" and ".join(thing.works)))
    text = " ".join(sentences[place] for place in generator.permutation(len(sentences)).tolist())
    return text[0].upper() + text[1:]


@lru_cache(maxsize=8)
def world_retriever(size: int, seed: int, engine: str) -> LocalRetriever:
    """Return what searches the documents of a world."""
    return make_retriever(make_world(size, seed).documents, engine)
