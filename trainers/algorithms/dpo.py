"""DPO: direct preference optimisation between the episodes of a group (Rafailov et al. 2023, arXiv 2305.18290).

The better of two episodes of one task is preferred, whatever the difference of their returns. Its loss is that of DPO,
or of a relative: IPO (arXiv 2310.12036), the hinge of SLiC (arXiv 2305.10425), robust DPO (arXiv 2403.00409), or SimPO
(arXiv 2405.14734) without a reference. SPPO (arXiv 2405.00675), APO (arXiv 2408.06266), NCA (arXiv 2402.05369) and BCO
(arXiv 2404.04656) move each of the two by its own distance from the reference; TDPO (arXiv 2404.11999) subtracts how
much further the worse one has drifted over the vocabulary; LiPO (arXiv 2402.01878) weighs the pairs of a ranked group,
RSO (arXiv 2309.06657) those that rejection sampling accepts. Pairs come from the policy itself in every iteration, as
in online DPO.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, NamedTuple, TypeAlias, get_args

from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import one_of, required, sampled, within
from turngym.trainers.algorithms.grpo import OutcomeConfig, OutcomeMethod, group_credit
from turngym.trainers.core.algorithm import Credit, Divergence, LossInputs, LossOutput, Need, Normalisation, Term
from turngym.trainers.core.turn_table import TurnTable

Shape: TypeAlias = Literal[
    "sigmoid", "robust", "hinge", "ipo", "sppo", "apo_zero", "apo_down", "nca", "bco", "tdpo1", "tdpo2"
]
Pairs: TypeAlias = Literal["all", "extremes"]
Weights: TypeAlias = Literal["equal", "lambda", "acceptance"]
_ROUNDING = 1e-9
"""Part of a group's largest return by which sums of equal rewards may differ."""
ANCHORED: tuple[Shape, ...] = ("sppo", "apo_zero", "apo_down", "nca", "bco")
"""Losses of each episode's distance from the reference, not only of the difference of two."""
DRIFTING: tuple[Shape, ...] = ("tdpo1", "tdpo2")
"""Losses that read the KL from the reference to the policy over the vocabulary, at each token of an episode."""
_DRIFT = Divergence(beta=0.0, source="reference")


@dataclass(frozen=True)
class DPOConfig(OutcomeConfig):
    """Settings of direct preference optimisation."""

    normalisation: Normalisation = "trajectory_sum"
    """What the log-likelihood of an episode is: the sum over its tokens, or with ``trajectory`` their mean."""
    loss: Shape = "sigmoid"
    """Loss of a pair: ``sigmoid`` (DPO), ``robust``, ``hinge`` (SLiC) or ``ipo`` of the difference of log-likelihoods;
    ``sppo``, ``apo_zero``, ``apo_down``, ``nca`` or ``bco`` of both log-likelihoods, each relative to the reference;
    ``tdpo1`` or ``tdpo2`` of their difference and that of the KL from the reference at their tokens."""
    beta: float = 0.1
    """Weight of log-likelihoods; for ``ipo`` and ``sppo`` the target is 1 / (2 beta)."""
    label_smoothing: float = 0.0
    """Assumed share of pairs in the wrong order, for ``sigmoid`` and, below 0.5, ``robust``."""
    margin: float = 0.0
    """Subtracted from the weighted difference, as in SimPO; for ``sigmoid`` and ``hinge``."""
    drift_weight: float = 0.5
    """Weight of the difference of KL for ``tdpo2``, whose better episode's has no gradient; ``tdpo1`` has 1."""
    reference: bool = True
    """True if likelihoods are relative to the reference policy; False is SimPO."""
    pairs: Pairs = "all"
    """Pairs of a group: all with different returns, or its best against its worst episodes."""
    weights: Weights = "equal"
    """Weight of a pair: equal, LiPO's lambda, the gain in DCG of ranking the two in the right order, or RSO's
    ``acceptance``, the probability that rejection sampling accepts both."""
    acceptance: float = 0.5
    """RSO accepts an episode with probability exp((return - best of its group) / this)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("normalisation", self.normalisation, ("trajectory_sum", "trajectory"))
        one_of("loss", self.loss, get_args(Shape))
        one_of("pairs", self.pairs, get_args(Pairs))
        one_of("weights", self.weights, get_args(Weights))
        within("beta", self.beta, 1e-13)
        within("label_smoothing", self.label_smoothing, 0, 0.5)
        within("margin", self.margin, 0)
        within("drift_weight", self.drift_weight, 0)
        within("acceptance", self.acceptance, 1e-13)
        if not isinstance(self.reference, bool):
            raise ConfigError(f"reference must be True or False, got {self.reference!r}.")
        if self.loss not in ("sigmoid", "robust") and self.label_smoothing:
            given = f"got loss {self.loss!r}: leave it at 0."
            raise ConfigError(f"label_smoothing is for the losses 'sigmoid' and 'robust', {given}")
        if self.loss == "robust" and self.label_smoothing == 0.5:
            raise ConfigError("label_smoothing must be below 0.5 for loss 'robust', got 0.5: no order is left.")
        if self.loss not in ("sigmoid", "hinge") and self.margin:
            raise ConfigError(f"margin is for the losses 'sigmoid' and 'hinge', got loss {self.loss!r}: leave it at 0.")
        if self.loss in (*ANCHORED, *DRIFTING) and not self.reference:
            raise ConfigError(f"loss {self.loss!r} measures distances from a reference: leave reference at True.")


class Preferences(NamedTuple):
    """Result of comparing episodes.

    Args:
        slopes: [episodes] Derivative of the loss by each episode's log-likelihood.
        loss: Weighted sum over pairs, by default their mean; 0 without a pair.
        accuracy: Share of pairs whose better episode gained likelihood more than the other; 0 without a pair.
        pairs: Number of pairs.
        drift_slopes: [episodes] Derivative of the loss by each episode's drift.
    """

    slopes: Tensor
    loss: Tensor
    accuracy: float
    pairs: int
    drift_slopes: Tensor


def preferences(
    likelihoods: Tensor,
    wins: Tensor,
    config: DPOConfig,
    weights: Tensor | None = None,
    drifts: Tensor | None = None,
) -> Preferences:
    """Compare episodes pair by pair.

    Args:
        likelihoods: [episodes] Log-likelihood of each, less that under the reference.
        wins: [episodes, episodes] Whether the first is preferred to the second.
        config: Loss, beta, label smoothing and margin.
        weights: [episodes, episodes] Weight of each pair; one over their number unless given.
        drifts: [episodes] KL from the reference at the tokens of each, for ``tdpo1`` and ``tdpo2``.

    >>> found = preferences(torch.tensor([1.0, -0.5]), torch.tensor([[False, True], [False, False]]), DPOConfig())
    >>> found.loss, found.slopes
    (tensor(0.6210), tensor([-0.0463,  0.0463]))
    """
    count = int(wins.sum())
    with torch.enable_grad():
        free = likelihoods.detach().requires_grad_()
        drift = (torch.zeros_like(likelihoods) if drifts is None else drifts.detach()).requires_grad_()
        better = free[:, None] - _lags(drift[:, None], drift, config)
        losses = torch.where(wins, pair_losses(better, free, config), 0.0)
        loss = losses.sum() / max(count, 1) if weights is None else (weights * losses).sum()
        slopes, drift_slopes = torch.autograd.grad(loss, (free, drift), materialize_grads=True)
    right = float((wins & (likelihoods[:, None] > likelihoods)).sum()) / max(count, 1)
    return Preferences(slopes, loss.detach(), right, count, drift_slopes)


def _lags(better: Tensor, worse: Tensor, config: DPOConfig) -> Tensor | float:
    """Return what TDPO subtracts from the difference of log-likelihoods, given the drift of both episodes."""
    if config.loss not in DRIFTING:
        return 0.0
    return worse - better if config.loss == "tdpo1" else config.drift_weight * (worse - better.detach())


def pair_losses(better: Tensor, worse: Tensor, config: DPOConfig) -> Tensor:
    """Return the loss of each pair, in the shape that both arguments broadcast to.

    Args:
        better: Log-likelihood of the preferred episode of each pair, less that under the reference.
        worse: The same of the other one.
        config: Loss, beta, label smoothing and margin.

    >>> pair_losses(torch.tensor(1.0), torch.tensor(-0.5), DPOConfig(loss="apo_zero"))
    tensor(0.9625)
    """
    if config.loss in ANCHORED:
        return _anchored_losses(better, worse, config.loss, config.beta)
    difference = better - worse
    if config.loss == "ipo":
        return (difference - 1 / (2 * config.beta)) ** 2
    logit = config.beta * difference - config.margin
    if config.loss == "hinge":
        return (1 - logit).clamp_min(0)
    smoothing, agree, disagree = config.label_smoothing, _cost(logit), _cost(-logit)
    if config.loss == "robust":
        return ((1 - smoothing) * agree - smoothing * disagree) / (1 - 2 * smoothing)
    return (1 - smoothing) * agree + smoothing * disagree


def _anchored_losses(better: Tensor, worse: Tensor, loss: Shape, beta: float) -> Tensor:
    if loss == "sppo":
        return (better - 1 / (2 * beta)) ** 2 + (worse + 1 / (2 * beta)) ** 2
    up, down = beta * better, beta * worse
    if loss == "apo_zero":
        return torch.sigmoid(-up) + torch.sigmoid(down)
    if loss == "apo_down":
        return torch.sigmoid(up) + torch.sigmoid(down - up)
    if loss == "nca":
        return _cost(up) + (_cost(-up) + _cost(-down)) / 2
    return _cost(up) + _cost(-down)


def _cost(logit: Tensor) -> Tensor:
    """Return minus the log of the probability with that logit."""
    return torch.nn.functional.softplus(-logit)


def wins_of(returns: Tensor, groups: Tensor, pairs: Pairs) -> Tensor:
    """Return [episodes, episodes] whether the first is preferred to the second.

    Args:
        returns: [episodes] Return of each.
        groups: [episodes] Group of each, from 0.
        pairs: Which pairs count.

    >>> wins_of(torch.tensor([1.0, 0.5, 0.0]), torch.zeros(3, dtype=torch.long), "extremes").nonzero().tolist()
    [[0, 2]]
    """
    if not len(groups):
        return torch.zeros(0, 0, dtype=torch.bool)
    best, worst = _extremes(returns, groups)
    noise = _ROUNDING * torch.maximum(best.abs(), worst.abs())
    wins = (groups[:, None] == groups) & (returns[:, None] > returns + noise)
    return wins if pairs == "all" else wins & (returns == best)[:, None] & (returns == worst)


def lambda_weights(likelihoods: Tensor, returns: Tensor, groups: Tensor, wins: Tensor) -> Tensor:
    """Return [episodes, episodes] the lambda of each pair over the number of groups that have a pair.

    It is abs(2^a - 2^b) abs(1 / ln(1 + i) - 1 / ln(1 + j)) with returns a and b, scaled to 0 to 1 in their group, and
    ranks i and j by likelihood. Equal likelihoods are ranked against their returns.

    Args:
        likelihoods: [episodes] Log-likelihood of each, less that under the reference.
        returns: [episodes] Return of each.
        groups: [episodes] Group of each, from 0.
        wins: [episodes, episodes] Whether the first is preferred to the second.

    >>> wins = torch.tensor([[False, True], [False, False]])
    >>> lambda_weights(torch.tensor([2.0, 1.0]), torch.tensor([1.0, 0.0]), torch.zeros(2, dtype=torch.long), wins)
    tensor([[0.0000, 0.5325],
            [0.0000, 0.0000]])
    """
    if not len(groups):
        return torch.zeros_like(wins, dtype=likelihoods.dtype)
    best, worst = _extremes(returns, groups)
    gains = 2 ** ((returns - worst) / (best - worst).clamp_min(torch.finfo(returns.dtype).tiny))
    same, is_equal = groups[:, None] == groups, likelihoods == likelihoods[:, None]
    before = (likelihoods > likelihoods[:, None]) | (is_equal & (returns < returns[:, None]))
    is_tied = is_equal & (returns == returns[:, None])
    ranks = 1 + (same & before).sum(1) + ((same & is_tied).sum(1) - 1) / 2
    discounts = 1 / torch.log1p(ranks.to(likelihoods))
    found = (gains[:, None] - gains).abs().to(likelihoods) * (discounts[:, None] - discounts).abs()
    return torch.where(wins, found, 0.0) / max(len(groups[wins.any(1)].unique()), 1)


def acceptance_weights(returns: Tensor, groups: Tensor, wins: Tensor, temperature: float) -> Tensor:
    """Return [episodes, episodes] the probability that both of a pair are accepted, over the sum of all.

    Args:
        returns: [episodes] Return of each.
        groups: [episodes] Group of each, from 0.
        wins: [episodes, episodes] Whether the first is preferred to the second.
        temperature: An episode is accepted with probability exp((return - best of its group) / temperature).

    >>> returns, groups = torch.tensor([1.0, 0.0, -1.0]), torch.zeros(3, dtype=torch.long)
    >>> acceptance_weights(returns, groups, wins_of(returns, groups, "all"), 0.5)
    tensor([[0.0000, 0.8668, 0.1173],
            [0.0000, 0.0000, 0.0159],
            [0.0000, 0.0000, 0.0000]])
    """
    if not len(groups):
        return torch.zeros_like(wins, dtype=returns.dtype)
    accepted = ((returns - _extremes(returns, groups)[0]) / temperature).exp()
    both = torch.where(wins, accepted[:, None] * accepted, 0.0)
    return both / both.sum().clamp_min(torch.finfo(both.dtype).tiny)


def _extremes(returns: Tensor, groups: Tensor) -> tuple[Tensor, Tensor]:
    """Return [episodes] the largest and the smallest return of each one's group."""
    empty = returns.new_zeros(int(groups.max()) + 1)
    best = empty.scatter_reduce(0, groups, returns, "amax", include_self=False)[groups]
    return best, empty.scatter_reduce(0, groups, returns, "amin", include_self=False)[groups]


def episode_likelihoods(table: TurnTable, normalisation: Normalisation, reference: bool) -> tuple[Tensor, Tensor]:
    """Return [episodes] the log-likelihood of each, float64, and which episodes have a token in the loss.

    Args:
        table: The batch.
        normalisation: ``trajectory`` for means over tokens, else sums.
        reference: Whether they are relative to the reference policy.

    Raises:
        ConfigError: The table has no log-probabilities of a reference policy.
    """
    logprob = table.token_old_logprob
    if reference:
        if table.token_reference_logprob is None:
            raise ConfigError("the turn table has no 'token_reference_logprob': fill it with those of a reference.")
        logprob = logprob - table.token_reference_logprob
    return episode_totals(table, logprob, normalisation)


def episode_totals(table: TurnTable, column: Tensor, normalisation: Normalisation) -> tuple[Tensor, Tensor]:
    """Return [episodes] the total of a column over the tokens in the loss, and which episodes have such a token.

    Args:
        table: The batch.
        column: [tokens] The column.
        normalisation: ``trajectory`` for means over tokens, else sums.
    """
    counted = torch.ones_like(column)
    if len(table.masked):
        counted = counted.masked_fill(table.masked[table.token_turn], 0.0)
    tokens = table.token_sum(counted)
    totals = table.token_sum((column * counted).double())
    if normalisation == "trajectory":
        totals = totals / tokens.clamp_min(1)
    return totals, torch.nonzero(tokens).flatten()


@ALGORITHMS.register("dpo")
class DPO(OutcomeMethod[DPOConfig]):
    """Direct preference optimisation between the episodes of a group."""

    Config: ClassVar[type[DPOConfig]] = DPOConfig

    @property
    def needs(self) -> frozenset[Need]:
        """Groups, the log-probabilities before the first update, those of a reference if used, and the loss's needs."""
        reference = {Need.REFERENCE_LOGPROBS} if self.config.reference else set()
        drift = set() if self.divergence is None else {Need.DIVERGENCES}
        return super().needs | {Need.OLD_LOGPROBS} | reference | drift

    @property
    def divergence(self) -> Divergence | None:
        """KL from the reference to the policy for ``tdpo1`` and ``tdpo2``."""
        return _DRIFT if self.config.loss in DRIFTING else None

    def credit(self, table: TurnTable) -> Credit:
        """Assign each token the pull of its episode's pairs, so that the mean over episodes is that over pairs.

        Raises:
            ConfigError: The table has no log-probabilities of a reference policy.
        """
        config = self.config
        likelihoods, heard = episode_likelihoods(table, config.normalisation, config.reference)
        returns, groups = table.episode_return()[heard], table.episode_group[heard]
        wins = wins_of(returns, groups, config.pairs)
        weights = None
        if config.weights == "lambda":
            weights = lambda_weights(likelihoods[heard], returns, groups, wins)
        elif config.weights == "acceptance":
            weights = acceptance_weights(returns, groups, wins, config.acceptance)
        columns, drifts = {}, None
        if self.divergence is not None:
            drift = required(table.token_divergence, "token_divergence")
            drifts = episode_totals(table, drift, config.normalisation)[0][heard]
        found = preferences(likelihoods[heard], wins, config, weights, drifts)
        slopes = torch.zeros(2, len(likelihoods), dtype=likelihoods.dtype)
        slopes[:, heard] = len(heard) * torch.stack([-found.slopes, found.drift_slopes])
        credit = group_credit(table, slopes[0, table.episode], config)
        if drifts is not None:
            columns["drift_slope"] = table.to_tokens(slopes[1, table.episode])
        metrics = {"dpo_pairs": float(found.pairs), "dpo_loss": float(found.loss), "dpo_accuracy": found.accuracy}
        return replace(credit, metrics={**credit.metrics, **metrics}, columns={**credit.columns, **columns})

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the policy term, for ``tdpo1`` and ``tdpo2`` that of the drift, and the metrics."""
        output = super().loss(inputs)
        if self.divergence is None:
            return output
        drift = sampled(required(inputs.divergence, "divergence"), inputs)
        term = Term(inputs.numbers("drift_slope").to(drift) * drift, self.normalisation)
        metrics = {**output.metrics, "drift": Term(drift.detach(), "token")}
        return replace(output, terms={**output.terms, "drift_penalty": term}, metrics=metrics)
