"""Importance ratios, new policy over old, at the level of tokens and of turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turngym.lazy import Tensor, torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

MAX_LOG_RATIO = 20.0
"""Bound of log-ratios before exponentiation."""


def log_ratios(
    logprobs: Float[Tensor, "batch token"],
    old_logprobs: Float[Tensor, "batch token"],
    mask: Bool[Tensor, "batch token"],
) -> Float[Tensor, "batch token"]:
    """Return the log of new over old probability of each sampled token, 0 elsewhere, not clamped."""
    return torch.where(mask, logprobs - old_logprobs, torch.zeros_like(logprobs))


def exp_clamped(log_ratio: Tensor) -> Tensor:
    """Return the exponential of a log-ratio clamped to plus or minus 20."""
    return log_ratio.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()


def turn_sum(
    values: Float[Tensor, "batch token"], turn_ids: Int[Tensor, "batch token"]
) -> Float[Tensor, "batch token"]:
    """Return, at each token of a turn, the sum of ``values`` over the turn; 0 where ``turn_ids`` is negative.

    >>> turn_sum(torch.tensor([[1.0, 9.0, 2.0, 3.0]]), torch.tensor([[7, -1, 7, 8]]))
    tensor([[3., 0., 3., 3.]])
    """
    ids = turn_ids.flatten()
    ordered, order = ids.sort()
    turn = torch.zeros_like(ids).index_copy_(0, order, (ordered.diff(prepend=ordered[:1]) != 0).cumsum(0))
    sums = values.new_zeros(len(ids)).index_add(0, turn, values.flatten())  # one for each turn, and zeros behind them
    return torch.where(turn_ids >= 0, sums[turn].view_as(values), torch.zeros_like(values))


def turn_mean(
    values: Float[Tensor, "batch token"], turn_ids: Int[Tensor, "batch token"]
) -> Float[Tensor, "batch token"]:
    """Return, at each token of a turn, the mean of ``values`` over the turn; 0 where ``turn_ids`` is negative."""
    return turn_sum(values, turn_ids) / turn_lengths(turn_ids, values.dtype).clamp_min(1)


def turn_lengths(turn_ids: Int[Tensor, "batch token"], dtype: torch.dtype) -> Float[Tensor, "batch token"]:
    """Return, at each token of a turn, how many tokens the turn has; 0 where ``turn_ids`` is negative."""
    return turn_sum(torch.ones(turn_ids.shape, dtype=dtype, device=turn_ids.device), turn_ids)


def token_ratio(
    log_ratio: Float[Tensor, "batch token"], turn_ids: Int[Tensor, "batch token"]
) -> Float[Tensor, "batch token"]:
    """Return the ratio of each token."""
    return exp_clamped(log_ratio)


def turn_product_ratio(
    log_ratio: Float[Tensor, "batch token"], turn_ids: Int[Tensor, "batch token"]
) -> Float[Tensor, "batch token"]:
    """Return at each token the ratio of its whole turn: the product over the turn's tokens.

    The two tokens of one turn, each more likely by a factor of exp(0.2):

    >>> turn_product_ratio(torch.tensor([[0.2, 0.2]]), torch.tensor([[0, 0]]))
    tensor([[1.4918, 1.4918]])
    """
    return exp_clamped(turn_sum(log_ratio, turn_ids))


def turn_geometric_ratio(
    log_ratio: Float[Tensor, "batch token"], turn_ids: Int[Tensor, "batch token"]
) -> Float[Tensor, "batch token"]:
    """Return at each token the geometric mean of the ratios of its turn, differentiated as such.

    >>> turn_geometric_ratio(torch.tensor([[0.1, 0.3]]), torch.tensor([[0, 0]]))
    tensor([[1.2214, 1.2214]])
    """
    return exp_clamped(turn_mean(log_ratio, turn_ids))


def turn_geometric_ratio_by_token(
    log_ratio: Float[Tensor, "batch token"], turn_ids: Int[Tensor, "batch token"]
) -> Float[Tensor, "batch token"]:
    """Return the value of :func:`turn_geometric_ratio` with the gradient of the token's own log-probability."""
    return turn_geometric_ratio(log_ratio, turn_ids).detach() * (log_ratio - log_ratio.detach()).exp()


def proximal_logprobs(
    logprobs: Float[Tensor, "batch token"],
    old_logprobs: Float[Tensor, "batch token"],
    staleness: Float[Tensor, "batch token"],
) -> Float[Tensor, "batch token"]:
    """Return log-probabilities on the line from the sampler's to the current ones, as A-3PO approximates them.

    The proximal policy counts as one version behind the current one, so a token that was sampled ``d`` versions ago is
    ``(d - 1) / d`` of the way. No gradient goes through the result.

    Args:
        logprobs: Log-probability of each token now.
        old_logprobs: The same under the policy that sampled.
        staleness: Versions between the sampler and the current policy; 1 or less gives the sampler's.

    >>> now, then = torch.tensor([[-0.6, -0.6]]), torch.tensor([[-1.0, -1.0]])
    >>> proximal_logprobs(now, then, torch.tensor([[4.0, 0.0]]))
    tensor([[-0.7000, -1.0000]])
    """
    behind = staleness.clamp_min(1)
    return old_logprobs + (behind - 1) / behind * (logprobs.detach() - old_logprobs)
