"""Goals for the spreadsheet, alone or with the text editor. The oracle's points are those of :mod:`.goals_editor`."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from turngym.arithmetic import float_sum
from turngym.envs.desktop.actions import typed
from turngym.envs.desktop.folder import Folder
from turngym.envs.desktop.goals.base import EDITOR, SPREADSHEET, Builder, Check, Goal, lines_are, program
from turngym.envs.desktop.goals.words import FILES, ITEMS, SHEETS, one, pick
from turngym.envs.desktop.sheets import Sheet, Value, shown, write

FILE = "table.gnumeric"
_HEAD = ("Item", "Price", "Count")
_SORT_UP = "click 597 43"
_TAB, _RENAME = "right_click 42 574", "click 103 483"
_DATA_MENU, _EXPORT, _AS_CSV = "click 391 12", "click 437 287", "click 185 313"
_SAVE = "key ctrl+s"
Rows = list[list[Value]]


def _cell(row: int, column: int) -> str:
    """Return the middle of a cell of the sheet, both counted from 0: the first column is wider."""
    return f"{116 if column == 0 else 136 + 80 * column} {202 + 20 * row}"


def _draw_rows(generator: np.random.Generator, low: int = 4, high: int = 7) -> Rows:
    """Return the rows of a table, the head first."""
    items = pick(generator, ITEMS, int(generator.integers(low, high)))
    prices = generator.permutation(np.arange(20, 400))[: len(items)] / 4
    counts = generator.permutation(np.arange(1, 60))[: len(items)]
    found: Rows = [[item, float(price), float(count)] for item, price, count in zip(items, prices, counts, strict=True)]
    return [list(_HEAD), *found]


def _holds(rows: Sequence[Sequence[Value]]) -> Check:
    """Return the check that the first sheet is this table, and nothing else is in it."""
    wanted = {(r, c): value for r, row in enumerate(rows) for c, value in enumerate(row) if value != ""}
    return lambda folder: _same(dict(folder.sheet(FILE).cells), wanted)


def _same(found: Mapping[tuple[int, int], Value], wanted: Mapping[tuple[int, int], Value]) -> bool:
    return found.keys() == wanted.keys() and all(_equal(found[place], value) for place, value in wanted.items())


def _equal(one: Value, other: Value) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return abs(one - other) < 1e-6


def _is(row: int, column: int, value: Value) -> Check:
    """Return the check that a cell of the first sheet has a value, however it is computed."""
    return lambda folder: _equal(folder.sheet(FILE).cells.get((row, column), ""), value)


def _goal(
    text: str,
    rows: Rows,
    parts: Sequence[Check],
    plan: Sequence[str],
    *,
    kept: Sequence[Check] = (),
    sheet: str = "Stock",
) -> Goal:
    again = "".join("\t".join(shown(value) for value in row) + "\n" for row in rows)
    return Goal(
        text=text,
        files={FILE: write(sheet, rows)},
        programs=(program(SPREADSHEET, FILE),),
        parts=parts,
        kept=kept,
        plan=plan,
        repair=("key Escape", "key Escape", "key ctrl+Home", typed(again), "key ctrl+Home"),
    )


def _fill_cells(generator: np.random.Generator) -> Goal:
    """Fill in two cells that are named by their place."""
    rows = _draw_rows(generator)
    (first, second), extra = generator.permutation(np.arange(1, len(rows)))[:2], pick(generator, SHEETS, 2)
    places = [(int(first), extra[0]), (int(second), extra[1])]
    wanted = [[*row, dict(places).get(number, "")] for number, row in enumerate(rows)]
    words = " and ".join(f"{word} in the cell D{row + 1}" for row, word in places)
    plan = [step for row, word in places for step in (f"click {_cell(row, 3)}", typed(f"{word}\n"))]
    parts = [_is(row, 3, word) for row, word in places]
    return _goal(f"Write {words} of ~/{FILE}, and save it.", rows, parts, [*plan, _SAVE], kept=[_holds(wanted)])


def _correct_price(generator: np.random.Generator) -> Goal:
    """Change the price of an item."""
    rows = _draw_rows(generator)
    number, price = int(generator.integers(1, len(rows))), float(generator.integers(100, 400))
    wanted = [[*row] for row in rows]
    wanted[number][1] = price
    return _goal(
        f"The price of {rows[number][0]} in ~/{FILE} should be {shown(price)}. Correct and save it.",
        rows,
        [_holds(wanted)],
        [f"click {_cell(number, 1)}", typed(f"{shown(price)}\n"), _SAVE],
    )


def add_row(generator: np.random.Generator) -> Goal:
    """Add a row below the others."""
    *rows, new = _draw_rows(generator, 5, 8)
    end = len(rows)
    item, price, count = (shown(value) for value in new)
    return _goal(
        f"Add a row below the others in ~/{FILE} and save it: item {item}, price {price}, count {count}.",
        rows,
        [_is(end, column, value) for column, value in enumerate(new)],
        [f"click {_cell(end, 0)}", typed(f"{item}\t{price}\t{count}\n"), _SAVE],
        kept=[_holds([*rows, new])],
    )


def _delete_row(generator: np.random.Generator) -> Goal:
    """Delete the row of an item, so that those below move up."""
    rows = _draw_rows(generator, 4, 6)
    number = int(generator.integers(1, min(len(rows), 5)))
    y = 202 + 20 * number
    return _goal(
        f"Delete the row of {rows[number][0]} from ~/{FILE} so that no empty row is left, and save it.",
        rows,
        [_holds([*rows[:number], *rows[number + 1 :]])],
        [f"right_click 28 {y}", f"click 105 {y + 142}", _SAVE],
    )


def total(generator: np.random.Generator) -> Goal:
    """Compute the sum of a column."""
    rows = _draw_rows(generator)
    end, column = len(rows), int(generator.integers(1, 3))
    letter, result = "ABC"[column], float_sum(float(row[column]) for row in rows[1:])
    return _goal(
        f"Put the sum of the column {_HEAD[column]} into the cell {letter}{end + 1} of ~/{FILE}, and save it.",
        rows,
        [_is(end, column, result)],
        [f"click {_cell(end, column)}", typed(f"=SUM({letter}2:{letter}{end})\n"), _SAVE],
    )


def multiply(generator: np.random.Generator) -> Goal:
    """Compute price times count for every row."""
    rows = _draw_rows(generator, 3, 5)
    results = [float(row[1]) * float(row[2]) for row in rows[1:]]
    formulas = "".join(f"=B{number}*C{number}\n" for number in range(2, len(rows) + 1))
    return _goal(
        f"For each item in ~/{FILE}, put price times count into the column D of its row, and save it.",
        rows,
        [_is(number, 3, result) for number, result in enumerate(results, 1)],
        [f"click {_cell(1, 3)}", typed(formulas), _SAVE],
    )


def _bold_head(generator: np.random.Generator) -> Goal:
    """Set the head of the table in bold letters."""
    rows = _draw_rows(generator)
    head = {(0, 0), (0, 1), (0, 2)}
    others = {(row, column) for row in range(1, len(rows)) for column in range(3)}

    def bold(wanted: Callable[[Sheet], bool]) -> Check:
        return lambda folder: wanted(folder.sheet(FILE))

    return _goal(
        f"Set the first row of the table in ~/{FILE}, A1 to C1, in bold letters and nothing else, and save it.",
        rows,
        [bold(lambda sheet: head <= sheet.bold)],
        [f"drag {_cell(0, 0)} to {_cell(0, 2)}", "key ctrl+b", _SAVE],
        kept=[bold(lambda sheet: not others & sheet.bold), _holds(rows)],
    )


def _sort_rows(generator: np.random.Generator) -> Goal:
    """Sort the rows by their items."""
    rows = _draw_rows(generator, 4, 8)
    if rows[1:] == sorted(rows[1:]):
        rows[1:] = rows[:0:-1]
    return _goal(
        f"Sort the rows below the head of the table in ~/{FILE} by item, from A to Z, and save it.",
        rows,
        [_holds([rows[0], *sorted(rows[1:])])],
        [f"drag {_cell(1, 0)} to {_cell(len(rows) - 1, 2)}", _SORT_UP, _SAVE],
    )


def _rename_sheet(generator: np.random.Generator) -> Goal:
    """Give the sheet another name."""
    rows = _draw_rows(generator)
    old, new = pick(generator, SHEETS, 2)
    return _goal(
        f"Rename the sheet {old} of ~/{FILE} to {new}, and save it.",
        rows,
        [lambda folder: [sheet.name for sheet in folder.book(FILE)] == [new]],
        [_TAB, _RENAME, "key ctrl+a", typed(f"{new}\n"), _SAVE],
        kept=[_holds(rows)],
        sheet=old,
    )


def _replace_item(generator: np.random.Generator) -> Goal:
    """Replace a word wherever it occurs."""
    rows = _draw_rows(generator, 5, 8)
    old, new = str(rows[1][0]), one(generator, [item for item in ITEMS if item not in {row[0] for row in rows}])
    for number in (int(each) for each in generator.permutation(np.arange(2, len(rows)))[:2]):
        rows[number][0] = old
    return _goal(
        f"Replace {old} by {new} wherever it occurs in ~/{FILE}, and save it.",
        rows,
        [_holds([[new if value == old else value for value in row] for row in rows])],
        ["key ctrl+h", typed(f"{old}\t{new}\n"), _SAVE],
    )


def _export_csv(generator: np.random.Generator) -> Goal:
    """Export the table as CSV."""
    rows = _draw_rows(generator)
    name = f"{one(generator, FILES)}.csv"
    wanted = [[shown(value) for value in row] for row in rows]
    return _goal(
        f"Export the table of ~/{FILE} as CSV to the file ~/{name}.",
        rows,
        [lambda folder: list(csv.reader(io.StringIO(folder.text(name) or ""))) == wanted],
        [_DATA_MENU, _EXPORT, _AS_CSV, "key ctrl+a", typed(name), "key Return"],
        kept=[_holds(rows)],
    )


def _copy_price(generator: np.random.Generator) -> Goal:
    """Write into a text file what a sheet says."""
    rows = _draw_rows(generator)
    number = int(generator.integers(1, len(rows)))
    line = f"{rows[number][0]}: {shown(rows[number][1])}"
    before = pick(generator, SHEETS, 2)
    goal = _goal("", rows, [], [])

    def has_line(folder: Folder) -> bool:
        return line in folder.lines("notes.txt")

    return Goal(
        text=(
            f"Add a line to the end of ~/notes.txt that says what {rows[number][0]} costs according to ~/{FILE}, "
            f"such as `Lamp: 12.5`, and save ~/notes.txt."
        ),
        files={**goal.files, "notes.txt": "".join(f"{word}\n" for word in before).encode()},
        programs=(program(SPREADSHEET, FILE), program(EDITOR, "notes.txt")),
        parts=[has_line, lines_are("notes.txt", [*before, line])],
        kept=[_holds(rows)],
        plan=["click 400 300", "key ctrl+End", typed(line + "\n"), _SAVE],
        repair=("key Escape", "key Escape", "key ctrl+a", typed("".join(f"{word}\n" for word in before))),
    )


SHEET_GOALS: Mapping[str, Builder] = {
    "add-row": add_row,
    "bold-head": _bold_head,
    "copy-price-to-notes": _copy_price,
    "correct-price": _correct_price,
    "delete-row": _delete_row,
    "export-csv": _export_csv,
    "fill-cells": _fill_cells,
    "multiply-columns": multiply,
    "rename-sheet": _rename_sheet,
    "replace-item": _replace_item,
    "sort-rows": _sort_rows,
    "sum-column": total,
}
