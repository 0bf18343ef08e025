"""Workbooks in Gnumeric's file format: written for a goal, read back to check it."""

from __future__ import annotations

import csv
import io
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias
from xml.etree import ElementTree
from xml.sax.saxutils import escape

Value: TypeAlias = str | float
Place: TypeAlias = tuple[int, int]
"""Row and column, both from 0."""
_NAMESPACE = "{http://www.gnumeric.org/v10.dtd}"
_LARGEST_BYTES = 8 * 1024 * 1024
_LARGEST_REGION = 2000
_STRING, _NUMBER = 60, 40
_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<gnm:Workbook xmlns:gnm="http://www.gnumeric.org/v10.dtd">
<gnm:SheetNameIndex><gnm:SheetName gnm:Cols="256" gnm:Rows="65536">{name}</gnm:SheetName></gnm:SheetNameIndex>
<gnm:Sheets><gnm:Sheet><gnm:Name>{name}</gnm:Name>
<gnm:Cols DefaultSizePts="60"><gnm:ColInfo No="0" Unit="90"/></gnm:Cols><gnm:Rows DefaultSizePts="15"/>
<gnm:Cells>
"""
_TAIL = "</gnm:Cells>\n</gnm:Sheet></gnm:Sheets></gnm:Workbook>\n"


@dataclass(frozen=True)
class Sheet:
    """One sheet of a workbook.

    Args:
        name: Its name.
        cells: Content of the cells: text, number or an unevaluated formula.
        bold: Cells with bold letters.
    """

    name: str
    cells: Mapping[Place, Value] = field(default_factory=dict)
    bold: frozenset[Place] = frozenset()

    def row(self, number: int, width: int) -> tuple[Value, ...]:
        """Return the first cells of a row, ``""`` for empty ones."""
        return tuple(self.cells.get((number, column), "") for column in range(width))

    def table(self) -> tuple[tuple[Value, ...], ...]:
        """Return all rows down to the last non-empty one, padded to the same width."""
        height = max((row + 1 for row, _ in self.cells), default=0)
        width = max((column + 1 for _, column in self.cells), default=0)
        return tuple(self.row(row, width) for row in range(min(height, _LARGEST_REGION)))


def write(name: str, rows: Sequence[Sequence[Value]]) -> bytes:
    """Return a workbook of one sheet.

    >>> read(write("Stock", [["Lamp", 12.5]]))[0].cells
    {(0, 0): 'Lamp', (0, 1): 12.5}
    """
    lines = [
        f'<gnm:Cell Row="{row}" Col="{column}" ValueType="{_STRING if isinstance(value, str) else _NUMBER}">'
        f"{escape(shown(value))}</gnm:Cell>\n"
        for row, values in enumerate(rows)
        for column, value in enumerate(values)
        if value != ""
    ]
    return (_HEAD.format(name=escape(name)) + "".join(lines) + _TAIL).encode()


def shown(value: Value) -> str:
    """Return a value as it is typed.

    >>> shown(3.0), shown(0.5), shown("x")
    ('3', '0.5', 'x')
    """
    return value if isinstance(value, str) else f"{value:.10g}"


def read(content: bytes) -> tuple[Sheet, ...]:
    """Return the sheets of a workbook; an empty list if the content is not a Gnumeric workbook."""
    try:
        if content[:2] == b"\x1f\x8b":
            content = zlib.decompressobj(31).decompress(content, _LARGEST_BYTES)
        root = ElementTree.fromstring(content[:_LARGEST_BYTES])
        return tuple(_sheet(each) for each in root.iter(f"{_NAMESPACE}Sheet"))
    except (ElementTree.ParseError, zlib.error, ValueError, KeyError, LookupError, TypeError):
        return ()


def _sheet(element: ElementTree.Element) -> Sheet:
    cells: dict[Place, Value] = {}
    for cell in element.iter(f"{_NAMESPACE}Cell"):
        place = int(cell.attrib["Row"]), int(cell.attrib["Col"])
        text = cell.text or ""
        kind = int(cell.attrib.get("ValueType", 0))
        cells[place] = float(text) if kind in (30, _NUMBER) else text or "="
    return Sheet(element.findtext(f"{_NAMESPACE}Name") or "", cells, frozenset(_bold(element)))


def _bold(element: ElementTree.Element) -> set[Place]:
    """Return the bold cells; only the start of an unbounded region."""
    found: set[Place] = set()
    for region in element.iter(f"{_NAMESPACE}StyleRegion"):
        font = region.find(f".//{_NAMESPACE}Font")
        if font is None or font.attrib.get("Bold") != "1":
            continue
        top, left, bottom, right = (int(region.attrib[key]) for key in ("startRow", "startCol", "endRow", "endCol"))
        found |= {
            (row, column)
            for row in range(top, min(bottom, top + 100) + 1)
            for column in range(left, min(right, left + 20) + 1)
        }
    return found


def has_formulas(sheets: Sequence[Sheet]) -> bool:
    """Return whether any cell is a formula."""
    return any(isinstance(value, str) and value.startswith("=") for sheet in sheets for value in sheet.cells.values())


def with_values(sheets: Sequence[Sheet], tables: Sequence[str]) -> tuple[Sheet, ...]:
    """Return the sheets with the values of their formulas, taken from one CSV table per sheet.

    >>> with_values([Sheet("a", {(0, 1): "=1+2"})], [",3"])[0].cells
    {(0, 1): 3.0}
    """
    found = []
    for number, sheet in enumerate(sheets):
        rows = list(csv.reader(io.StringIO(tables[number]))) if number < len(tables) else []
        cells = {
            place: _worked_out(rows, place) if isinstance(value, str) and value.startswith("=") else value
            for place, value in sheet.cells.items()
        }
        found.append(Sheet(sheet.name, cells, sheet.bold))
    return tuple(found)


def _worked_out(rows: Sequence[Sequence[str]], place: Place) -> Value:
    row, column = place
    text = rows[row][column] if row < len(rows) and column < len(rows[row]) else ""
    return float(text) if re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", text, re.IGNORECASE) else text
