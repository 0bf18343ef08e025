"""WebSite: reach a goal on a web site of several pages, with or without a browser."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from turngym.envs.core import MaxTurns, Outcome, TextEnv
from turngym.envs.settings import worded
from turngym.envs.validation import refuse_task, require_running
from turngym.envs.web.driver.chromium import find_browser, require_playwright
from turngym.envs.website.actions import FORMAT, Move, listed, plan
from turngym.envs.website.goal import Goal, Verdict, judge, next_action
from turngym.envs.website.page import Page, text_of
from turngym.envs.website.session import BLANK, PlainTab, WebSiteSession
from turngym.envs.website.sites import KINDS, SITES, Instance, goal_of, world_of
from turngym.envs.website.store import Store
from turngym.errors import ExpertLost, nearest
from turngym.options import OptionError, between, one_of
from turngym.types import JSONValue

if TYPE_CHECKING:
    from turngym.envs.website.live import LiveTab

MIXED = "mixed"
_NUMBERS = 10**6
_RULES = """You use a web site to do a task. You see a page as text: [3] Name is a link, [3] (Name) a button,
[3] name = "text" a field, [3] name = one {{one, two}} a list to choose from, [3] name = no a box.
Answer with one action:
{format}
You have {turns} turns. Change nothing but what the task asks for."""
_UNREAD = "Unknown action: answer with one action such as `click 3` or `fill 4 some text`."


class WebSite(TextEnv[str]):
    """Reach a goal on a web site.

    The episode terminates with success and a reward of 1 as soon as the tables of the site meet the goal and nothing
    else in them has changed; the reward of every other turn is 0. The progress is the share of the goal's conditions
    that hold, where each unwanted change counts as one more that does not. The legal actions list texts quoted in the
    goal for filling fields; any other text is legal too.

    >>> env = WebSite(site="issues", kind="close")
    >>> observation, info = env.reset(seed=0)
    >>> while info["success"] < 0:
    ...     observation, reward, terminated, truncated, info = env.step(env.expert_action())
    >>> reward
    1.0
    """

    class Options(TextEnv.Options):
        site: Annotated[str, one_of(*SITES, MIXED)] = MIXED
        """``"issues"``, ``"mail"``, ``"shop"`` or ``"mixed"``."""
        kind: str | tuple[str, ...] = MIXED
        """A kind of goal of the site, several of them, or ``"mixed"``."""
        worlds: Annotated[int, between(1, 100000)] = 64
        """Number of different contents of each site."""
        mode: Literal["text", "browser"] = "text"
        """``"text"``, which needs neither a browser nor a server, or ``"browser"``; both show the same."""
        show_goal: bool = True
        """True if every page repeats the goal, or only the first."""
        max_turns: MaxTurns = 40

        def check(self) -> None:
            _kinds_of(self.site, self.kind)

    options: Options

    file_options = worded("site", "kind", "mode")

    def setup(self) -> None:
        options = self.options
        self._kinds = _kinds_of(options.site, options.kind)
        self._worlds, self._show_goal = options.worlds, options.show_goal
        self._store, self._session = Store(), WebSiteSession()
        weakref.finalize(self, self._store.close)
        self._tab: PlainTab | LiveTab = PlainTab(self._store) if options.mode == "text" else self._live_tab()
        self._is_deferred = False
        self._prepared: tuple[str, Page] | None = None
        self.instructions = _RULES.format(format=FORMAT, turns=self.max_turns)

    def _live_tab(self) -> LiveTab:
        require_playwright(self.env_id)
        find_browser(self.env_id)
        from turngym.envs.website.live import LiveTab
        from turngym.envs.website.server import require_server

        require_server(self.env_id)
        tab = LiveTab(self._store)
        weakref.finalize(self, LiveTab.let_go, tab)
        return tab

    @property
    def goal(self) -> Goal:
        """Goal with its solution; hidden from agents."""
        return self._goal

    @property
    def store(self) -> Store:
        """The tables of the site; not for agents."""
        return self._store

    @property
    def session(self) -> WebSiteSession:
        """Where the agent is."""
        return self._session

    # The rules.

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        self._enter(self.draw(self._some_instance, _text_of_instance))
        if self._is_deferred:
            return ""
        self._session.start(self._tab.open(self._site.home))
        return self._first()

    def _some_instance(self, generator: np.random.Generator) -> Instance:
        while True:
            place, world, number = generator.integers((len(self._kinds), self._worlds, _NUMBERS)).tolist()
            instance = Instance(self._kinds[place][0], world, self._kinds[place][1], number)
            if goal_of(instance) is not None:
                return instance

    def _enter(self, instance: Instance) -> None:
        """Start with the goal and content of an instance."""
        goal = goal_of(instance)
        if goal is None:
            raise ValueError(f"the instance {instance}")
        self._instance, self._goal, self._site = instance, goal, SITES[instance.site]
        self._world = world_of(instance.site, instance.world)
        self._store.reset(self._world)
        self._tab.enter(self._site)
        self._verdict = Verdict((False,) * len(goal.wants), 0)
        self._made = ""

    def _first(self) -> str:
        return f"Task: {self._goal.text}\n{text_of(self._session.page)}"

    def _shown(self) -> str:
        return self._first() if self._show_goal else text_of(self._session.page)

    def apply_action(self, action: str) -> Outcome[str]:
        session = self._session
        move = plan(action, session.page, session.focus, len(session.history) > 1)
        if move is None:
            return Outcome(_UNREAD, action_is_valid=False)
        if isinstance(move, str):
            return Outcome(f"That cannot be done: {move}.\n{self._shown()}", action_is_valid=False)
        prepared, self._prepared = self._prepared, None
        is_prepared = prepared is not None and prepared[0] == action
        page = prepared[1] if prepared is not None and is_prepared else self._tab.perform(move, session)
        session.arrive(move, page)
        if move.kind == "send":
            self._look()
            if self._verdict.is_reached:
                return Outcome(self._shown(), 1.0, True, True)
        return Outcome(self._shown())

    def _look(self) -> None:
        """Compare the tables with the goal."""
        changes = self._store.changes()
        self._verdict = judge(self._goal.wants, changes, self._world, self._site.schema)
        self._made = "\n".join(map(str, changes))

    def anchor(self) -> str:
        return f"{self._first()}\n{self._made}"

    def legal_actions(self) -> tuple[str, ...]:
        return listed(self._session.page, self._goal.text, len(self._session.history) > 1)

    def progress(self) -> float:
        return self._verdict.progress

    def save_state(self) -> JSONValue:
        changes = [[table, number, list(row)] for table, number, row in self._store.changes()]
        return {"instance": list(self._instance), "changes": changes, "session": self._session.state()}

    def load_state(self, state: JSONValue) -> None:
        site, world, kind, number = state["instance"]
        if (site, kind) not in self._kinds or not 0 <= world < self._worlds:
            raise ValueError(f"the instance {state['instance']!r}")
        self._enter(Instance(site, int(world), kind, int(number)))
        self._store.apply([(table, int(number), tuple(row)) for table, number, row in state["changes"]])
        self._session.load(state["session"])
        self._session.resume(self._tab.show(self._session))
        self._look()

    def expert_action(self) -> str:
        """Return the next action of an expert that knows the site and finds things by the names in the goal.

        Raises:
            ConfigError: No episode is under way.
            ExpertLost: Something was changed that the goal does not ask for.
        """
        require_running(self)
        database = self._store.database
        session = self._session
        action = next_action(self._goal, self._verdict.held, session.page, session.seen, self._site, database)
        if action is None:
            raise ExpertLost(f"{self.env_id} has no expert action here: a change that nobody asked for is in the way.")
        return action

    # Coroutines, for the vector backend asyncio.

    async def async_reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start a new episode; see ``reset``."""
        if isinstance(self._tab, PlainTab):
            return self.reset(seed=seed, options=options)
        self._is_deferred, self._session.page = True, BLANK
        try:
            TextEnv.reset(self, seed=seed, options=options)
        finally:
            self._is_deferred = self._running = False
        self._session.start(await self._tab.attend(self._tab.start(self._site.home)))
        self._observation = self._first()
        self._running = True
        return self._observation, self._info()

    async def async_step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take one turn; see ``step``."""
        session, tab = self._session, self._tab
        if self._running and isinstance(action, str) and not isinstance(tab, PlainTab):
            move = plan(action, session.page, session.focus, len(session.history) > 1)
            if isinstance(move, Move):
                self._prepared = action, await tab.attend(tab.play(move, session))
        return self.step(action)

    def close(self) -> None:
        """Close the tab; a later reset opens a new one."""
        self._tab.shut()
        super().close()


def _text_of_instance(instance: Instance) -> str:
    goal = goal_of(instance)
    return f"{instance.site} {instance.world}: {goal.text if goal else ''}"


def _kinds_of(site: str, kind: str | Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of site and kind that the options name."""
    pairs = tuple((name, each) for name in (SITES if site == MIXED else (site,)) for each in KINDS[name])
    wanted = (kind,) if isinstance(kind, str) else tuple(kind)
    if wanted == (MIXED,):
        return pairs
    if not wanted:
        raise OptionError("kind", f"is empty: pass a name, several, or {MIXED!r}.")
    known = {each for _, each in pairs} | {MIXED}
    for each in wanted:
        if each not in known:
            raise OptionError("kind", f"names no kind of goal: {each!r}. {nearest(each, known)}")
    return tuple(pair for pair in pairs if pair[1] in wanted or MIXED in wanted)
