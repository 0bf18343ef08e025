"""One registry type for algorithms, backends, wrappers, reward models and suites."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import pkgutil
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from turngym.errors import MissingExtra, UnknownName, nearest

T = TypeVar("T")
PLUGIN_GROUP = "turngym.plugins"


def load_plugins() -> None:
    """Import the modules of third parties, so that they register what they have; one that fails is a warning."""
    for plugin in importlib.metadata.entry_points(group=PLUGIN_GROUP):
        try:
            plugin.load()
        except Exception as error:  # the boundary to code of third parties
            warnings.warn(f"the plugin {plugin.value} could not be loaded: {error!r}", stacklevel=2)


class Registry(Mapping[str, T], Generic[T]):
    """Name to component, filled by importing every module of one package on first use.

    A module whose optional package is absent is left out and remembered, so that asking for its component names
    the missing package instead of pretending that the component does not exist. Third parties register in a module
    that they name as an entry point of the group ``turngym.plugins``.

    Args:
        kind: Singular noun used in error messages, e.g. ``"algorithm"``.
        package: Dotted package whose modules register themselves when imported.
        extra: The extra of turngym that installs what the package's modules need.
    """

    def __init__(self, kind: str, package: str, extra: str = "all") -> None:
        self.kind = kind
        self.package = package
        self.extra = extra
        self._items: dict[str, T] = {}
        self._missing: dict[str, str] = {}
        self._discovered = False

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that records its argument under ``name``."""

        def record(item: T) -> T:
            if name in self._items:
                raise ValueError(f"{self.kind} {name!r} is already registered by {self._items[name]!r}.")
            self._items[name] = item
            return item

        return record

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True  # set first: a module that asks the registry while it registers must not recurse
        package = importlib.import_module(self.package)
        for module in pkgutil.walk_packages(package.__path__, self.package + "."):
            self._import(module.name)
        load_plugins()

    def _import(self, name: str) -> None:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            root = (error.name or "").partition(".")[0]
            if not root or root == self.package.partition(".")[0]:
                raise
            self._missing[name.rpartition(".")[2]] = root

    def _import_alone(self, name: str) -> None:
        """Import the module of that name, if there is one: most are named as their component, and others are heavy."""
        module = f"{self.package}.{name}"
        if name.isidentifier() and importlib.util.find_spec(module) is not None:
            self._import(module)

    def __getitem__(self, name: str) -> T:
        if name not in self._items and not self._discovered:
            self._import_alone(name)
        if name not in self._items:
            self._discover()
        if name in self._items:
            return self._items[name]
        if name in self._missing:
            raise MissingExtra(
                f"{self.kind} {name!r} needs the package {self._missing[name]}, which is not installed: "
                f'pip install "turngym[{self.extra}]".'
            )
        raise UnknownName(f"no {self.kind} named {name!r}. {nearest(name, {*self._items, *self._missing})}")

    def missing(self) -> dict[str, str]:
        """Return module -> absent package, for the modules that could not be imported."""
        self._discover()
        return dict(self._missing)

    def __contains__(self, name: object) -> bool:
        self._discover()
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        self._discover()
        return iter(sorted(self._items))

    def __len__(self) -> int:
        self._discover()
        return len(self._items)
