"""The eight games of TextWorldExpress (Jansen and Cote 2022, arXiv 2208.01174), played in a Java process.

The package textworld-express provides the games, their seeds in three folds, the list of valid actions, the score and a
gold path. This adapter keeps its rules and numbers: the reward of a turn is the change of the score, which reaches 1
with success and drops to -1 where a game ends in failure. An action that is not in the list changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from turngym.envs.core import MaxTurns, Outcome, TextEnv
from turngym.envs.settings import worded
from turngym.envs.textworlds.java import JavaFailed, JavaGone, JavaObject, find_java, java_pool
from turngym.envs.textworlds.replay import require_same
from turngym.envs.textworlds.textworld_express.games import (
    FIRST_SEED,
    GAMES,
    NO_EFFECT,
    Reply,
    describe,
    gold_position,
    match_action,
    parse_reply,
    read_params,
    task_numbers,
)
from turngym.errors import ConfigError, EpisodeOver, ExpertLost, UnknownName, missing_extra, nearest
from turngym.options import one_of
from turngym.types import JSONValue

UNKNOWN_ACTION = "That is no action you can take now."
_ENTRY = "textworldexpress.runtime.PythonInterface"
_HEAP_MEGABYTES = 192
_GOLD_ATTEMPTS = 50


def _find_jar() -> Path:
    try:
        from textworld_express.constants import JAR_PATH
    except ImportError as error:
        raise missing_extra("TextWorldExpress", "textworld-express", "text") from error
    return Path(JAR_PATH)


def _run_gold_agent(agent: str, seed: int, entry: Any, java: Any) -> tuple[bool, tuple[str, ...]]:
    """Let a gold agent play the current game to its end; return whether it won, and its actions."""
    game = entry.game()
    walker = getattr(java.jvm.textworldexpress.goldagent, agent)(game)
    generator = java.jvm.scala.util.Random(seed)
    result = walker.mkGoldPath(generator)
    actions = result._2()
    path = tuple(map(str, actions))
    has_won = bool(result._1())
    for held in (game, walker, generator, result, actions):
        java.detach(held)
    return has_won, path


class TextWorldExpress(TextEnv[str]):
    """The eight games of TextWorldExpress; a new task at every reset, in a shared Java process.

    Every split has the package's own 1,000 seeds, named ``"train/0"`` to ``"train/999"``. Small parameters give few
    different worlds, so two seeds may give the same one, in mapreader with two rooms even across folds.
    """

    class Options(TextEnv.Options):
        game: Annotated[str, one_of(*GAMES)] = "coin"
        """One of ``arithmetic``, ``coin``, ``cookingworld``, ``mapreader``, ``peckingorder``, ``simonsays``,
        ``sorting``, ``twc``."""
        params: str | Mapping[str, int] | None = None
        """Parameters of the game's generator as a mapping or as ``"numLocations=3,includeDoors=0"``; those not named
        keep the package's default. :data:`GAMES` lists names and ranges."""
        max_turns: MaxTurns | None = None  # type: ignore[assignment]  # as turn_limit says
        """Turns after which an unfinished episode is truncated; None for 50, in ``cookingworld`` 150, where a gold
        path can take more than 100."""

        @property
        def turn_limit(self) -> int:
            return self.max_turns or GAMES[self.game].max_turns

    options: Options

    file_options = worded("game", params=r"[A-Za-z0-9_=, ]{0,200}")
    score_range = (-1.0, 1.0)

    def setup(self) -> None:
        options = self.options
        self.game = options.game
        self.params = read_params(options.game, options.params)
        self.settings = {**self.settings, "params": self.params, "max_turns": self.max_turns}
        self.instructions = describe(options.game)
        self._jar = _find_jar()
        find_java(self.env_id)
        self._java: JavaObject | None = None
        self._task = 0
        self._clear()

    def _clear(self) -> None:
        self._actions: list[str] = []
        self._notes: dict[str, str] = {}
        self._gold: tuple[str, ...] | None = None

    # Tasks.

    def tasks(self) -> tuple[str, ...]:
        """Return the names of the split's tasks: the fold and the number of the package's seed within it.

        There are 1,000, except in ``peckingorder``/``dev``, where 55 that cannot be won are left out.
        """
        return tuple(f"{self.split}/{number}" for number in task_numbers(self.game, self.split))

    def _task_number(self, task: str | int | None) -> int:
        numbers = task_numbers(self.game, self.split)
        if task is None:
            return numbers[int(self.np_random.integers(len(numbers)))]
        if isinstance(task, str):
            names = self.tasks()
            if task not in names:
                raise UnknownName(f"{self.env_id} has no task named {task!r}. {nearest(task, names)}")
            return numbers[names.index(task)]
        self.require("the task", task, 0, len(numbers) - 1)
        return numbers[int(task)]

    # Talking to the game.

    def _start(self) -> JavaObject:
        if self._java is None or not self._java.is_alive():
            self.close()
            shares = not GAMES[self.game].is_lonely
            self._java = JavaObject(java_pool("TextWorldExpress", self._jar, _HEAP_MEGABYTES, shares=shares), _ENTRY)
            problem = self._ask("load", self.game, self.params)  # reads the word lists: far slower than a reset
            if problem:
                self.close()
                raise ConfigError(f"the game {self.game!r} refuses the parameters {self.params!r}: {problem}")
        return self._java

    def _ask(self, method: str, *arguments: str | int | bool) -> Any:
        if self._java is None:
            raise JavaGone(f"{self.env_id} was closed in mid-episode: call reset() first.")
        return self._java.call(method, *arguments)

    def _generate(self, *, with_gold: bool = False) -> Reply:
        """Put the game at the start of the task; with the gold path only on demand, since that takes longer."""
        try:
            answer = self._ask("generateNewGameJSON", FIRST_SEED[self.split] + self._task, self.split, with_gold)
        except JavaFailed as error:
            raise ConfigError(
                f"the game {self.game!r} with parameters {self.params!r} cannot make task {self._task}: {error} "
                "Choose other parameters (in mapreader a larger numLocations or a smaller maxDistanceApart)."
            ) from error
        return parse_reply(answer, self._ask("getTaskDescription"))

    def _play(self, action: str) -> Reply:
        return parse_reply(self._ask("stepJSON", action), self._reply.task)

    def _follow(self, action: str) -> Reply:
        """Take a legal action and update the records."""
        self._reply = self._play(action)
        self._actions.append(action)
        if action.startswith("read "):
            self._notes[action] = self._reply.observation
        return self._reply

    # The contract.

    def begin(self, task: str | int | None) -> str:
        self._task = self._task_number(task)
        self._start()
        self._clear()
        self._first = self._reply = self._generate()
        self.instance = f"{self.game}({self.params}) {self.split}/{self._task}"
        return f"{self._reply.task}\n\n{self._reply.observation}"

    def apply_action(self, action: str) -> Outcome[str]:
        before = self._reply
        known = match_action(action, before.legal_actions)
        if known is None:
            return Outcome(UNKNOWN_ACTION, action_is_valid=False)
        reply = self._follow(known)
        return Outcome(
            reply.observation,
            reward=reply.score - before.score,
            terminated=reply.is_success or reply.is_failure,
            success=reply.is_success,
        )

    def anchor(self) -> str:
        """Return what looking, the inventory and what was read say; in simonsays, what Simon said and the score."""
        reply = self._reply
        if self.game == "simonsays":
            return f"{self._first.observation}\n{reply.observation}\nscore {reply.score:.6f}"
        notes = [f"{action}: {self._notes[action]}" for action in sorted(self._notes)]
        return "\n\n".join([reply.task, reply.look, reply.inventory, *notes])

    def legal_actions(self) -> tuple[str, ...]:
        return self._reply.legal_actions

    def progress(self) -> float:
        return min(max(self._reply.score, 0.0), 1.0)

    def score(self) -> float:
        return self._reply.score

    def expert_action(self) -> str:
        """Return the next action of the package's gold path; looking and reading in between are allowed.

        What does nothing on that path is left out: actions that are not legal there, and its ``look around`` and
        ``task``, since the first observation has said both.

        Raises:
            EpisodeOver: No episode runs.
            ExpertLost: The actions so far have left the gold path, or the package found none for this task.
        """
        if not self._running:
            raise EpisodeOver(f"expert_action() of {self.env_id} outside of an episode: call reset() first.")
        if self._gold is None:
            self._gold = self._find_gold()
        position = gold_position(self._actions, self._gold, may_look=self.game != "simonsays")
        if position is None:
            raise ExpertLost(
                f"the episode of {self.env_id} has left the gold path, and there is no other solver: "
                "ask for the expert's action only while every action was the expert's."
            )
        if position >= len(self._gold):
            raise ConfigError(f"the package finds no gold path that wins {self.instance}: choose another task.")
        return self._gold[position]

    def _find_gold(self) -> tuple[str, ...]:
        """Ask for the gold path, then return the game to where it was."""
        agent = GAMES[self.game].gold_agent
        gold = self._without_idle(self._search_gold(agent) if agent else self._given_gold())
        self._generate()
        for action in self._actions:
            self._play(action)
        return gold

    def _without_idle(self, path: Sequence[str]) -> tuple[str, ...]:
        """Return a path less the actions that do nothing, such as to open what is open; empty if it does not win."""
        kept = []
        reply = self._generate()
        for action in path:
            if action in reply.legal_actions and action not in NO_EFFECT and not reply.is_success:
                reply = self._play(action)
                kept.append(action)
        return tuple(kept) if reply.is_success else ()

    def _given_gold(self) -> tuple[str, ...]:
        self._generate(with_gold=True)
        return tuple(map(str, self._ask("getGoldActionSequence")))

    def _search_gold(self, agent: str) -> tuple[str, ...]:
        """Run the package's own gold agent, a random walk, with seeds of ours, so that a task has one gold path."""
        for attempt in range(_GOLD_ATTEMPTS):
            self._generate()
            java = self._start()
            found, path = java.process.run(partial(_run_gold_agent, agent, attempt, java.entry))
            if found:
                return path
        return ()

    def save_state(self) -> JSONValue:
        return {"task": self._task, "actions": list(self._actions), **self._check()}

    def _check(self) -> dict[str, Any]:
        return {"last": self._reply.observation, "anchor": self.anchor(), "score": self._reply.score}

    def load_state(self, state: JSONValue) -> None:
        self._start()
        self._task = state["task"]
        self._clear()
        self._first = self._reply = self._generate()
        for action in state["actions"]:
            self._follow(action)
        require_same(self, self._check(), state)

    def close(self) -> None:
        """Leave the Java process; a later reset joins one again."""
        if self._java is not None:
            self._java.close()
            self._java = None
        super().close()
