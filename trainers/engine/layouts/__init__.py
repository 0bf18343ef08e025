"""How the sequences of a micro-batch go through a network: one module for each layout."""

from __future__ import annotations

from turngym.errors import ConfigError
from turngym.trainers.engine.layouts.base import Inputs, Layout
from turngym.trainers.engine.layouts.rows import Rows

__all__ = ["LAYOUTS", "Inputs", "Layout", "layout_of"]

LAYOUTS: dict[str, Layout] = {"rows": Rows()}
"""Name of a layout -> the layout."""


def layout_of(name: str) -> Layout:
    """Return a layout by its name.

    Raises:
        ConfigError: There is no such layout.

    >>> layout_of("rows").name
    'rows'
    """
    if name not in LAYOUTS:
        raise ConfigError(f"layout must be {', '.join(LAYOUTS)}, got {name!r}.")
    return LAYOUTS[name]
