"""Questions about a generated world: chains of facts, comparisons, and which of several came first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from string import ascii_uppercase
from typing import Any

import numpy as np

from turngym.envs.search.world import Thing, World
from turngym.envs.search.world_words import COMPARISONS, RELATIONS, TEMPORAL

KINDS = ("1 hop", "2 hops", "3 hops", "4 hops", "comparison", "temporal")
_STARTS = ("work", "event", "person", "university")


@dataclass(frozen=True)
class Question:
    """A question with its answer and the way to it.

    Args:
        text: The question.
        answers: Accepted answers.
        kind: One of ``KINDS``, or what a data set calls it.
        gold: Ids of the documents that together hold the answer, in the order in which one leads to the next.
        queries: Searches that find them, one after the other.
        choices: The options of a multiple-choice question; ``answers`` then holds the letter.
    """

    text: str
    answers: tuple[str, ...]
    kind: str = ""
    gold: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the fields as a value that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Question:
        """Return the question of :meth:`as_json`.

        Raises:
            TypeError: A part is not text.
            ValueError: There are more choices than letters for them.
        """
        texts = {key: tuple(content[key]) for key in ("answers", "gold", "queries", "choices")}
        given = [content["text"], content["kind"], *(text for group in texts.values() for text in group)]
        if not all(isinstance(text, str) for text in given):
            raise TypeError("a question consists of texts")
        if len(texts["choices"]) > len(ascii_uppercase):
            raise ValueError(f"a question has at most {len(ascii_uppercase)} choices, got {len(texts['choices'])}")
        return cls(text=content["text"], kind=content["kind"], **texts)


def draw_question(world: World, kind: str, generator: np.random.Generator) -> Question:
    """Return a question of a kind.

    >>> from turngym.envs.search.world import make_world
    >>> draw_question(make_world(200, 0), "1 hop", np.random.default_rng(0)).kind
    '1 hop'
    """
    makers: dict[str, Callable[[], Question | None]] = {
        "comparison": lambda: _comparison(world, generator),
        "temporal": lambda: _temporal(world, generator),
    }
    make = makers.get(kind) or (lambda: _chain(world, int(kind.split()[0]), generator))
    while True:
        if (found := make()) is not None:
            return found


def _pick(generator: np.random.Generator, choices: tuple[Any, ...] | list[Any]) -> Any:
    return choices[int(generator.integers(len(choices)))]


def _from(world: World, text: str, answer: str, kind: str, things: list[str]) -> Question:
    gold = tuple(dict.fromkeys(things))
    ids = tuple(world.document(name).id for name in gold)
    return Question(text[0].upper() + text[1:], (answer,), kind, ids, gold)


def _chain(world: World, hops: int, generator: np.random.Generator) -> Question | None:
    thing = _pick(generator, world.of_kind(_pick(generator, _STARTS)))
    phrase, visited = thing.name, [thing.name]
    for _ in range(hops - 1):
        leads = [name for name, fact in thing.facts.items() if RELATIONS[name].phrase and fact not in visited]
        if not leads:
            return None
        relation = _pick(generator, leads)
        phrase = RELATIONS[relation].phrase.format(s=phrase)
        thing = world.things[thing.facts[relation]]
        visited.append(thing.name)
    asked = [name for name, fact in thing.facts.items() if fact not in visited]
    if not asked:
        return None
    relation = _pick(generator, asked)
    answer, kind = thing.facts[relation], "1 hop" if hops == 1 else f"{hops} hops"
    return _from(world, RELATIONS[relation].question.format(s=phrase), answer, kind, visited)


def _comparison(world: World, generator: np.random.Generator) -> Question | None:
    relation = _pick(generator, tuple(COMPARISONS))
    first, second = (_pick(generator, world.of_kind(RELATIONS[relation].of)) for _ in range(2))
    if first is second or first.facts[relation] == second.facts[relation]:
        return None
    later = int(generator.integers(2))
    ordered = sorted((first, second), key=lambda thing: int(thing.facts[relation]))
    text = COMPARISONS[relation][later].format(a=first.name, b=second.name)
    return _from(world, text, ordered[later].name, "comparison", [first.name, second.name])


def _temporal(world: World, generator: np.random.Generator) -> Question | None:
    person = _pick(generator, world.of_kind("person"))
    works: list[Thing] = [world.things[name] for name in person.works]
    years = {work.facts["release year"] for work in works}
    if not 2 <= len(works) <= 4 or len(years) < len(works):
        return None
    last = int(generator.integers(2))
    ordered = sorted(works, key=lambda work: int(work.facts["release year"]))
    answer = ordered[-1 if last else 0].name
    return _from(world, TEMPORAL[last].format(s=person.name), answer, "temporal", [person.name, *person.works])
