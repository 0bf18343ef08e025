"""Goals for the text editor. The oracle's points are those of a display of 800 x 600 or more, in Debian's fonts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from turngym.envs.desktop.actions import typed
from turngym.envs.desktop.goals.base import EDITOR, Builder, Check, Goal, lines_are, program, unchanged
from turngym.envs.desktop.goals.words import FILES, ITEMS, NAMES, one, pick, sentence, sentences

_EDIT_MENU, _CONVERT, _TO_UPPERCASE = "click 62 12", "click 94 265", "click 450 290"
_DOCUMENT_MENU, _LINE_ENDING, _WINDOWS = "click 228 12", "click 253 138", "click 580 188"
_EVERYWHERE, _REPLACE = "click 204 398", "click 482 438"
_SAVE = "key ctrl+s"


def _spot(line: int, column: int = 0) -> str:
    """Return the point before a letter of the text, both counted from 0."""
    return f"{2 + 8 * column} {37 + 18 * line}"


def _content(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _goal(
    text: str,
    lines: Sequence[str],
    parts: Sequence[Check],
    plan: Sequence[str],
    *,
    name: str = "notes.txt",
    others: Mapping[str, bytes] | None = None,
    kept: Sequence[Check] = (),
) -> Goal:
    """Return a goal on a text file that the editor shows."""
    content = _content(lines)
    again = [typed("\n".join(lines) + "\n")] if lines else ["key Delete"]
    return Goal(
        text=text,
        files={name: content, **(others or {})},
        programs=(program(EDITOR, name, *(others or {})),),
        parts=parts,
        kept=kept,
        plan=plan,
        repair=("key Escape", "key Escape", "key ctrl+a", *again, "key ctrl+Home"),
    )


def _write_note(generator: np.random.Generator) -> Goal:
    """Write a text into an empty file."""
    text = sentences(generator, 2)
    return _goal(
        f"Write two lines into the empty file ~/notes.txt and save it. First line: {text[0]} Second line: {text[1]}",
        [],
        [lambda folder: folder.lines("notes.txt")[:1] == text[:1], lines_are("notes.txt", text)],
        ["click 400 300", typed("\n".join(text) + "\n"), _SAVE],
    )


def _add_line(generator: np.random.Generator) -> Goal:
    """Add a line at the end."""
    lines = sentences(generator, int(generator.integers(3, 7)))
    *before, last = lines
    return _goal(
        f"Add this line at the end of ~/notes.txt and save it: {last}",
        before,
        [lines_are("notes.txt", lines)],
        ["key ctrl+End", typed(last + "\n"), _SAVE],
    )


def _replace_word(generator: np.random.Generator) -> Goal:
    """Replace a name wherever it occurs."""
    old, new, other = pick(generator, NAMES, 3)
    lines = sentences(generator, int(generator.integers(5, 9)))
    for number in generator.permutation(len(lines))[:3]:
        rest = lines[number].split(" ", 1)[1]
        lines[number] = f"{old} {rest}"
    lines.append(f"{other} tells {old} everything.")
    wanted = [line.replace(old, new) for line in lines]
    changed = set(wanted) - set(lines)
    return _goal(
        f"Replace the name {old} by {new} wherever it occurs in ~/notes.txt, and save the file.",
        lines,
        [lambda folder: not set(folder.lines("notes.txt")).isdisjoint(changed), lines_are("notes.txt", wanted)],
        ["key ctrl+r", typed(old), "key Tab", typed(new), _EVERYWHERE, _REPLACE, "key Escape", _SAVE],
    )


def _delete_line(generator: np.random.Generator) -> Goal:
    """Delete one of several lines."""
    lines = sentences(generator, int(generator.integers(4, 8)))
    number = int(generator.integers(len(lines)))
    left = [*lines[:number], *lines[number + 1 :]]
    return _goal(
        f"Delete the line that reads “{lines[number]}” from ~/notes.txt, and save the file.",
        lines,
        [lines_are("notes.txt", left)],
        [f"drag {_spot(number)} to {_spot(number + 1)}", "key Delete", _SAVE],
    )


def _save_copy(generator: np.random.Generator) -> Goal:
    """Save a file under another name."""
    lines = sentences(generator, 3)
    name = f"{one(generator, FILES)}-{int(generator.integers(10, 100))}.txt"
    return _goal(
        f"Save a copy of ~/notes.txt as ~/{name}; leave ~/notes.txt as it is.",
        lines,
        [lines_are(name, lines)],
        ["key ctrl+shift+s", "key ctrl+a", typed(f"{name}\n")],
        kept=[unchanged("notes.txt", _content(lines))],
    )


def _move_line(generator: np.random.Generator) -> Goal:
    """Move the first line to the end."""
    lines = pick(generator, ITEMS, int(generator.integers(4, 9)))
    return _goal(
        "Move the first line of ~/list.txt to the end of the file, and save it.",
        lines,
        [lines_are("list.txt", [*lines[1:], lines[0]])],
        [f"drag {_spot(0)} to {_spot(1)}", "key ctrl+x", "key ctrl+End", "key ctrl+v", _SAVE],
        name="list.txt",
    )


def _correct_word(generator: np.random.Generator) -> Goal:
    """Replace one word."""
    lines = pick(generator, ITEMS, 7)
    *lines, new = lines
    number = int(generator.integers(len(lines)))
    wanted = [*lines[:number], new, *lines[number + 1 :]]
    return _goal(
        f"In ~/list.txt, line {number + 1} should read {new} instead of {lines[number]}. Correct and save it.",
        lines,
        [lines_are("list.txt", wanted)],
        [f"double_click {_spot(number, 2)}", typed(new), _SAVE],
        name="list.txt",
    )


def _to_uppercase(generator: np.random.Generator) -> Goal:
    """Write one line in capital letters."""
    lines = sentences(generator, int(generator.integers(3, 7)))
    number = int(generator.integers(len(lines)))
    wanted = [*lines[:number], lines[number].upper(), *lines[number + 1 :]]
    return _goal(
        f"Turn line {number + 1} of ~/notes.txt into capital letters, and save the file.",
        lines,
        [lines_are("notes.txt", wanted)],
        [f"drag {_spot(number)} to {_spot(number + 1)}", _EDIT_MENU, _CONVERT, _TO_UPPERCASE, _SAVE],
    )


def _windows_endings(generator: np.random.Generator) -> Goal:
    """Use Windows line endings."""
    lines = sentences(generator, int(generator.integers(3, 7)))
    wanted = _content(lines).replace(b"\n", b"\r\n")
    return _goal(
        "Save ~/notes.txt with the line endings of Windows (CR LF).",
        lines,
        [lambda folder: folder.content("notes.txt") == wanted],
        [_DOCUMENT_MENU, _LINE_ENDING, _WINDOWS, _SAVE],
    )


def _copy_between(generator: np.random.Generator) -> Goal:
    """Copy a line of one file to the end of another."""
    lines, sums = sentences(generator, 4), pick(generator, ITEMS, 3)
    number = int(generator.integers(len(lines)))
    wanted = [*sums, lines[number]]
    other = _content(sums)
    goal = _goal(
        f"Two files are open. Add line {number + 1} of ~/notes.txt at the end of ~/list.txt too, and save ~/list.txt.",
        lines,
        [lines_are("list.txt", wanted)],
        ["key alt+2", "key ctrl+End", typed(lines[number] + "\n"), _SAVE],
        others={"list.txt": other},
        kept=[unchanged("notes.txt", _content(lines))],
    )
    return goal


def _write_unlike(generator: np.random.Generator) -> Goal:
    """Write letters that are not on an English keyboard."""
    word = one(generator, ("Straße", "naïve", "crème brûlée", "jalapeño", "žluťoučký", "λόγος", "смех", "Ångström"))
    line = f"{sentence(generator)[:-1]} – {word}."
    return _goal(
        f"Write this line into the empty file ~/notes.txt and save it: {line}",
        [],
        [lines_are("notes.txt", [line])],
        ["click 400 300", typed(line + "\n"), _SAVE],
    )


EDITOR_GOALS: Mapping[str, Builder] = {
    "add-line": _add_line,
    "copy-between-files": _copy_between,
    "correct-word": _correct_word,
    "delete-line": _delete_line,
    "move-line": _move_line,
    "replace-word": _replace_word,
    "save-copy": _save_copy,
    "to-uppercase": _to_uppercase,
    "windows-endings": _windows_endings,
    "write-foreign-words": _write_unlike,
    "write-note": _write_note,
}
