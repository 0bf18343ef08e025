"""Entropy smoothing of EPO (arXiv 2509.22576): the penalty for leaving a range, and two schedules of its weight."""

from __future__ import annotations

import math

from turngym.lazy import Tensor


def hinge_penalty(entropy: Tensor, reference: Tensor | float, *, low: float, high: float) -> Tensor:
    """Return how far each entropy is outside of ``[low * reference, high * reference]``; differentiable.

    >>> import torch
    >>> hinge_penalty(torch.tensor([0.2, 0.9, 2.0]), 0.8, low=0.5, high=1.5)
    tensor([0.2000, 0.0000, 0.8000])
    """
    return (low * reference - entropy).clamp_min(0) + (entropy - high * reference).clamp_min(0)


def indicator_penalty(entropy: Tensor, reference: Tensor | float, *, low: float, high: float) -> Tensor:
    """Return 1 where the entropy is outside of ``[low * reference, high * reference]`` and 0 inside.

    Its gradient is 0: it changes the loss that is logged and not the update.
    """
    return ((entropy < low * reference) | (entropy > high * reference)).to(entropy.dtype)


def smoothing_weight(iteration: int, num_iterations: int, *, decay: float) -> float:
    """Return the paper's weight of the penalty: 2 at the start, ``1 + exp(-decay)`` in the middle, tending to 1.

    >>> [round(smoothing_weight(k, 100, decay=3.0), 4) for k in (0, 50)]
    [2.0, 1.0498]
    """
    return 1 + math.exp(-decay * iteration / max(num_iterations // 2, 1))


def released_smoothing_weight(iteration: float, num_iterations: int = 150) -> float:
    """Return the weight that the released code uses instead, with its jump in the middle.

    >>> [round(released_smoothing_weight(e), 3) for e in (0, 74, 75)]
    [1.0, 0.828, 0.8]
    """
    middle = num_iterations / 2
    if iteration < middle:
        return 1 - 0.2 * (1 - math.exp(-2 * iteration / middle))
    return 0.8 * math.exp(-3 * (iteration - middle) / middle)
