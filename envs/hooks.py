"""Hooks under their names of version 0.1: classes that define them keep working for one version, with a warning."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from types import FunctionType
from typing import Any, ClassVar, overload

_METHODS = FunctionType, staticmethod, classmethod


class RenamedHooks:
    """Base of classes whose hooks have been renamed.

    Names are resolved once, when a subclass is created: each hook is then in the class under both names, so that
    calls through ``super()`` work with either name, and calls have no overhead.

    >>> class Base(RenamedHooks):
    ...     old_hooks = {"_shown": "observation"}
    ...     def observation(self): return "dark"
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     class Lamp(Base):
    ...         def _shown(self): return f"not {super()._shown()}"
    >>> Lamp().observation(), str(found[0].message).partition(":")[0]
    ('not dark', 'Lamp defines the hook _shown, which is called observation now')
    """

    __slots__ = ()

    old_hooks: ClassVar[Mapping[str, str]] = {}
    """Old name -> new name of the hooks that this class declares."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        names: dict[str, str] = {}
        for kind in reversed(cls.__mro__):
            names.update(vars(kind).get("old_hooks", {}))
        found = [old for old, new in names.items() if _resolve(cls, old, new)]
        if found:
            told = ", ".join(f"{old}, which is called {names[old]} now" for old in found)
            warnings.warn(
                f"{cls.__name__} defines the hook{'s' * (len(found) > 1)} {told}: rename "
                f"{'them' if len(found) > 1 else 'it'}. Old names go with the next version.",
                DeprecationWarning,
                stacklevel=_level_of_class(),
            )


def _level_of_class() -> int:
    """Return the stack level of the class statement; the frames of metaclasses such as ABCMeta are not counted."""
    level, frame = 2, sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith("<frozen "):
        level, frame = level + 1, frame.f_back
    return level


def _resolve(cls: type, old: str, new: str) -> bool:
    """Make a hook that ``cls`` defines available under both names; return whether it uses the old one."""
    for kind in cls.__mro__:
        own = vars(kind)
        if isinstance(own.get(new), _METHODS):
            is_new = kind is cls or not issubclass(kind, RenamedHooks)
            if is_new and old not in vars(cls) and not getattr(own[new], "__isabstractmethod__", False):
                setattr(cls, old, own[new])
            return False
        if isinstance(own.get(old), _METHODS):
            if kind is not cls and issubclass(kind, RenamedHooks):
                return False  # resolved when that class was created
            if new in own:
                raise TypeError(f"{kind.__name__} defines the hook {old} and another {new}: {new} is the hook now.")
            setattr(cls, new, own[old])
            return True
    return False


class RenamedAttribute:
    """Descriptor for the old name of an attribute or method that subclasses use; warns on access.

    Args:
        name: The new name.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._old = owner, name

    @overload
    def __get__(self, instance: None, owner: type) -> RenamedAttribute: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Any: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        if instance is None:
            return self
        self._warn(instance)
        found = vars(self._owner).get(self._name)
        return found.__get__(instance, owner) if isinstance(found, FunctionType) else getattr(instance, self._name)

    def __set__(self, instance: object, value: Any) -> None:
        self._warn(instance)
        setattr(instance, self._name, value)

    def _warn(self, instance: object) -> None:
        warnings.warn(
            f"{self._old} of {type(instance).__name__} is called {self._name} now; the old name goes with the "
            "next version.",
            DeprecationWarning,
            stacklevel=3,
        )
