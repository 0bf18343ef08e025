"""Rewards that compare the episodes of a group: one group of all that an iteration plays of an instance."""

import math
from collections.abc import Sequence
from typing import Any

import pytest

from turngym.agents.trajectory import Branch, EpisodeSpec, Trajectory, Turn
from turngym.trainers.algorithms import build
from turngym.trainers.loop.tasks.parts import WHOLE, Part
from turngym.trainers.loop.tasks.rewarded_task import RewardedTask
from turngym.trainers.loop.tasks.task import TaskSource
from turngym.trainers.reward_models import make_reward_model

SEARCH, ANSWER = "<search>x</search>", "<answer>y</answer>"


def searching(number: int, calls: int, success: int = 1, group: int = 0, branch: Branch | None = None) -> Trajectory:
    """An episode with some calls and then an answer; the environment pays 1 for a correct one."""
    actions = [SEARCH] * calls + [ANSWER]
    turns = [
        Turn(f"turn {k}", "", action, reward=float(success and action == ANSWER), snapshot=b"state", prompt_ids=(k,))
        for k, action in enumerate(actions)
    ]
    return Trajectory(EpisodeSpec(number, 0, group, branch=branch), turns=turns, success=success, terminated=True)


class Scripted(TaskSource):
    """Plays what it is told to: sampled episodes, greedy ones, and branches with so many further calls."""

    has_expert = False

    def __init__(self, sampled: Sequence[Trajectory], greedy: Sequence[Trajectory] = (), further: int = 0) -> None:
        self.sampled, self.greedy, self.further = list(sampled), list(greedy), further

    def texts(self) -> list[str]:
        return []

    def demonstrations(self, student: Any, count: int) -> list[Trajectory]:
        return []

    def gather(
        self, model: Any, iteration: int, attempt: int, greedy: bool = False, part: Part = WHOLE
    ) -> list[Trajectory]:
        return self.greedy if greedy else self.sampled

    def branch(self, model: Any, iteration: int, branches: Sequence[Branch], first: int) -> list[Trajectory]:
        return [
            searching(100 + first + k, self.further, 1, each.trajectory.spec.group, each)
            for k, each in enumerate(branches)
        ]

    def curve_point(self, model: Any) -> dict[str, float]:
        return {}

    def evaluate(self, model: Any, name: str, temperature: float | None) -> Any:
        return iter(())

    def close(self) -> None:
        pass


class Iteration:
    """What an algorithm is handed to play with, as the training loop makes it."""

    def __init__(self, task: TaskSource, number: int = 0) -> None:
        self.task, self.number, self.branched = RewardedTask(task, make_reward_model("otc:most_calls=4")), number, 0

    def __call__(self, greedy: bool = False, branches: Sequence[Branch] | None = None) -> list[Trajectory]:
        if branches is None:
            found = self.task.gather(None, self.number, 0, greedy)  # type: ignore[arg-type]
        else:
            found = self.task.branch(None, self.number, branches, self.branched)  # type: ignore[arg-type]
            self.branched += len(branches)
        for trajectory in found:
            for turn in trajectory.turns:
                turn.policy_version = 7
        return found


def efficiency(calls: int, fewest: int) -> float:
    return math.sin(2 * fewest * calls / (calls + fewest) * math.pi / (2 * fewest))


def returns(trajectories: Sequence[Trajectory]) -> list[float]:
    return [each.reward_sum for each in trajectories]


def test_a_greedy_replay_is_measured_like_the_samples_of_its_instance() -> None:
    """Compared with itself it would earn 1 however many calls it made, and be a baseline that nobody reaches."""
    task = Scripted([searching(0, 2), searching(1, 4), searching(2, 1, success=0)], [searching(0, 4)])
    found = build("remax").collect(Iteration(task))
    assert returns(found) == pytest.approx([1.0, efficiency(4, 2), 0.0])
    assert [each.columns["greedy_return"] for each in found] == pytest.approx([efficiency(4, 2)] * 3)


def test_a_greedy_replay_with_fewer_calls_raises_the_bar_for_the_samples() -> None:
    task = Scripted([searching(0, 2), searching(1, 4), searching(2, 3, group=1)], [searching(0, 1)])
    found = build("remax").collect(Iteration(task))
    assert returns(found) == pytest.approx([efficiency(2, 1), efficiency(4, 1), 1.0])
    assert found[0].columns["greedy_return"] == pytest.approx(1.0)
    assert math.isnan(float(found[2].columns["greedy_return"]))


def test_continuations_are_measured_like_the_episodes_that_they_go_on_from() -> None:
    """Values and returns are in one unit, or the advantage of a turn would be their difference in units."""
    found = build("vine_ppo", {"vine_ppo": {"num_rollouts": 2}}).collect(Iteration(Scripted([searching(0, 1)], (), 2)))
    # A continuation from turn k has made k calls and makes two more; the fewest of all is the 1 of the episode itself.
    assert [turn.columns["sampled_value"] for turn in found[0].turns] == pytest.approx(
        [efficiency(2, 1), efficiency(3, 1)]
    )
    assert returns(found) == [1.0]


def test_branches_belong_to_the_group_that_they_branched_off_in() -> None:
    sampled = [searching(0, 3), searching(1, 4)]
    play = Iteration(Scripted(sampled, (), 1))
    first = play()
    assert returns(first) == pytest.approx([1.0, efficiency(4, 3)])
    second = play(branches=[Branch(first[0], 0), Branch(first[1], 2)])
    assert returns(second) == pytest.approx([1.0, efficiency(3, 1)])
    assert returns(first) == pytest.approx([efficiency(3, 1), efficiency(4, 1)])
    assert {turn.policy_version for each in first for turn in each.turns} == {7}, "all else stays"
    assert returns(sampled) == [1.0, 1.0], "what the environment gave stays"


def test_the_next_iteration_begins_new_groups() -> None:
    task = Scripted([searching(0, 1)])
    play = Iteration(task)
    first = play()
    task.sampled = [searching(0, 3)]
    play.number = 1
    assert returns(play()) == pytest.approx([1.0])
    assert returns(first) == pytest.approx([1.0])


def test_an_episode_that_broke_enters_no_group() -> None:
    broken = searching(0, 1)
    broken.fault = "exception: boom"
    play = Iteration(Scripted([broken, searching(1, 2)]))
    assert returns(play()) == pytest.approx([1.0, 1.0])
    play(branches=[])
    assert returns(play()) == pytest.approx([1.0, 1.0])
