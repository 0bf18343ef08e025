"""Generalised advantage estimation (Schulman et al. 2016, eq. 16) and discounted returns, over tokens or over turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngym.lazy import Tensor, torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


def token_gae(
    rewards: Float[Tensor, "row token"],
    values: Float[Tensor, "row token"],
    mask: Bool[Tensor, "row token"],
    bootstrap: Float[Tensor, "row"] | None = None,
    *,
    gamma: float | Float[Tensor, "row token"],
    lam: float | Float[Tensor, "row token"],
) -> tuple[Float[Tensor, "row token"], Float[Tensor, "row token"]]:
    """Return the advantages and returns (advantage plus value) of tokens, not whitened.

        delta_t = r_t + gamma * V_next - V_t
        A_t     = delta_t + gamma * lam * A_next

    ``next`` is the next token under the mask: tokens outside of it cost no discount and give no value, and hold a copy
    of the advantage that follows them. Their rewards are not read.

    Args:
        rewards: Reward received after each token.
        values: Critic before each token.
        mask: Tokens that the policy sampled.
        bootstrap: Value after the end of each row: 0 if the episode terminated, the critic's if it was cut off.
        gamma: Discount after each token, or one for all.
        lam: Decay after each token, or one for all: 1 gives return minus value, 0 the one-token error.
    """
    each = (x.to(values) if isinstance(x, Tensor) else values.new_tensor(x) for x in (gamma, lam))
    discounts, decays = (x.expand_as(values) for x in each)
    after = values.new_zeros(len(values)) if bootstrap is None else bootstrap.to(values.dtype)
    following = torch.zeros_like(after)
    columns: list[Tensor] = []
    columns_of = (rewards, values, mask, discounts, decays)
    for reward, value, here, discount, decay in zip(*(x.flip(-1).unbind(-1) for x in columns_of), strict=True):
        error = reward + discount * after - value
        following = torch.where(here, error + discount * decay * following, following)
        after = torch.where(here, value, after)
        columns.append(following)
    advantages = torch.stack(columns[::-1], -1) if columns else torch.zeros_like(values)
    return advantages, advantages + values


def turn_gae(
    rewards: Float[Tensor, "episode time"],
    values: Float[Tensor, "episode time"],
    mask: Bool[Tensor, "episode time"],
    bootstrap: Float[Tensor, "episode"] | None = None,
    *,
    gamma: float,
    lam: float,
) -> tuple[Float[Tensor, "episode time"], Float[Tensor, "episode time"]]:
    """Return the advantages and returns of turns, 0 if there is no turn; a turn is the time step.

    Args:
        rewards: Reward received after each turn.
        values: Critic before each turn.
        mask: Entries that are turns.
        bootstrap: Value after each episode's last turn: 0 if it terminated, the critic's if it was truncated.
        gamma: Discount per turn, never per token.
        lam: 1 gives return minus value, 0 the one-turn error.

    >>> rewards, values = torch.tensor([[0.0, 1.0]]), torch.tensor([[0.2, 0.4]])
    >>> turn_gae(rewards, values, torch.tensor([[True, True]]), gamma=0.5, lam=0.5)
    (tensor([[0.1500, 0.6000]]), tensor([[0.3500, 1.0000]]))
    """
    advantages, returns = token_gae(rewards, values, mask, bootstrap, gamma=gamma, lam=lam)
    return advantages.masked_fill(~mask, 0.0), returns.masked_fill(~mask, 0.0)


def discounted_returns(
    rewards: Float[Tensor, "episode time"], mask: Bool[Tensor, "episode time"], *, gamma: float
) -> Float[Tensor, "episode time"]:
    """Return the discounted sum of rewards from each turn onward, 0 if there is no turn.

    >>> discounted_returns(torch.tensor([[0.0, 0.0, 1.0]]), torch.ones(1, 3, dtype=torch.bool), gamma=0.5)
    tensor([[0.2500, 0.5000, 1.0000]])
    """
    return turn_gae(rewards, torch.zeros_like(rewards), mask, gamma=gamma, lam=1.0)[0]
