"""A task whose instances are chosen by a curriculum, by the results of earlier iterations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.arithmetic import float_sum
from turngym.envs.multiagent.registration import is_game
from turngym.errors import CheckpointError, ConfigError
from turngym.seeding import stream, stream_seed
from turngym.trainers.core.wording import counted
from turngym.trainers.curricula import make_curriculum
from turngym.trainers.curricula.base.curriculum import Record
from turngym.trainers.loop.tasks.parts import WHOLE, Part, Seeded
from turngym.trainers.loop.tasks.task import TaskSource
from turngym.trainers.loop.tasks.wrapped_task import WrappedTask
from turngym.trainers.settings.config import TrainConfig


class _Result(NamedTuple):
    """Outcome of a group: its task, number of episodes and number of solved ones."""

    task: int
    episodes: int
    solved: int


class CurriculumTask(WrappedTask[TaskSource]):
    """Assigns chosen tasks to the groups of an iteration, and records their results.

    A task is a seed of the train split, derived from the run's seed and the task's number. Results count from the next
    iteration on, so all rollouts of an iteration use the same records.

    Args:
        config: Settings of the run.
        task: Task that plays the episodes.
    """

    def __init__(self, config: TrainConfig, task: TaskSource) -> None:
        super().__init__(task)
        self.config = config
        self.curriculum = make_curriculum(config.curriculum)
        self.records = [Record()] * self.curriculum.config.tasks
        """Results of each task before the iteration."""
        self._pending: tuple[int, list[_Result]] = (0, [])
        self._expected: list[float] = []

    @property
    def has_comparable_rewards(self) -> bool:
        """False, because the choice of tasks changes."""
        return False

    def gather(
        self, model: LanguageModel, iteration: int, attempt: int, greedy: bool = False, part: Part = WHOLE
    ) -> list[Trajectory]:
        """Return the episodes of an iteration, on the chosen tasks."""
        if self._pending[0] < iteration:
            self.records, self._pending = self._counted(iteration), (iteration, [])
        chosen = self._chosen(iteration, attempt)
        seeds = tuple(stream_seed("task", self.config.seed, task) % 2**31 for task in chosen)
        played = self.task.gather(model, iteration, attempt, greedy, Seeded(part.index, part.count, seeds))
        if not greedy:
            self._pending[1].extend(_results(chosen, played))
            self._expected += [self.records[task].rate for task in chosen]
        return played

    def _chosen(self, iteration: int, attempt: int) -> list[int]:
        settings = self.config.rollout
        generator = stream("curriculum", self.config.seed, iteration, attempt)
        return self.curriculum.choose(self.records, settings.groups, settings.group_size, generator)

    def _counted(self, iteration: int) -> list[Record]:
        """Return the records, including results of all iterations before the given one."""
        found, (since, results) = list(self.records), self._pending
        for result in results if since < iteration else ():
            before = found[result.task]
            found[result.task] = before.after(result.episodes, result.solved, self.curriculum.config.decay)
        return found

    def metrics(self) -> Mapping[str, float]:
        """Return metrics of the chosen tasks, and the share of groups with both outcomes."""
        results = self._pending[1]
        mixed = [0 < result.solved < result.episodes for result in results]
        expected, self._expected = self._expected, []
        return {
            **self.task.metrics(),
            "curriculum/tasks_played": sum(not record.is_new for record in self.records) / len(self.records),
            "curriculum/expected_success": float_sum(expected) / max(len(expected), 1),
            "curriculum/mixed_groups": sum(mixed) / max(len(mixed), 1),
        }

    # Checkpoints.

    def state(self, iteration: int) -> dict[str, Any]:
        """Return the records of tasks before an iteration."""
        records = enumerate(self._counted(iteration))
        kept = [[task, *record] for task, record in records if not record.is_new]
        return {**self.task.state(iteration), "curriculum": kept}

    def restore(self, state: Mapping[str, Any], iteration: int) -> None:
        """Restore the records of a checkpoint.

        Raises:
            CheckpointError: They are damaged.
        """
        self.task.restore(state, iteration)
        self.records, self._pending = [Record()] * len(self.records), (iteration, [])
        try:
            for task, *numbers in state["curriculum"]:
                self.records[range(len(self.records))[task]] = _checked(*map(float, numbers))
        except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            raise CheckpointError(
                f"the results of the curriculum's tasks in a checkpoint are damaged ({type(error).__name__}): delete "
                "the checkpoint, and the run continues from the one before."
            ) from error


def _results(chosen: Sequence[int], played: Sequence[Trajectory]) -> list[_Result]:
    """Return the outcome of each group, unless no episode's success is known."""
    outcomes: dict[int, list[int]] = {}
    for each in played:
        if each.success >= 0 and not each.fault:
            outcomes.setdefault(each.spec.group, []).append(each.success)
    return [_Result(chosen[group % len(chosen)], len(found), sum(found)) for group, found in sorted(outcomes.items())]


def _checked(episodes: float, solved: float, last: float) -> Record:
    """Return a validated record; raise ValueError if it is impossible."""
    if not (0 <= solved <= episodes < math.inf and 0 <= last <= 1):
        raise ValueError(f"{solved} of {episodes} episodes solved, {last} of the latest")
    return Record(episodes, solved, last)


def require_choosable(config: TrainConfig) -> None:
    """Raise unless the curriculum supports the run.

    Raises:
        UnknownName: There is no such curriculum.
        ConfigError: An option is invalid, there are fewer tasks than groups, or a setting is incompatible.
    """
    reasons = {
        "several environments have no tasks in common": bool(config.envs),
        f"games between seats such as {config.env} have no success rate of a deal": is_game(config.env),
        "--rollout.schedule async and --rollout.journal play ahead of results": config.rollout.is_journaled,
    }
    for reason, holds in reasons.items():
        if holds:
            raise ConfigError(f"{config.curriculum} cannot choose tasks: {reason}. Leave out --curriculum or that.")
    tasks, groups = make_curriculum(config.curriculum).config.tasks, config.rollout.groups
    if tasks < groups:
        raise ConfigError(
            f"{config.curriculum} has {counted(tasks, 'task')} for {counted(groups, 'group')}: give it "
            f"tasks={4 * groups}, or pass a smaller --rollout.groups."
        )
