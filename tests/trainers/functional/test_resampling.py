"""Methods that play more than one rollout: DAPO's dynamic sampling, ReMax's greedy baselines; what the run counts."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small import small_model

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.dapo import informative_groups
from turngym.trainers.core.algorithm import Algorithm, Rollout
from turngym.trainers.core.turn_table import turn_table
from turngym.trainers.loop.setup import build_learner
from turngym.trainers.loop.tasks.game_task import GameTask
from turngym.trainers.loop.tasks.task import EnvTask
from turngym.trainers.loop.trainer import Trainer
from turngym.trainers.settings.config import RolloutConfig, TrainConfig

torch.set_num_threads(1)


def group_of(number: int, returns: Sequence[float], faults: Sequence[int] = ()) -> list[Trajectory]:
    """One group: an episode of one turn for each return, broken where its place is among ``faults``."""
    return [
        Trajectory(
            EpisodeSpec(10 * number + k, number, number),
            turns=[Turn("", "", "", completion_ids=(1,), logprobs=(-1.0,), reward=value)],
            terminated=True,
            fault="exception: boom" if k in faults else "",
        )
        for k, value in enumerate(returns)
    ]


class Rounds:
    """A rollout whose rounds are written down; the last one comes again and again."""

    def __init__(self, *rounds: list[list[Trajectory]]) -> None:
        self.rounds = rounds
        self.calls = 0

    def __call__(self, greedy: bool = False) -> list[Trajectory]:
        self.calls += 1
        chosen = self.rounds[min(self.calls, len(self.rounds)) - 1]
        return [trajectory for group in chosen for trajectory in group]


def groups(trajectories: Sequence[Trajectory]) -> list[int]:
    return list(dict.fromkeys(trajectory.spec.group for trajectory in trajectories))


def counts(algorithm: Algorithm[Any], trajectories: Sequence[Trajectory]) -> dict[str, float]:
    metrics = algorithm.credit(turn_table(trajectories)).metrics
    names = ("sampling_rounds", "groups_played", "groups_dropped", "groups_missing")
    return {name.partition("_")[2]: metrics[name] for name in names}


# Dynamic sampling

EQUAL, MIXED = [1.0, 1.0, 1.0], [1.0, 0.0, 1.0]


def test_groups_with_equal_returns_are_replaced_by_fresh_ones() -> None:
    rollout = Rounds(
        [group_of(0, EQUAL), group_of(1, MIXED), group_of(2, EQUAL)],
        [group_of(3, EQUAL), group_of(4, EQUAL), group_of(5, MIXED)],
        [group_of(6, MIXED), group_of(7, MIXED), group_of(8, MIXED)],
    )
    algorithm = build("dapo")
    chosen = algorithm.collect(rollout)
    assert groups(chosen) == [1, 5, 6], "as many groups as one rollout has, in the order that they were played"
    assert counts(algorithm, chosen) == {"rounds": 3, "played": 9, "dropped": 4, "missing": 0}
    assert bool((algorithm.credit(turn_table(chosen)).advantages != 0).all())


def test_a_first_round_that_teaches_everywhere_is_enough() -> None:
    rollout = Rounds([group_of(0, MIXED), group_of(1, MIXED)])
    assert groups(build("dapo").collect(rollout)) == [0, 1]
    assert rollout.calls == 1


def test_the_rounds_are_bounded_and_what_is_missing_is_counted() -> None:
    rollout = Rounds([group_of(0, EQUAL), group_of(1, MIXED)], [group_of(2, EQUAL), group_of(3, EQUAL)])
    algorithm = build("dapo", {"dapo": {"max_rounds": 4}})
    chosen = algorithm.collect(rollout)
    assert (groups(chosen), rollout.calls) == ([1], 4)
    assert counts(algorithm, chosen) == {"rounds": 4, "played": 8, "dropped": 7, "missing": 1}


def test_without_any_group_that_teaches_the_last_round_comes_back_with_zero_advantage() -> None:
    rollout = Rounds([group_of(0, EQUAL)], [group_of(1, EQUAL)])
    algorithm = build("dapo", {"dapo": {"max_rounds": 2}})
    chosen = algorithm.collect(rollout)
    assert groups(chosen) == [1]
    assert not algorithm.credit(turn_table(chosen)).advantages.any()
    assert counts(algorithm, chosen)["missing"] == 1


def test_one_round_switches_dynamic_sampling_off() -> None:
    rollout = Rounds([group_of(0, EQUAL), group_of(1, MIXED)])
    assert groups(build("dapo", {"dapo": {"max_rounds": 1}}).collect(rollout)) == [0, 1]
    assert rollout.calls == 1


def test_faults_neither_make_a_group_unequal_nor_count_as_members() -> None:
    equal_but_for_a_fault = group_of(0, [1.0, 1.0, 0.0], faults=[2])
    alone, whole = group_of(1, [1.0, 0.0], faults=[1]), group_of(2, MIXED, faults=[0])
    assert not informative_groups(group_of(0, [0.1 + 0.2, 0.3]))[0], "rounding is not a difference"
    kept, played = informative_groups([*equal_but_for_a_fault, *alone, *whole])
    assert (groups(kept[0]), len(kept), played) == ([2], 1, 3)
    assert [trajectory.fault for trajectory in kept[0]] == ["", ""]


def test_overlong_completions_are_penalised_before_they_are_compared() -> None:
    # Limit 10, buffer 4: 6 tokens cost nothing, 8 cost a half, 10 all of the factor.
    trajectories = group_of(0, [1.0, 1.0, 1.0])
    for trajectory, length in zip(trajectories, (6, 8, 10), strict=True):
        trajectory.turns[0].completion_ids, trajectory.turns[0].logprobs = (1,) * length, (-1.0,) * length
    table = turn_table(trajectories)
    settings = {"overlong_limit": 10, "overlong_buffer": 4, "overlong_factor": 2.0}
    found = build("dapo", {"dapo": settings}).credit(table).advantages[table.first_tokens()]
    torch.testing.assert_close(found, torch.tensor([1.0, 0.0, -1.0]).double(), atol=1e-5, rtol=0)
    assert not build("dapo").credit(table).advantages.any()
    with pytest.raises(ConfigError, match="overlong_buffer must be at most overlong_limit=10, got 20"):
        build("dapo", {"dapo": {"overlong_limit": 10, "overlong_buffer": 20}})


# Greedy baselines


def test_remax_compares_with_the_greedy_episode_of_the_same_instance() -> None:
    sampled, greedy = [*group_of(0, [1.0, 0.0]), *group_of(1, [0.5])], [*group_of(0, [0.25]), *group_of(1, [1.0])]

    def rollout(greedy_too: list[Trajectory] = greedy, greedy: bool = False) -> list[Trajectory]:
        return greedy_too if greedy else sampled

    algorithm = build("remax", {"remax": {"reward_kl_coef": 0.0}})
    credit = algorithm.credit(turn_table(algorithm.collect(rollout)))
    assert credit.advantages.tolist() == [0.75, -0.25, -0.5]
    assert credit.metrics == {"episodes_without_baseline": 0.0, "greedy_return": pytest.approx(0.5)}
    assert not any(trajectory.columns for trajectory in sampled), "what was played is not changed"


def test_an_instance_whose_greedy_episode_broke_teaches_nothing_and_is_counted() -> None:
    greedy = [*group_of(0, [0.25], faults=[0]), *group_of(1, [0.0])]
    algorithm = build("remax", {"remax": {"reward_kl_coef": 0.0}})
    chosen = algorithm.collect(
        lambda greedy=False, broken=greedy: broken if greedy else [*group_of(0, [1.0]), *group_of(1, [1.0])]
    )
    credit = algorithm.credit(turn_table(chosen))
    assert credit.advantages.tolist() == [0.0, 1.0]
    assert credit.metrics["episodes_without_baseline"] == 1


def test_seats_of_one_game_have_baselines_of_their_own() -> None:
    def seat(name: str, value: float) -> Trajectory:
        (trajectory,) = group_of(0, [value])
        return replace(trajectory, turns=[replace(trajectory.turns[0], agent=name)])

    greedy = [seat("player_0", 1.0), seat("player_1", -1.0)]
    chosen = build("remax").collect(
        lambda greedy=False, best=greedy: best if greedy else [seat("player_1", 0.5), seat("player_0", 0.5)]
    )
    assert [trajectory.columns["greedy_return"] for trajectory in chosen] == [-1.0, 1.0]


# What tasks play and what runs count

CONFIG = TrainConfig(
    env="turngym/NumberLine-v0",
    env_options={},
    algorithm="remax",
    rollout=RolloutConfig(groups=2, group_size=3, max_new_tokens=3),
)


def completions(trajectories: Sequence[Trajectory]) -> list[list[tuple[int, ...]]]:
    return [[turn.completion_ids for turn in trajectory.turns] for trajectory in trajectories]


def test_a_greedy_rollout_plays_each_instance_once_and_always_the_same() -> None:
    model, task = small_model(), EnvTask(CONFIG)
    try:
        sampled, greedy = task.gather(model, 0, 0), task.gather(model, 0, 0, greedy=True)
        again = task.gather(copy.deepcopy(model), 0, 0, greedy=True)
    finally:
        task.close()
    assert [t.spec.seed for t in greedy] == [t.spec.seed for t in sampled[::3]]
    assert [len({t.instance for t in sampled[i : i + 3]} | {greedy[i // 3].instance}) for i in (0, 3)] == [1, 1]
    assert completions(again) == completions(greedy) != completions(sampled[::3])


def test_a_greedy_rollout_of_a_game_plays_the_first_game_of_each_group() -> None:
    config = replace(CONFIG, env="turngym/KuhnPoker-v0", algorithm="remax")
    task = GameTask(config)
    try:
        sampled, greedy = task.gather(small_model(), 0, 0), task.gather(small_model(), 0, 0, greedy=True)
    finally:
        task.close()
    assert {t.spec.group for t in greedy} == {t.spec.group for t in sampled}
    assert len(sampled) == 3 * len(greedy)


class Twice(type(build("grpo"))):  # type: ignore[misc]
    """A method that plays twice and trains on the second rollout alone."""

    def collect(self, rollout: Rollout) -> list[Trajectory]:
        rollout(), rollout(greedy=True)
        return rollout()


def test_every_turn_that_is_played_counts_whether_it_is_trained_on_or_not(tmp_path: Path) -> None:
    from turngym.trainers.records.run_folder import RunFolder

    config = replace(CONFIG, algorithm="grpo", control=False, iterations=1)
    task, model = EnvTask(config), small_model()
    algorithm = Twice(build("grpo").config)
    learner = build_learner(config, model, algorithm)
    trainer = Trainer(config, model, learner, task, RunFolder.create(tmp_path / "run", config))
    played: list[list[Trajectory]] = []
    original = task.gather

    def gather(*args: Any, **kwargs: Any) -> list[Trajectory]:
        played.append(original(*args, **kwargs))
        return played[-1]

    task.gather = gather  # type: ignore[method-assign]
    try:
        record = trainer._one_iteration()
    finally:
        task.close()
    assert [len(part) for part in played] == [6, 2, 6]
    assert record["turns_total"] == sum(len(t.turns) for part in played for t in part)
    assert record["rollout/episodes"] == 12, "greedy episodes do not enter the means of what was sampled"
    assert trainer.instances >= {t.instance for part in played for t in part}
    assert {t.spec.seed for t in played[0]} == {t.spec.seed for t in played[1]}
    assert not {t.spec.seed for t in played[0]} & {t.spec.seed for t in played[2]}, "another attempt, other instances"
