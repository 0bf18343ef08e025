"""Verify after each weight sync that the sampler uses the current weights.

The probe is a few token sequences, the same for all versions of the weights. A sampler returns the log-probability of
each of their tokens, computed without a cache, and of tokens that it samples after them, with its KV cache, which may
hold entries of the previous version. The trainer computes the same. Three checks follow:

1. Is the gap explained by rounding? The bound depends first on the data types of the weights, then on the gaps of
   earlier valid syncs.
2. If the trainer's log-probabilities have changed since an earlier version: do the sampler's still equal, bit for bit,
   its own of that version? This detects stale weights even after tiny updates.
3. Have the sampler's log-probabilities changed like the trainer's? Their change is projected on the trainer's: 1 is
   valid, 0 is stale, values between mean a partial update. Rounding of 16-bit weights hides the gap of a small update,
   but is nearly the same before and after it.
"""

from __future__ import annotations

import copy
import math
import statistics
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel

from turngym.agents.models.completion import Completion, Generate
from turngym.agents.models.loading import LanguageModel, set_format
from turngym.agents.sampling import Sampling, turn_uniforms
from turngym.trainers.engine.adapters import without_adapters
from turngym.trainers.engine.probe_sequences import probe_scores, probe_sequences

Score = Callable[[Sequence[Sequence[int]]], Sequence[Sequence[float]]]
"""Log-probability of each token but the first of each sequence, at temperature 1, without a KV cache."""

_DRAWS = 4
_REMEMBERED = 8
_MOVED_SHARE = 0.25
"""Share of the trainer's log-probabilities that must change before unchanged ones of a sampler are a fault."""
_SIGMAS = 5.0
_CORRELATED = 10.0
"""Number of neighbouring tokens that count as one, because their noise is correlated."""
_MOST_SLACK = 0.6


def handed_over(model: LanguageModel, format: str = "auto") -> PreTrainedModel:
    """Return the network as synced to a sampler: adapters merged, and weights rounded to the sampler's data type.

    Args:
        model: The policy.
        format: Format of the sampler's weights; ``auto`` for the trainer's.
    """
    network = without_adapters(model).network
    if format == "auto" or getattr(torch, format) == network.dtype:
        return network
    rounded = copy.deepcopy(network)
    set_format(rounded, getattr(torch, format))
    return rounded


@dataclass(frozen=True)
class Reading:
    """Values of a sampler for a probe.

    Args:
        scores: Log-probability of each token but the first of each sequence, concatenated.
        completions: Tokens sampled after some of the sequences.
    """

    scores: Tensor
    completions: Sequence[Completion]


@dataclass(frozen=True)
class Expected:
    """Values of the trainer for a probe.

    Args:
        number: Index of the weight sync.
        scores: As in :class:`Reading`.
        following: Log-probabilities of the next token after each sequence, at the sampler's temperature.
    """

    number: int
    scores: Tensor
    following: Tensor


class Gaps(NamedTuple):
    """Differences between the log-probabilities of a sampler and the trainer.

    Args:
        rms: Root mean square over the probe's tokens.
        largest: Maximum absolute difference.
        sampled: Root mean square over the tokens sampled after the probe, with KV cache and the run's temperature.
    """

    rms: float
    largest: float
    sampled: float


@dataclass(frozen=True)
class Limits:
    """Tolerance between valid samplers and the trainer.

    Args:
        most: Maximum gaps for the data type.
        margins: Allowed multiples of the sampler's usual gaps, once known.
        least: Lower bounds of the limits.
    """

    most: Gaps
    margins: Gaps
    least: Gaps

    @classmethod
    def of(cls, format: str) -> Limits:
        """Return the limits for a data type of weights.

        >>> Limits.of("float32").most.largest
        0.002
        """
        return _LIMITS.get(format, _LIMITS["bfloat16"])

    def bounds(self, usual: Gaps | None) -> Gaps:
        """Return the limits for a sampler.

        Args:
            usual: Its usual gaps; None if not known yet.
        """
        if usual is None:
            return self.most
        followed = map(lambda margin, value, least: max(margin * value, least), self.margins, usual, self.least)
        return Gaps(*map(min, self.most, followed))


_LIMITS = {
    "float32": Limits(Gaps(2e-4, 2e-3, 1e-3), Gaps(5.0, 5.0, 8.0), Gaps(1e-6, 5e-6, 3e-6)),
    "float16": Limits(Gaps(0.05, 0.5, 0.2), Gaps(2.5, 5.0, 5.0), Gaps(4e-4, 0.01, 1e-3)),
    "bfloat16": Limits(Gaps(0.3, 2.0, 0.8), Gaps(2.5, 5.0, 5.0), Gaps(2.5e-3, 0.05, 5e-3)),
}


@dataclass(frozen=True)
class Verdict:
    """Comparison of a sampler with the trainer.

    Args:
        faults: Description of the problem; empty if there is none.
        gaps: The differences of log-probabilities.
        moved: Root mean square of the trainer's change since the sampler's last verified version.
        share: Share of that change made by the sampler; None if rounding hides it, or unknown.
    """

    faults: tuple[str, ...]
    gaps: Gaps
    moved: float = 0.0
    share: float | None = None

    @property
    def text(self) -> str:
        """Description of the problem."""
        return f"it computes with other weights than it was given, as a probe shows: {'; '.join(self.faults)}"


def _unusable(fault: str) -> Verdict:
    return Verdict((fault,), Gaps(math.inf, math.inf, math.inf))


class Fingerprints:
    """Compares samplers with the trainer after each weight sync; safe to use from several threads.

    Args:
        sequences: The probe.
        temperature: The sampler's temperature.
        limits: Tolerance between valid samplers and the trainer.
    """

    def __init__(self, sequences: Sequence[Sequence[int]], temperature: float, limits: Limits) -> None:
        self.sequences = [list(each) for each in sequences]
        self.temperature = temperature
        self.limits = limits
        self._lock = threading.Lock()
        self._expected: deque[Expected] = deque(maxlen=_REMEMBERED)
        self._seen: dict[str, deque[tuple[int, Tensor]]] = {}
        self._gaps: dict[str, deque[Gaps]] = {}

    @classmethod
    def of(cls, model: LanguageModel, temperature: float, format: str = "auto", longest: int = 0) -> Fingerprints:
        """Return the fingerprints for the samplers of a policy.

        Args:
            model: The policy.
            temperature: The sampler's temperature.
            format: Format of the sampler's weights; ``auto`` for the trainer's.
            longest: Sampler's maximum length of prompt plus completion; 0 for any.
        """
        config = model.network.config.get_text_config()
        format = str(model.network.dtype).removeprefix("torch.") if format == "auto" else format
        words = min(int(config.vocab_size), len(model.tokenizer))
        avoid = () if model.pictures is None else (model.pictures.placeholder,)
        sequences = probe_sequences(words, min(filter(None, (longest, model.context)), default=0), avoid)
        return cls(sequences, temperature, Limits.of(format))

    def expect(self, network: PreTrainedModel) -> Expected:
        """Compute the expected values for the weights being synced.

        Args:
            network: The trainer's network with the synced weights, see :func:`handed_over`.
        """
        scores, last = probe_scores(network, self.sequences)
        following = (last / self.temperature).log_softmax(-1).double().cpu()
        with self._lock:
            number = self._expected[-1].number + 1 if self._expected else 0
            found = Expected(number, scores, following)
            self._expected.append(found)
        return found

    def read(self, generate: Generate, score: Score | None) -> Reading:
        """Query a sampler.

        Args:
            generate: The sampler's core call.
            score: Scoring function for sequences; None if unsupported, then only sampled tokens are compared.
        """
        prompts = [ids for ids in self.sequences for _ in range(_DRAWS)]
        uniforms = [turn_uniforms(0, 0, number, 0, 1, "probe") for number in range(len(prompts))]
        found = generate(prompts, uniforms, Sampling(self.temperature, max_new_tokens=1))
        rows = [] if score is None else score(self.sequences)  # last, because the others need the KV cache
        return Reading(torch.tensor([value for row in rows for value in row], dtype=torch.float64), found)

    def compare(self, sampler: str, expected: Expected, reading: Reading) -> Verdict:
        """Compare a sampler with the trainer, and remember the result.

        Args:
            sampler: Name of the network or server.
            expected: Values of the trainer at the weight sync.
            reading: Current values of the sampler.
        """
        sampled = self._sampled_gaps(expected, reading)
        gaps = reading.scores - expected.scores if len(reading.scores) == len(expected.scores) else sampled[:0]
        if len(reading.scores) and not len(gaps):
            return _unusable("it scores other sequences than it was given")
        every = torch.cat([gaps, sampled])
        if not bool(every.isfinite().all()):
            return _unusable("some log-probabilities are not finite, or of tokens that do not exist")
        with self._lock:
            found = Gaps(_rms(gaps), float(every.abs().max()), _rms(sampled))
            return self._judge(sampler, expected, reading.scores, found)

    def _sampled_gaps(self, expected: Expected, reading: Reading) -> Tensor:
        """Return the gap at each token sampled after the sequences."""
        found = []
        for number, completion in enumerate(reading.completions):
            row = expected.following[number // _DRAWS]
            token = completion.ids[0] if completion.ids else -1
            found.append(completion.logprobs[0] - float(row[token]) if 0 <= token < len(row) else math.nan)
        return torch.tensor(found, dtype=torch.float64)

    def _judge(self, sampler: str, expected: Expected, scores: Tensor, gaps: Gaps) -> Verdict:
        usual = self._usual(sampler)
        faults = self._of_equality(sampler, expected, scores)
        bounds = self.limits.bounds(usual)
        if any(gap > bound for gap, bound in zip(gaps, bounds, strict=True)):
            words = ", ".join(f"{gap:.2g} (at most {bound:.2g})" for gap, bound in zip(gaps, bounds, strict=True))
            faults.append(f"its gaps to the trainer are {words}: root mean square, largest, of sampled tokens")
        moved, share, slack = self._share(sampler, expected, scores, (usual or gaps).rms)
        if share is not None and abs(share - 1) > slack:
            faults.append(f"its log-probabilities have made {share:.0%} of the trainer's change")
        if not faults:
            self._gaps.setdefault(sampler, deque(maxlen=2 * _REMEMBERED)).append(gaps)
            self._seen.setdefault(sampler, deque(maxlen=_REMEMBERED)).append((expected.number, scores))
        return Verdict(tuple(faults), gaps, moved, share)

    def _usual(self, sampler: str) -> Gaps | None:
        """Return the medians of a sampler's gaps; None without any."""
        known = self._gaps.get(sampler)
        return Gaps(*map(statistics.median, zip(*known, strict=True))) if known else None

    def _of_equality(self, sampler: str, expected: Expected, scores: Tensor) -> list[str]:
        """Return whether the sampler's log-probabilities are those of an earlier version."""
        if not len(scores):
            return []
        before = {each.number: each.scores for each in self._expected}
        for number, seen in reversed(self._seen.get(sampler, ())):
            if number >= expected.number or number not in before or not torch.equal(seen, scores):
                continue
            change = expected.scores - before[number]
            if float((change != 0).double().mean()) >= _MOVED_SHARE:
                return [f"its log-probabilities are those of {expected.number - number} hand-overs ago"]
        return []

    def _share(
        self, sampler: str, expected: Expected, scores: Tensor, noise: float
    ) -> tuple[float, float | None, float]:
        """Return the trainer's change, the share of it made by the sampler, and the tolerance of that share around 1.

        Rounding on both sides adds noise to the share; on the trainer's side it also reduces the share.
        """
        before = {each.number: each.scores for each in self._expected if each.number < expected.number}
        known = [(number, seen) for number, seen in self._seen.get(sampler, ()) if number in before]
        if not known or not len(scores):
            return 0.0, None, 0.0
        number, seen = known[-1]
        wanted, made = expected.scores - before[number], scores - seen
        moved = _rms(wanted)
        if not moved:
            return 0.0, None, 0.0
        ratio = math.sqrt(2) * noise / moved
        slack = max(0.1, _SIGMAS * ratio / math.sqrt(len(scores) / _CORRELATED) + ratio**2)
        return moved, float(made @ wanted) / float(wanted @ wanted) if slack <= _MOST_SLACK else None, slack


def _rms(values: Tensor) -> float:
    return float(values.square().mean().sqrt()) if len(values) else 0.0
