"""Extracting the action from a completion: named formats, each with its instruction and its parser."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType

from turngym.envs.parsing.json_text import MOST_TRIES
from turngym.envs.parsing.scanning import inside_braces, last_element
from turngym.errors import UnknownName, nearest


@dataclass(frozen=True)
class ActionFormat:
    """How an action is written inside a completion.

    Args:
        name: Name of the format.
        instruction: Instruction for the model.
        parse: Converts a completion to the action text; None where there is no action.
        write: Converts an action text to the shortest completion that contains it.
    """

    name: str
    instruction: str
    parse: Callable[[str], str | None]
    write: Callable[[str], str]

    @property
    def sentence(self) -> str:
        """What the rules are followed by; empty where they say it all."""
        return f"Answer format: {self.instruction}" if self.instruction else ""

    def action_of(self, completion: str) -> str:
        """Return the action text, or else an error text that no environment accepts as an action."""
        action = self.parse(completion)
        if action is not None:
            return action
        return f"(no action found: {self.instruction})" if self.instruction else "(no action found)"


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
    start = completion.rfind("\\boxed{")
    found = None if start < 0 else inside_braces(completion, start + len("\\boxed"))
    return None if found is None else found.strip()


def parse_json(completion: str) -> str | None:
    r"""Return the ``action`` of the last JSON object on a line of its own, of the last lines that begin as one.

    >>> parse_json('I go up.\n{"action": "up"}')
    'up'
    """
    lines = completion.split("\n")  # splitlines() also cuts at U+2028, which JSON texts may hold
    for line in islice((line for line in reversed(lines) if line.lstrip()[:1] == "{"), MOST_TRIES):
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(content, dict) and isinstance(content.get("action"), str):
            return str(content["action"]).strip()
    return None


def parse_plain(completion: str) -> str | None:
    """Return the whole completion, stripped; None where nothing is left.

    >>> parse_plain(" up ")
    'up'
    """
    return completion.strip() or None


_ALL = (
    ActionFormat("tag", "write the action as <action>...</action>.", parse_tag, lambda a: f"<action>{a}</action>"),
    ActionFormat("boxed", "write the action as \\boxed{...}.", parse_boxed, lambda a: f"\\boxed{{{a}}}"),
    ActionFormat(
        "json",
        'write the action as one line of JSON: {"action": "..."}.',
        parse_json,
        lambda a: json.dumps({"action": a}, ensure_ascii=False),
    ),
    ActionFormat("plain", "write the action and nothing else.", parse_plain, lambda a: a),
)
FORMATS: Mapping[str, ActionFormat] = MappingProxyType({item.name: item for item in _ALL})
TAG, AUTO = "tag", "auto"
"""``auto`` is the environment's own notation where it has one, else ``tag``."""
_OWN = ActionFormat("own", "", parse_plain, lambda a: a)


def action_format(name: str, finds_action: bool = False) -> ActionFormat:
    """Return the format of that name.

    Args:
        name: A name in :data:`FORMATS`, or ``auto``.
        finds_action: Whether the environment finds an action in a whole answer by a notation of its own, see
            :attr:`turngym.envs.core.TextEnv.finds_action`.

    Raises:
        UnknownName: There is none.

    >>> action_format("auto").sentence, action_format("auto", finds_action=True).sentence
    ('Answer format: write the action as <action>...</action>.', '')
    """
    if name == AUTO:
        return _OWN if finds_action else FORMATS[TAG]
    if name not in FORMATS:
        raise UnknownName(f"no action format named {name!r}. {nearest(name, (AUTO, *FORMATS))}")
    return FORMATS[name]
