"""Tasks that a curriculum chooses: the same in resumed runs and with workers, and by results of earlier iterations."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small import small_model

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.errors import CheckpointError, ConfigError, UnknownName
from turngym.trainers.curricula import CURRICULA, make_curriculum
from turngym.trainers.curricula.base.curriculum import Record
from turngym.trainers.loop.setup import build_algorithm, build_learner, iteration_specs
from turngym.trainers.loop.tasks.curriculum_task import CurriculumTask
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.loop.tasks.parts import WHOLE, Part, Seeded
from turngym.trainers.loop.tasks.task import TaskSource
from turngym.trainers.loop.trainer import Trainer
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig

CONFIG = TrainConfig(
    env="turngym/NumberLine-v0",
    env_options={"max_turns": 3, "highest": 3},
    algorithm="grpo",
    curriculum="pools:tasks=5,hard_weight=0",
    iterations=4,
    max_seconds=0,
    control=False,
    checkpoint_every=2,
    rollout=RolloutConfig(groups=2, group_size=3, max_new_tokens=2),
    evaluation=EvaluationConfig(episodes=0, every=0, curve_episodes=1),
)


class Solved(TaskSource):
    """Episodes without turns whose success depends on their seed: a third of the seeds is always solved."""

    has_expert = False

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.played: list[list[int]] = []

    def gather(
        self, model: LanguageModel, iteration: int, attempt: int, greedy: bool = False, part: Part = WHOLE
    ) -> list[Trajectory]:
        specs = part.of(iteration_specs(self.config, iteration, attempt))
        self.played.append([spec.seed for spec in specs])
        return [Trajectory(spec, success=int(spec.seed % 3 == 0 or spec.episode % 3 == 0)) for spec in specs]

    def texts(self) -> list[str]:
        return []

    def demonstrations(self, model: LanguageModel, count: int) -> list[Trajectory]:
        return []

    def curve_point(self, model: LanguageModel) -> dict[str, float]:
        return {}

    def evaluate(self, model: LanguageModel, name: str, temperature: float | None) -> Any:
        return iter(())


def chosen(curriculum: str, since: int = 0, state: dict[str, Any] | None = None) -> tuple[list[list[int]], Any]:
    """Return the seeds that six iterations play, two rollouts each, and the state before the last one."""
    config = replace(CONFIG, curriculum=curriculum)
    task = CurriculumTask(config, Solved(config))
    if state is not None:
        task.restore(state, since)
    model: Any = None
    for iteration in range(since, 6):
        for attempt in (0, 1):
            task.gather(model, iteration, attempt)
        task.metrics()
    inner: Any = task.task
    return inner.played, task.state(5)


@pytest.mark.parametrize("name", sorted(CURRICULA))
def test_a_state_continues_with_the_same_tasks_and_leaves_unfinished_iterations_out(name: str) -> None:
    whole, state = chosen(f"{name}:tasks=12")
    assert len({tuple(seeds) for seeds in whole}) > 1
    assert all(len(set(seeds)) == CONFIG.rollout.groups for seeds in whole)
    again, after = chosen(f"{name}:tasks=12", 5, state)
    assert again == whole[-2:] and after == state


@pytest.mark.parametrize("name", sorted(CURRICULA))
def test_every_curriculum_prefers_tasks_that_are_solved_sometimes(name: str) -> None:
    curriculum, draws = make_curriculum(f"{name}:tasks=30"), np.random.default_rng(0)
    records = [Record(60, 0, 0), Record(60, 24, 0.4), Record(60, 60, 1)] * 10
    found = [task % 3 for _ in range(100) for task in curriculum.choose(records, 3, 4, draws)]
    assert found.count(1) > found.count(0) and found.count(1) > found.count(2)


def test_closed_pools_are_played_only_where_nothing_else_is_left() -> None:
    curriculum = make_curriculum("pools:hard_weight=0,easy_weight=0")
    records = [Record(4, 0, 0)] * 3 + [Record(4, 4, 1)] * 3 + [Record(4, 2, 0.5), Record()]
    draws = np.random.default_rng(0)
    assert {task for _ in range(20) for task in curriculum.choose(records, 2, 4, draws)} == {6, 7}
    assert len(set(curriculum.choose(records[:6], 6, 4, draws))) == 6


def trained(config: TrainConfig, folder: RunFolder, resumes: bool = False) -> list[dict[str, Any]]:
    method, model = build_algorithm(config), small_model(layers=1)
    with closing(make_task(config, method)) as task:
        trainer = Trainer(config, model, build_learner(config, model, method), task, folder)
        if resumes:
            trainer.resume()
        trainer.run()
    return [
        {name: value for name, value in record.items() if not name.startswith("time/") and "per_second" not in name}
        for record in folder.metrics()
    ]


def test_a_resumed_run_equals_the_whole_one(tmp_path: Path) -> None:
    whole = trained(CONFIG, RunFolder.create(tmp_path / "whole", CONFIG))
    folder = RunFolder.create(tmp_path / "halves", CONFIG)
    trained(replace(CONFIG, iterations=2), folder)
    halves = trained(CONFIG, folder, resumes=True)
    assert halves == whole
    assert whole[-1]["curriculum/tasks_played"] > 0
    assert {"curriculum/expected_success", "curriculum/mixed_groups"} <= whole[0].keys()


def test_parts_of_workers_make_up_the_whole() -> None:
    specs, seeds = iteration_specs(replace(CONFIG, rollout=RolloutConfig(groups=5, group_size=2)), 1), (9, 8, 7, 8, 5)
    whole = Seeded(seeds=seeds)
    parts = [whole.divided(index, 3).of(specs) for index in range(3)]
    assert [spec for part in parts for spec in part] == whole.of(specs)
    assert [spec.seed for spec in whole.of(specs)[::2]] == list(seeds)


@pytest.mark.parametrize(
    "stored",
    [[[9, 4, 1, 0.5]], [[0, 4, 5, 0.5]], [[0, 4, 1, 2]], [[0, 4, 1]], [["0", 4, 1, 0.5]], 3, [[0, 1e999, 0, 0]]],
)
def test_damaged_results_are_refused(stored: object) -> None:
    with closing(CurriculumTask(CONFIG, Solved(CONFIG))) as task, pytest.raises(CheckpointError, match="curriculum's"):
        task.restore({"curriculum": stored}, 1)


@pytest.mark.parametrize("state", [None, 3, [], {}])
def test_a_checkpoint_without_results_is_refused(state: Any) -> None:
    with closing(CurriculumTask(CONFIG, Solved(CONFIG))) as task, pytest.raises(CheckpointError, match="curriculum's"):
        task.restore(state, 1)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"curriculum": "pool"}, UnknownName, "Did you mean 'pools'"),
        (
            {"curriculum": "pools:task=5"},
            ConfigError,
            "no option 'task'. Did you mean 'tasks'",
        ),
        ({"curriculum": "pools:hard=0.9"}, ConfigError, "hard of the curriculum pools must be"),
        (
            {"curriculum": "spo:tasks"},
            ConfigError,
            "the curriculum spo has no value for 'tasks': write spo:tasks=VALUE",
        ),
        ({"curriculum": "spo:tasks=1"}, ConfigError, "has 1 task for 2 groups: give it tasks=8"),
        ({"env": "turngym/KuhnPoker-v0", "env_options": {}}, ConfigError, "no success rate of a deal"),
        ({"rollout": RolloutConfig(journal=True)}, ConfigError, "play ahead of results"),
        (
            {"envs": ("turngym/NumberLine-v0", "turngym/GuessTheNumber-v0"), "env_options": {}},
            ConfigError,
            "no tasks in common",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make_task(replace(CONFIG, **changes))
