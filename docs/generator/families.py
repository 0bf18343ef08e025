"""Families of environments that share a page, with the facts that need no episode."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import docstring_parser

from turngym.benchmarks.cli.terminal.listing import SHELVES
from turngym.envs.registration import Spec, games, seat_id, specs
from turngym.envs.settings import Configured
from turngym.options import attribute_docs, constructor_signature


@dataclass(frozen=True)
class Option:
    """One keyword of an environment."""

    name: str
    value: str
    default: str
    description: str


@dataclass(frozen=True)
class Family:
    """Ids that share a class and therefore a page.

    Args:
        name: Name of the class, and of the page.
        entry_point: ``"module:Class"``.
        ids: Id -> its line in the registration table.
        is_game: True for multi-agent games.
    """

    name: str
    entry_point: str
    ids: Mapping[str, Spec]
    is_game: bool

    @property
    def shelf(self) -> str:
        """Package below ``turngym.envs``."""
        return self.entry_point.split(".")[2]

    @property
    def title(self) -> str:
        """Shortest name of an id without preset options, or else of any."""
        plain = [env_id for env_id, spec in self.ids.items() if not spec.kwargs] or self.ids
        names = [env_id.partition("/")[2].rpartition("-v")[0] for env_id in plain]
        return min(names, key=lambda name: (len(name), name))

    @property
    def slug(self) -> str:
        """File name of the page without its suffix."""
        return self.title.lower()

    @property
    def extras(self) -> tuple[str, ...]:
        """Extras required by its ids."""
        return tuple(dict.fromkeys(extra for spec in self.ids.values() for extra in spec.extra.split(",") if extra))

    def kind(self) -> type[Configured]:
        """Import the class."""
        module, _, name = self.entry_point.partition(":")
        found: type[Configured] = getattr(importlib.import_module(module), name)
        return found

    def playable(self) -> Mapping[str, Spec]:
        """Return the ids for ``gymnasium.make``; for games, the single-seat ids."""
        return {seat_id(each): spec for each, spec in self.ids.items()} if self.is_game else self.ids


def families() -> list[Family]:
    """Return every family, in the order of the shelves and by name."""
    between_seats = games()
    single = {env_id: spec for env_id, spec in specs().items() if not spec.entry_point.endswith(":SeatEnv")}
    found = []
    for table, is_game in ((single, False), (between_seats, True)):
        by_class: dict[str, dict[str, Spec]] = {}
        for env_id, spec in sorted(table.items(), key=lambda item: (bool(item[1].kwargs), item[0])):
            by_class.setdefault(spec.entry_point, {})[env_id] = spec
        found += [Family(point.partition(":")[2], point, ids, is_game) for point, ids in by_class.items()]
    shelves = list(SHELVES)
    return sorted(found, key=lambda family: (shelves.index(family.shelf), family.name))


@dataclass(frozen=True)
class Words:
    """Documentation of a class."""

    summary: str
    description: str
    rewards: str
    options: tuple[Option, ...]


def words_of(kind: type[Configured]) -> Words:
    """Read the docstrings of a class, its module and its options, and the signature of its constructor."""
    parsed = docstring_parser.parse(inspect.getdoc(kind) or "", style=docstring_parser.DocstringStyle.GOOGLE)
    texts = {each.arg_name: each.description or "" for each in parsed.params}
    if kind.takes_declared():
        texts |= attribute_docs(kind.Options)
    kinds = kind.declared_kinds()
    described = {name: _tidy(text) for name, text in texts.items()}
    description = _without_examples(parsed.long_description or "")
    options = tuple(
        Option(name, kinds[name].words if name in kinds else "", repr(given.default), described.get(name, ""))
        for name, given in constructor_signature(kind).parameters.items()
        if given.default is not inspect.Parameter.empty and name not in ("env_id", "render_mode", "split")
    )
    module = inspect.getdoc(inspect.getmodule(kind)) or ""
    return Words(parsed.short_description or "", description, _about_rewards(module, description), options)


def _tidy(text: str) -> str:
    return _markup(" ".join(text.split()))


def _markup(text: str) -> str:
    """Turn the roles and double backticks of docstrings into Markdown.

    >>> _markup("see :class:`turngym.envs.TextEnv` and ``x``")
    'see `TextEnv` and `x`'
    """
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text)
    return text.replace("``", "`")


def _without_examples(text: str) -> str:
    paragraphs = [part for part in re.split(r"\n\s*\n", text) if not part.lstrip().startswith(">>>")]
    return "\n\n".join(_tidy(part) for part in paragraphs)


def _about_rewards(*texts: str) -> str:
    """Return the sentences about rewards."""
    sentences = [
        sentence
        for text in texts
        for sentence in re.split(r"(?<=[.:])\s+(?=[A-Z])", _tidy(_without_examples(text)))
        if re.search(r"\breward|\bpays?\b|\bscores?\b", sentence, re.IGNORECASE)
    ]
    return " ".join(dict.fromkeys(sentences))


def options_text(spec: Spec) -> str:
    """Return the preset options of an id as keyword arguments."""
    shown: Mapping[str, Any] = spec.kwargs
    return ", ".join(f"{key}={value!r}" for key, value in shown.items())
