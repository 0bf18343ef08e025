"""Environments whose tasks are items of a data set, or generated: one item per episode."""

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
    """Base of environments whose tasks are items of a set, or generated.

    Subclasses set ``items`` and define the generation and the canonical text of an item.
    """

    items: Sequence[ItemT] | None = None
    """The items of a set; None where they are generated."""
    item_noun: ClassVar[str] = "task"
    """Name of an item for messages."""

    def tasks(self) -> tuple[str, ...]:
        """Return the numbers of the items of a set; none if they are generated."""
        return tuple(map(str, range(len(self.items or ()))))

    def next_item(self, task: str | int | None) -> ItemT:
        """Return the item of the next episode: the requested or a random one.

        Raises:
            ConfigError: There is no such item.
        """
        if self.items is None:
            if task is not None:
                raise ConfigError(f"{self.env_id} has no named tasks, got {task!r}: pick a {self.item_noun} by seed.")
            return self.draw(self.generate_item, self.item_text)
        if task is not None and (not str(task).isdecimal() or int(task) >= len(self.items)):
            raise ConfigError(f"{self.env_id} has the tasks 0 to {len(self.items) - 1}, got {task!r}.")
        item = self.items[int(self.np_random.integers(len(self.items))) if task is None else int(task)]
        self.instance = self.item_text(item)
        return item

    @abstractmethod
    def generate_item(self, generator: np.random.Generator) -> ItemT:
        """Return a generated item."""

    @abstractmethod
    def item_text(self, item: ItemT) -> str:
        """Return the canonical text of an item."""
