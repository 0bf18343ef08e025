"""Tasks: a request over a schema, with the solution for each meaning that it may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from turngym.envs.instances import canonical_text
from turngym.envs.sql.conditions import AMBIGUOUS, Condition, drawn, on_event
from turngym.envs.sql.contents import Bound
from turngym.envs.sql.domains import DOMAINS, EVENT
from turngym.envs.sql.drafts import Case, Draft, Family, Numbers
from turngym.envs.sql.questions import QUESTIONS
from turngym.envs.sql.schema import VARIANTS, Schema, schema_of
from turngym.envs.sql.updates import UPDATES
from turngym.envs.website.draw import Dice
from turngym.seeding import restart

_AMBIGUOUS_SHARE = {1: 0.0, 2: 0.3, 3: 0.6}
_CONDITIONS = {1: (1, 1), 2: (2, 2), 3: (2, 3)}


@dataclass(frozen=True)
class Task:
    """A task.

    Args:
        number: Everything else follows from it.
        schema: The schema.
        request: What is wanted.
        solutions: The query or statement for each meaning of the request.
        is_update: Whether the database is to be changed.
        is_ordered: Whether the order of the rows of an answer counts.
        term: Word of the request with several meanings; empty for none.
        meanings: Words for each meaning.
        named: Texts that every database has, by keys of columns.
        bounds: Bounds that the request, or a meaning of it, names.
    """

    number: int
    schema: Schema
    request: str
    solutions: tuple[str, ...]
    is_update: bool
    is_ordered: bool
    term: str
    meanings: tuple[str, ...]
    named: Mapping[str, tuple[str, ...]]
    bounds: tuple[Bound, ...]

    @property
    def text(self) -> str:
        """The canonical text: schema, request and solutions."""
        return canonical_text([*self.schema.key, self.request, *self.solutions, *self.meanings])


class Maker:
    """Makes tasks.

    Args:
        level: Difficulty from 1 to 3.
        updates: Share of updates.
    """

    def __init__(self, level: int, updates: float) -> None:
        self._level, self._updates = level, updates
        self._families = [[each for each in kind if each.least <= level <= each.most] for kind in (UPDATES, QUESTIONS)]
        self._generator = np.random.default_rng(0)  # set to the start of a stream for every number

    def task(self, number: int) -> Task:
        """Return the task of a number."""
        dice, level = Dice(restart(self._generator, "sql", self._level, number)), self._level
        schema = schema_of(dice.whole(0, len(DOMAINS) - 1), dice.whole(0, VARIANTS - 1), level)
        family = dice.one(self._families[dice.share() >= self._updates])
        numbers = Numbers(dice.whole(2, 4), dice.share(), dice.share())
        term = dice.one(tuple(AMBIGUOUS)) if dice.share() < _AMBIGUOUS_SHARE[level] and family.role == EVENT else ""
        meanings = AMBIGUOUS[term].meanings(schema, dice) if term else ()
        fewest, most = _CONDITIONS[level]
        count = max(dice.whole(fewest, most), family.fewest) - bool(term)
        without = (*family.without, *(AMBIGUOUS[term].without if term else ()))
        conditions = drawn(schema, dice, family.role, count, without)
        return _task(number, schema, family, numbers, term, meanings, conditions)


def _task(
    number: int,
    schema: Schema,
    family: Family,
    numbers: Numbers,
    term: str,
    meanings: Sequence[Condition],
    conditions: Sequence[Condition],
) -> Task:
    drafts: list[Draft] = []
    plain = [on_event(schema, each) if family.role == EVENT else each.words for each in conditions]
    for meaning in meanings or (None,):
        chosen = [*([meaning] if meaning else []), *conditions]
        words = [*([f"counting as {term}"] if meaning else []), *plain]
        drafts.append(family.make(Case(schema, chosen, words, numbers)))
    named: dict[str, tuple[str, ...]] = {}
    pairs = [each.named for each in (*meanings, *conditions) if each.named]
    for key, text in (*pairs, *drafts[0].named):
        named[key] = (*named.get(key, ()), text)
    request, _, is_ordered, _ = drafts[0]
    shown = tuple(on_event(schema, each) for each in meanings)
    solutions = tuple(each.sql for each in drafts)
    bounds = tuple(each.bound for each in (*meanings, *conditions) if each.bound)
    return Task(number, schema, request, solutions, family.is_update, is_ordered, term, shown, named, bounds)
