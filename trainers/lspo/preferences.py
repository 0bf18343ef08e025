"""Preference training towards a mixed latent strategy, with soft labels."""

from __future__ import annotations

from collections.abc import Sequence

from turngym.lazy import Tensor, torch

_SMALLEST = 1e-4


def soft_preference_loss(
    policy: Tensor, reference: Tensor, clusters: Sequence[int], strategy: Tensor, beta: float = 1.0
) -> Tensor:
    """Return the mean DPO loss over all pairs of speeches from different clusters, with soft labels.

    The label of a pair is ``P(a > b) = w_a^beta / (w_a^beta + w_b^beta)`` with ``w(y) = strategy(z) / ref(z)``: z is
    the cluster of y, and ref(z) the probability of the cluster under the reference. The minimum is
    ``ref(y | z) strategy(z)``, the latent strategy in the words of the reference, for every beta. Hard labels for the
    more probable cluster would end in a pure strategy instead.

    Args:
        policy: [speeches] log-probabilities under the model.
        reference: [speeches] log-probabilities under the reference.
        clusters: Cluster of each speech.
        strategy: [clusters] probabilities of the latent strategy.
        beta: Scale of the log-ratios, as in DPO (Rafailov et al. 2023).

    >>> reference = torch.tensor([0.5, 0.2, 0.2, 0.1]).log()
    >>> best = torch.tensor([0.214286, 0.085714, 0.466667, 0.233333]).log().requires_grad_()
    >>> soft_preference_loss(best, reference, [0, 0, 1, 1], torch.tensor([0.3, 0.7])).backward()
    >>> bool(best.grad.abs().max() < 1e-5)
    True
    """
    numbers = torch.tensor(clusters)
    first, second = torch.triu_indices(len(clusters), len(clusters), 1)
    differ = numbers[first] != numbers[second]
    first, second = first[differ], second[differ]
    if not len(first):
        return policy.sum() * 0.0
    shares = reference.detach().softmax(0)
    masses = torch.zeros(len(strategy), dtype=shares.dtype).index_add(0, numbers, shares)
    worth = (strategy.to(shares.dtype).clamp_min(_SMALLEST).log() - masses.clamp_min(1e-12).log())[numbers]
    label = torch.sigmoid(beta * (worth[first] - worth[second]))
    ratios = policy - reference.detach()
    margin = beta * (ratios[first] - ratios[second])
    agree, disagree = torch.nn.functional.logsigmoid(margin), torch.nn.functional.logsigmoid(-margin)
    return -(label * agree + (1 - label) * disagree).mean()
