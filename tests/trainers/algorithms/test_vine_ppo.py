"""VinePPO: values by playing on, and the refusals of methods that branch."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small import small_model
from worker_envs import Unsaved

from turngym.agents.trajectory import Branch, EpisodeSpec, Trajectory, Turn
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.core.algorithm import Need
from turngym.trainers.core.turn_table import turn_table
from turngym.trainers.engine.learner import UpdateConfig
from turngym.trainers.loop.setup import build_algorithm, build_learner
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.loop.tasks.game_task import GameTask
from turngym.trainers.loop.tasks.task import EnvTask
from turngym.trainers.loop.trainer import Trainer
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import RolloutConfig, TrainConfig

torch.set_num_threads(1)

CONFIG = TrainConfig(
    env="turngym/NumberLine-v0",
    env_options={"max_turns": 4, "highest": 3},
    algorithm="vine_ppo",
    algorithm_options={"vine_ppo": {"num_rollouts": 3}},
    iterations=2,
    control=False,
    rollout=RolloutConfig(groups=2, group_size=2, max_new_tokens=2),
    update=UpdateConfig(minibatches=2),
)


def episode(rewards: Sequence[float], values: Sequence[float], tokens: int = 1, number: int = 0) -> Trajectory:
    turns = [
        Turn(
            "",
            "",
            "",
            prompt_ids=(number, k),
            completion_ids=(1,) * tokens,
            logprobs=(-1.0,) * tokens,
            reward=reward,
            snapshot=b"state %d" % k,
            columns={} if math.isnan(value) else {"sampled_value": value},
        )
        for k, (reward, value) in enumerate(zip(rewards, values, strict=True))
    ]
    return Trajectory(EpisodeSpec(number, 0), turns=turns, terminated=True)


def credited(*episodes: Trajectory, **config: Any) -> list[float]:
    found = build("vine_ppo", {"vine_ppo": {"whiten": False, "invalid_penalty": 0.1, **config}}).credit(
        turn_table(episodes)
    )
    return [round(x, 9) for x in found.advantages.tolist()]


def test_the_worked_numbers() -> None:
    assert credited(episode([0, 0, 1], [0.5, 0.25, 0.75])) == [-0.25, 0.5, 0.25]
    assert credited(episode([0, 0, 1], [0.5, 0.25, 0.75], tokens=2)) == [-0.25, -0.25, 0.5, 0.5, 0.25, 0.25]
    assert credited(episode([0, 1], [0.5, 0.5]), gamma=0.5) == [-0.25, 0.5]


def test_an_unknown_value_is_what_the_next_one_says_and_teaches_its_turn_nothing() -> None:
    """Section 10.4: V_k = r_k + V_{k+1} where it is missing, so its own advantage is 0 and the turn before is fair."""
    nan = math.nan
    assert credited(episode([0, 0.25, 1], [0.5, nan, 0.75])) == [0.5, 0, 0.25]
    assert credited(episode([0, 0, 1], [0.5, 0.25, nan])) == [-0.25, 0.75, 0]
    table = turn_table([episode([0, 1], [nan, nan])])
    credit = build("vine_ppo").credit(table)
    assert credit.advantages.tolist() == [0, 0]
    assert (credit.metrics["turns_without_value"], credit.metrics["sampled_value"]) == (2, 0)


def test_penalties_are_part_of_the_reward() -> None:
    bad = episode([0, 1], [0.5, 0.75])
    bad.turns[0].action_is_valid = False
    assert credited(bad) == [0.15, 0.25]


class Played:
    """A rollout whose continuations return 1, 0, 1, 0 ... unless they are told to break."""

    def __init__(self, fresh: Sequence[Trajectory], broken: Callable[[Branch], bool] = lambda branch: False) -> None:
        self.fresh, self.broken = list(fresh), broken
        self.asked: list[Branch] = []

    def __call__(self, branches: Sequence[Branch] | None = None) -> list[Trajectory]:
        if branches is None:
            return self.fresh
        self.asked += branches
        found = []
        for k, branch in enumerate(branches):
            turns = [Turn("", "", "", reward=0.0), Turn("", "", "", reward=float(k % 2 == 0), action_is_valid=False)]
            fault = "broke" if self.broken(branch) else ""
            found.append(Trajectory(EpisodeSpec(99 + k, 0, branch=branch), turns=turns, fault=fault))
        return found


def numbers(turn: Turn) -> Any:
    return turn.columns.get("sampled_value", math.nan)


def collected(rollout: Played, **config: Any) -> list[list[float]]:
    algorithm = build("vine_ppo", {"vine_ppo": {"num_rollouts": 4, "invalid_penalty": 0.1, **config}})
    return [[numbers(turn) for turn in each.turns] for each in algorithm.collect(rollout)]


def test_the_value_of_a_state_is_the_mean_return_of_the_episodes_played_from_it() -> None:
    rollout = Played([episode([0, 1], [0, 0])])
    assert collected(rollout, invalid_penalty=0.0) == [[0.5, 0.5]]
    assert [branch.turn for branch in rollout.asked] == [0] * 4 + [1] * 4
    assert collected(Played(rollout.fresh), invalid_penalty=0.1, gamma=0.5) == [[pytest.approx(0.2)] * 2]


def test_equal_states_are_measured_once_and_unequal_prompts_are_not_equal_states() -> None:
    twins = Played([episode([0, 1], [0, 0]), episode([0, 1], [0, 0])])
    assert collected(twins) == [[pytest.approx(0.4)] * 2] * 2
    assert len(twins.asked) == 2 * 4
    others = Played([episode([0, 1], [0, 0]), episode([0, 1], [0, 0], number=1)])
    collected(others)
    assert len(others.asked) == 4 * 4


def test_continuations_that_break_do_not_count_and_a_state_without_any_has_no_value() -> None:
    rollout = Played([episode([0, 1], [0, 0])], broken=lambda branch: branch.turn == 1)
    (values,) = collected(rollout, invalid_penalty=0.0)
    assert values[0] == 0.5 and math.isnan(values[1])
    fault = replace(episode([0], [0]), fault="worker died")
    assert math.isnan(collected(Played([fault]))[0][0]), "nothing is played from a broken episode"


def trainer_of(config: TrainConfig, path: Path) -> Trainer:
    method, model = build_algorithm(config), small_model()
    task = make_task(config, method)
    return Trainer(config, model, build_learner(config, model, method), task, RunFolder.create(path / "run", config))


def test_what_is_played_for_values_counts_and_is_not_trained_on(tmp_path: Path) -> None:
    trainer = trainer_of(CONFIG, tmp_path)
    try:
        record = trainer._one_iteration()
    finally:
        trainer.task.close()
    fresh = round(record["rollout/turns"] * record["rollout/episodes"])
    assert record["rollout/episodes"] == 4
    assert record["rollout/branches"] == 3 * record["credit/states_measured"] > 0
    assert record["turns_total"] == fresh + record["rollout/branch_turns"]
    assert len(trainer.learner.advantages) == record["rollout/tokens"], "one for each token of the fresh episodes"
    assert record["rollout/branch_faults"] == record["credit/turns_without_value"] == 0


def test_values_are_what_the_real_environment_pays_from_there_to_the_end(tmp_path: Path) -> None:
    options = {"vine_ppo": {"num_rollouts": 400, "invalid_penalty": 0.1}}
    config = replace(CONFIG, algorithm_options=options, env_options={"step_reward": -0.1})
    config = replace(config, rollout=replace(config.rollout, groups=1, group_size=1, num_envs=64), wrappers=())
    task, method = make_task(config, build_algorithm(config)), build_algorithm(config)
    model, branched = small_model(), list[int]()

    def rollout(branches: Sequence[Branch] | None = None) -> list[Trajectory]:
        if branches is None:
            whole = task.gather(model, 0, 0)
            return [replace(each, turns=each.turns[-2:]) for each in whole]
        branched.append(len(branches))
        return task.branch(model, 0, branches, 0)

    try:
        (found,) = method.collect(rollout)
    finally:
        task.close()
    assert branched == [800]
    # Two turns are left and no completion of this model is an action: each costs 0.1, and 0.1 for being invalid.
    assert [numbers(turn) for turn in found.turns] == [
        pytest.approx(-0.4, abs=0.05),
        pytest.approx(-0.2, abs=0.02),
    ]


@pytest.mark.parametrize("name", ["vine_ppo", "arpo", "arpo+epo"])
def test_games_between_seats_do_not_branch_and_say_so(name: str) -> None:
    config = TrainConfig(env="turngym/KuhnPoker-v0", env_options={}, algorithm=name)
    with pytest.raises(
        ConfigError, match=rf"^{name.replace('+', '.')} branches from the middle of episodes, and games"
    ):
        build_algorithm(config)
    task = GameTask(replace(config, algorithm="grpo"))
    with pytest.raises(ConfigError, match=r"GameTask cannot continue from the middle of an episode\. Take a"):
        task.branch(small_model(), 0, [], 0)


def test_an_environment_that_cannot_save_its_state_is_refused_in_words() -> None:
    task = EnvTask(CONFIG, snapshots=True)
    task.close()
    task.vector = make_vec(env_fns=[Unsaved] * 4, autoreset_mode="disabled")
    try:
        with pytest.raises(ConfigError) as caught:
            task.gather(small_model(), 0, 0)
    finally:
        task.close()
    assert str(caught.value) == (
        "vine_ppo branches from the middle of episodes, and turngym/NumberLine-v0 cannot save its state (a live web "
        "page cannot be saved). Take a method without snapshots, such as ppo or grpo."
    )


def test_tasks_record_what_the_method_needs_and_nothing_else() -> None:
    for name, expected in (("grpo", (False, False)), ("vine_ppo", (True, False)), ("arpo", (True, True))):
        task = make_task(replace(CONFIG, algorithm=name, algorithm_options={}), build(name))
        assert isinstance(task, EnvTask)
        assert (task.snapshots, task.entropies) == expected
        task.close()
    assert Need.SNAPSHOTS in build("vine_ppo+epo").needs
