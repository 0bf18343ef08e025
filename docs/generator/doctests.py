"""An extension of mkdocstrings: examples in docstrings are shown as code wherever they stand."""

from __future__ import annotations

from typing import Any

import griffe


def fenced(text: str) -> str:
    r"""Put each run of doctest lines between fences.

    >>> fenced("Add.\n\n>>> 1 + 1\n2")
    'Add.\n\n```pycon\n>>> 1 + 1\n2\n```'
    """
    lines: list[str] = []
    is_open = False
    for line in [*text.splitlines(), ""]:
        if line.lstrip().startswith(">>>") and not is_open:
            lines.append("```pycon")
            is_open = True
        elif is_open and not line.strip():
            lines.append("```")
            is_open = False
        lines.append(line)
    return "\n".join(lines[:-1])


class Doctests(griffe.Extension):
    """Fences doctests."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Change the docstring of a module, class, function or attribute."""
        if obj.docstring and ">>>" in obj.docstring.value:
            obj.docstring.value = fenced(obj.docstring.value)

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Change the docstring of the package itself."""
        self.on_object(obj=pkg)
