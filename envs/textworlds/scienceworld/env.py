"""ScienceWorld (Wang et al. 2022, arXiv 2203.07540): thirty tasks of school science in a simulated house.

The package scienceworld provides the simulator, the variations of each task with their splits, the score, the list of
valid actions and a gold path. This adapter keeps its rules and numbers: the reward of a turn is the change of the
package's score in percent, divided by 100. A failed task has the score -100; some tasks begin with a few points.
"""

from __future__ import annotations

from typing import Annotated, Any

from turngym.envs.core import MaxTurns, Outcome, TextEnv
from turngym.envs.settings import worded
from turngym.envs.textworlds.java import JavaGone, find_java
from turngym.envs.textworlds.replay import require_same
from turngym.envs.textworlds.scienceworld.game import UNKNOWN_ACTION, Game, Reply, find_jar
from turngym.envs.textworlds.scienceworld.tasks import (
    MIXED,
    gold_position,
    kinds_of,
    read_simplifications,
    variations,
)
from turngym.errors import EpisodeOver, ExpertLost, UnknownName, nearest
from turngym.options import between
from turngym.types import JSONValue

_LONGEST_ACTION = 300
_INSTRUCTIONS = """You are in a simulated house with a workshop and a greenhouse, and do a task of science, told \
at the beginning. To focus on a thing tells which one you mean; to focus on a wrong one fails the task.

Answer with one action a turn, exactly as it is written here, where OBJ and PLACE stand for what the observations name:
- look around, look at OBJ, look in OBJ, read OBJ, inventory, task
- go PLACE, teleport PLACE (only in a simplified world), open OBJ, close OBJ
- pick up OBJ, put down OBJ, move OBJ to OBJ, pour OBJ in OBJ, dunk OBJ in OBJ, mix OBJ, eat OBJ, flush OBJ
- activate OBJ, deactivate OBJ, use OBJ on OBJ, connect OBJ to OBJ, disconnect OBJ
- focus on OBJ
- wait (ten moments), wait1 (one moment)
Where an action may mean several things, you are asked which one: answer with its number."""


class ScienceWorld(TextEnv[str]):
    """Variations of ScienceWorld's tasks."""

    class Options(TextEnv.Options):
        kind: str = MIXED
        """One of the thirty tasks, as in :data:`~turngym.envs.textworlds.scienceworld.tasks.VARIATIONS`, or
        ``"mixed"``, which samples them uniformly."""
        simplifications: str = "easy"
        """Simplifications of the package: ``"easy"`` for all that suit the task, as in the papers, or names such as
        ``"teleportAction,openDoors"``; empty for none."""
        variations: Annotated[int, between(0, 10000)] = 0
        """How many variations of each task the split has, from its first on; 0 for all."""
        lists_actions: bool = False
        """True if ``legal_actions`` holds the package's list of valid actions, hundreds of them, which takes nine
        tenths of the time of a turn; else it is empty. The package draws random numbers for that list, so that
        animals go other ways without it."""
        max_turns: MaxTurns = 100

    options: Options

    file_options = worded("kind", simplifications=r"[A-Za-z, ]{0,300}")
    score_range = (0.0, 100.0)

    instructions = _INSTRUCTIONS

    def setup(self) -> None:
        options = self.options
        self._kinds = kinds_of(options.kind)
        self._variations = options.variations
        self.simplifications = read_simplifications(options.simplifications, self._kinds)
        self.settings = {**self.settings, "simplifications": self.simplifications}
        self._lists_actions = options.lists_actions
        self._jar = find_jar()
        find_java(self.env_id)
        self._game: Game | None = None
        self._kind, self._variation = "", 0
        self._clear()

    def _clear(self) -> None:
        self._actions: list[str] = []
        self._gold: tuple[str, ...] | None = None
        self._best = 0

    # Tasks.

    def tasks(self) -> tuple[str, ...]:
        """Return the names of the split's variations: the task and the package's number, as in ``"boil/21"``."""
        return tuple(f"{kind}/{number}" for kind in self._kinds for number in self._numbers(kind))

    def _numbers(self, kind: str) -> range:
        return variations(kind, self.split, self._variations)

    def _find(self, task: str | int | None) -> tuple[str, int]:
        if task is None:
            kinds = self._kinds
            kind = kinds[int(self.np_random.integers(len(kinds)))] if len(kinds) > 1 else kinds[0]
            numbers = self._numbers(kind)
            return kind, numbers[int(self.np_random.integers(len(numbers)))]
        names = self.tasks()
        if isinstance(task, str):
            if task not in names:
                raise UnknownName(f"{self.env_id} has no task named {task!r}. {nearest(task, names)}")
        else:
            self.require("the task", task, 0, len(names) - 1)
            task = names[int(task)]
        kind, _, number = task.partition("/")
        return kind, int(number)

    # The contract.

    def _join(self) -> Game:
        if self._game is None or not self._game.is_alive():
            self.close()
            self._game = Game(self._jar, lists_actions=self._lists_actions)
        return self._game

    def _load_task(self) -> None:
        self._clear()
        self._task, self._reply = self._join().load(self._kind, self._variation, self.simplifications)
        self._best = self._reply.score

    def begin(self, task: str | int | None) -> str:
        self._kind, self._variation = self._find(task)
        self._load_task()
        self.instance = f"{self._kind}/{self._variation} ({self.simplifications})"
        return f"{self._task}\n\n{self._reply.observation}"

    def apply_action(self, action: str) -> Outcome[str]:
        text = " ".join(action.split())
        if not text.isprintable() or len(text) > _LONGEST_ACTION:
            return Outcome(UNKNOWN_ACTION, action_is_valid=False)
        before = self._reply
        reply = self._follow(text)
        return Outcome(
            reply.observation,
            reward=(reply.score - before.score) / 100,
            terminated=reply.is_over,
            success=reply.score >= 100,
            # Of those listed, not all are understood: animals move in between.
            action_is_valid=text in before.legal_actions or reply.observation != UNKNOWN_ACTION,
        )

    def _follow(self, action: str) -> Reply:
        """Take an action and update the records; what is not understood changes nothing."""
        if self._game is None:
            raise JavaGone(f"{self.env_id} was closed in mid-episode: call reset() first.")
        self._reply = self._game.step(action)
        if self._reply.observation != UNKNOWN_ACTION or self._lists_actions:
            self._actions.append(action)
        self._best = max(self._best, self._reply.score)
        return self._reply

    def anchor(self) -> str:
        """Return what the task says, and what looking and the inventory would; a question that waits for a number."""
        reply = self._reply
        asked = [reply.observation] if reply.observation.startswith("Ambiguous request") else []
        return "\n\n".join([self._task, reply.look, reply.inventory, *asked])

    def legal_actions(self) -> tuple[str, ...]:
        return self._reply.legal_actions

    def progress(self) -> float:
        return max(self._reply.score, 0) / 100

    def score(self) -> float:
        """Return the highest score of the episode so far, from 0 to 100: what papers report, also of failed tasks."""
        return float(self._best)

    def expert_action(self) -> str:
        """Return the next action of the package's gold path; it knows what is hidden.

        To find the path takes seconds, for a few tasks half a minute.

        Raises:
            EpisodeOver: No episode runs.
            ExpertLost: The actions so far are not those of the path, or the path has come to its end.
        """
        if not self._running:
            raise EpisodeOver(f"expert_action() of {self.env_id} outside of an episode: call reset() first.")
        if self._gold is None:
            self._gold = self._join().find_gold(self._kind, self._variation, self.simplifications)
        taken = gold_position(self._actions, self._gold)
        if taken is None or taken >= len(self._gold):
            raise ExpertLost(
                f"the episode of {self.env_id} has left the gold path of {self.instance}, or it has ended without "
                "success, and there is no other solver: ask for the expert's action only while every action was its."
            )
        return self._gold[taken]

    # Snapshots are replays: the engine has none.

    def save_state(self) -> JSONValue:
        return {"kind": self._kind, "variation": self._variation, "actions": list(self._actions), **self._check()}

    def _check(self) -> dict[str, Any]:
        return {"anchor": self.anchor(), "score": self._reply.score}

    def load_state(self, state: JSONValue) -> None:
        self._kind, self._variation = state["kind"], state["variation"]
        self._load_task()
        for action in state["actions"]:
            self._follow(action)
        require_same(self, self._check(), state)

    def close(self) -> None:
        """Leave the Java process; a later reset joins one again."""
        if self._game is not None:
            self._game.close()
            self._game = None
        super().close()
