"""Columns: named numbers and texts about a turn, passed by an environment, an agent or a method to the credit.

An environment sets them in ``info["columns"]`` of the step that ends the turn. A name starting with ``reward/`` is a
component of the turn's reward, which may also be given in ``info["reward_components"]``. A name starting with
``outcome/`` is a number about the episode so far: evaluations report the mean of its last-turn values.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any, TypeAlias

from turngym.arithmetic import as_float
from turngym.errors import NotFinite
from turngym.storage.bounded import LARGEST
from turngym.text import valid_text

Value: TypeAlias = float | str

REWARD = "reward/"
"""The names of parts of the reward start with this."""
OUTCOME = "outcome/"
"""The names of outcomes of the episode start with this."""
_MOST_COLUMNS = 64
"""Columns that an environment may give for one turn."""
LONGEST_NAME = 100
"""Characters of the name of a column."""
LONGEST_TEXT = 100_000
"""Characters of all texts of one turn's columns together."""


def valid_columns(columns: Any) -> dict[str, Value]:
    """Return the columns of an environment as plain floats and texts.

    Raises:
        TypeError: They are not a mapping from names to finite numbers and texts, or are too many or too long.
        NotFinite: A component of the reward is not finite.

    >>> valid_columns({"distance": 3, "room": "kitchen"})
    {'distance': 3.0, 'room': 'kitchen'}
    """
    if not isinstance(columns, Mapping):
        raise TypeError(f"info['columns'] must be a dict from names to numbers and texts, got {type(columns).__name__}")
    if len(columns) > _MOST_COLUMNS:
        raise TypeError(f"info['columns'] may have {_MOST_COLUMNS} names, got {len(columns)}")
    found = dict(_valid_items(columns))
    length = sum(len(value) for value in found.values() if isinstance(value, str))
    if length > LONGEST_TEXT:
        raise TypeError(f"the texts of info['columns'] may have {LONGEST_TEXT:,} characters together, got {length:,}")
    return found


def _valid_items(columns: Mapping[Any, Any]) -> Iterator[tuple[str, Value]]:
    for name, value in columns.items():
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
            raise TypeError(f"a name in info['columns'] must be a string of 1 to {LONGEST_NAME} characters")
        if isinstance(value, str) and not name.startswith((REWARD, OUTCOME)):
            yield valid_text(name), valid_text(value)
            continue
        if type(value) is not float and not isinstance(value, Real):  # the second takes ten times as long
            raise TypeError(f"info['columns'][{name!r}] must be {_kind(name)}, got {type(value).__name__}")
        number = as_float(value)
        if not math.isfinite(number):
            if name.startswith(REWARD):
                raise NotFinite(f"the reward part {name.removeprefix(REWARD)!r} of {number}")
            raise TypeError(f"info['columns'][{name!r}] must be a finite number or a text, got {number}")
        if name.startswith(OUTCOME) and not abs(number) < LARGEST:  # means of larger ones may be infinite
            raise TypeError(f"info['columns'][{name!r}] must be less than {LARGEST:g} in size, got {number}")
        yield valid_text(name), number


def _kind(name: str) -> str:
    return "a number" if name.startswith((REWARD, OUTCOME)) else "a number or a text"


def outcomes_of(columns: Mapping[str, Any]) -> dict[str, float]:
    """Return the outcomes among the columns of a turn, by name without prefix.

    >>> outcomes_of({"outcome/injected": 1.0, "distance": 3.0})
    {'injected': 1.0}
    """
    found = ((name.removeprefix(OUTCOME), value) for name, value in columns.items() if name.startswith(OUTCOME))
    return {name: value for name, value in found if isinstance(value, float)}


def columns_of(info: Mapping[str, Any]) -> dict[str, Value]:
    """Return the columns in an info table, including reward components.

    >>> columns_of({"reward_components": {"cost": -0.1}, "columns": {"distance": 3}})
    {'reward/cost': -0.1, 'distance': 3}
    """
    parts = info.get("reward_components")
    found = as_columns(parts) if parts else {}
    return {**found, **info["columns"]} if "columns" in info else found


def as_columns(parts: Mapping[str, float]) -> dict[str, Value]:
    """Return reward components as columns.

    >>> as_columns({"goal": 1.0})
    {'reward/goal': 1.0}
    """
    return {REWARD + name: part for name, part in parts.items()}


def reward_parts(columns: Mapping[str, Any]) -> dict[str, float]:
    """Return the reward components among columns, by name without prefix.

    >>> reward_parts({"reward/goal": 1.0, "room": "kitchen"})
    {'goal': 1.0}
    """
    if not columns:
        return {}
    return {name.removeprefix(REWARD): value for name, value in columns.items() if name.startswith(REWARD)}
