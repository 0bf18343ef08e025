"""Statistics of policy updates, computed for every method from the turn table and the loss inputs.

METRICS.md describes the metrics.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Mapping

from turngym.lazy import Tensor, no_grad, torch
from turngym.trainers import functional as F
from turngym.trainers.core.algorithm import LossInputs
from turngym.trainers.core.turn_table import TurnTable
from turngym.trainers.engine.ranks import SINGLE, Ranks

_TURN_BUCKETS = ((1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, None))
"""First and last turn of each bucket for entropies, counted from 1."""


def bucket_name(first: int, last: int | None) -> str:
    """Return the name of a bucket of turns in the metrics.

    >>> [bucket_name(*bucket) for bucket in ((1, 1), (3, 4), (33, None))]
    ['turn_1', 'turns_3_to_4', 'turns_from_33']
    """
    if last is None:
        return f"turns_from_{first}"
    return f"turn_{first}" if first == last else f"turns_{first}_to_{last}"


def _clamped(log_ratio: Tensor) -> Tensor:
    return log_ratio.double().clamp(-F.MAX_LOG_RATIO, F.MAX_LOG_RATIO)


def _mean(values: Tensor) -> float:
    return float(values.mean())


def table_metrics(table: TurnTable) -> dict[str, float]:
    """Return metrics of staleness, and of the policy's entropy by turn.

    The entropy is estimated without bias and at no cost by the mean negative log-probability of the sampled tokens,
    over turns of the current policy only.
    """
    if not table.num_turns:
        return {}
    staleness = table.staleness if len(table.staleness) else torch.zeros_like(table.turn)
    metrics = {"policy/staleness_mean": _mean(staleness.double()), "policy/staleness_max": float(staleness.max())}
    fresh = (staleness == 0)[table.token_turn]
    surprisal, position = -table.token_logprob, table.turn[table.token_turn] + 1
    last = (table.turn + 1 == table.turns_per_episode[table.episode])[table.token_turn]
    chosen = {
        "entropy_sampled": fresh,
        "entropy_first_turn": fresh & (position == 1),
        "entropy_last_turn": fresh & last,
    }
    for first, end in _TURN_BUCKETS:
        inside = (position >= first) & (position <= (end or position))
        chosen[f"entropy_{bucket_name(first, end)}"] = fresh & inside
    return metrics | {f"policy/{name}": _mean(surprisal[mask]) for name, mask in chosen.items() if bool(mask.any())}


def digest(table: TurnTable) -> str:
    """Return a hash of the episodes: log-probabilities of tokens, their turns, and rewards."""
    found = hashlib.sha256()
    for column in (table.token_logprob, table.token_turn, table.reward):
        found.update(column.contiguous().numpy().tobytes())
    return found.hexdigest()


def effective_share(total: float, total_of_squares: float, count: float) -> float:
    """Return the effective sample size of importance weights, relative to their number.

    >>> effective_share(2.0, 2.0, 2), effective_share(2.0, 4.0, 2)
    (1.0, 0.5)
    """
    return total * total / (total_of_squares * count) if count and total_of_squares else 0.0


def gap_figures(gaps: Tensor) -> dict[str, float]:
    """Return the mean, the 99th percentile and the maximum of gaps of log-probabilities; 0 without any.

    >>> gap_figures(torch.arange(1.0, 201.0))
    {'mean': 100.5, 'p99': 198.0, 'max': 200.0}
    """
    if not len(gaps):
        return {"mean": 0.0, "p99": 0.0, "max": 0.0}
    rank = math.ceil(0.99 * len(gaps))
    return {"mean": _mean(gaps.double()), "p99": float(gaps.kthvalue(rank).values), "max": float(gaps.max())}


def _add(sums: dict[str, Tensor], more: Mapping[str, Tensor]) -> None:
    """Add numbers on their device."""
    for name, value in more.items():
        sums[name] = sums[name] + value if name in sums else value


def _read(sums: Mapping[str, Tensor]) -> dict[str, float]:
    """Return numbers of one device with a single synchronisation."""
    return dict(zip(sums, torch.stack(list(sums.values())).tolist(), strict=True)) if sums else {}


class PolicyStatistics:
    """Measures the distance between trained and sampling policy over the updates of an iteration.

    Args:
        table: The turn table of the updates.
        ranks: The ranks; each adds its own micro-batches.
    """

    def __init__(self, table: TurnTable, ranks: Ranks = SINGLE) -> None:
        self._ranks = ranks
        self._fresh = table.staleness == 0 if len(table.staleness) else torch.ones_like(table.is_valid)
        self._sums: dict[str, Tensor] = {}
        self._gaps: list[Tensor] = []
        """Gap of each token in the first update."""
        self._is_fresh: list[Tensor] = []
        """For the same tokens: True if sampled by the current policy."""
        self._agreement: dict[str, Tensor] = {}
        """Sums over all updates of the sampler's gap, at tokens whose old log-probability is the trainer's."""
        self._largest_ratio: Tensor | None = None
        self._log_ratios: list[Tensor] = []
        self._last_log_ratios: list[Tensor] = []
        self._updates: list[dict[str, float]] = []

    @no_grad
    def add(self, inputs: LossInputs) -> None:
        """Add a micro-batch of the current update, without synchronisation."""
        sampled = inputs.sampled_tokens
        if not sampled.num_turns:
            return
        mask = inputs.action_mask

        def of_tokens(values: Tensor) -> Tensor:
            return values.flatten()[sampled.place]

        log_ratio = _clamped(of_tokens(F.log_ratios(inputs.logprobs, inputs.behaviour_logprobs, mask)))
        self._log_ratios.append(log_ratio)
        ratio = log_ratio.exp()
        turn_ratio = _clamped(ratio.new_zeros(sampled.num_turns).index_add_(0, sampled.turn, log_ratio)).exp()
        sums = {
            "tokens": torch.ones_like(ratio).sum(),
            "ratio": ratio.sum(),
            "squares": (ratio * ratio).sum(),
            "drift": (ratio - 1 - log_ratio).sum(),
            "turns": torch.ones_like(turn_ratio).sum(),
            "turn_ratio": turn_ratio.sum(),
            "turn_squares": (turn_ratio * turn_ratio).sum(),
        }
        if inputs.reference_logprobs is not None:
            behind = _clamped(of_tokens(F.log_ratios(inputs.reference_logprobs, inputs.logprobs, mask)))
            sums["reference"] = (behind.exp() - 1 - behind).sum()
        _add(self._sums, sums)
        if inputs.sampler_logprobs is not None:
            self._add_agreement(of_tokens(inputs.old_logprobs - inputs.sampler_logprobs))
        if not self._updates:
            self._gaps.append(of_tokens(inputs.logprobs - inputs.behaviour_logprobs).abs())
            self._is_fresh.append(self._fresh.to(ratio.device)[of_tokens(inputs.turn_ids)])
        largest = ratio.max()
        self._largest_ratio = largest if self._largest_ratio is None else self._largest_ratio.maximum(largest)

    def _add_agreement(self, gaps: Tensor) -> None:
        bounded = _clamped(gaps)
        sums = {"tokens": torch.ones_like(bounded), "gap": gaps.double(), "k3": bounded.exp() - 1 - bounded}
        _add(self._agreement, {name: values.sum() for name, values in sums.items()})

    def _agreement_metrics(self) -> dict[str, float]:
        sums = self._ranks.sum_numbers(_read(self._agreement))
        if not sums:
            return {}
        return {
            f"policy/sampler_{name}": sums[key] / sums["tokens"] for name, key in (("gap", "gap"), ("gap_k3", "k3"))
        }

    def end_update(self) -> None:
        """Finish the current update."""
        sums: dict[str, float] = defaultdict(float, self._ranks.sum_numbers(_read(self._sums)))
        found = {
            "policy/ess": effective_share(sums["ratio"], sums["squares"], sums["tokens"]),
            "policy/ess_turn": effective_share(sums["turn_ratio"], sums["turn_squares"], sums["turns"]),
            "policy/kl_sampler": sums["drift"] / max(sums["tokens"], 1),
        }
        if "reference" in sums:
            found["policy/kl_reference"] = sums["reference"] / max(sums["tokens"], 1)
        self._updates.append(found)
        self._sums = {}
        self._last_log_ratios, self._log_ratios = self._log_ratios, []

    @property
    def log_ratios(self) -> Tensor:
        """Log-ratio to the sampling policy of each token of the last update, on this rank."""
        return torch.cat(self._last_log_ratios).cpu() if self._last_log_ratios else torch.zeros(0)

    def metrics(self) -> dict[str, float]:
        """Return the means over the updates, the drift at the last one, and the maximum ratio."""
        if not self._updates:
            return {}
        names = self._updates[-1]
        means = {name: sum(update[name] for update in self._updates) / len(self._updates) for name in names}
        gaps = torch.cat(self._gaps)[torch.cat(self._is_fresh)] if self._gaps else torch.zeros(0)
        figures = gap_figures(self._ranks.concatenated(gaps))
        largest = 0.0 if self._largest_ratio is None else float(self._largest_ratio)
        return {
            **means,
            **self._agreement_metrics(),
            "policy/kl_sampler_last": names["policy/kl_sampler"],
            "policy/ratio_max": self._ranks.maximum(largest),
            "train/logprob_gap": figures["max"],
            "train/logprob_gap_mean": figures["mean"],
            "train/logprob_gap_p99": figures["p99"],
        }
