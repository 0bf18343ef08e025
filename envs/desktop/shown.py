"""The text of observations: the windows and the saved files."""

from __future__ import annotations

from collections.abc import Sequence

from turngym.envs.desktop.folder import Folder
from turngym.envs.desktop.session import Window
from turngym.envs.desktop.sheets import Sheet, shown

_LONGEST_LINE = 120
_MOST_LINES = 20
_MOST_SHEETS = 4


def windows_text(windows: Sequence[Window]) -> str:
    """Return the windows, one per line, topmost first.

    >>> print(windows_text([Window("a.txt - Mousepad", "window", 0, 0, 800, 600, True)]))
    Windows, topmost first:
    - window "a.txt - Mousepad" at 0,0, 800 x 600, has the focus
    """
    if not windows:
        return "There are no windows."
    lines = ["Windows, topmost first:"]
    for each in windows:
        title = f' "{each.title[:_LONGEST_LINE]}"' if each.kind != "menu" else ""
        focus = ", has the focus" if each.has_focus else ""
        lines.append(f"- {each.kind}{title} at {each.x},{each.y}, {each.width} x {each.height}{focus}")
    return "\n".join(lines)


def files_text(folder: Folder) -> str:
    """Return the files with their contents, truncated where they are long."""
    found = []
    for name in folder.names():
        if name.endswith(".gnumeric"):
            found.append(f"Saved in ~/{name}:\n" + "\n".join(_sheet_lines(folder.book(name))))
        else:
            lines = [line[:_LONGEST_LINE] for line in (folder.text(name) or "").splitlines()[:_MOST_LINES]]
            found.append(f"Saved in ~/{name}:\n" + "\n".join(f"| {line}" for line in lines or [""]))
    return "\n".join(found) or "The folder ~ is empty."


def _sheet_lines(sheets: Sequence[Sheet]) -> list[str]:
    lines = []
    for sheet in sheets[:_MOST_SHEETS]:
        lines.append(f"sheet {sheet.name[:_LONGEST_LINE]}")
        for number, row in enumerate(sheet.table()[:_MOST_LINES], 1):
            lines.append(f"{number} | " + " | ".join(shown(value) for value in row)[:_LONGEST_LINE])
    return lines or ["no workbook"]
