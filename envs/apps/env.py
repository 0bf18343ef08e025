"""Apps: do errands with the functions of somebody's apps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from turngym.envs.apps.dialect import CALL, DOCS, FORMAT, LOOKED_UP, SUBMIT, Act, Dialect, dialect
from turngym.envs.apps.effects import SCHEMA, TODAY
from turngym.envs.apps.functions import APPS, FUNCTIONS
from turngym.envs.apps.session import Session
from turngym.envs.apps.task import Task, Tasks
from turngym.envs.core import MaxTurns, Outcome, TextEnv
from turngym.envs.service.tables import world_of
from turngym.envs.settings import worded
from turngym.envs.tools.tool_schema import ToolSet
from turngym.envs.validation import NUMBERS, refuse_task, require_running, saved_number, saved_texts
from turngym.envs.website.goal import Verdict, judge
from turngym.envs.website.store import World
from turngym.options import between
from turngym.types import JSONValue

_ABOUT = """Do what is asked in the apps of one person, who is called you in the request. Today is {today}. Sign in to \
an account to get its key; every other function needs the key of an account of its app. Accounts of one app have \
different contents. Lists have pages. People are named by whole names, or by first names and roles, as in the \
contacts. Sums are in cents. What is changed and not asked for counts against you, and payments and mails cannot be \
taken back; looking changes nothing. You have {turns} turns, one call each; submit when all is done."""
_RULES = "{about}\nAnswer with one action a turn:\n{format}"
_GIVEN = "{rules}\nFunctions:\n{docs}"


class Apps(TextEnv[str]):
    """Do errands in somebody's mail, calendar, contacts, notes, payments, files and music.

    A request has one to three parts of sixteen kinds, each over up to three apps: settle the invoice that a mail names,
    divide a bill among the guests of an event, move an event to the time in a mail, make a playlist of what a note
    lists. People and records are generated, with others that nearly fit: two contacts of one first name, equal titles
    in other accounts, sums of other months, songs of other artists. Functions are described in the documentation of
    each app, and with ``level=3`` their names differ between instances.

    An episode succeeds if, when it is submitted, every record that had to change has changed as asked and no other one
    has. The reward is 1 for success and 0 for anything else, or with ``reward="dense"`` the change of the progress.
    Progress is the share of changes that are made, submitting included; whatever else is changed counts as one more
    that is not made.

    >>> env = Apps()
    >>> observation, info = env.reset(seed=0)
    >>> while info["success"] < 0:
    ...     observation, reward, terminated, truncated, info = env.step(env.expert_action())
    >>> observation, reward
    ('You have submitted.', 1.0)
    """

    class Options(TextEnv.Options):
        level: Annotated[int, between(1, 3)] = 2
        """Difficulty: parts of a request, accounts in each app, people with one first name, names of functions."""
        docs: Literal["looked_up", "given"] = "looked_up"
        """``"looked_up"`` if functions are found by ``docs``, ``"given"`` if the rules list all, with usual names."""
        reward: Literal["sparse", "dense"] = "sparse"
        """``"sparse"`` for 1 at a success, ``"dense"`` for the change of the progress in every turn."""
        max_turns: MaxTurns = 80

    options: Options
    file_options = worded("docs", "reward")

    def setup(self) -> None:
        options = self.options
        is_given = options.docs == "given"
        self._tasks = Tasks(options.level, options.level == 3 and not is_given)
        about = _ABOUT.format(today=TODAY, turns=self.max_turns)
        self.instructions = _RULES.format(about=about, format=FORMAT)
        tools = [each.schema for each in LOOKED_UP.values()]
        if is_given:
            names = dialect(0)
            docs = "\n".join(names.docs[app] for app in APPS)
            self.instructions = _GIVEN.format(rules=self.instructions, docs=docs)
            tools = [LOOKED_UP[SUBMIT].schema, *(each.schema for each in names.tools.values())]
        self.native_tools = ToolSet(tuple(tools), about)

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        number = self.draw(lambda generator: int(generator.integers(NUMBERS)), self._tasks.text)
        self._enter(self._tasks.task(number))
        return self._task.request

    def _enter(self, task: Task) -> None:
        self._task, self._names, self._session = task, dialect(task.dialect), Session(task.rows, task.keys)
        self._world: World | None = None
        self._log = list[Act]()
        self._known: dict[str, str] = {}
        self._verdict = Verdict((False,) * len(task.wants), 0)
        self._done = 0

    @property
    def task(self) -> Task:
        """The instance with its plan; hidden from agents."""
        return self._task

    @property
    def names(self) -> Dialect:
        """The names of the functions."""
        return self._names

    @property
    def verdict(self) -> Verdict:
        """Which conditions hold, and how many other changes there are; hidden from agents."""
        return self._verdict

    def _judged(self) -> Verdict:
        if self._world is None:
            self._world = world_of(self._task.rows)
        return judge(self._task.wants, self._session.tables.changes(), self._world, SCHEMA)

    def apply_action(self, action: str) -> Outcome[str]:
        act = self._names.read(action)
        if isinstance(act, str):
            return Outcome(f"That is no action: {act}{'' if act.endswith('?') else '.'}", action_is_valid=False)
        before = self.progress()
        if act.kind == SUBMIT:
            success = self._verdict.is_reached
            reward = float(success) if self.options.reward == "sparse" or not success else 1.0 - before
            return Outcome("You have submitted.", reward, True, success)
        observation = self._perform(act)
        return Outcome(observation, self.progress() - before if self.options.reward == "dense" else 0.0)

    def _perform(self, act: Act) -> str:
        self._log.append(act)
        if act.kind == DOCS:
            shown = self._names.page(act.name)
        else:
            shown = self._session.perform(act)
            if not FUNCTIONS[act.name].is_look:
                self._verdict = self._judged()
        self._known[act.text] = shown
        return shown

    def anchor(self) -> str:
        return "\n".join([self._task.request, *(part for pair in self._known.items() for part in pair)])

    def progress(self) -> float:
        held, unasked = self._verdict
        if self._success == 1:
            return 1.0
        return sum(held) / (len(held) + unasked + 1)

    def turn_columns(self) -> Mapping[str, float | str]:
        return {"unasked": float(self._verdict.unasked)}

    def expert_action(self) -> str:
        """Return the next action of an expert that reads the documentation, signs in, looks things up and does them.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        plan = self._plan
        while plan[self._done].kind != SUBMIT:
            act = self._session.resolved(plan[self._done])
            if act.text not in self._known:
                return self._names.write(act)
            self._done += 1
        return SUBMIT

    @property
    def _plan(self) -> tuple[Act, ...]:
        plan = self._task.plan
        if self.options.docs == "given":
            return plan
        apps = dict.fromkeys(FUNCTIONS[act.name].app for act in plan if act.kind == CALL)
        return (*(Act(DOCS, app) for app in apps), *plan)

    def save_state(self) -> JSONValue:
        return {"number": self._task.number, "acts": [self._names.write(act) for act in self._log]}

    def load_state(self, state: JSONValue) -> None:
        number, log = saved_number(state["number"]), saved_texts(state["acts"], self.turn)
        if self._tasks.text(number) != self.instance:
            raise ValueError("the instance is another one")
        task = self._tasks.task(number)
        acts = [dialect(task.dialect).read(each) for each in log]
        self._enter(task)
        for act in acts:
            if isinstance(act, str) or act.kind == SUBMIT:
                raise ValueError(f"the act {act!r}")
            self._perform(act)
