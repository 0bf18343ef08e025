"""Run the code blocks of a page in order: ``python docs/generator/code_blocks.py PAGE``, in an empty folder.

Python blocks share one namespace, a block with a title is written to a file of that name, and shell blocks run line by
line. A block is left out only where the line before it says why: ``<!-- not run: a reason -->``; the options of
its commands must exist all the same.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

_BLOCK = re.compile(
    r"(?:<!-- not run: (?P<reason>[^>]+?) -->\n)?"
    r"^```(?P<language>python|sh|(?:json|toml|yaml)(?= title))(?: title=\"(?P<title>[^\"]+)\")?\n"
    r"(?P<code>.*?)^```",
    re.DOTALL | re.MULTILINE,
)


class Block(NamedTuple):
    """A code block of a page.

    Args:
        language: ``python``, ``sh``, or ``json``, ``toml`` or ``yaml`` for a file.
        code: What is in it.
        title: The file that it is; empty for a block that is run.
        reason: Why it is not run; empty if it is.
        line: The line of the page that its first line is, from 0.
    """

    language: str
    code: str
    title: str
    reason: str
    line: int = 0


def blocks(text: str) -> Iterator[Block]:
    r"""Read the code blocks of a page.

    >>> list(blocks("```sh\nturngym list\n```"))
    [Block(language='sh', code='turngym list\n', title='', reason='', line=1)]
    """
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("code"))
        yield Block(found["language"], found["code"], found["title"] or "", found["reason"] or "", line)


def commands(block: Block) -> Iterator[str]:
    """Return the command lines of a shell block; a line that ends with a backslash continues."""
    for line in block.code.replace("\\\n", " ").splitlines():
        if line.strip() and not line.startswith("#"):
            yield line


def start(line: str) -> None:
    """Run a command line."""
    print(f"$ {line}", flush=True)
    subprocess.run(line.replace("turngym", f"{sys.executable} -m turngym", 1), shell=True, check=True)


def run(block: Block, namespace: dict[str, Any], page: str, start: Callable[[str], object] = start) -> None:
    """Run one block, or check what can be checked of one that is not run; ``start`` runs a command line."""
    if block.title:
        Path(block.title).write_text(block.code, "utf8")
    elif block.reason:
        for line in commands(block):
            if line.startswith("turngym "):
                require_options(line)
    elif block.language == "python":
        exec(compile("\n" * block.line + block.code, page, "exec"), namespace)  # so tracebacks show the page's line
    else:
        for line in commands(block):
            start(line)


def require_options(line: str) -> None:
    """Raise unless the command exists and has every option that a line gives it."""
    words = shlex.split(line, comments=True)
    method = words[words.index("--algorithm") :][:2] if "--algorithm" in words else []  # its settings are options too
    text = help_of(words[1], *method)
    options = [word for word in words[2:] if word.startswith("-")]
    missing = [option for option in options if not re.search(rf"[ ,│]{re.escape(option)}[ ,\n]", text)]
    if missing:
        raise SystemExit(f"{line!r}: `turngym {words[1]}` has no {missing[0]}")


@functools.cache
def help_of(*words: str) -> str:
    """Return the help of a command with all options, in lines that hold the longest name."""
    from turngym.__main__ import main  # heavy, and few pages need it

    wide = {"COLUMNS": "200", "NO_COLOR": "1"}
    with mock.patch.dict(os.environ, wide), contextlib.redirect_stdout(io.StringIO()) as text:
        if main([*words, "--help-all"]):
            raise SystemExit(f"`turngym {words[0]}` has no help")
    return text.getvalue()


def main(page: str) -> int:
    """Run the blocks of a page."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(Path(page).read_text("utf8")):
        run(block, namespace, page)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
