"""Objects that remember the options that they were made with."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Self

from turngym.errors import ConfigError, nearest

_NOT_SETTINGS = ("env_id", "render_mode")


class Configured:
    """Records its options before anything else happens, and names the nearest one where an option is unknown.

    >>> class Door(Configured):
    ...     def __init__(self, width: int, colour: str = "green") -> None: ...
    >>> Door(3).settings
    {'width': 3, 'colour': 'green'}
    """

    settings: Mapping[str, Any]
    """The options that this object was made with, defaults included."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Record the options, so that a snapshot can tell whether it belongs here."""
        self = super().__new__(cls)
        signature = inspect.signature(cls)
        open_ended = [name for name, p in signature.parameters.items() if p.kind is p.VAR_KEYWORD]
        for key in kwargs:
            if key not in signature.parameters and not open_ended:
                known = set(signature.parameters) - {"env_id"}
                raise ConfigError(f"{cls.__name__} has no option {key!r}. {nearest(key, known)}")
        bound = signature.bind_partial(*args, **kwargs)
        bound.apply_defaults()
        settings = {**bound.arguments, **(bound.arguments.get(open_ended[0], {}) if open_ended else {})}
        self.settings = {k: v for k, v in settings.items() if k not in (*_NOT_SETTINGS, *open_ended)}
        return self
