"""Progress of a run: bars on a terminal, lines in the log of a batch job."""

from __future__ import annotations

import io

import pytest

from turngym.terminal.console import Console
from turngym.trainers.loop.bars import Bars


@pytest.mark.parametrize(("is_terminal", "seconds", "lines"), [(False, 0.0, 2), (False, 1e6, 0), (True, 0.0, 0)])
def test_a_log_gets_lines_and_a_terminal_none(is_terminal: bool, seconds: float, lines: int) -> None:
    written = io.StringIO()
    with Bars(Console(file=written, force_terminal=is_terminal, width=80), seconds) as progress:
        task = progress.add_task("train", total=3, note="")
        for done in (1, 2, 3):
            progress.update(task, completed=done, note=f"success {done} %")
    told = [line for line in written.getvalue().splitlines() if line.startswith("    train ") and "/3  success" in line]
    assert told == [f"    train {done}/3  success {done} %" for done in (1, 2)][:lines]
    assert "success 3 %" in written.getvalue(), "the finished bar is shown in any case"
