"""The public names of a package, each imported from its module on first use, and names that have been renamed."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    """A package that keeps its public names.

    Importing a module by its old path (see :mod:`turngym.moved`) makes it an attribute of its old package, where a
    public name may be called like it.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and name in self.__all__ and value.__name__ != f"{self.__name__}.{name}":
            return
        super().__setattr__(name, value)


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
    >>> __getattr__("make_vek")
    Traceback (most recent call last):
    AttributeError: module 'turngym' has no attribute 'make_vek'
    """
    sys.modules[package].__class__ = _Package
    modules = {name: module for module, names in sources.items() for name in names}

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        return getattr(importlib.import_module(modules[name]), name)

    def public() -> list[str]:
        return sorted(sys.modules[package].__all__)

    return get, public


def renamed_names(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the function ``__getattr__`` of a module whose old names work for one more version, with a warning.

    Assign it where ``TYPE_CHECKING`` is false: type checkers would take every name for known.

    Args:
        module: ``__name__`` of the module.
        names: Old name -> new name.
    """

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name, obj=sys.modules[module])
        warnings.warn(
            f"{module}.{name} is now {names[name]}; the old name goes with the next version.",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(sys.modules[module], names[name])

    return get
