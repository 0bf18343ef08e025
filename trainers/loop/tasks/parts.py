"""The division of an iteration's episodes among processes, in whole groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar


class _Grouped(Protocol):
    @property
    def group(self) -> int: ...


ItemT = TypeVar("ItemT")
SpecT = TypeVar("SpecT", bound=_Grouped)


@dataclass(frozen=True)
class Part:
    """One of several parts of an iteration's groups, as equal as possible and in their order.

    Args:
        index: Index, from 0.
        count: Number of them.

    >>> [list(Part(index, 3).slice(range(7))) for index in range(3)]
    [[0, 1], [2, 3], [4, 5, 6]]
    """

    index: int = 0
    count: int = 1

    def of(self, specs: Sequence[SpecT]) -> list[SpecT]:
        """Return the episodes of this part's groups."""
        mine = set(self.slice(list(dict.fromkeys(spec.group for spec in specs))))
        return [spec for spec in specs if spec.group in mine]

    def divided(self, index: int, count: int) -> Part:
        """Return one of several parts of this part.

        >>> [list(Part(1, 2).divided(index, 2).slice(range(8))) for index in range(2)]
        [[4, 5], [6, 7]]
        """
        return replace(self, index=self.index * count + index, count=self.count * count)

    def slice(self, items: Sequence[ItemT]) -> Sequence[ItemT]:
        """Return this part of a sequence."""
        return items[self.start(len(items)) : Part(self.index + 1, self.count).start(len(items))]

    def start(self, length: int) -> int:
        """Return where this part of a sequence of that length starts."""
        return length * self.index // self.count


WHOLE = Part()


@dataclass(frozen=True)
class Chosen(Part):
    """Some of an iteration's groups.

    Args:
        positions: Their positions among all groups.

    >>> Chosen(positions=(0, 2)).slice("abc")
    ['a', 'c']
    """

    positions: tuple[int, ...] = ()

    def slice(self, items: Sequence[ItemT]) -> Sequence[ItemT]:
        """Return these items of a sequence."""
        return [items[position] for position in self.positions]


@dataclass(frozen=True)
class Seeded(Part):
    """A part of an iteration's groups that are reset with seeds of their own.

    Args:
        seeds: Seed of each group of the iteration.

    >>> from turngym.agents.episodes.groups import group_specs
    >>> [spec.seed for spec in Seeded(1, 2, seeds=(5, 6, 7)).of(group_specs(3, 2))]
    [6, 6, 7, 7]
    """

    seeds: tuple[int, ...] = ()

    def of(self, specs: Sequence[SpecT]) -> list[SpecT]:
        """Return the episodes of this part's groups, with their seeds."""
        seeds = dict(zip(dict.fromkeys(spec.group for spec in specs), self.seeds, strict=True))
        chosen: list[Any] = super().of(specs)
        return [replace(spec, seed=seeds[spec.group]) for spec in chosen]
