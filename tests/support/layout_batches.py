"""Sequences and episodes with shared beginnings, and a network that computes in double precision throughout."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from algorithm_batches import episodes
from small import small_model
from torch import Tensor

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.trainers.core.flattened import flatten
from turngym.trainers.core.rows import Read, Row, build_rows
from turngym.trainers.engine.scoring import score

WORDS = 90


def exact_norms(patch: pytest.MonkeyPatch, *networks: torch.nn.Module) -> None:
    """Let the norms of Qwen3 and of some networks keep double precision; transformers computes them in single one."""
    from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

    def norm(self: Any, x: Tensor) -> Tensor:
        scaled: Tensor = self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return scaled

    kinds = {type(module) for network in networks for module in network.modules()}
    for kind in {Qwen3RMSNorm, *(kind for kind in kinds if kind.__name__.endswith("RMSNorm"))}:
        patch.setattr(kind, "forward", norm)


def wide_model(layers: int = 2) -> LanguageModel:
    """A model in double precision whose distributions depend on what it reads."""
    model = small_model(dtype=torch.float64, layers=layers)
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype))
    return model


def row(ids: Sequence[int], places: Sequence[int]) -> Row:
    """A sequence that is read at some places; at its last token only a critic reads."""
    targets = [*ids[1:], -1]
    return Row.of(ids, [Read(place, targets[place], place, 0, 0) for place in places])


def awkward_rows(seed: int = 0) -> list[Row]:
    """Branches, a row that is another's prefix, equal rows, single tokens, a rewritten history, and strangers."""
    draw = random.Random(seed)

    def tokens(count: int) -> list[int]:
        return [draw.randrange(WORDS) for _ in range(count)]

    system = tokens(6)
    conversation = system + tokens(14)
    other = tokens(9)
    return [
        row(conversation, range(8, 19)),
        row(conversation[:12], range(5, 11)),  # a prefix
        row(conversation, range(2, 5)),  # the same tokens, read elsewhere
        row(conversation[:13] + tokens(8), range(11, 20)),  # a branch
        row(conversation[:13] + tokens(3), range(12, 16)),  # another one from the same turn
        row(conversation[:7] + conversation[10:], range(7, 14)),  # history rewritten in the middle
        row(conversation[:1], [0]),
        row([WORDS + 1], [0]),
        row(other, range(0, 9)),
        row(system, range(5, 6)),
    ]


def token_episodes(model: LanguageModel, seed: int = 0) -> list[Trajectory]:
    """Random episodes with tokens: histories that are appended to, others that are rewritten, final prompts.

    The sampler's log-probabilities are the model's, and noise.
    """
    draw = random.Random(seed)
    found = episodes(seed)
    system = tuple(draw.randrange(WORDS) for _ in range(5))
    for trajectory in found:
        prompt, turns = system, []
        rewrites = draw.random() < 0.4
        for turn in trajectory.turns:
            prompt = (prompt[: draw.randint(3, len(prompt))] if rewrites else prompt) + (draw.randrange(WORDS),) * 2
            count = len(turn.completion_ids)
            completion = tuple(draw.randrange(4) for _ in range(count))
            turns.append(replace(turn, prompt_ids=prompt, completion_ids=completion))
            prompt += completion
        trajectory.turns = turns
        trajectory.final_prompt_ids = (*prompt, 7) if trajectory.truncated else ()
    rows = build_rows(found, with_final_prompts=False)
    with torch.no_grad():
        scores = score(model.network, rows, 1.0).logprobs
    logprobs = {
        read.token: float(value) + draw.uniform(-0.3, 0.3)
        for each, values in zip(rows, scores, strict=True)
        for read, value in zip(each.reads, values, strict=False)
    }
    for flat in flatten(found):
        flat.turn.logprobs = tuple(logprobs[flat.first_token + k] for k in range(len(flat.turn.completion_ids)))
    return found
