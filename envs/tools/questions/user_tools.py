"""Functions of the user as tools of a question: each takes one text and returns what the agent reads."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from turngym.errors import ConfigError
from turngym.loading import Wanted, load_object, require_call

_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
_WANTED = Wanted("a tool", "a function tool(text) that returns a text", callable)


class UserTool(NamedTuple):
    """A function that an agent may call.

    Args:
        call: Function of the text in the call.
        description: First sentence of its docstring, for the rules.
    """

    call: Callable[[str], Any]
    description: str


def load_tools(places: Iterable[str], taken: Collection[str]) -> dict[str, UserTool]:
    """Return name -> tool.

    Args:
        places: ``path/to/file.py:function`` or ``module:function``.
        taken: Names of other calls.

    Raises:
        UnknownName: There is no such file, module or function.
        BrokenCode: The file cannot be imported.
        ConfigError: It is no function of one text, or its name cannot be that of a call.

    >>> load_tools(["textwrap:dedent"], {"python"})["dedent"].call("  x")
    'x'
    """
    found: dict[str, UserTool] = {}
    for place in places:
        if ":" not in place:
            raise ConfigError(f"tools has python and functions path/to/file.py:function, got {place[:100]!r}.")
        function = load_object(place, _WANTED)
        name = place.rpartition(":")[2]
        if not _NAME.fullmatch(name) or name in taken or name in found:
            raise ConfigError(f"the tool {place} needs a unique name of lower-case letters, digits and _: rename it.")
        require_call(function, f"the tool {place}", "one text")
        words = " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())
        found[name] = UserTool(function, words or f"calls {name} with the text")
    return found
