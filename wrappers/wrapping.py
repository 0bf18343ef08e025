"""Wrappers by name, for an environment, for every slot of a vector, and for the command line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium

from turngym.envs.settings import Declared
from turngym.errors import ConfigError, MissingExtra, TurngymError, UnknownName
from turngym.loading import Wanted, is_file, load_object, split_place
from turngym.registry import Registry

WRAPPERS: Registry[type] = Registry("wrapper", "turngym.wrappers")

_OWN = re.compile(r"(?P<name>(?P<place>[^:]+\.py|[\w.]+):[A-Za-z_]\w*)((?P<colon>:)(?P<options>.*))?", re.DOTALL)
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Wrapping:
    """A wrapper with its options, not yet applied; can be pickled and sent to workers.

    Args:
        name: Name of the wrapper.
        options: Its options.

    >>> import gymnasium, turngym
    >>> vector = turngym.make_vec("turngym/TowerOfHanoi-v0", 2, wrappers=[Wrapping("history", {"k": 4})])
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str, kind: str = "wrapper") -> Wrapping:
        """Parse a specification such as ``history:k=4``.

        A value is parsed as JSON if possible, otherwise it is the text up to the next comma.

        Args:
            text: The specification.
            kind: Kind of specification for messages: prompt styles use the same syntax.

        Raises:
            ConfigError: An option has no value, or is given twice.

        >>> Wrapping.read('curriculum:levels=[{"discs": 2}, {"discs": 3}],raise_at=0.5').options["raise_at"]
        0.5
        >>> Wrapping.read("mine/shorter.py:Shorter:words=20")
        Wrapping(name='mine/shorter.py:Shorter', options={'words': 20})
        >>> Wrapping.read("parse_action:format=boxed")
        Wrapping(name='parse_action', options={'format': 'boxed'})
        """
        name, colon, rest = _divide(text)
        if colon and not rest:
            raise ConfigError(f'the {kind} {text!r} ends after its colon: write "{name}" or "{name}:option=value".')
        return cls(name.strip(), _read_options(rest, f"the {kind} {text!r}"))

    def __call__(self, env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
        """Wrap an environment."""
        wrapped: gymnasium.Env[Any, Any] = _wrapper_class(self.name)(env, **self.options)
        return wrapped


_WRAPPER = Wanted(
    "a wrapper",
    "a class of turngym.wrappers.TextWrapper, or a function of an environment",
    lambda found: issubclass(found, gymnasium.Wrapper) if isinstance(found, type) else callable(found),
)


def _wrapper_class(name: str) -> Callable[..., Any]:
    """Return the class or function that wraps an environment.

    Args:
        name: A registered name, ``"module:Class"``, or ``"path/to/file.py:Class"``.

    Raises:
        UnknownName: There is no such wrapper, module, file, or class in it.
        ConfigError: It is not a wrapper.
    """
    found: Callable[..., Any] = load_object(name, _WRAPPER, WRAPPERS) if split_place(name)[0] else WRAPPERS[name]
    return found


def _divide(text: str) -> tuple[str, str, str]:
    """Return a name, the colon after it, and the options: of ``a.py:B:c=1`` they are ``a.py:B``, ``:`` and ``c=1``.

    >>> _divide("history:k=4"), _divide("mine:Shorter"), _divide("history:k")
    (('history', ':', 'k=4'), ('mine:Shorter', '', ''), ('history', ':', 'k'))
    """
    found = _OWN.fullmatch(text)
    if found is None or (not is_file(found["place"]) and "." not in found["place"] and WRAPPERS.has(found["place"])):
        return text.partition(":")[0], *text.partition(":")[1:]
    return found["name"], found["colon"] or "", found["options"] or ""


def wrapper_refusal(wrapping: Wrapping) -> str:
    """Return the reason why untrusted files may not use a wrapper; empty if they may.

    >>> wrapper_refusal(Wrapping("history", {"k": 2})), wrapper_refusal(Wrapping("tools", {"tools": ["os:getcwd"]}))
    ('', 'the wrapper tools: Tools is not declared safe for files of others to ask for')
    """
    try:
        kind = WRAPPERS[wrapping.name]
    except TurngymError as error:
        return f"the wrapper {wrapping.name[:60]!r} cannot be made here: {error}"
    if not issubclass(kind, Declared):
        return f"the wrapper {wrapping.name} is not declared safe for files of others to ask for"
    reason = "" if is_left_out(wrapping) else kind.refusal(wrapping.options)
    return f"the wrapper {wrapping.name}: {reason}" if reason else ""


def wrapper_misfit(wrapping: Wrapping) -> str:
    """Return the reason why a wrapper or its options are invalid; empty if they are valid.

    >>> wrapper_misfit(Wrapping("history", {"k": "all"})), wrapper_misfit(Wrapping("mine.py:Shorter"))
    ("the wrapper history: the option k='all' is none that History takes", '')
    """
    if ":" in wrapping.name:
        return ""
    try:
        kind = WRAPPERS[wrapping.name]
    except MissingExtra:
        return ""
    except UnknownName as error:
        return f"the wrapper {wrapping.name[:60]!r} cannot be made: {error}"
    reason = kind.misfit(wrapping.options) if issubclass(kind, Declared) else ""
    return f"the wrapper {wrapping.name}: {reason}" if reason else ""


def is_left_out(wrapping: Wrapping) -> bool:
    """Return True if a wrapper has no effect, so episodes are replayed without it."""
    return bool(getattr(_wrapper_class(wrapping.name), "is_transparent", False))


def wrap(env: gymnasium.Env[Any, Any], *wrappers: str | Wrapping, **options: Any) -> gymnasium.Env[Any, Any]:
    """Wrap an environment, the first wrapper innermost.

    Args:
        env: The environment.
        *wrappers: Names, specifications such as ``"history:k=4"`` or ``"path/to/file.py:Mine:k=4"``, or
            :class:`Wrapping` objects.
        **options: Options of the wrapper, if there is only one.

    Raises:
        UnknownName: There is no such wrapper.
        ConfigError: A specification is malformed, or an option is out of range.

    >>> import gymnasium, turngym
    >>> env = wrap(gymnasium.make("turngym/TowerOfHanoi-v0"), "history", k=4)
    >>> env = wrap(gymnasium.make("turngym/TowerOfHanoi-v0"), "parse_action:format=boxed", "history:k=4")
    """
    found = wrapping(*wrappers)
    if options:
        if len(found) != 1:
            raise ConfigError(
                f"wrap() got the options {sorted(options)} for {len(found)} wrappers: "
                'pass one wrapper, or write them as "name:option=value".'
            )
        found = [Wrapping(found[0].name, {**found[0].options, **options})]
    for each in found:
        env = each(env)
    return env


def wrapping(*wrappers: str | Wrapping) -> list[Wrapping]:
    """Convert names and specifications for ``make_vec(..., wrappers=...)``.

    >>> wrapping("history:k=4", "turn_limit")
    [Wrapping(name='history', options={'k': 4}), Wrapping(name='turn_limit', options={})]
    """
    return [each if isinstance(each, Wrapping) else Wrapping.read(each) for each in wrappers]


def _read_options(rest: str, whole: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    while rest:
        key, equals, rest = rest.partition("=")
        key = key.strip()
        if not equals or not key.isidentifier():
            raise ConfigError(f'{whole} cannot be read at {key!r}: write "name:option=value,option=value".')
        if key in options:
            raise ConfigError(f"{whole} sets {key!r} twice: leave one out.")
        options[key], rest = _read_value(rest)
    return options


def _read_value(rest: str) -> tuple[Any, str]:
    """Return the first value of a list of options, and the rest after its comma."""
    start = len(rest) - len(rest.lstrip())
    try:
        value, end = _DECODER.raw_decode(rest, start)
    except (ValueError, RecursionError):
        end = -1
    following = rest[end:].lstrip() if end >= 0 else ""
    if end < 0 or (following and not following.startswith(",")):
        plain, _, following = rest.partition(",")
        return plain.strip(), following
    return value, following.removeprefix(",")
