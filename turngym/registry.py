"""One registry type for algorithms, agents, wrappers, reward models and suites."""

from __future__ import annotations

import importlib
import pkgutil
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

from turngym.errors import ConfigError, MissingExtra, UnknownName, nearest
from turngym.plugins import OURS, PluginWarning, is_contested, load_plugins, note, require_uncontested, root_of, taken

T = TypeVar("T")
_LONGEST_NAME = 200


class Registry(Mapping[str, T], Generic[T]):
    """Mapping from names to components, filled by importing modules of one package on demand.

    A component is in the module named like it or like its first words: ``scienceworld-eto`` is in ``scienceworld``. A
    look-up imports one module; listing imports all. If a module's optional package is missing, requesting its component
    raises an error that names the package. Third parties register in a module that is an entry point of the group
    ``turngym.plugins``.

    Args:
        kind: Singular noun used in error messages, e.g. ``"algorithm"``.
        package: Dotted package whose modules register themselves when imported.
        extra: The extra of turngym that installs what the package's modules need.
        settings: Lower-case names that are settings of a component -> how to write them.
    """

    def __init__(
        self, kind: str, package: str, extra: str = "all", settings: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._settings = settings
        self.kind = kind
        self.package = package
        self.extra = extra
        self._items: dict[str, T] = {}
        self._modules: dict[str, str] = {}
        self._missing: dict[str, str] = {}
        self._discovered = False

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that registers its argument under ``name``.

        Raises:
            ConfigError: The name is taken or invalid.
        """
        if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= _LONGEST_NAME:
            shown = repr(name)[:80] if isinstance(name, str) else f"a {type(name).__name__}"
            raise ConfigError(f"{self.kind} names are printable text of 1 to {_LONGEST_NAME} letters, got {shown}.")
        module = str(sys._getframe(1).f_globals.get("__name__", ""))

        def record(item: T) -> T:
            first = self._modules.get(name, "")
            if first:
                error = taken(self.kind, name, first, module)
                if is_contested(self.kind, name):
                    self._items.pop(name, None)  # both are refused
                if root_of(module) != OURS or root_of(first) == OURS:
                    raise error
                warnings.warn(str(error), PluginWarning, stacklevel=2)  # a plug-in was faster than turngym itself
            self._items[name], self._modules[name] = item, module
            note(module, self.kind, name, lambda: self._forget(name, module))
            return item

        return record

    def _forget(self, name: str, module: str) -> None:
        if self._modules.get(name) == module:
            del self._modules[name]
            self._items.pop(name, None)

    def module(self, name: str) -> str:
        """Return the module that has registered a name."""
        self[name]
        return self._modules[name]

    def has(self, name: str) -> bool:
        """Return whether there is a component of that name, even if its package is missing."""
        try:
            self[name]
        except UnknownName:
            return False
        except MissingExtra:
            return True
        return True

    def holds(self, item: object) -> bool:
        """Return whether an object has been registered under any name."""
        return any(each is item for each in self._items.values())

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True  # set first: a module that asks the registry while it registers must not recurse
        for module in self._own_modules():
            self._import(module)
        load_plugins(self.kind)

    def _own_modules(self) -> Iterator[str]:
        """Yield the modules of the package; its sub-package ``base`` holds what components derive from, and none."""
        base = f"{self.package}.base"
        folder = importlib.import_module(self.package).__path__
        for module in pkgutil.iter_modules(folder, self.package + "."):
            if module.name == base:
                continue
            yield module.name
            if module.ispkg:
                inner = importlib.import_module(module.name).__path__
                yield from (each.name for each in pkgutil.walk_packages(inner, module.name + "."))

    def _import(self, name: str) -> None:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            root = (error.name or "").partition(".")[0]
            if not root or root == self.package.partition(".")[0]:
                raise
            self._missing[name.rpartition(".")[2]] = root

    def _import_alone(self, name: str) -> None:
        """Import the module with the longest name that is the name of a component or its first words."""
        own = name.replace("-", "_") + "_"
        stems = {path: path.rpartition(".")[2] for path in self._own_modules()}
        fitting = [path for path, stem in stems.items() if own.startswith(f"{stem}_")]
        if fitting:
            self._import(max(fitting, key=lambda path: len(stems[path])))

    def _look_up(self, name: str) -> bool:
        """Import what may register a name, and return whether something has."""
        if not self._discovered and root_of(self._modules.get(name, "")) != OURS:
            self._import_alone(name)  # also where a plug-in has the name: ours come first
        if name not in self._items:
            load_plugins(self.kind)
        return name in self._items

    def __getitem__(self, name: str) -> T:
        if not self._look_up(name):
            require_uncontested(self.kind, name)
            self._discover()
        if name in self._items:
            return self._items[name]
        if name in self._missing:
            raise MissingExtra(
                f"{self.kind} {name!r} needs the package {self._missing[name]}, which is not installed: "
                f'pip install "turngym[{self.extra}]".'
            )
        written = self.written(name)
        hint = f"Write {written!r}." if written else nearest(name, {*self._items, *self._missing})
        raise UnknownName(f"no {self.kind} named {name!r}. {hint}")

    def written(self, name: str) -> str:
        """Return how to write a name that is a setting of a component; empty if unknown."""
        return self._settings.get(name.lower().replace("-", "_"), "")

    def missing(self) -> dict[str, str]:
        """Return module -> missing package, for the modules that could not be imported."""
        self._discover()
        return dict(self._missing)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (self._look_up(name) or is_contested(self.kind, name))

    def __iter__(self) -> Iterator[str]:
        self._discover()
        return iter(sorted(self._items))

    def __len__(self) -> int:
        self._discover()
        return len(self._items)
