"""Advantage estimation against reference vectors, slow loops, hand-made numbers and plausible mistakes."""

from typing import Any

import pytest
import torch
from oracle import cases, double
from torch import Tensor, tensor

from turngym.trainers import functional as F


def slow_gae(
    rewards: Tensor, values: Tensor, mask: Tensor, bootstrap: Tensor, gamma: float, lam: float
) -> tuple[Tensor, Tensor]:
    """One row at a time: keep the policy's tokens only, then the textbook recursion; holes get what follows them."""
    advantages = torch.zeros_like(rewards)
    for row in range(len(rewards)):
        kept = [t for t in range(rewards.shape[1]) if mask[row, t]]
        following, after = 0.0, float(bootstrap[row])
        found: dict[int, float] = {}
        for t in reversed(kept):
            following = float(rewards[row, t]) + gamma * after - float(values[row, t]) + gamma * lam * following
            after = float(values[row, t])
            found[t] = following
        for t in range(rewards.shape[1]):
            advantages[row, t] = next((found[s] for s in kept if s >= t), 0.0)
    return advantages, advantages + values


@pytest.mark.parametrize("case", cases("verl_gae"))
def test_token_gae_equals_verl(case: dict[str, Any]) -> None:
    mask = tensor(case["response_mask"]).bool()
    advantages, returns = F.token_gae(
        double(case["token_level_rewards"]), double(case["values"]), mask, gamma=case["gamma"], lam=case["lam"]
    )
    torch.testing.assert_close(returns, double(case["returns"]), atol=1e-5, rtol=0)
    torch.testing.assert_close(F.whiten(advantages, mask), double(case["advantages_whitened"]), atol=1e-5, rtol=0)


def test_masked_tokens_neither_cost_discount_nor_give_value() -> None:
    # Section 1.6. From the right, gamma .9, lam .8 (gamma * lam = .72), tokens 4, 3, 1, 0:
    # A4 = 1 - .4 = .6; A3 = 0 + .9*.4 - .3 + .72*.6 = .492; the hole copies .492;
    # A1 = .9*.3 - .2 + .72*.492 = .424240; A0 = .9*.2 - .1 + .72*.424240 = .385453.
    rewards, values = double([[0, 0, 5, 0, 1]]), double([[0.1, 0.2, 9, 0.3, 0.4]])
    mask = tensor([[True, True, False, True, True]])
    advantages, returns = F.token_gae(rewards, values, mask, gamma=0.9, lam=0.8)
    torch.testing.assert_close(advantages, double([[0.385453, 0.424240, 0.492, 0.492, 0.6]]), atol=1e-6, rtol=0)
    torch.testing.assert_close(returns, double([[0.485453, 0.624240, 9.492, 0.792, 1.0]]), atol=1e-6, rtol=0)
    whitened = double([[-0.957121, -0.544496, 0.176347, 0.176347, 1.325270]])
    torch.testing.assert_close(F.whiten(advantages, mask), whitened, atol=1e-5, rtol=0)


TOKEN_GAE_EQUALS_THE_LOOP_GAMMA_LAM: list[tuple[float, float]] = [(1.0, 1.0), (0.9, 0.7), (0.99, 0.0), (0.0, 1.0)]


def test_token_gae_equals_the_loop() -> None:
    for gamma, lam in TOKEN_GAE_EQUALS_THE_LOOP_GAMMA_LAM:
        for ends in ["terminated", "truncated", "mixed"]:
            for shape in [(1, 1), (1, 6), (3, 5), (4, 9), (2, 0)]:
                generator = torch.Generator().manual_seed(shape[0] * 100 + shape[1])
                rewards, values = (torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2))
                mask = torch.rand(shape, generator=generator) < 0.7
                bootstrap = torch.randn(shape[0], generator=generator, dtype=torch.float64)
                bootstrap *= {"terminated": 0.0, "truncated": 1.0}.get(ends, torch.arange(shape[0]) % 2)
                fast = F.token_gae(rewards, values, mask, bootstrap, gamma=gamma, lam=lam)
                slow = slow_gae(rewards, values, mask, bootstrap, gamma, lam)
                torch.testing.assert_close(fast[0], slow[0], atol=1e-12, rtol=1e-12)
                torch.testing.assert_close(fast[1], slow[1], atol=1e-12, rtol=1e-12)


def test_turn_gae_by_hand() -> None:
    # Section 2.5. A2 = 1 - .4 = .6; A1 = 0 + .5*.4 - .2 + .25*.6 = .15.
    two = F.turn_gae(double([[0, 1]]), double([[0.2, 0.4]]), tensor([[True, True]]), gamma=0.5, lam=0.5)
    torch.testing.assert_close(two[0], double([[0.15, 0.6]]))
    torch.testing.assert_close(two[1], double([[0.35, 1.0]]))
    # A3 = .2; A2 = .99*.8 - .6 + .891*.2 = .3702; A1 = .99*.6 - .5 + .891*.3702 = .423848.
    three = F.turn_gae(double([[0, 0, 1]]), double([[0.5, 0.6, 0.8]]), tensor([[True] * 3]), gamma=0.99, lam=0.9)
    torch.testing.assert_close(three[0], double([[0.423848, 0.3702, 0.2]]), atol=1e-6, rtol=0)
    torch.testing.assert_close(three[1], double([[0.923848, 0.9702, 1.0]]), atol=1e-6, rtol=0)


def test_padding_after_an_episode_changes_no_turn() -> None:
    rewards, values = double([[0, 1, 7, 7]]), double([[0.2, 0.4, 9, 9]])
    mask = tensor([[True, True, False, False]])
    padded, returns = F.turn_gae(rewards, values, mask, double([0.5]), gamma=0.5, lam=0.5)
    exact, _ = F.turn_gae(rewards[:, :2], values[:, :2], mask[:, :2], double([0.5]), gamma=0.5, lam=0.5)
    assert torch.equal(padded[:, :2], exact)
    assert padded[0, 2:].tolist() == [0, 0] == returns[0, 2:].tolist()


def test_bilevel_estimation_composes_from_the_two() -> None:
    # Section 2.6. Turn values are those of the last tokens, .3 and .4; gamma .9, lam 1:
    # A2 = 1 - .4 = .6; A1 = .9*.4 - .3 + .9*.6 = .6; G = A + V = [.9, 1.0]. Then G is the reward of each turn's last
    # token, and the estimation inside a turn with gamma = lam = 1 is G minus the token's value.
    values = double([[0.1, 0.3], [0.2, 0.4]])
    advantages, returns = F.turn_gae(double([[0, 1]]), values[:, 1][None], tensor([[True, True]]), gamma=0.9, lam=1.0)
    torch.testing.assert_close(advantages, double([[0.6, 0.6]]))
    rewards = torch.stack([torch.zeros(2, dtype=torch.float64), returns[0]], dim=1)
    tokens, _ = F.token_gae(rewards, values, torch.ones(2, 2, dtype=torch.bool), gamma=1.0, lam=1.0)
    torch.testing.assert_close(tokens, double([[0.8, 0.6], [0.8, 0.6]]))


def test_an_endless_task_needs_the_bootstrap() -> None:
    """A reward of 1 forever is worth 1 / (1 - gamma); without the bootstrap a cut episode looks like a bad one."""
    gamma, steps = 0.9, 5
    truth = torch.full((1, steps), 1 / (1 - gamma), dtype=torch.float64)
    rewards, mask = torch.ones(1, steps, dtype=torch.float64), torch.ones(1, steps, dtype=torch.bool)
    right, _ = F.turn_gae(rewards, truth, mask, double([1 / (1 - gamma)]), gamma=gamma, lam=1.0)
    wrong, _ = F.turn_gae(rewards, truth, mask, gamma=gamma, lam=1.0)
    torch.testing.assert_close(right, torch.zeros_like(right))
    assert bool((wrong < -1).all())


def test_the_discount_is_per_turn_and_not_per_token() -> None:
    # Section 0: a final reward of 1 over 3 turns at .95 is worth .9025, .95, 1; consumed once for each of the
    # 5 + 4 tokens of the later turns it would be .95 ** 9 = .630249 at the first turn.
    returns = F.discounted_returns(double([[0, 0, 1]]), tensor([[True] * 3]), gamma=0.95)
    torch.testing.assert_close(returns, double([[0.9025, 0.95, 1.0]]))
    assert abs(float(returns[0, 0]) - 0.95**9) > 0.2


@pytest.mark.parametrize("length", [1, 2, 7])
def test_returns_equal_the_double_sum(length: int) -> None:
    rewards = torch.randn(3, length, generator=torch.Generator().manual_seed(length), dtype=torch.float64)
    expected = [
        [sum(0.8 ** (j - k) * row[j] for j in range(k, length)) for k in range(length)] for row in rewards.tolist()
    ]
    found = F.discounted_returns(rewards, torch.ones(3, length, dtype=torch.bool), gamma=0.8)
    torch.testing.assert_close(found, double(expected))


def test_single_precision_stays_single() -> None:
    ones = torch.ones(1, 2)
    assert F.token_gae(ones, ones, ones.bool(), double([1.0]), gamma=1.0, lam=1.0)[0].dtype == torch.float32


# whitening


def test_whitened_values_have_mean_zero_and_sample_variance_one() -> None:
    values = torch.randn(50, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3 + 7
    whitened = F.whiten(values)
    assert abs(float(whitened.mean())) < 1e-8
    assert float(whitened.var()) == pytest.approx(1, abs=1e-8)
    assert float(F.whiten(values, shift_mean=False).mean()) == pytest.approx(float(values.mean()))


def test_whitening_reads_only_the_mask() -> None:
    values, mask = double([1.0, 2.0, float("nan"), 4.0]), tensor([True, True, False, True])
    torch.testing.assert_close(F.whiten(values, mask)[mask], F.whiten(values[mask]))


@pytest.mark.parametrize("size", [0, 1])
def test_fewer_than_two_values_are_not_whitened(size: int) -> None:
    values = torch.full((size,), 3.0)
    assert torch.equal(F.whiten(values), values)
    assert F.standardise(values, ddof=1, epsilon=1e-9).tolist() == [0.0] * size


def test_explained_variance_of_perfect_and_of_useless_predictions() -> None:
    targets = double([1.0, 2.0, 3.0])
    assert F.explained_variance(targets, targets) == 1
    assert F.explained_variance(torch.full_like(targets, 9.0), targets) == 0
    assert F.explained_variance(-targets, targets) == pytest.approx(-3)  # errors 2, 4, 6: four times the variance
    assert F.explained_variance(targets, torch.ones_like(targets)) == 0
    assert F.explained_variance(targets, 0.99 + torch.tensor([0, 1, 2]) * 2**-24) == 0, "they differ by rounding alone"
    assert F.explained_variance(targets[:1], targets[:1]) == 0
