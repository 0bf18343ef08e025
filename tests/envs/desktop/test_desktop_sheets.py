"""Workbooks of Gnumeric, written and read back; what is not a workbook; sheets in goals."""

import gzip
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.desktop.env import files_text
from turngym.envs.desktop.folder import Folder
from turngym.envs.desktop.goals.table import GOALS
from turngym.envs.desktop.sheets import Sheet, has_formulas, read, shown, with_values, write

SAVED = """<?xml version="1.0" encoding="UTF-8"?>
<gnm:Workbook xmlns:gnm="http://www.gnumeric.org/v10.dtd"><gnm:Sheets><gnm:Sheet><gnm:Name>Stock</gnm:Name>
<gnm:Styles>
<gnm:StyleRegion startCol="0" startRow="0" endCol="1" endRow="0">
<gnm:Style><gnm:Font Unit="10" Bold="1">Sans</gnm:Font></gnm:Style></gnm:StyleRegion>
<gnm:StyleRegion startCol="2" startRow="5" endCol="255" endRow="65535">
<gnm:Style><gnm:Font Unit="10" Bold="{bold}">Sans</gnm:Font></gnm:Style></gnm:StyleRegion>
</gnm:Styles>
<gnm:Cells><gnm:Cell Row="0" Col="0" ValueType="60">a &amp; b</gnm:Cell>
<gnm:Cell Row="1" Col="0" ValueType="40">3.5</gnm:Cell><gnm:Cell Row="2" Col="0" ExprID="1">=SUM(A2)</gnm:Cell>
<gnm:Cell Row="3" Col="0" ExprID="1"/></gnm:Cells></gnm:Sheet></gnm:Sheets></gnm:Workbook>"""

VALUES = st.one_of(
    st.text(st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc"]), max_size=8),
    st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 3)),
)


@given(st.lists(st.lists(VALUES, max_size=4), max_size=5))
def test_what_is_written_is_read_back(rows: list[list[str | float]]) -> None:
    (sheet,) = read(write("A & <B>", rows))
    assert sheet.name == "A & <B>" and not sheet.bold
    wanted = {(r, c): value for r, row in enumerate(rows) for c, value in enumerate(row) if value != ""}
    assert dict(sheet.cells).keys() == wanted.keys()
    for place, value in wanted.items():
        assert shown(sheet.cells[place]) == shown(value)


def test_a_saved_workbook_is_read_with_its_styles_and_shared_formulas() -> None:
    for content in (SAVED.format(bold=0).encode(), gzip.compress(SAVED.format(bold=0).encode())):
        (sheet,) = read(content)
        assert dict(sheet.cells) == {(0, 0): "a & b", (1, 0): 3.5, (2, 0): "=SUM(A2)", (3, 0): "="}
        assert sheet.bold == {(0, 0), (0, 1)} and has_formulas([sheet])
    assert len(read(SAVED.format(bold=1).encode())[0].bold) < 5000  # a region to the end of the sheet is cut


@given(st.binary(max_size=200))
def test_what_is_no_workbook_has_no_sheets(content: bytes) -> None:
    assert read(content) == () and read(gzip.compress(content)) == ()


def test_what_wants_to_fill_the_memory_has_no_sheets() -> None:
    assert read(gzip.compress(b" " * 50_000_000)) == ()
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "x" * 100}">' for n in range(12))
    assert read(f"<!DOCTYPE a [{entities}]><a>&e11;</a>".encode()) == ()
    assert read(SAVED.format(bold=0).replace("3.5", "three").encode()) == ()


def test_formulas_take_the_values_of_the_table() -> None:
    sheet = Sheet("a", {(0, 0): "x", (1, 1): "=1+1", (2, 2): "=A1", (9, 9): "=B2"})
    (found,) = with_values([sheet], ['x,,\n,2,\n,,"some, text"\n'])
    assert dict(found.cells) == {(0, 0): "x", (1, 1): 2.0, (2, 2): "some, text", (9, 9): ""}
    assert with_values([sheet], [])[0].cells[1, 1] == ""
    assert found.table()[1] == ("", 2.0, *[""] * 8) and len(found.table()) == 10


def test_a_sum_counts_whoever_works_it_out_and_only_if_the_rest_stays(tmp_path: Path) -> None:
    goal = GOALS["correct-price"](np.random.default_rng(5))
    folder = Folder(tmp_path, lambda _: ())
    folder.fill(goal.files)
    rows = [list(row) for row in folder.sheet("table.gnumeric").table()]
    price = float(goal.text.split("should be ")[1].split(". Correct")[0])
    item = goal.text.split("price of ")[1].split(" in ~")[0]
    right = [[row[0], price, row[2]] if row[0] == item else row for row in rows]
    folder.fill({"table.gnumeric": write("Stock", right)})
    assert goal.is_reached(folder)
    folder.fill({"table.gnumeric": write("Stock", [*right, ["more", 1.0, 1.0]])})
    assert not goal.is_reached(folder)
    assert "| more | 1 | 1" in files_text(folder)


def test_formulas_are_worked_out_once_for_each_content(tmp_path: Path) -> None:
    asked = []

    def work_out(name: str) -> tuple[str, ...]:
        asked.append(name)
        return ("7\n",)

    folder = Folder(tmp_path, work_out)
    folder.fill({"t.gnumeric": SAVED.format(bold=0).replace('Row="2" Col="0"', 'Row="0" Col="0"').encode()})
    for _ in range(3):
        assert folder.sheet("t.gnumeric").cells[0, 0] == 7.0
    assert asked == ["t.gnumeric"]
    (tmp_path / "t.gnumeric").write_bytes(write("x", [["=1"]]))
    assert folder.sheet("t.gnumeric").cells[0, 0] == 7.0 and len(asked) == 2
    assert folder.sheet("none") == Sheet("")
