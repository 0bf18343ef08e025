"""Lazily built info columns, and the info of a slot with a fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from turngym.types import Info


def fault_info(fault: str, *, running: bool) -> dict[str, Any]:
    """Return the info table of a slot with a fault.

    Args:
        fault: Description of the fault.
        running: True for the info of a reset that failed, whose episode ends at the next step.

    >>> fault_info("timeout: step took longer than 2 s", running=False)["success"]
    0
    """
    info = Info(
        anchor="",
        legal_actions=(),
        action_is_valid=True,
        success=-1 if running else 0,
        progress=float("nan"),
        score=0.0,
        fault=fault,
    )
    return {**info}


def columns(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the infos of several slots as columns, in the order and with the types of Gymnasium's own vectors.

    The type of a column is that of its first value; missing values are 0 or None. An info that
    is a dict becomes a dict of columns.

    >>> columns([{}, {"score": 1.5}])
    {'score': array([0. , 1.5]), '_score': array([False,  True])}
    """
    found: dict[str, Any] = {}
    for key in dict.fromkeys(chain.from_iterable(rows)):
        try:
            values, present = [row[key] for row in rows], None
        except KeyError:
            present = [slot for slot, row in enumerate(rows) if key in row]
            values = [rows[slot][key] for slot in present]
        found[key] = _column(key, values, present, len(rows))
        mask = np.full(len(rows), present is None)
        if present is not None:
            mask[present] = True
        found[f"_{key}"] = mask
    return found


def _column(key: str, values: list[Any], present: list[int] | None, num_rows: int) -> Any:
    """Return one column; ``values`` are those of the rows ``present``, None for all rows."""
    first = values[0]
    kind = type(first)
    if key == "final_obs":
        kind = object
    elif isinstance(first, dict):
        nested: list[dict[str, Any]] = [{} for _ in range(num_rows)]
        for slot, value in zip(range(num_rows) if present is None else present, values, strict=True):
            nested[slot] = value
        return columns(nested)
    if kind in (int, float, bool) or issubclass(kind, np.number):
        if present is None:
            return np.array(values, dtype=kind)
        column = np.zeros(num_rows, dtype=kind)
    elif issubclass(kind, np.ndarray) and kind is not object:
        column = np.zeros((num_rows, *first.shape), dtype=first.dtype)
    elif present is None:
        return np.fromiter(values, dtype=object, count=num_rows)
    else:
        column = np.full(num_rows, None, dtype=object)
    for slot, value in zip(range(num_rows) if present is None else present, values, strict=True):
        column[slot] = value
    return column


def _after_building(name: str) -> Callable[..., Any]:
    """Return the method ``name`` of dict, with the columns built first."""
    method = getattr(dict, name)

    def call(self: Infos, *args: Any, **kwargs: Any) -> Any:
        self.build()
        return method(self, *args, **kwargs)

    call.__name__ = name
    call.__doc__ = method.__doc__
    return call


class Infos(dict[str, Any]):
    """The infos of several slots: a dict of columns, as Gymnasium's vectors return them, built on first access.

    Column ``key`` holds one value per slot and ``_key`` says which slots have one. ``rows`` costs nothing.

    >>> infos = Infos([{"score": 1.0}, {}])
    >>> infos["score"], infos["_score"]
    (array([1., 0.]), array([ True, False]))
    >>> infos.rows
    [{'score': 1.0}, {}]
    """

    __slots__ = ("_built", "rows")

    rows: list[dict[str, Any]]
    """The info of each slot, in the order of the returned observations; empty for a slot that was not touched."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        super().__init__()
        self.rows = rows
        self._built = False

    def build(self) -> None:
        """Build the columns, once."""
        if not self._built:
            self._built = True
            super().update(columns(self.rows))

    def __iter__(self) -> Iterator[str]:  # defined, so that dict(infos) does not bypass the columns
        self.build()
        return super().__iter__()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.rows, dict(self) if self._built else None)

    __getitem__ = _after_building("__getitem__")
    __setitem__ = _after_building("__setitem__")
    __delitem__ = _after_building("__delitem__")
    __contains__ = _after_building("__contains__")
    __len__ = _after_building("__len__")
    __eq__ = _after_building("__eq__")
    __ne__ = _after_building("__ne__")
    __or__ = _after_building("__or__")
    __ror__ = _after_building("__ror__")
    __ior__ = _after_building("__ior__")
    __reversed__ = _after_building("__reversed__")
    __repr__ = _after_building("__repr__")
    get = _after_building("get")
    keys = _after_building("keys")
    values = _after_building("values")
    items = _after_building("items")
    pop = _after_building("pop")
    popitem = _after_building("popitem")
    setdefault = _after_building("setdefault")
    update = _after_building("update")
    clear = _after_building("clear")
    copy = _after_building("copy")


def _restored(rows: list[dict[str, Any]], columns: dict[str, Any] | None) -> Infos:
    """Return the infos that were pickled or copied, later changes included."""
    infos = Infos(rows)
    if columns is not None:
        infos._built = True
        dict.update(infos, columns)
    return infos
