"""Reads what the caller passes to a vector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from turngym.errors import ConfigError, nearest


def read_seeds(seed: int | Sequence[int | None] | None, num_slots: int) -> Sequence[int | None]:
    """Return one seed per slot.

    >>> read_seeds(5, 3), read_seeds([7, 7], 2)
    ([5, 6, 7], [7, 7])
    """
    if seed is None:
        return [None] * num_slots
    if isinstance(seed, int | np.integer):
        return [int(seed) + slot for slot in range(num_slots)]
    seeds = [None if each is None else int(each) for each in seed]
    if len(seeds) != num_slots:
        raise ConfigError(f"reset() needs {num_slots} seeds, one per slot, got {len(seeds)}. Pass an int to count up.")
    return seeds


def read_mask(options: dict[str, Any] | None, num_slots: int) -> np.ndarray[Any, Any] | None:
    """Return which slots to reset, None for all.

    Raises:
        TypeError: The mask is not an array of bool.
        ValueError: The mask has another shape, or chooses nothing.
    """
    if not options or "reset_mask" not in options:
        return None
    mask = options["reset_mask"]
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        raise TypeError(f'options["reset_mask"] must be a NumPy array of bool, got {mask!r}.')
    if mask.shape != (num_slots,) or not mask.any():
        raise ValueError(f'options["reset_mask"] must have shape ({num_slots},) and choose a slot, got {mask!r}.')
    return mask


def slot_options(options: dict[str, Any] | None, num_slots: int) -> list[dict[str, Any] | None]:
    """Return the options of each slot: what is common, and what ``"slot_options"`` holds for it.

    >>> slot_options({"task": 1, "slot_options": [None, {"task": 2}]}, 2)
    [{'task': 1}, {'task': 2}]
    """
    if not options:
        return [options] * num_slots
    common = {key: value for key, value in options.items() if key not in ("reset_mask", "slot_options")}
    own = options.get("slot_options") or [None] * num_slots
    if len(own) != num_slots:
        raise ConfigError(f'options["slot_options"] needs {num_slots} entries, one per slot, got {len(own)}.')
    return [{**common, **(each or {})} for each in own]


def read_own(kind: type[Any], given: Mapping[str, Any]) -> Any:
    """Return the options that only one backend knows, as its dataclass.

    Raises:
        ConfigError: There is no such option.
    """
    known = [field.name for field in fields(kind)]
    for name in given:
        if not known:
            raise ConfigError(f"this backend has no options of its own, got backend_options={dict(given)!r}.")
        if name not in known:
            raise ConfigError(f"backend_options has an unknown key {name!r}. {nearest(name, known)}")
    return kind(**given)


def require_count(name: str, value: int) -> None:
    """Raise unless the value is a whole number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise ConfigError(f"{name} must be a whole number of at least 0, got {value!r}.")


def require_positive(name: str, value: float | None, *, is_whole: bool) -> None:
    """Raise unless the value is None or a number greater than 0, finite and whole where that is asked for."""
    if value is None:
        return
    kinds = int | np.integer if is_whole else int | float | np.integer | np.floating
    if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < float("inf"):
        kind = "a whole number" if is_whole else "a number"
        raise ConfigError(f"{name} must be {kind} greater than 0, got {value!r}. Leave it out for the default.")
