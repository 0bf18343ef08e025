"""Parts of a reward on their way: from environment and wrappers through vectors and rollouts to the turn table."""

import pytest
import torch
from reward_parts import Parts
from small import agent_of, group_specs, small_model

from turngym.agents.episodes.rollout import rollout
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.columns import as_columns
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError, DivergenceError
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.gdpo import turn_parts
from turngym.trainers.core.turn_table import turn_table

torch.set_num_threads(1)


@pytest.mark.parametrize("backend", ["sync", "process"])
def test_parts_reach_the_credit_of_gdpo(backend: str) -> None:
    vector = make_vec(
        "turngym/NumberLine-v0", 4, wrappers=[Parts], backend=backend, autoreset_mode="disabled", max_turns=5
    )
    try:
        trajectories = rollout(vector, agent_of(small_model()), group_specs())
    finally:
        vector.close()
    table = turn_table(trajectories)
    parts = turn_parts(table)
    assert set(parts) == {"paid", "cost"}
    torch.testing.assert_close(torch.stack(list(parts.values())).sum(0), table.reward)
    credit = build("gdpo").credit(table)
    assert credit.metrics["reward_parts"] == 2, "valid actions are a part only where they are given a weight"
    with pytest.raises(ConfigError, match=r"gdpo has a weight for 'costs', a part of no reward\. Did you mean 'cost'"):
        build("gdpo", {"gdpo": {"weights": "costs=1"}}).credit(table)


def episode(*turns: tuple[float, dict[str, float]]) -> Trajectory:
    made = [
        Turn("", "", "", completion_ids=(1,), logprobs=(-1.0,), reward=reward, columns=as_columns(parts))
        for reward, parts in turns
    ]
    return Trajectory(EpisodeSpec(0, 0), turns=made, terminated=True)


def test_a_turn_without_parts_is_all_reward_where_others_have_some() -> None:
    table = turn_table([episode((1.0, {"reward": 0.5, "extra": 0.5}), (2.0, {}), (3.0, {"extra": 3.0}))])
    assert {name: part.tolist() for name, part in turn_parts(table).items()} == {
        "reward": [0.5, 2.0, 0.0],
        "extra": [0.5, 0.0, 3.0],
    }
    plain = turn_table([episode((1.0, {}))])
    assert {name: part.tolist() for name, part in turn_parts(plain).items()} == {"reward": [1.0]}


def test_a_part_that_is_not_finite_is_told_with_its_name() -> None:
    with pytest.raises(DivergenceError, match="got the reward part 'extra' of nan at turn 1"):
        turn_table([episode((1.0, {}), (2.0, {"extra": float("nan")}))])
