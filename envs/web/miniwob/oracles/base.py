"""Input of a web task's oracle and its lookup functions: the task in words, the page, its past actions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from turngym.envs.web.driver.page import Node, quoted
from turngym.errors import ConfigError


@dataclass(frozen=True, slots=True)
class View:
    """The page as an oracle sees it.

    Args:
        goal: The task in words.
        nodes: The elements.
        actions: Actions of the episode so far.
    """

    goal: str
    nodes: tuple[Node, ...]
    actions: tuple[str, ...] = ()

    @property
    def quoted(self) -> tuple[str, ...]:
        """The texts in double quotes in the task."""
        return quoted(self.goal)

    def match(self, pattern: str) -> tuple[str, ...]:
        """Return the groups of a pattern in the task."""
        found = re.search(pattern, self.goal, re.IGNORECASE)
        if found is None:
            raise ConfigError(f"the oracle does not understand the task {self.goal!r}.")
        return found.groups()

    def every(self, role: str = "", label: str | None = None, name: str = "", tag: str = "") -> list[Node]:
        """Return the elements with this role, label (whole, any case), id or class, and tag."""
        return [
            node
            for node in self.nodes
            if node.id
            and (not role or node.role == role)
            and (label is None or node.label.lower().strip() == label.lower().strip())
            and (not name or name in node.names)
            and (not tag or node.tag == tag)
        ]

    def one(self, role: str = "", label: str | None = None, name: str = "", tag: str = "", where: int = 0) -> Node:
        """Return the first such element (``where``: which of several).

        Raises:
            ConfigError: There is none.
        """
        found = self.every(role, label, name, tag)
        if not found or where >= len(found):
            raise ConfigError(
                f"the oracle finds no {role or tag or name or 'element'} {label or ''} for {self.goal!r} on the page."
            )
        return found[where]

    def has(self, role: str = "", label: str | None = None, name: str = "", tag: str = "") -> bool:
        """Return whether there is such an element."""
        return bool(self.every(role, label, name, tag))

    def exactly(self, label: str) -> Node:
        """Return the first element with this label, upper and lower case told apart.

        Raises:
            ConfigError: There is none.
        """
        found = [node for node in self.nodes if node.id and node.label == label]
        if not found:
            raise ConfigError(f"the oracle finds no {label!r} for {self.goal!r} on the page.")
        return found[0]

    def fields(self) -> list[Node]:
        """Return the fields that text can be filled into."""
        return [node for node in self.nodes if node.id and node.is_field]

    def with_text(self) -> Iterator[tuple[Node, str]]:
        """Yield each box and radio button with the text right behind it."""
        for place, node in enumerate(self.nodes):
            if node.role in ("checkbox", "radio"):
                following = self.nodes[place + 1].text if place + 1 < len(self.nodes) else ""
                yield node, following


Oracle = Callable[[View], str]


def solves(table: dict[str, Oracle], *tasks: str) -> Callable[[Oracle], Oracle]:
    """Enter an oracle into a table, under these tasks."""

    def enter(oracle: Oracle) -> Oracle:
        table.update(dict.fromkeys(tasks, oracle))
        return oracle

    return enter


def click(node: Node) -> str:
    """Return the action that clicks an element."""
    return f"click {node.id}"


def fill(node: Node, text: str) -> str:
    """Return the action that fills a field."""
    return f'fill {node.id} "{text}"'
