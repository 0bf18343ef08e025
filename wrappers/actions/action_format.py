"""Extracting the action from a completion: named formats, each with its instruction and its parser."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from turngym.envs.parsing.calls import any_calls
from turngym.envs.parsing.json_text import MOST_READINGS, MOST_TRIES, object_spans
from turngym.envs.parsing.scanning import boxes, inner_elements, inside_braces, last_element
from turngym.envs.parsing.thinking import THINKING, Regions, Thinking
from turngym.errors import UnknownName, nearest

_BOXED = "\\boxed{"
_DECODER = json.JSONDecoder()
_OBJECT = re.compile(r"^[^\S\n]*(?:\w{1,20}:[^\S\n]*)?({)", re.MULTILINE)
_MOST_EXACT = 2**53


@dataclass(frozen=True)
class ActionFormat:
    """Action format within a completion.

    Args:
        name: Name of the format.
        instruction: Instruction for the model.
        parse: Returns the action in a completion without reasoning; None without an action.
        write: Returns the shortest completion that contains an action.
        regions: Yields the spans of actions in a text; reasoning tags within a span belong to the action.
    """

    name: str
    instruction: str
    parse: Callable[[str], str | None]
    write: Callable[[str], str]
    regions: Regions = lambda text: ()

    @property
    def sentence(self) -> str:
        """Text after the rules; empty if none is needed."""
        return f"Answer format: {self.instruction}" if self.instruction else ""

    def read(self, completion: str, thinking: Thinking = THINKING) -> str | None:
        """Return the action in a completion, outside the reasoning; None without one."""
        return self.parse(thinking.without(completion, self.regions))

    def action_of(self, completion: str, thinking: Thinking = THINKING) -> str:
        """Return the action text, or an error text that no environment accepts as an action."""
        action = self.read(completion, thinking)
        if action is not None:
            return action
        return f"(no action found: {self.instruction})" if self.instruction else "(no action found)"

    def written(self, action: str, completion: str = "", thinking: Thinking = THINKING) -> str:
        """Return a completion if this format finds the action in it, else the shortest one with the action.

        >>> FORMATS["tag"].written("up", "Up: <action>up</action>"), FORMATS["tag"].written("up", "up")
        ('Up: <action>up</action>', '<action>up</action>')
        """
        return completion if completion and self.action_of(completion, thinking) == action else self.write(action)


def parse_tag(completion: str) -> str | None:
    """Return the content of the last ``<action>`` element; of nested elements, the inner one.

    >>> parse_tag("The box is above me. <action> up </action>")
    'up'
    """
    found = last_element(completion, "action")
    return None if found is None else found.strip()


def parse_boxed(completion: str) -> str | None:
    r"""Return the content of the last ``\boxed{}``, with balanced inner braces.

    >>> parse_boxed(r"so \boxed{move {1} 3}")
    'move {1} 3'
    """
    start = completion.rfind(_BOXED)
    found = None if start < 0 else inside_braces(completion, start + len(_BOXED) - 1)
    return None if found is None else found.strip()


def parse_json(completion: str) -> str | None:
    r"""Return the ``action``, a string or number, of the last JSON object that starts and ends a line.

    It may be preceded by a word and a colon, and followed by a full stop.

    >>> parse_json('I go up.\n{\n  "why": {"a": 1},\n  "action": "up"\n}'), parse_json('{"action": 3}')
    ('up', '3')
    """
    action: str | None = None
    end, left = 0, MOST_READINGS * len(completion)
    for start in [found.start(1) for found in _OBJECT.finditer(completion)][-MOST_TRIES:]:
        if start < end or left < 0:  # inside of the one before
            continue
        try:
            content, end = _DECODER.raw_decode(completion, start)
        except (ValueError, RecursionError) as error:
            left -= getattr(error, "pos", len(completion)) - start
            continue
        value = _written(content.get("action"))
        if value is not None and _rest_of_line(completion, end).strip() in ("", "."):
            action = value
    return action


def _written(value: object) -> str | None:
    """Return a string or number as an action; None for anything else."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = int(value) if value.is_integer() and abs(value) <= _MOST_EXACT else value
    is_action = isinstance(value, str | int | float) and not isinstance(value, bool)
    return str(value).strip() if is_action else None


def _rest_of_line(text: str, place: int) -> str:
    end = text.find("\n", place)
    return text[place : end if end >= 0 else len(text)]


def parse_plain(completion: str) -> str | None:
    """Return the whole completion, stripped; None if empty.

    >>> parse_plain(" up ")
    'up'
    """
    return completion.strip() or None


_ALL = (
    ActionFormat(
        "tag",
        "write the action as <action>...</action>.",
        parse_tag,
        lambda a: f"<action>{a}</action>",
        partial(inner_elements, name="action"),
    ),
    ActionFormat("boxed", "write the action as \\boxed{...}.", parse_boxed, lambda a: f"\\boxed{{{a}}}", boxes),
    ActionFormat(
        "json",
        'write the action as one line of JSON: {"action": "..."}.',
        parse_json,
        lambda a: json.dumps({"action": a}, ensure_ascii=False),
        object_spans,
    ),
    ActionFormat("plain", "write the action and nothing else.", parse_plain, lambda a: a),
)
FORMATS: Mapping[str, ActionFormat] = MappingProxyType({item.name: item for item in _ALL})
TAG, AUTO = "tag", "auto"
"""``auto`` is the environment's notation if it defines one, else ``tag``."""
_OWN = ActionFormat("own", "", parse_plain, lambda a: a, any_calls)


def action_format(name: str, finds_action: bool = False) -> ActionFormat:
    """Return the format with a name.

    Args:
        name: A name in :data:`FORMATS`, or ``auto``.
        finds_action: True if the environment finds the action in a whole completion, see
            :attr:`turngym.envs.core.TextEnv.finds_action`.

    Raises:
        UnknownName: There is no such format.

    >>> action_format("auto").sentence, action_format("auto", finds_action=True).sentence
    ('Answer format: write the action as <action>...</action>.', '')
    """
    if name == AUTO:
        return _OWN if finds_action else FORMATS[TAG]
    if name not in FORMATS:
        raise UnknownName(f"no action format named {name!r}. {nearest(name, (AUTO, *FORMATS))}")
    return FORMATS[name]
