"""MiniWoB++ (Shi et al. 2017, Liu et al. 2018; 130 tasks as kept by Farama) on a pool of real browsers.

The package miniwob provides the pages. Their clock stands still while the agent thinks: each turn advances it by a
fixed amount, so that an episode depends only on its seed and actions. The agent has mouse and keyboard, but no
scripting.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from turngym.envs.core import MaxTurns, Outcome, TextEnv
from turngym.envs.pictures import PictureEnv
from turngym.envs.settings import worded
from turngym.envs.validation import refuse_task, require_running
from turngym.envs.web.driver.actions import FORMAT, read
from turngym.envs.web.driver.browser import VIEWPORT
from turngym.envs.web.driver.chromium import find_browser, require_playwright
from turngym.envs.web.driver.page import listed_actions
from turngym.envs.web.miniwob.oracles import ORACLES, WITHOUT_ORACLE
from turngym.envs.web.miniwob.oracles.base import View
from turngym.envs.web.miniwob.page import MiniWoBPage
from turngym.envs.web.miniwob.screen import BLANK, Screen
from turngym.envs.web.miniwob.tasks import TASKS, pages_folder
from turngym.errors import ConfigError, SnapshotUnsupported, UnknownName, nearest
from turngym.options import between
from turngym.types import JSONValue

_RULES = """You see a web page as a list of its elements, each with its number in brackets. Do what the task asks.
Answer with one action:
{format}
You have {turns} turns."""
_UNREAD = "Unknown action: answer with one action such as `click 3` or `fill 4 some text`."
_LARGEST_SEED = 2**31
SUCCESS = 0.8
"""Reward from which an episode counts as solved; tolerates one pixel where a page rewards precision."""


class MiniWoB(PictureEnv):
    """One or several tasks of MiniWoB++; every reset samples one.

    An episode ends when its page says so, with a reward from -1 to 1; success is a reward of at least
    :data:`SUCCESS`, before any decay. Splits share no seed, but two seeds may give the same page where a task has few.
    Dialogs are dismissed and quoted; the action ``accept``, or ``accept TEXT``, accepts those that the next action
    opens. The environment offers its calls as coroutines too, so the vector backend ``asyncio`` overlaps the slots; all
    environments of a process share its browsers.
    """

    class Options(PictureEnv.Options):
        task: str | tuple[str, ...] = "click-button"
        """Name of a task, a sequence of names, or ``"all"``."""
        observation: Literal["page", "tree"] = "page"
        """Text observation: ``"page"``, the visible elements of the document with their properties, or ``"tree"``,
        Chromium's accessibility tree, without places and colours. Both number the elements alike."""
        time_decay: bool = False
        """True if the reward shrinks linearly with the turns, as the original's does with seconds."""
        turn_ms: Annotated[int, between(0, 60000)] = 1000
        """How far a turn advances the page's clock, in milliseconds."""
        marks: bool = True
        """True if the screenshot shows the numbers of the elements."""
        width: Annotated[int, between(332, 2000)] = VIEWPORT[0]
        """Width of the page in pixels; below 332 some dialogs have their buttons outside."""
        height: Annotated[int, between(210, 2000)] = VIEWPORT[1]
        """Height of the page in pixels."""
        max_turns: MaxTurns = 30

    options: Options

    file_options = worded("task", "observation")
    score_range = (-1.0, 1.0)

    tasks_with_oracle: ClassVar[tuple[str, ...]] = tuple(sorted(ORACLES))
    """Tasks that ``expert_action`` solves."""

    def setup(self) -> None:
        options = self.options
        self.names = _task_names(self.env_id, options.task)
        self.set_frame(options.height, options.width)
        require_playwright(self.env_id)
        pages_folder()
        find_browser(self.env_id)
        self.instructions = _RULES.format(format=FORMAT, turns=self.max_turns)
        self._time_decay = options.time_decay
        self._marks = options.marks
        limit_ms = (self.max_turns + 1) * max(options.turn_ms, 1) if options.time_decay else 10**9
        with_tree = options.observation == "tree"
        self._page = MiniWoBPage(
            (options.width, options.height), options.turn_ms, limit_ms, with_image=self.image, with_tree=with_tree
        )
        weakref.finalize(self, MiniWoBPage.let_go, self._page)
        self._task, self._seed = self.names[0], 0
        self._screen: Screen = BLANK
        self._actions: list[str] = []
        self._is_deferred = False
        self._prepared: tuple[str, Screen] | None = None

    @property
    def screen(self) -> Screen:
        """Elements of the page with all their properties."""
        return self._screen

    @property
    def task(self) -> str:
        """The task of the current episode."""
        return self._task

    @property
    def events(self) -> dict[str, int]:
        """Counts of what the pages were prevented from doing: dialogs, popups, downloads."""
        return dict(self._page.events)

    # The rules.

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        self._task, self._seed = self.draw(
            lambda generator: (
                self.names[int(generator.integers(len(self.names)))],
                int(generator.integers(_LARGEST_SEED)),
            ),
            lambda drawn: f"miniwob {drawn[0]} seed {drawn[1]}",
        )
        self._actions = []
        self._screen = BLANK
        if not self._is_deferred:
            self._screen = self._page.run(self._page.start(self._task, self._seed))
        return self._first()

    def _first(self) -> str:
        return f"Task: {self._screen.goal}\n{self._screen.page}"

    def apply_action(self, action: str) -> Outcome[str]:
        if read(action) is None:
            return Outcome(_UNREAD, action_is_valid=False)
        prepared, self._prepared = self._prepared, None
        if prepared is not None and prepared[0] == action:
            screen = prepared[1]
        else:
            screen = self._page.run(self._page.play(action, self._actions))
        self._actions.append(action)
        before, self._screen = self._screen, screen
        reward = screen.decayed_reward if self._time_decay else screen.raw_reward
        shown = screen.page
        if screen.goal != before.goal:
            shown = f"Task: {screen.goal}\n{shown}"
        if screen.problem:
            shown = f"That cannot be done: {screen.problem}.\n{shown}"
        if screen.notice:
            shown = f"{screen.notice}\n{shown}"
        reward = reward if screen.is_done else 0.0
        return Outcome(shown, reward, screen.is_done, screen.raw_reward >= SUCCESS, not screen.problem)

    def anchor(self) -> str:
        return f"{self._screen.goal}\n{self._screen.canonical}"

    def legal_actions(self) -> tuple[str, ...]:
        return listed_actions(self._screen.goal, self._screen.nodes)

    def progress(self) -> float:
        return float(self._success == 1)

    def score(self) -> float:
        return self._screen.raw_reward if self._screen.is_done else 0.0

    def expert_action(self) -> str:
        """Return the next action of the task's oracle, which reads the task and the page, nothing else.

        Raises:
            ConfigError: The task has no oracle, the oracle does not understand the page, or no episode is under way.
        """
        require_running(self)
        if self._task not in ORACLES:
            why = WITHOUT_ORACLE.get(self._task, "nobody wrote one")
            raise ConfigError(f"the task {self._task!r} of {self.env_id} has no oracle ({why}), so no expert action.")
        view = View(self._screen.goal, self._screen.nodes, tuple(self._actions))
        try:
            return ORACLES[self._task](view)
        except (LookupError, StopIteration, ValueError, AssertionError) as error:
            raise ConfigError(f"the oracle of {self._task} does not understand the page for {view.goal!r}.") from error

    # Coroutines, for the vector backend asyncio.

    async def async_reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a new episode; see ``reset``."""
        self._is_deferred = True
        try:
            TextEnv.reset(self, seed=seed, options=options)
        finally:
            self._is_deferred = self._running = False
        self._screen = await self._page.attend(self._page.start(self._task, self._seed))
        self._observation = self._first()
        self._running = True
        info = self._info()
        return (self._with_image(self._observation) if self.image else self._observation), info

    async def async_step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one turn; see ``step``."""
        if self._running and isinstance(action, str) and read(action) is not None:
            self._prepared = action, await self._page.attend(self._page.play(action, self._actions))
        return self.step(action)

    async def async_close(self) -> None:
        """Close the page."""
        await self._page.attend(self._page.close())
        PictureEnv.close(self)

    # Pictures.

    def render_image(self) -> NDArray[np.uint8]:
        from turngym.envs.web.driver.marks import decode, with_marks

        picture = decode(self._page.picture())
        return with_marks(picture, self._screen.nodes) if self._marks else picture

    # Snapshots: the seed and the actions, replayed.

    def save_state(self) -> JSONValue:
        return {"task": self._task, "seed": self._seed, "actions": list(self._actions), "screen": self._screen.text}

    def load_state(self, state: JSONValue) -> None:
        task, seed, actions = state["task"], state["seed"], state["actions"]
        if task not in self.names or not isinstance(seed, int) or not all(isinstance(each, str) for each in actions):
            raise ValueError(f"task {task!r}, seed {seed!r}")
        self._task, self._seed, self._actions = task, seed, list(actions)
        self._screen = self._page.run(self._page.replay(task, seed, self._actions))
        if self._screen.text != state["screen"]:
            raise SnapshotUnsupported(
                f"replaying {self.instance} of {self.env_id} diverged: was it recorded with another browser?"
            )

    def close(self) -> None:
        """Close the page; a later reset opens a new one."""
        self._page.shut()
        super().close()


def _task_names(env_id: str, task: str | Sequence[str]) -> tuple[str, ...]:
    names = TASKS if task == "all" else (task,) if isinstance(task, str) else tuple(task)
    if not names:
        raise ConfigError(f"{env_id} got no task: pass a name, several, or 'all'.")
    for name in names:
        if name not in TASKS:
            raise UnknownName(f"MiniWoB has no task named {name!r}. {nearest(str(name), TASKS)}")
    return names
