"""Columns on their way from an environment to the loss: checked, recorded, saved, and laid out."""

import json
import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from telling_env import Telling
from toy_envs import Counter

from turngym.agents.episodes.rollout import rollout
from turngym.agents.players.scripted import ScriptedAgent
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.agents.trajectory_json import trajectory_from_json, trajectory_to_json
from turngym.columns import columns_of, valid_columns
from turngym.envs.check import CheckFailed, check
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError, DivergenceError, NotFinite
from turngym.trainers.core.columns import Texts, check_token_columns, lay_out_column
from turngym.trainers.core.finite import screen_rewards
from turngym.trainers.core.turn_table import turn_table

# What an environment gives


def test_numbers_and_texts_are_taken_as_floats_and_texts_that_can_be_written() -> None:
    found = valid_columns({"i": 1, "b": True, "n": np.float32(0.5), "t": "a\ud800"})
    assert found == {"i": 1.0, "b": 1.0, "n": 0.5, "t": "a\ufffd"}
    assert {type(value) for value in found.values()} == {float, str}


WHAT_IS_NO_COLUMN_IS_REFUSED: list[tuple[Any, str]] = [
    ([1.0], "must be a dict from names to numbers and texts, got list"),
    ({1: 1.0}, "a name .* must be a string of 1 to 100 characters"),
    ({"": 1.0}, "a name .* must be a string of 1 to 100 characters"),
    ({"n" * 101: 1.0}, "a name .* must be a string of 1 to 100 characters"),
    ({"x": [1.0]}, r"info\['columns'\]\['x'\] must be a number or a text, got list"),
    ({"x": None}, "must be a number or a text, got NoneType"),
    ({"x": math.nan}, "must be a finite number or a text, got nan"),
    ({"reward/x": "much"}, "must be a number, got str"),
    ({str(k): 0 for k in range(65)}, "may have 64 names, got 65"),
    ({"x": "a" * 60_000, "y": "b" * 60_000}, "may have 100,000 characters together, got 120,000"),
]


def test_what_is_no_column_is_refused() -> None:
    for given, message in WHAT_IS_NO_COLUMN_IS_REFUSED:
        with pytest.raises(TypeError, match=message):
            valid_columns(given)


def test_a_part_of_the_reward_that_is_not_finite_is_refused_as_a_reward() -> None:
    with pytest.raises(NotFinite, match=r"got the reward part 'cost' of inf, which is not finite"):
        valid_columns({"reward/cost": math.inf})


def test_both_ways_to_give_parts_of_the_reward_are_one() -> None:
    info = {"reward_components": {"goal": 1.0}, "columns": {"distance": 2.0}}
    assert columns_of(info) == {"reward/goal": 1.0, "distance": 2.0}
    assert columns_of({}) == {}


def test_a_plain_environment_gives_them_in_its_info_and_after_a_snapshot_again() -> None:
    env = Telling()
    _, info = env.reset(seed=1)
    assert info["columns"] == {"distance": 3, "place": "at 0", "reward/step": 0.25}
    env.step("up")
    again = Telling()
    _, restored = again.restore(env.snapshot())
    assert restored["columns"]["distance"] == 2
    assert "columns" not in Counter().reset(seed=1)[1]


def test_the_checker_knows_the_columns() -> None:
    check(Telling, in_process=True)
    with pytest.raises(CheckFailed, match=r"info\['columns'\]\['bad'\] must be a number or a text"):
        check(Telling, options={"more": {"bad": [1]}}, in_process=True)


def played(backend: str, more: Any = None) -> list[Trajectory]:
    vector = make_vec(env_fns=[partial(Telling, more)] * 2, backend=backend, autoreset_mode="disabled")
    try:
        return rollout(vector, ScriptedAgent(["up", "down", "up", "up", "up"]), [EpisodeSpec(k, k) for k in range(3)])
    finally:
        vector.close()


@pytest.mark.parametrize("backend", ["sync", "process"])
def test_turns_carry_what_the_environment_gave_with_their_outcome(backend: str) -> None:
    for trajectory in played(backend):
        assert [turn.columns for turn in trajectory.turns] == [
            {"distance": 3.0 - count, "place": f"at {count}", "reward/step": 0.25} for count in (1, 0, 1, 2, 3)
        ]


def test_a_vector_stacks_them_as_gymnasium_does() -> None:
    vector = make_vec(env_fns=[Telling] * 2, autoreset_mode="disabled")
    _, infos = vector.reset(seed=[1, 2])
    assert infos["columns"]["distance"].tolist() == [3.0, 3.0]
    assert infos["columns"]["place"].tolist() == ["at 0", "at 0"]
    vector.close()


@pytest.mark.parametrize("more", ["not a dict", {"x": math.nan}, {"x": object}])
def test_wrong_columns_break_their_slot_alone(more: Any) -> None:
    for trajectory in played("sync", more):
        assert "info['columns']" in trajectory.fault


def test_a_part_of_the_reward_that_is_not_finite_stops_a_run() -> None:
    trajectories = played("sync", {"reward/step": math.inf})
    with pytest.raises(DivergenceError, match="got the reward part 'step' of inf"):
        screen_rewards(trajectories, "stop")


# Files

BEFORE = """{"env_id": "X", "instance": "abc", "terminated": true, "truncated": false, "success": 1, "score": 0.0,
"fault": "", "final_observation": "", "final_prompt_ids": [], "role": "", "policy": "", "final_joint": "over",
"progress": NaN, "greedy_return": 2.0, "final_anchor": "", "spec": {"episode": 3, "seed": 7, "group": 1,
"options": null}, "turns": [{"observation": "see", "anchor": "here", "action": "go", "completion": "",
"prompt_ids": [], "completion_ids": [3, 4], "logprobs": [-1.0, -0.5], "reward": 1.0, "action_is_valid": true,
"agent": "player_0", "joint": "all", "components": {"goal": 1.5, "cost": -0.5}, "staleness": 0, "policy_version": -1,
"entropies": [], "sampled_value": 0.25, "progress": NaN}, {"observation": "see", "anchor": "there", "action": "stop",
"completion": "", "prompt_ids": [], "completion_ids": [], "logprobs": [], "reward": 0.5, "action_is_valid": true,
"agent": "player_0", "joint": "", "components": {}, "staleness": 0, "policy_version": -1, "entropies": [],
"sampled_value": NaN, "progress": NaN}]}"""
"""What ``trajectory_to_json`` wrote when a method's signals were fields."""


def test_trajectories_of_before_are_read_into_columns() -> None:
    found = trajectory_from_json(json.loads(BEFORE))
    assert found.columns == {"final_joint_view": "over", "greedy_return": 2.0}
    assert [turn.columns for turn in found.turns] == [
        {"reward/goal": 1.5, "reward/cost": -0.5, "joint_view": "all", "sampled_value": 0.25},
        {},
    ]


def test_columns_are_written_and_read_exactly() -> None:
    turn = Turn("", "", "go", completion_ids=(1, 2), logprobs=(-1.0, -1.0))
    turn.columns = {"x": 0.1234567890123456789, "t": "text", "scores": (0.5, -1.5)}
    trajectory = Trajectory(EpisodeSpec(0, 0), turns=[turn], columns={"whole": "episode"})
    assert trajectory_from_json(json.loads(json.dumps(trajectory_to_json(trajectory)))) == trajectory


# The table


def episode(*columns: dict[str, Any], **whole: Any) -> Trajectory:
    turns = [
        Turn("", "", "", completion_ids=(1,) * n, logprobs=(-1.0,) * n, columns=each)
        for n, each in enumerate(columns, 1)
    ]
    return Trajectory(EpisodeSpec(0, 0), turns=turns, terminated=True, columns=whole)


def test_the_table_has_the_columns_of_each_scope() -> None:
    table = turn_table(
        [
            episode({"x": 1.5, "place": "here"}, {"per_token": (0.25, 0.75)}, level=2.0),
            episode({"x": 0.5}, name="second"),
        ]
    )
    nan = math.nan
    assert {scope: sorted(columns) for scope, columns in table.columns.items()} == {
        "token": ["per_token"],
        "turn": ["place", "x"],
        "episode": ["level", "name"],
    }
    np.testing.assert_equal(table.numbers("turn", "x").tolist(), [1.5, nan, 0.5])
    np.testing.assert_equal(table.numbers("token", "per_token").tolist(), [nan, 0.25, 0.75, nan])
    np.testing.assert_equal(table.numbers("episode", "level").tolist(), [2.0, nan])
    assert table.texts("turn", "place") == ("here", "", "")
    assert table.texts("episode", "name") == ("", "second")
    assert table.numbers("turn", "x").dtype == torch.float64


def test_a_column_that_nobody_gave_is_nan_or_empty_and_a_wrong_kind_is_told() -> None:
    table = turn_table([episode({"x": 1.0, "t": "text"})])
    assert bool(table.numbers("turn", "y").isnan().all()) and table.texts("episode", "y") == ("",)
    with pytest.raises(ConfigError, match="the turn column 't' has strings, expected numbers"):
        table.numbers("turn", "t")
    with pytest.raises(ConfigError, match="the turn column 'x' has numbers, expected strings"):
        table.texts("turn", "x")


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        (({"x": 1.0}, {"x": "one"}), "the column 'x' has numbers and texts: give the same kind at every turn"),
        (({"x": (1.0, 2.0)},), "the column 'x' is over tokens, and turn 0 of the batch has 1 of them"),
        (({"x": (1.0,)}, {"x": 2.0}), "the column 'x' is over tokens, and turn 1 of the batch has 2 of them"),
    ],
)
def test_columns_that_do_not_fit_together_are_refused(turns: tuple[dict[str, Any], ...], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        turn_table([episode(*turns)])


# Micro-batches


def test_columns_of_the_credit_are_laid_out_in_their_own_precision_with_nothing_in_the_padding() -> None:
    index = torch.tensor([[2, -1], [0, 1]])
    numbers = lay_out_column(torch.tensor([1, 2, 3]), index)
    assert isinstance(numbers, torch.Tensor) and numbers.tolist() == [[3, 0], [1, 2]] and numbers.dtype == torch.int64
    pairs = lay_out_column(torch.arange(6.0, dtype=torch.float64).reshape(3, 2), index)
    assert isinstance(pairs, torch.Tensor) and pairs.tolist() == [[[4, 5], [0, 0]], [[0, 1], [2, 3]]]
    texts = lay_out_column(Texts.of(["a", "b", "a"]), index)
    assert (
        isinstance(texts, Texts) and texts.tolist() == ["a", "", "a", "b"] and texts.at(index >= 0) == ["a", "a", "b"]
    )
    empty = lay_out_column(torch.zeros(0, 2), index)
    assert isinstance(empty, torch.Tensor) and empty.shape == (2, 2, 2)


def test_a_column_of_the_credit_that_is_not_over_the_tokens_is_refused() -> None:
    with pytest.raises(
        ConfigError, match="the credit's column 'x' has 2 entries for 3 sampled tokens: give one for each"
    ):
        check_token_columns({"x": torch.zeros(2)}, 3)
