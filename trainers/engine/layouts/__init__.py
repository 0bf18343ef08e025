"""Layouts of micro-batches: one module each."""

from __future__ import annotations

from collections.abc import Mapping

from turngym.errors import ConfigError
from turngym.trainers.engine.layouts.auto import Auto
from turngym.trainers.engine.layouts.base import Inputs, Layout
from turngym.trainers.engine.layouts.packed import Packed
from turngym.trainers.engine.layouts.rows import Rows
from turngym.trainers.engine.layouts.tree import Tree

__all__ = ["AUTO", "LAYOUTS", "ROWS", "Inputs", "Layout", "layout_of"]

AUTO = Auto.name
ROWS: Layout = Rows()
LAYOUTS: Mapping[str, Layout] = {layout.name: layout for layout in (Auto(), ROWS, Packed(), Tree())}
"""Name of a layout -> the layout."""


def layout_of(name: str) -> Layout:
    """Return a layout by its name.

    Raises:
        ConfigError: There is no such layout.

    >>> layout_of("tree").name
    'tree'
    """
    if name not in LAYOUTS:
        raise ConfigError(f"layout must be one of {', '.join(LAYOUTS)}, got {name!r}.")
    return LAYOUTS[name]
