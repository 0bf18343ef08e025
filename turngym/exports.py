"""The public names of a package, each imported from its module on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(
    package: str, sources: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the functions ``__getattr__`` and ``__dir__`` of a package (PEP 562).

    A package lists its names in ``__all__``, imports them under ``TYPE_CHECKING`` for type checkers and editors, and
    takes these two functions otherwise. A public name must not be that of a module in the package: importing the
    module would replace it.

    Args:
        package: ``__name__`` of the package.
        sources: Module -> its names that the package exports.

    >>> __getattr__, __dir__ = lazy_names("turngym", {"turngym.envs.vector": ("make_vec",)})
    >>> __getattr__("make_vec").__module__, "make_vec" in __dir__()
    ('turngym.envs.vector.make', True)
    >>> __getattr__("quicker")
    Traceback (most recent call last):
    AttributeError: module 'turngym' has no attribute 'quicker'
    """
    modules = {name: module for module, names in sources.items() for name in names}

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        return getattr(importlib.import_module(modules[name]), name)

    def public() -> list[str]:
        return sorted(sys.modules[package].__all__)

    return get, public
