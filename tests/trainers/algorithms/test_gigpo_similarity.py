"""GiGPO with anchors that count as one where they are similar: the walk, the groups, and what stays as it was."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.gigpo import similar_anchors
from turngym.trainers.core.turn_table import TurnTable, turn_table
from turngym.wrappers.observations.anchor import cluster


def episode(anchors: Sequence[str], rewards: Sequence[float], group: int = 0) -> Trajectory:
    turns = [
        Turn("", anchor, "", completion_ids=(1,), logprobs=(-1.0,), reward=reward)
        for anchor, reward in zip(anchors, rewards, strict=True)
    ]
    return Trajectory(EpisodeSpec(0, 0, group), turns=turns, terminated=True)


def credit(table: TurnTable, similarity: float) -> tuple[Tensor, float]:
    options = {"mode": "mean_norm", "gamma": 1.0, "anchor_similarity": similarity}
    found = build("gigpo", {"gigpo": options}).credit(table)
    return found.advantages, found.metrics["turns_with_shared_anchor"]


def test_similar_anchors_are_compared_and_the_others_are_not() -> None:
    """Returns 1 and 0: the episodes get 1/2 and -1/2, and so do the turns from similar states beside that."""
    table = turn_table([episode(["the box is at 3", "goal"], [0, 1]), episode(["the box is at 4", "a wall"], [0, 0])])
    exact, shared = credit(table, 1.0)
    assert shared == 0 and exact.tolist() == pytest.approx([0.5, 0.5, -0.5, -0.5])
    alike, shared = credit(table, 0.9)
    assert shared == 0.5 and alike.tolist() == pytest.approx([1.0, 0.5, -1.0, -0.5])


def test_groups_are_never_mixed() -> None:
    """Two tasks may show the same text; turns of one group are compared with each other alone."""
    table = turn_table(
        [
            episode(["a box at 1"], [1], group=5),
            episode(["a box at 1"], [1], group=2),
            episode(["a box at 2"], [0], group=5),
            episode(["a box at 2"], [1], group=2),
        ]
    )
    assert similar_anchors(table, 0.8).tolist() == [0, 1, 0, 1]
    advantages, _ = credit(table, 0.8)
    assert advantages.tolist() == pytest.approx([1.0, 0.0, -1.0, 0.0])


def test_the_first_member_stands_for_its_cluster() -> None:
    """The walk of the source: neighbours of a neighbour do not join, and another order may give other clusters."""
    texts = ["aaaaaaaa", "aaaaaabb", "aaaabbbb"]
    for order, expected in (([0, 1, 2], [0, 0, 1]), ([1, 0, 2], [0, 0, 0])):
        table = turn_table([episode([texts[i] for i in order], [0, 0, 0])])
        assert similar_anchors(table, 0.75).tolist() == expected


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.text("ab", min_size=1, max_size=6)), min_size=1, max_size=14),
    st.sampled_from([0.3, 0.6, 0.9, 0.999]),
)
def test_keys_are_those_of_a_walk_through_each_group(rows: list[tuple[int, str]], threshold: float) -> None:
    table = turn_table([episode([text], [0.0], group) for group, text in rows])
    keys = similar_anchors(table, threshold).tolist()
    assert set(keys) == set(range(max(keys) + 1)), "bincount wants dense keys"
    for group in {group for group, _ in rows}:
        mine = [i for i, (other, _) in enumerate(rows) if other == group]
        firsts = cluster([rows[i][1] for i in mine], threshold)
        for i, first in zip(mine, firsts, strict=True):
            assert {j for j in range(len(rows)) if keys[j] == keys[i]} == {
                j for j, other in zip(mine, firsts, strict=True) if other == first
            }


def test_next_to_one_it_is_what_equal_anchors_give() -> None:
    generator = torch.Generator().manual_seed(0)
    names = ["north room", "a cellar", "the roof", "12 + 7"]
    episodes = [
        episode([names[int(i)] for i in torch.randint(4, (5,), generator=generator)], [0, 0, 0, 0, won], group % 2)
        for group, won in enumerate([0, 1, 1, 0, 0, 1])
    ]
    table = turn_table(episodes)
    (exact, shared), (alike, also) = credit(table, 1.0), credit(table, 0.999)
    assert shared == also > 0 and torch.equal(exact, alike)


@pytest.mark.parametrize("similarity", [0.0, -1.0, 1.5, float("nan")])
def test_the_similarity_is_checked(similarity: float) -> None:
    with pytest.raises(ConfigError, match="anchor_similarity must be from 1e-09 to 1"):
        build("gigpo", {"gigpo": {"anchor_similarity": similarity}})
