"""The centralised critic of games between seats, and the moments that its targets are normalised by."""

import pytest
import torch
from torch import Tensor, tensor

from turngym.trainers import functional as F
from turngym.trainers.engine.critics.joint import JointCritic, text_features


def double(values: object) -> Tensor:
    return tensor(values, dtype=torch.float64)


def close(found: Tensor, expected: object, atol: float = 1e-6) -> None:
    torch.testing.assert_close(found.detach().double(), double(expected), atol=atol, rtol=0)


def test_the_joint_critic_is_the_same_in_every_process_and_leaves_the_global_generator_alone() -> None:
    before = torch.random.get_rng_state()
    one, two = JointCritic(64, 8), JointCritic(64, 8)
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert text_features("a b", 1000) == (907, 681, 299, 617)


def test_the_joint_critic_takes_any_text() -> None:
    views = ["", "player_0: K", "\ud800 broken", "player_0: K"]
    values = JointCritic(64, 8)(views)
    assert values.shape == (4,) and bool((values == 0).all())
    assert JointCritic(64, 8)([]).shape == (0,)


def test_moments_are_those_of_the_first_batch_and_then_fade() -> None:
    first = F.Moments().updated(double([1.0, 3.0]), decay=0.9)
    assert first.mean == pytest.approx(2.0)
    assert first.std == pytest.approx(1.0)
    later = first
    for _ in range(200):
        later = later.updated(double([10.0, 14.0]), decay=0.9)
    assert later.mean == pytest.approx(12.0, abs=1e-4)
    assert later.std == pytest.approx(2.0, abs=1e-3)


def test_moments_restore_what_they_normalised_and_never_divide_by_next_to_nothing() -> None:
    moments = F.Moments().updated(double([5.0, 5.0]), decay=0.9)
    values = double([5.0, 6.0])
    close(moments.restore(moments.normalise(values)), values.tolist())
    assert moments.std == pytest.approx(0.1)
    assert F.Moments().updated(double([]), decay=0.9) == F.Moments()
    close(F.Moments().normalise(values), values.tolist())
