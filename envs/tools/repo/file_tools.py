"""Tools that read and change files of a repository: view, search, edit. They never raise for what an agent asks."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from turngym.envs.tools.harbor.calls import TOOLS
from turngym.envs.tools.harbor.files import Entry
from turngym.envs.tools.terminal.task import ROOT
from turngym.envs.tools.tool_schema import Tool

VIEW, SEARCH, EDIT = "view", "search", "edit"
_MOST_HITS = 50
_LONGEST_LINE = 200
_LARGEST = 2**20
_LONGEST_NAME, _LONGEST_PATH = 255, 1000
"""Bytes of the name and of the path of a new file."""
_TEXT, _NUMBER = {"type": "string"}, {"type": "integer", "minimum": 1}
Files = Mapping[str, Entry]
Write = Callable[[str, bytes], None]


class Problem(Exception):
    """Reason why a tool did nothing, as the agent reads it."""


class FileTool(NamedTuple):
    """A tool and what runs it: the files, how to write one, and the arguments give the observation."""

    tool: Tool
    use: Callable[[Files, Write, Mapping[str, Any]], str]


def _entry(files: Files, path: str) -> tuple[str, Entry]:
    """Return path and entry of a file or folder of the repository.

    Raises:
        Problem: There is none.
    """
    name = posixpath.normpath(posixpath.join(f"/{ROOT}", path)).removeprefix(f"/{ROOT}").removeprefix("/")
    if name in ("", "."):
        return "", Entry("folder")
    found = files.get(name)
    if found is None:
        raise Problem(f"there is no {path[:200]!r} in the repository")
    return name, found


def _text(files: Files, path: str) -> tuple[str, str]:
    """Return path and text of a file.

    Raises:
        Problem: It is not a file, or no text.
    """
    name, entry = _entry(files, path)
    if entry.kind != "file" or len(entry.data) > _LARGEST:
        raise Problem(f"{name[:200]} is no regular file of at most {_LARGEST:,} bytes")
    try:
        return name, entry.data.decode("utf8")
    except UnicodeDecodeError:
        raise Problem(f"{name[:200]} is no text in UTF-8") from None


def view(files: Files, write: Write, given: Mapping[str, Any]) -> str:
    """Return lines of a file with their numbers, or what a folder holds."""
    name, entry = _entry(files, given["path"])
    if entry.kind == "folder":
        prefix = f"{name}/" if name else ""
        inner = {path.removeprefix(prefix): each for path, each in files.items() if path.startswith(prefix)}
        return "\n".join(
            sorted(f"{path}/" if each.kind == "folder" else path for path, each in inner.items() if "/" not in path)
        )
    lines = _text(files, name)[1].split("\n")
    first, last = given.get("first", 1), given.get("last", len(lines))
    shown = [f"{number:5}  {line}" for number, line in enumerate(lines, 1) if first <= number <= last]
    if not shown:
        raise Problem(f"{name} has {len(lines)} lines, and none from {first} to {last}")
    return "\n".join(shown)


def search(files: Files, write: Write, given: Mapping[str, Any]) -> str:
    """Return the lines that hold a text, with file and number."""
    name, _ = _entry(files, given.get("path", ""))
    if not given["text"]:
        raise Problem("the text is empty")
    hits = list[str]()
    for path, entry in files.items():
        is_below = not name or path == name or path.startswith(f"{name}/")
        if not is_below or path.startswith(".git/") or entry.kind != "file" or len(entry.data) > _LARGEST:
            continue
        for number, line in enumerate(entry.data.decode("utf8", "replace").split("\n"), 1):
            if given["text"] in line:
                hits.append(f"{path}:{number}: {line.strip()[:_LONGEST_LINE]}")
    more = len(hits) - _MOST_HITS
    return "\n".join([*hits[:_MOST_HITS], *([f"and {more} more"] if more > 0 else [])]) or "No line holds it."


def _can_be_made(path: str, name: str) -> bool:
    """Return whether a file can have a path, whose folder is there, and a name: a name of text, neither too long."""
    try:
        size = len(name.encode("utf8"))
    except UnicodeEncodeError:  # half a character
        return False
    is_short = size <= _LONGEST_NAME and len(path.encode("utf8", "surrogateescape")) <= _LONGEST_PATH
    return is_short and name not in ("", ".", "..") and "\0" not in name


def edit(files: Files, write: Write, given: Mapping[str, Any]) -> str:
    """Replace a text that occurs once in a file, or create a file."""
    if not given["old"]:
        folder, name = posixpath.split(posixpath.normpath(given["path"]))
        place, entry = _entry(files, folder)
        path = f"{place}/{name}" if place else name
        if entry.kind != "folder" or path in files or not _can_be_made(path, name):
            raise Problem(f"{given['path'][:200]!r} is there already, or no file can be created there")
        write(path, given["new"].encode("utf8", "replace"))
        return f"Created {path}."
    path, text = _text(files, given["path"])
    count = text.count(given["old"])
    if count != 1:
        raise Problem(f"the old text occurs {count} times in {path}, and must occur once")
    write(path, text.replace(given["old"], given["new"]).encode("utf8", "replace"))
    line = text[: text.index(given["old"])].count("\n") + 1
    return f"Changed {path} at line {line}."


def _tool(name: str, description: str, required: Mapping[str, Any], **more: Any) -> Tool:
    fields = {"type": "object", "properties": {**required, **more}, "required": list(required)}
    return Tool(name, description, {**fields, "additionalProperties": False}, str)


FILE_TOOLS: Mapping[str, FileTool] = {
    VIEW: FileTool(
        _tool(VIEW, "Show a file with line numbers, or a folder.", {"path": _TEXT}, first=_NUMBER, last=_NUMBER), view
    ),
    SEARCH: FileTool(_tool(SEARCH, "Find the lines that hold a text.", {"text": _TEXT}, path=_TEXT), search),
    EDIT: FileTool(
        _tool(
            EDIT,
            "Replace a text that occurs once in a file; with an empty old text, create the file.",
            {"path": _TEXT, "old": _TEXT, "new": _TEXT},
        ),
        edit,
    ),
}
ALL_TOOLS: Mapping[str, Tool] = {**{name: each.tool for name, each in FILE_TOOLS.items()}, **TOOLS}
"""Those, the shell, and ``submit``."""
