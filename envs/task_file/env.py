"""An environment whose tasks come from a file, each with one answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from turngym.envs.core import UNBOUNDED, Outcome, TextEnv
from turngym.envs.instances import canonical_text
from turngym.envs.task_file.judges import find_judge
from turngym.envs.task_file.reading import FileTask, read_tasks
from turngym.errors import ConfigError
from turngym.types import JSONValue

TASK_COLUMN = "task_id"
"""Column of a turn with the id of its task."""


class TaskFile(TextEnv[str]):
    """A task of a file: the instruction is shown, the first action is the answer, and a judge rewards it."""

    score_range = UNBOUNDED  # custom judges may give any reward

    class Options(TextEnv.Options):
        path: str = ""
        """The file, see :func:`turngym.envs.task_file.reading.read_tasks`."""
        judge: str = "exact"
        """How answers are judged, see :func:`turngym.envs.task_file.judges.find_judge`."""
        max_turns: Literal[1] = 1
        """One answer."""

    options: Options

    @classmethod
    def recorded(cls, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Leave out what is always the same."""
        return {key: value for key, value in options.items() if key != "max_turns"}

    def setup(self) -> None:
        path, split = self.options.path, self.split
        if not path:
            raise ConfigError(f"{self.env_id} needs a file of tasks: pass path=FILE, or --agent.tasks FILE.")
        tasks = read_tasks(path)
        self._judge = find_judge(self.options.judge, tasks)
        self._tasks = {task.id: task for task in tasks if task.split in ("", split)}
        if not self._tasks:
            named = ", ".join(sorted({task.split for task in tasks}))
            raise ConfigError(f"{path} has no task of the split {split!r}, only of {named}: add one, or pass split.")
        self.finite_instances = len(self._tasks)
        self._reward = 0.0

    def tasks(self) -> tuple[str, ...]:
        """Return the ids of the tasks of the split."""
        return tuple(self._tasks)

    def begin(self, task: str | int | None) -> str:
        """Take the task of that id, or draw one."""
        names = self.tasks()
        name = names[int(self.np_random.integers(len(names)))] if task is None else str(task)
        if name not in self._tasks:
            raise ConfigError(f"{self.env_id} has no task {name[:100]!r} in the split {self.split}.")
        self.load_state({"task": name, "reward": 0.0})
        return self._task.instruction

    def apply_action(self, action: str) -> Outcome[str]:
        """Judge the answer."""
        self._reward, is_right = self._judge(self._task, action)
        return Outcome("The answer has been taken.", self._reward, terminated=True, success=is_right)

    @property
    def task(self) -> FileTask:
        """The task of the episode."""
        return self._task

    def score(self) -> float:
        """Return the reward of the answer."""
        return self._reward

    def turn_columns(self) -> Mapping[str, float | str]:
        """Return the id of the task."""
        return {TASK_COLUMN: self._task.id}

    def expert_action(self) -> str:
        """Return the first accepted answer."""
        if not self._task.answers:
            raise ConfigError(
                f"the task {self._task.id!r} has no answer to demonstrate: pass --warmup.demonstrations 0."
            )
        return self._task.answers[0]

    def save_state(self) -> JSONValue:
        """Return the id of the task and the reward."""
        return {"task": self._task.id, "reward": self._reward}

    def load_state(self, state: JSONValue) -> None:
        """Restore what :meth:`save_state` returned."""
        assert isinstance(state, dict) and isinstance(state["reward"], float)
        self._task, self._reward = self._tasks[str(state["task"])], state["reward"]
        task = self._task
        self.instance = canonical_text([task.id, task.instruction, list(task.answers), dict(task.files)])
