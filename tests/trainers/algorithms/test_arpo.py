"""ARPO: where episodes branch, what they cost the budget, and what shared turns are credited with."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from test_vine_ppo import CONFIG, trainer_of
from torch import Tensor, tensor

from turngym.agents.models.generate import entropy_share
from turngym.agents.trajectory import Branch, EpisodeSpec, Trajectory, Turn
from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.arpo import branch_score, shared_mean, with_origins
from turngym.trainers.core.turn_table import turn_table
from turngym.trainers.functional import loss_weights
from turngym.trainers.loop.setup import build_algorithm

torch.set_num_threads(1)


def double(rows: object) -> Tensor:
    return tensor(rows, dtype=torch.float64)


def episode(
    number: int,
    rewards: Sequence[float],
    entropies: Sequence[float] = (),
    group: int = 0,
    branch: Branch | None = None,
) -> Trajectory:
    turns = [
        Turn(
            "",
            "",
            "",
            completion_ids=(1,),
            logprobs=(-1.0,),
            reward=reward,
            snapshot=b"state",
            entropies=(entropy,),
        )
        for reward, entropy in zip(rewards, entropies or [0.5] * len(rewards), strict=True)
    ]
    return Trajectory(EpisodeSpec(number, 7, group, branch=branch), turns=turns, terminated=True)


# Credit


def test_the_worked_numbers_of_branching() -> None:
    assert float(entropy_share(double([0.5, 0.25, 0.25] + [0] * 97).log())) == pytest.approx(0.225772, abs=1e-6)
    scores = [branch_score(0.6, 0.8, 0.2), branch_score(0.6, 0.2, 0.2), branch_score(0.45, -0.5, 0.2)]
    assert scores == [pytest.approx(0.44), pytest.approx(0.56), pytest.approx(0.55)]
    assert [score <= 0.5 for score in scores] == [True, False, False]
    assert (branch_score(0.1, 5, 1), branch_score(0.9, -5, 1)) == (0, 1)


def family() -> list[Trajectory]:
    """Three turns; a branch at turn 1; a branch of the branch at its turn 1, which is turn 2; and a stranger."""
    root = episode(0, [0.0, 1.0, 2.0])
    child = episode(1, [10.0, 20.0], branch=Branch(root, 1))
    grandchild = episode(2, [300.0], branch=Branch(child, 1))
    return with_origins([root, child, grandchild, episode(3, [5.0])])


def test_a_branch_has_the_return_of_its_whole_episode() -> None:
    table = turn_table(family())
    assert table.episode_return().tolist() == [3, 30, 310, 5]
    assert [each.reward_sum for each in family()] == [3, 30, 310, 5]
    parents = table.numbers("episode", "parent"), table.numbers("episode", "parent_turn")
    assert [column.nan_to_num(-1).tolist() for column in parents] == [[-1, 0, 1, -1], [-1, 1, 1, -1]]
    assert turn_table(family()[1:]).episode_return().tolist() == [30, 310, 5], "even where the parent broke"


def test_shared_turns_have_the_mean_of_all_episodes_that_share_them() -> None:
    root = (3 + 30 + 310) / 3
    expected = [root, 3, 3, (30 + 310) / 2, 30, 310, 5]
    table = turn_table(family())
    assert shared_mean(table, table.episode_return()).tolist() == pytest.approx(expected)
    shuffled = turn_table([family()[k] for k in (2, 3, 0, 1)])
    assert shared_mean(shuffled, shuffled.episode_return()).tolist() == pytest.approx([310, 5, root, 3, 3, 170, 30])


def test_every_turn_is_trained_on_once_and_as_often_as_it_is_shared_in_value() -> None:
    """The mean over sharers: what copies of the prefix in each complete episode would add up to, over their number."""
    trajectories = family()
    table = turn_table(trajectories)
    found = build("arpo", {"arpo": {"invalid_penalty": 0.0}}).credit(table).advantages
    assert len(found) == 7, "three turns, two, one and one: the prefix is there once"
    whole = [replace(t, turns=[*t.earlier_turns, *t.turns], spec=EpisodeSpec(k, 7)) for k, t in enumerate(trajectories)]
    copies = build("grpo", {"grpo": {"invalid_penalty": 0.0}}).credit(turn_table(whole)).advantages
    per_episode = [copies[[0, 3, 6, 9][k]] for k in range(4)]
    expected = [sum(per_episode[:3]) / 3, per_episode[0], per_episode[0], sum(per_episode[1:3]) / 2, *per_episode[1:]]
    torch.testing.assert_close(found, torch.stack([double(float(x)) for x in expected]))


def test_without_branches_it_is_grpo() -> None:
    trajectories = [episode(k, [0.0, float(k % 3)], group=k // 4) for k in range(8)]
    table = turn_table(trajectories)
    found, grpo = build("arpo").credit(table), build("grpo").credit(table)
    torch.testing.assert_close(found.advantages, grpo.advantages)
    assert {k: v for k, v in found.metrics.items() if "branches" not in k} == grpo.metrics


def test_an_invalid_action_costs_its_own_turn_and_no_statistic() -> None:
    trajectories = [episode(0, [0.0, 1.0]), episode(1, [0.0, 0.0])]
    arpo = build("arpo", {"arpo": {"invalid_penalty": 0.1}})
    clean = arpo.credit(turn_table(trajectories)).advantages
    trajectories[0].turns[1].action_is_valid = False
    found = arpo.credit(turn_table(trajectories)).advantages
    assert found[1] < clean[1]
    assert torch.equal(found[[0, 2, 3]], clean[[0, 2, 3]])


def test_weights_of_the_loss_count_a_shared_token_once() -> None:
    assert loss_weights(turn_table(family()), "token").tolist() == [1 / 7] * 7


# Collecting


class Played:
    """A rollout with these fresh episodes; branches have two turns of this entropy, after what they share."""

    def __init__(self, fresh: Sequence[Trajectory], entropy: float = 0.0) -> None:
        self.fresh, self.entropy = list(fresh), entropy
        self.asked: list[list[Branch]] = []

    def __call__(self, branches: Sequence[Branch] | None = None) -> list[Trajectory]:
        if branches is None:
            return self.fresh
        first = 100 + sum(map(len, self.asked))
        self.asked.append(list(branches))
        return [
            episode(first + k, [0.0, 1.0], [self.entropy] * 2, each.trajectory.spec.group, each)
            for k, each in enumerate(branches)
        ]


def arpo(**config: Any) -> Any:
    algorithm = build("arpo", {"arpo": {"entropy_weight": 10.0, **config}})
    algorithm.begin_iteration(0, 1)
    return algorithm


def test_episodes_branch_where_the_entropy_has_risen_and_nowhere_else() -> None:
    """With a weight of 10 a rise or fall of 0.2 decides whatever the random number is."""
    fresh = [episode(0, [0] * 4, [0.4, 0.6, 0.2, 0.7]), episode(1, [0] * 3, [0.4, 0.1, 0.1])]
    rollout = Played(fresh)
    found = arpo(episodes_per_group=4).collect(rollout)
    assert [(each.trajectory.spec.episode, each.turn) for each in rollout.asked[0]] == [(0, 1), (0, 3)]
    assert len(found) == 4 and len(rollout.asked) == 1


def test_early_turns_come_first_and_every_group_has_its_own_budget() -> None:
    fresh = [episode(k, [0] * 3, [0.1, 0.9, 0.9], group=k // 2) for k in range(4)]
    rollout = Played(fresh)
    arpo(episodes_per_group=3).collect(rollout)
    assert [(each.trajectory.spec.episode, each.turn) for each in rollout.asked[0]] == [(0, 1), (2, 1)]


def test_branches_branch_again_against_the_first_turn_of_the_whole_episode() -> None:
    fresh = [episode(0, [0] * 2, [0.4, 0.9]), episode(1, [0] * 2, [0.4, 0.1])]
    rising = Played(fresh, entropy=0.9)
    arpo(episodes_per_group=5).collect(rising)
    assert [[(each.trajectory.spec.episode, each.turn) for each in wave] for wave in rising.asked] == [
        [(0, 1)],
        [(100, 1)],
        [(101, 1)],
    ]
    falling = Played(fresh, entropy=0.1)
    algorithm = arpo(episodes_per_group=5)
    found = algorithm.collect(falling)
    assert [[each.turn for each in wave] for wave in falling.asked] == [[1], [0, 0]], "the rest begins at the beginning"
    assert {each.trajectory.spec.episode for each in falling.asked[1]} == {0, 1}
    counts = algorithm.credit(turn_table(found)).metrics
    assert (counts["branches_at_rises"], counts["branches_at_start"]) == (1, 2)


def test_a_turn_may_branch_more_than_once_if_allowed() -> None:
    rollout = Played([episode(0, [0] * 2, [0.1, 0.9]), episode(1, [0])])
    arpo(episodes_per_group=5, branches_per_turn=3).collect(rollout)
    assert [each.turn for each in rollout.asked[0]] == [1, 1, 1]


def test_only_the_first_tokens_of_a_turn_are_looked_at() -> None:
    whole = episode(0, [0] * 2)
    whole.turns[1].entropies = (0.5,) * 2 + (1.0,) * 100
    quiet = Played([whole, episode(1, [0])])
    arpo(episodes_per_group=3, entropy_tokens=2, threshold=0.0).collect(quiet)
    assert [each.turn for each in quiet.asked[0]] == [0]
    loud = Played([whole, episode(1, [0])])
    arpo(episodes_per_group=3, entropy_tokens=50, threshold=0.0).collect(loud)
    assert [each.turn for each in loud.asked[0]] == [1]


def test_the_same_iteration_branches_at_the_same_turns_and_another_one_elsewhere() -> None:
    def chosen(iteration: int) -> list[tuple[int, int]]:
        algorithm = build("arpo", {"arpo": {"episodes_per_group": 40}})
        algorithm.begin_iteration(iteration, 9)
        rollout = Played([episode(k, [0] * 6) for k in range(8)])
        algorithm.collect(rollout)
        return [(each.trajectory.spec.episode, each.turn) for each in rollout.asked[0]]

    assert chosen(0) == chosen(0) != chosen(1)
    assert 10 <= len(chosen(0)) <= 32, "about half of the 40 turns"


def test_broken_episodes_are_not_branched_from_but_count() -> None:
    broken = replace(episode(0, [0] * 2, [0.1, 0.9]), fault="worker died")
    rollout = Played([broken, episode(1, [0])])
    assert len(arpo(episodes_per_group=3).collect(rollout)) == 3
    assert [each.trajectory.spec.episode for each in rollout.asked[0]] == [1]
    nothing = Played([broken])
    assert len(arpo(episodes_per_group=3).collect(nothing)) == 1
    assert nothing.asked == []


def test_a_budget_below_the_group_size_is_refused() -> None:
    with pytest.raises(ConfigError, match="episodes_per_group=2 is less than the group size of the rollout: raise"):
        arpo(episodes_per_group=2).collect(Played([episode(k, [0]) for k in range(3)]))


def test_a_sampler_that_does_not_tell_entropies_is_refused_before_anything_is_played() -> None:
    config = replace(CONFIG, algorithm="arpo", algorithm_options={}, rollout=replace(CONFIG.rollout, sampler="vllm"))
    with pytest.raises(ConfigError, match="arpo reads the entropy of what is sampled from, which vllm does not tell"):
        build_algorithm(config)


def test_an_iteration_fills_every_group_and_trains_each_new_token_once(tmp_path: Path) -> None:
    config = replace(CONFIG, algorithm="arpo", algorithm_options={"arpo": {"episodes_per_group": 5}})
    trainer = trainer_of(config, tmp_path)
    kept: list[Trajectory] = []
    update = trainer.learner.update

    def noted(trajectories: Sequence[Trajectory], iteration: int) -> dict[str, float]:
        kept.extend(trajectories)
        return update(trajectories, iteration)

    trainer.learner.update = noted  # type: ignore[method-assign]
    try:
        record = trainer._one_iteration()
    finally:
        trainer.task.close()
    assert sorted(each.spec.group for each in kept) == [0] * 5 + [1] * 5
    assert (record["rollout/episodes"], record["rollout/branches"]) == (4, 6)
    assert record["credit/branches_at_rises"] + record["credit/branches_at_start"] == 6
    assert len(trainer.learner.advantages) == sum(len(t.completion_ids) for each in kept for t in each.turns)
    assert len({each.spec.episode for each in kept}) == 10
