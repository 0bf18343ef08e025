"""Modules that have been moved: their old dotted paths can be imported for one more version, with a warning.

Files written by earlier versions (snapshots, run folders, submissions) name modules, too; what reads them asks
:func:`current`. A module that moves gets one line in ``MOVED``; a package takes its modules along.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from importlib.abc import Loader  # at run time it costs `import turngym` time

MOVED: Mapping[str, str] = {}
"""Old dotted path -> new dotted path, of modules and packages."""


def current(path: str) -> str:
    """Return where a module, or something in it, is now; a path that has not moved is returned as it is.

    Args:
        path: A dotted path, with or without ``:name`` behind it.

    >>> current("turngym.envs.core:TextEnv")
    'turngym.envs.core:TextEnv'
    """
    module, colon, name = path.partition(":")
    head = module
    while head:
        if head in MOVED:
            return MOVED[head] + module[len(head) :] + colon + name
        head = head.rpartition(".")[0]
    return path


class _MovedLoader:
    """Hands out the module under its new path, so that a class exists once under both."""

    def __init__(self, path: str) -> None:
        self._path = path

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._path)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has set that of the old path


class _MovedFinder:
    """Finds moved modules. It comes first: below a moved package, others would load a second copy of a module."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("turngym."):
            return None
        found = current(fullname)
        if found == fullname:
            return None
        warnings.warn(
            f"{fullname} has moved to {found}; the old path goes with the next version.",
            DeprecationWarning,
            stacklevel=_level(),
        )
        return ModuleSpec(fullname, cast("Loader", _MovedLoader(found)))


def _level() -> int:
    """Return the stack level of the user's line; the import system's own frames are not counted."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return 3 if frame.f_globals.get("__name__") == "importlib" else 2


def install() -> None:
    """Let old paths be imported."""
    if not any(isinstance(each, _MovedFinder) for each in sys.meta_path):
        sys.meta_path.insert(0, _MovedFinder())
