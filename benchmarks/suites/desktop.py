"""Every goal of the desktop, three instances of each, that training never shows."""

from __future__ import annotations

from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry
from turngym.envs.desktop.goals.editor import EDITOR_GOALS
from turngym.envs.desktop.goals.table import GOALS

_SEEDS = (11, 12, 13)


def _label(name: str) -> str:
    return f"turngym/Desktop-v0 task={name}"


SUITES.register("desktop")(
    Suite(
        name="desktop",
        version=1,
        description="Three instances of each of 23 goals with a text editor and a spreadsheet on a real display.",
        entries=tuple(SuiteEntry("turngym/Desktop-v0", {"task": name}, seeds=_SEEDS) for name in sorted(GOALS)),
        metric="success",
        protocol=(
            "Default options: 30 turns, a display of 800 x 600, one attempt at each goal. The observation is text: the "
            "goal, the windows, the files as they are saved. Success is judged by the files once the agent says done."
        ),
        families={
            "editor": tuple(map(_label, sorted(EDITOR_GOALS))),
            "spreadsheet": tuple(_label(name) for name in sorted(GOALS) if name not in EDITOR_GOALS),
        },
    )
)
