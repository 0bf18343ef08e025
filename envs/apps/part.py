"""Parts of a request: what is asked for, what must be read to do it, and the calls that do it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from turngym.envs.apps.fiction import Draft, Fiction

PAGES = "all"
"""Stands for every page of a list."""


class Made(NamedTuple):
    """Stands for the id of the row that a call has added.

    Args:
        function: The function that adds it.
    """

    function: str


class Step(NamedTuple):
    """A call of a plan.

    Args:
        function: Name of the function.
        account: Account whose key is given.
        arguments: Arguments without the key; drafts stand for their ids.
    """

    function: str
    account: Draft
    arguments: dict[str, Any]


class Part(NamedTuple):
    """Part of a request.

    Args:
        text: What is asked for.
        reads: Calls that find out what is needed.
        writes: Calls that do it.
    """

    text: str
    reads: list[Step]
    writes: list[Step]


Maker: TypeAlias = Callable[[Fiction], Part]
"""Adds records and near misses to a fiction, and returns the part of the request about them."""


def step(function: str, account: Draft, **arguments: Any) -> Step:
    """Return a call of a plan."""
    return Step(function, account, arguments)


def look_up(person: Draft, is_named: bool = True) -> list[Step]:
    """Return the calls that find the details of a contact, by name or by address."""
    query = str(person["name"]).split()[0] if is_named else person["email"]
    book = person["account"]
    return [
        step("contacts_search", book, query=query, page=PAGES),
        step("contacts_show", book, contact=person),
    ]
