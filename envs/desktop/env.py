"""Tasks on a desktop (after OSWorld, Xie et al. 2024): real programs, mouse and keyboard, judged by the saved files.

Every environment has a display of its own in a sandbox without network. A turn ends when the programs are idle and the
picture is stable, however long that takes; there are no fixed delays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from turngym.envs.core import MaxTurns, Outcome
from turngym.envs.desktop.actions import FORMAT, read
from turngym.envs.desktop.folder import Folder
from turngym.envs.desktop.goals.base import Goal, next_action
from turngym.envs.desktop.goals.table import GOALS
from turngym.envs.desktop.sandbox import require_programs
from turngym.envs.desktop.session import DesktopFault, Window
from turngym.envs.desktop.sheets import Sheet, shown
from turngym.envs.desktop.slot import DesktopSlot
from turngym.envs.pictures import PictureEnv
from turngym.envs.settings import worded
from turngym.envs.validation import refuse_task, require_running
from turngym.errors import ConfigError, SnapshotUnsupported, UnknownName, nearest
from turngym.options import between
from turngym.types import JSONValue

SIZE = 800, 600
_RULES = """You work at a desktop of {width} x {height} pixels, with mouse and keyboard. The programs are the text
editor Mousepad and the spreadsheet Gnumeric; all files lie in the folder ~. What counts are the saved files when you
say done.
Answer with one action:
{format}
You have {turns} turns."""
_UNREAD = "Unknown action: answer with one action such as `click 40 20` or `key ctrl+s`."
_LARGEST_SEED = 2**31


class Desktop(PictureEnv):
    """Reach a goal with a text editor, a spreadsheet or both.

    The episode ends with the action ``done``; the reward is then 1 if the files meet the goal, else 0.
    ``info["progress"]`` is the share of the goal's parts that hold in the saved files. The observation contains the
    goal, the windows and the saved files; with ``image=True`` also the screen. Display and window manager are reused
    between episodes, programs and files are not.

    Equal seeds and actions give equal images, regardless of the speed of the machine and the agent, except for what a
    program takes from the clock: today's date, when a file was saved, the moving frame around copied cells. A display
    or program that dies or hangs raises :class:`DesktopFault`; in a vector it is a fault of one slot. A program that
    the agent closes is not a fault.
    """

    class Options(PictureEnv.Options):
        task: str | tuple[str, ...] = "all"
        """Name of a goal, a sequence of names, or ``"all"``; every reset samples one."""
        width: Annotated[int, between(800, 1920)] = SIZE[0]
        """Width of the display in pixels."""
        height: Annotated[int, between(600, 1200)] = SIZE[1]
        """Its height."""
        limit_seconds: Annotated[float, between(0.1, 600)] = 30.0
        """Maximum time of a turn, in seconds; beyond it the turn is a fault."""
        max_turns: MaxTurns = 30

    options: Options

    file_options = worded("task")

    def setup(self) -> None:
        options = self.options
        self.names = _goal_names(self.env_id, options.task)
        self.set_frame(options.height, options.width)
        require_programs(self.env_id)
        self.instructions = _RULES.format(
            width=options.width, height=options.height, format=FORMAT, turns=self.max_turns
        )
        self._slot = DesktopSlot(options.width, options.height, float(options.limit_seconds))
        self._name, self._seed = "", 0
        self._goal: Goal | None = None
        self._actions: list[str] = []
        self._files = ""

    @property
    def slot(self) -> DesktopSlot:
        """The display, the programs and the files."""
        return self._slot

    @property
    def goal(self) -> Goal:
        """The goal of the current episode.

        Raises:
            ConfigError: There has been no episode.
        """
        if self._goal is None:
            raise ConfigError(f"{self.env_id} has no goal before the first reset().")
        return self._goal

    @property
    def task(self) -> str:
        """The name of the current goal."""
        return self._name

    # The rules.

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        name, seed = self.draw(
            lambda generator: (
                self.names[int(generator.integers(len(self.names)))],
                int(generator.integers(_LARGEST_SEED)),
            ),
            lambda drawn: _build(*drawn).canonical,
        )
        self._play(name, seed, ())
        return f"Goal: {self.goal.text}\n{self._files}\n{windows_text(self._slot.windows)}"

    def _play(self, name: str, seed: int, actions: Sequence[str]) -> None:
        """Set up a goal and replay the actions."""
        self._name, self._seed, self._goal = name, seed, _build(name, seed)
        self._actions = []
        self._slot.begin(self._goal)
        for action in actions:
            self._do(action)
        self._files = files_text(self._folder)

    def _do(self, action: str) -> None:
        what = read(action)
        if what is not None and what.kind != "done":
            self._slot.act(what)
        self._actions.append(action)

    def apply_action(self, action: str) -> Outcome[str]:
        what = read(action)
        if what is None:
            return Outcome(_UNREAD, action_is_valid=False)
        width, height = self._frame[1], self._frame[0]
        if any(x >= width or y >= height for x, y in (what.at, what.to)):
            return Outcome(f"That is no point of the screen of {width} x {height}.", action_is_valid=False)
        try:
            self._do(action)
            if what.kind == "done":
                is_reached = self.goal.is_reached(self._folder)
                shown = "The goal is reached." if is_reached else "The goal is not reached."
                return Outcome(shown, float(is_reached), True, is_reached)
            return Outcome(self._seen())
        except DesktopFault:
            self._running = False
            self._slot.close()
            raise

    def _seen(self) -> str:
        """Return what is new: the windows, and any changed files."""
        before, self._files = self._files, files_text(self._folder)
        shown = windows_text(self._slot.windows)
        return shown if self._files == before else f"{self._files}\n{shown}"

    @property
    def _folder(self) -> Any:
        if self._slot.folder is None:
            raise DesktopFault("the desktop is closed")
        return self._slot.folder

    def anchor(self) -> str:
        ended = "\nended" if not self._running and self._success >= 0 else ""
        return f"{self.goal.text}\n{self._files}\n{windows_text(self._slot.windows)}\n{self._slot.digest}{ended}"

    def progress(self) -> float:
        return self.goal.progress(self._folder) if self._slot.folder is not None else 0.0

    def expert_action(self) -> str:
        """Return the next action of the goal's oracle: its plan, preceded by a repair where needed.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        return next_action(self.goal, self._actions)

    def render_image(self) -> NDArray[np.uint8]:
        return self._slot.picture()

    # Snapshots: the goal and the actions, replayed.

    def save_state(self) -> JSONValue:
        return {"task": self._name, "seed": self._seed, "actions": list(self._actions), "screen": self.anchor()}

    def load_state(self, state: JSONValue) -> None:
        name, seed, actions = state["task"], state["seed"], state["actions"]
        if name not in self.names or not isinstance(seed, int) or not all(isinstance(each, str) for each in actions):
            raise ValueError(f"task {name!r}, seed {seed!r}")
        self._play(name, seed, actions)
        if self.anchor() != state["screen"]:
            raise SnapshotUnsupported(
                f"replaying {self.env_id} diverged: other programs, or something that depends on the clock?"
            )

    def close(self) -> None:
        """End the display and all programs; a later reset starts new ones."""
        self._slot.close()
        super().close()


def _build(name: str, seed: int) -> Goal:
    return GOALS[name](np.random.default_rng(seed))


def _goal_names(env_id: str, task: str | Sequence[str]) -> tuple[str, ...]:
    known = tuple(sorted(GOALS))
    names = known if task == "all" else (task,) if isinstance(task, str) else tuple(task)
    if not names:
        raise ConfigError(f"{env_id} got no task: pass a name, several, or 'all'.")
    for name in names:
        if name not in known:
            raise UnknownName(f"{env_id} has no goal named {name!r}. {nearest(str(name), known)}")
    return names


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
