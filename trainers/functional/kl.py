"""Estimators of the KL divergence from a reference policy, on tokens that the policy sampled.

Names as in http://joschu.net/blog/kl-approx.html: with ``x = log p - log q`` for policy p and reference q.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, TypeAlias

from turngym.lazy import Tensor
from turngym.trainers.functional.ratios import exp_clamped

KLEstimator: TypeAlias = Literal["k1", "k2", "k3", "abs", "k1+", "k3+", "abs+", "rk1", "rk2", "rk3"]
"""Those with a leading ``r`` are of :func:`weighted_kl`, the others of :func:`kl_penalty`."""


def _k1(difference: Tensor) -> Tensor:
    return difference


def _k2(difference: Tensor) -> Tensor:
    return difference**2 / 2


def _k3(difference: Tensor) -> Tensor:
    opposite = (-difference).clamp(-20, 20)
    return (opposite.exp() - opposite - 1).clamp(-10, 10)


def _absolute(difference: Tensor) -> Tensor:
    return difference.abs()


_ESTIMATORS: dict[str, Callable[[Tensor], Tensor]] = {"k1": _k1, "k2": _k2, "k3": _k3, "abs": _absolute}


def kl_penalty(logprobs: Tensor, reference_logprobs: Tensor, estimator: str = "k3") -> Tensor:
    """Return the estimate of each token.

    Args:
        logprobs: Log-probability under the policy, any shape.
        reference_logprobs: Log-probability under the reference policy.
        estimator: ``k1`` (x), ``k2`` (x^2 / 2), ``k3`` (exp(-x) + x - 1, at most 10), ``abs`` (|x|). With a trailing
            ``+``: that value with the gradient of k2, whose expectation is the gradient of the KL divergence.

    >>> import torch
    >>> kl_penalty(torch.tensor(-1.0), torch.tensor(-1.5), "k3")
    tensor(0.1065)
    """
    difference = logprobs - reference_logprobs
    value = _ESTIMATORS[estimator.removesuffix("+")](difference)
    if not estimator.endswith("+"):
        return value
    gradient = _k2(difference)
    return value.detach() + gradient - gradient.detach()


def weighted_kl(
    logprobs: Tensor, reference_logprobs: Tensor, ratio: Tensor, estimator: str = "k3", *, bound: float = math.inf
) -> Tensor:
    """Return the estimate of each token times the importance ratio, which is differentiated too (arXiv 2512.02556).

    The gradient of k3 then is the ratio times ``log p - log q`` times that of the log-probability: unbiased for a
    given state however far the policy has moved since it sampled, and bounded where the reference is much likelier.

    Args:
        logprobs: Log-probability under the policy, any shape.
        reference_logprobs: Log-probability under the reference policy.
        ratio: Probability under the policy over that under the policy that sampled; carries gradients.
        estimator: ``k1``, ``k2`` or ``k3``.
        bound: Largest absolute value of the product.

    >>> import torch
    >>> weighted_kl(torch.tensor(-1.0), torch.tensor(-1.5), torch.tensor(2.0), "k3")
    tensor(0.2131)
    """
    difference = logprobs - reference_logprobs
    opposite = (-difference).clamp(-20, 20)
    value = opposite.exp() - opposite - 1 if estimator == "k3" else _ESTIMATORS[estimator](difference)
    return (ratio * value).clamp(-bound, bound)


def sampled_divergence(logprobs: Tensor, others: Tensor, old_logprobs: Tensor) -> Tensor:
    """Return the estimate of the KL divergence from another policy of each token, and with it of its gradient.

    Weighed by the ratio of policy and old policy, both have the right expectation wherever the policy has moved to
    since it sampled. Where the other policy is the old one, no token's estimate is negative.

    Args:
        logprobs: Log-probability under the policy, any shape.
        others: Log-probability under the other policy.
        old_logprobs: Log-probability under the policy that sampled.

    >>> import torch
    >>> old, new = torch.tensor([0.5, 0.5]), torch.tensor([0.8, 0.2])
    >>> (old * sampled_divergence(new.log(), old.log(), old.log())).sum(), (new * (new / old).log()).sum()
    (tensor(0.1927), tensor(0.1927))
    """
    ratio = exp_clamped(logprobs - old_logprobs)
    return ratio * (logprobs - others) - ratio + 1


def adaptive_kl_factor(divergence: float, *, target: float, num_samples: int, horizon: int) -> float:
    """Return what to multiply the KL coefficient with after an update (Ziegler et al. 2019, section 2.2).

    >>> round(adaptive_kl_factor(0.3, target=0.1, num_samples=256, horizon=10_000), 5)
    1.00512
    """
    error = min(max(divergence / target - 1, -0.2), 0.2)
    return 1 + error * num_samples / horizon
