"""Environments whose tasks are drawn from a generator, or are those of a set: an item for each episode."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

import numpy as np

from turngym.envs.core import TextEnv
from turngym.errors import ConfigError

PROCEDURAL = "procedural"
"""The name of the set that is generated."""
ItemT = TypeVar("ItemT")


class SetEnv(TextEnv[str], Generic[ItemT]):
    """What environments share whose tasks are items of a set, or generated.

    Subclasses set ``_items``, and say how one is generated and what its canonical text is.
    """

    _items: Sequence[ItemT] | None = None
    """The items of a set; None where they are generated."""
    _noun: ClassVar[str] = "task"
    """What an item is, for messages."""

    def tasks(self) -> tuple[str, ...]:
        """Return the numbers of the items of a set; none where they are generated."""
        return tuple(map(str, range(len(self._items or ()))))

    def _next_item(self, task: str | int | None) -> ItemT:
        """Return the item of the next episode: the one asked for, or one drawn.

        Raises:
            ConfigError: There is no such item.
        """
        if self._items is None:
            if task is not None:
                raise ConfigError(f"{self.env_id} has no named tasks, got {task!r}: pick a {self._noun} by seed.")
            return self._draw(self._drawn, self._text_of)
        if task is not None and (not str(task).isdecimal() or int(task) >= len(self._items)):
            raise ConfigError(f"{self.env_id} has the tasks 0 to {len(self._items) - 1}, got {task!r}.")
        item = self._items[int(self.np_random.integers(len(self._items))) if task is None else int(task)]
        self.instance = self._text_of(item)
        return item

    @abstractmethod
    def _drawn(self, generator: np.random.Generator) -> ItemT:
        """Return a generated item."""

    @abstractmethod
    def _text_of(self, item: ItemT) -> str:
        """Return the canonical text of an item."""
