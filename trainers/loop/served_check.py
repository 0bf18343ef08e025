"""Whether a server computes with the weights that it was given: it and the trainer score the same probes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.sampling import Sampling
from turngym.agents.models.served.client import PolicyClient
from turngym.agents.models.served.keeper import WRONG_WEIGHTS
from turngym.agents.models.served.members import STALE
from turngym.agents.models.weights import evaluating
from turngym.agents.servers.exchange import CallFailed

_LENGTHS = (40, 150, 280)
"""Two are longer than a block of 128 tokens, whose keys and values servers keep from one prompt to the next."""
_MAX_GAP = {"float32": 2e-3, "bfloat16": 1.0, "float16": 0.3}
"""Largest gap at a token that rounding in these formats explains."""


def probes(vocabulary: int, longest: int) -> list[list[int]]:
    """Return sequences of random tokens, the same for all weights, so that servers have seen them before.

    Args:
        vocabulary: Number of tokens of the model.
        longest: Longest sequence that servers take; 0 for any.
    """
    random = torch.Generator().manual_seed(2026)
    lengths = sorted({min(length, longest - 2) if longest else length for length in _LENGTHS})
    return [torch.randint(vocabulary, (length,), generator=random).tolist() for length in lengths]


@dataclass(frozen=True)
class Expected:
    """What the trainer computes for a probe.

    Args:
        ids: The probe.
        of_prompt: Log-probability of each of its tokens but the first.
        of_next: Log-probability of each token of the vocabulary behind it.
    """

    ids: list[int]
    of_prompt: Tensor
    of_next: Tensor


@torch.no_grad()
def expected(model: LanguageModel, sequences: Sequence[list[int]]) -> list[Expected]:
    """Return what a model computes for probes."""
    found = []
    with evaluating(model.network):
        for ids in sequences:
            batch = torch.tensor([ids], device=model.network.device)
            logits = model.network(batch, use_cache=False).logits[0].float()
            rows = logits.log_softmax(-1).cpu()
            of_prompt = rows[:-1].gather(-1, torch.tensor(ids[1:])[:, None]).squeeze(-1)
            found.append(Expected(ids, of_prompt, rows[-1].clone()))
    return found


def require_weights(
    server: PolicyClient, wanted: Sequence[Expected], stop_ids: Sequence[int], label: str, most: float, timeout: float
) -> float:
    """Return how far a server's log-probabilities are from the trainer's at most.

    Each probe is asked for twice: the log-probabilities of its tokens are computed anew, and the token behind it with
    the keys and values that the server has kept.

    Args:
        server: The server.
        wanted: What the trainer computes.
        stop_ids: Tokens that end a completion.
        label: Name of the weights.
        most: Largest gap.
        timeout: Seconds for each request.

    Raises:
        CallFailed: The gap is larger, or the weights have another name, or there is no answer.
    """
    largest = 0.0
    one = Sampling(max_new_tokens=1)
    for probe in wanted:
        for with_prompt in (True, False):
            answer = server.generate(probe.ids, 1, one, stop_ids, timeout, prompt_logprobs=with_prompt)
            if answer.versions != (label,):
                raise CallFailed(STALE, f"it samples with the weights {answer.versions}, expected {label}")
            token = answer.ids[0]
            computed = float(probe.of_next[token]) if token < len(probe.of_next) else torch.inf
            gaps = [abs(computed - answer.logprobs[0])]
            if with_prompt:
                gaps.append(float((probe.of_prompt - torch.tensor(answer.prompt_logprobs)).abs().max()))
            largest = max(largest, *gaps)
    if not largest <= most:
        raise CallFailed(
            WRONG_WEIGHTS,
            f"it computes with other weights than it was given: on a probe its log-probabilities differ from the "
            f"trainer's by {largest:.3g}, and rounding explains at most {most:g}",
        )
    return largest


def allowed_gap(trainer: str, server: str) -> float:
    """Return the largest gap that rounding explains.

    Args:
        trainer: Format of the trainer's weights.
        server: Format of the servers'; ``auto`` for the same.

    >>> allowed_gap("float32", "auto"), allowed_gap("float32", "bfloat16")
    (0.002, 1.0)
    """
    return max(_MAX_GAP.get(name, _MAX_GAP["bfloat16"]) for name in (trainer, trainer if server == "auto" else server))
