"""M-GRPO and MATPO: worked examples of the papers, calls by rollouts, links that lead nowhere, groups of one."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor, tensor

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.m_grpo import roots_of
from turngym.trainers.core.turn_table import turn_table

TEN = 10
"""Numbers of episodes in a rollout: the main agent's is a multiple."""


def episode(number: int, reward: float, role: str, caller: int | None = None, group: int = 0) -> Trajectory:
    turns = [Turn("", "", "", completion_ids=(1,), logprobs=(-1.0,), reward=reward, agent=f"player_{number % TEN}")]
    columns = {} if caller is None else {"caller": float(caller), "caller_turn": 0.0}
    return Trajectory(EpisodeSpec(number, 0, group), "duo", turns=turns, terminated=True, role=role, columns=columns)


def rollout(number: int, reward: float, calls: Sequence[float], group: int = 0) -> list[Trajectory]:
    """A main agent of one turn, and calls with returns of their own."""
    first = TEN * number
    subs = [episode(first + 1 + place, each, "sub", first, group) for place, each in enumerate(calls)]
    return [episode(first, reward, "main", None, group), *subs]


FIXTURE = [*rollout(0, 1, [1, 1, 1]), *rollout(1, 0, [0.1]), *rollout(2, 1, [1, 1]), *rollout(3, 0.1, [])]
"""Four rollouts of one task."""
MAIN = [0.997242, -1.102214, 0.997242, -0.892268]
"""Mean .525, deviation sqrt(.226875)."""


def credit(episodes: Sequence[Trajectory], **options: object) -> Tensor:
    return build("m_grpo", {"m_grpo": options}).credit(turn_table(episodes)).advantages


def close(found: Tensor, expected: Sequence[float]) -> None:
    torch.testing.assert_close(found, tensor(expected, dtype=torch.float64), atol=2e-6, rtol=0)


def test_every_rollout_counts_once_however_many_calls_it_made() -> None:
    """Returns .9 and .4, .1: set .9, .9, .4, .1 of two calls each, mean .575; a call carries 1 / its number."""
    episodes = [*rollout(0, 1, [0.9]), *rollout(1, 0, [0.4, 0.1])]
    close(credit(episodes), [1.0, 0.950654, -1.0, -0.511891 / 2, -1.389418 / 2])


def test_main_agents_are_compared_with_each_other_and_calls_among_themselves() -> None:
    """Calls have the weights 1/3, 1, 1/2: mean .7 and deviation sqrt(.18) over the three rollouts that made any."""
    good, bad = 0.3 / 0.18**0.5, -0.6 / 0.18**0.5
    mains, expected = iter(MAIN), [[good / 3] * 3, [bad], [good / 2] * 2, []]
    close(credit(FIXTURE), [each for calls in expected for each in (next(mains), *calls)])


def test_matpo_copies_the_advantage_of_the_main_agent_to_its_calls() -> None:
    expected = [each for main, count in zip(MAIN, [4, 2, 3, 1], strict=True) for each in [main] * count]
    close(credit(FIXTURE, calls="root"), expected)


def test_calls_of_calls_belong_to_the_first_main_agent_and_circles_end() -> None:
    nested = [*rollout(0, 1, [1]), episode(2, 1, "sub", 1), *rollout(1, 0, [])]
    assert roots_of(turn_table(nested)).tolist() == [0, 0, 0, 3]
    close(credit(nested, calls="root"), [1, 1, 1, -1])
    circle = [episode(1, 1, "sub", 2), episode(2, 0, "sub", 1)]
    assert len(set(roots_of(turn_table(circle)).tolist())) <= 2


def test_calls_whose_main_agent_is_not_in_the_batch_still_count_by_rollouts() -> None:
    calls = [each for each in FIXTURE if each.role == "sub"]
    table = turn_table(calls)
    assert roots_of(table).tolist() == [6, 6, 6, 7, 8, 8]
    kept = [each for each, one in zip(credit(FIXTURE).tolist(), FIXTURE, strict=True) if one.role == "sub"]
    close(credit(calls), kept)
    orphans = build("m_grpo", {"m_grpo": {"calls": "root"}}).credit(table)
    assert not orphans.advantages.any() and orphans.metrics["calls_without_root"] == 6


@pytest.mark.parametrize("calls", ["own", "root"])
def test_groups_of_one_have_no_advantage_and_are_counted(calls: str) -> None:
    found = build("m_grpo", {"m_grpo": {"calls": calls}}).credit(
        turn_table([*rollout(0, 1, [1]), *rollout(1, 1, [], 1)])
    )
    assert not found.advantages.any() and found.metrics["groups_shrunk_to_one"] == 3


def test_without_calls_it_is_grpo_with_the_deviation_of_the_population() -> None:
    mains = [each for each in FIXTURE if each.role == "main"]
    grpo = build("grpo", {"grpo": {"kl_coef": 0.0, "ddof": 0, "epsilon": 0.0}}).credit(turn_table(mains)).advantages
    close(credit(mains), grpo.tolist())
    close(credit(mains, scale_by_std=False), [0.475, -0.525, 0.475, -0.425])
