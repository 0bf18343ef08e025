"""A model's action probabilities, computed from its distribution instead of estimated by sampling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from turngym.agents.models.generate import sampling_logprobs
from turngym.agents.models.loading import LanguageModel
from turngym.agents.prompting.text_encoder import TextEncoder
from turngym.agents.trajectory import Trajectory
from turngym.wrappers.actions.action_format import action_format


@dataclass(frozen=True, slots=True)
class Choice:
    """A situation in which an agent acts.

    Args:
        prompt_ids: Token ids of the prompt.
        actions: The actions to compute probabilities of.
    """

    prompt_ids: tuple[int, ...]
    actions: tuple[str, ...]


def choices_by_anchor(trajectories: Sequence[Trajectory], legal: Mapping[str, Sequence[str]]) -> dict[str, Choice]:
    """Return one situation for each anchor, from trajectories of an agent with tokens.

    Args:
        trajectories: Where situations are found; the first turn of an anchor whose prompt is not a retry represents it.
        legal: Anchor -> its legal actions; turns at other anchors are left out.
    """
    found: dict[str, Choice] = {}
    for trajectory in trajectories:
        for before, turn in zip([None, *trajectory.turns], trajectory.turns, strict=False):
            is_retry = before is not None and before.anchor == turn.anchor
            if turn.anchor in legal and not is_retry:
                found.setdefault(turn.anchor, Choice(turn.prompt_ids, tuple(legal[turn.anchor])))
    return found


@torch.inference_mode()
def action_chances(
    model: LanguageModel, choices: Sequence[Choice], *, format: str, temperature: float, max_new_tokens: int
) -> list[dict[str, float]]:
    """Return the probability of each action, written as demonstrations write it.

    Other ways to write an action, and completions that are none, are not counted, so the probabilities of a situation
    may sum to less than 1.

    Args:
        model: The model.
        choices: The situations.
        format: Name of the action format.
        temperature: The sampler's temperature.
        max_new_tokens: The sampler's limit: a completion is cut off there and needs no end token.
    """
    write, encoder, end = action_format(format).write, TextEncoder(model.tokenizer), int(model.tokenizer.eos_token_id)
    rows = []
    for choice in choices:
        for action in choice.actions:
            ids = (*encoder.encode_one(write(action), "marks"), end)
            rows.append((choice.prompt_ids, ids[:max_new_tokens]))
    logprobs = iter(sequence_logprobs(model, rows, temperature))
    return [{action: float(next(logprobs).exp()) for action in choice.actions} for choice in choices]


def sequence_logprobs(
    model: LanguageModel, rows: Sequence[tuple[tuple[int, ...], tuple[int, ...]]], temperature: float = 1.0
) -> list[torch.Tensor]:
    """Return the log-probability of each completion, as a scalar that can be differentiated.

    Args:
        model: The model.
        rows: Token ids of prompt and completion.
        temperature: The sampler's temperature.
    """
    longest = max((len(prompt) + len(ids) for prompt, ids in rows), default=0)
    device = model.network.device
    padded = torch.tensor([(*p, *ids) + (0,) * (longest - len(p) - len(ids)) for p, ids in rows], device=device)
    mask = torch.tensor([[1] * (len(p) + len(ids)) + [0] * (longest - len(p) - len(ids)) for p, ids in rows])
    output: Any = model.network(input_ids=padded, attention_mask=mask.to(device), use_cache=False)
    distribution = sampling_logprobs(output.logits, temperature)
    found = []
    for row, (prompt, ids) in enumerate(rows):
        positions = torch.arange(len(prompt) - 1, len(prompt) + len(ids) - 1, device=device)
        found.append(distribution[row, positions, torch.tensor(ids, device=device)].sum())
    return found
