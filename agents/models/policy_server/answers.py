"""Answers of a policy server, in the form of vLLM's."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Sequence
from typing import Any

from turngym.agents.models.policy_server.jobs import Outcome
from turngym.agents.models.policy_server.requests import Order

_FLOOR = -9999.0


def generated(order: Order, outcome: Outcome, name: str, request_id: str) -> dict[str, Any]:
    """Return the answer to ``/inference/v1/generate``."""
    content: list[dict[str, Any]] = [
        {"token_id": token, "logprob": _finite(logprob), "rank": None, "top_logprobs": []}
        for token, logprob in zip(outcome.ids, outcome.logprobs, strict=True)
    ]
    choice = {
        "index": 0,
        "finish_reason": outcome.finish_reason,
        "stop_reason": _stop_reason(outcome),
        "token_ids": list(outcome.ids),
        "logprobs": {"content": content} if order.logprobs else None,
        "weight_versions": _versions(outcome),
    }
    return {
        "request_id": request_id,
        "created": int(time.time()),
        "model": name,
        "choices": [choice],
        "prompt_logprobs": _of_prompt(order, outcome),
        "usage": _usage([order], [outcome]),
    }


def completed(
    orders: Sequence[Order], outcomes: Sequence[Outcome], texts: Sequence[str], name: str, has_ids: bool, as_ids: bool
) -> dict[str, Any]:
    """Return the answer to ``/v1/completions``.

    Args:
        orders: Request.
        outcomes: Completion of each request.
        texts: The text of each.
        name: Name of the model.
        has_ids: Whether token ids are part of the answer.
        as_ids: Whether tokens are written as ``token_id:5``.
    """
    choices = []
    for index, (order, outcome, text) in enumerate(zip(orders, outcomes, texts, strict=True)):
        choice: dict[str, Any] = {
            "index": index,
            "text": text,
            "finish_reason": outcome.finish_reason,
            "stop_reason": _stop_reason(outcome),
            "logprobs": _of_completion(outcome, as_ids) if order.logprobs else None,
            "prompt_logprobs": _of_prompt(order, outcome),
            "weight_versions": _versions(outcome),
        }
        if has_ids:
            choice |= {"token_ids": list(outcome.ids), "prompt_token_ids": list(order.prompt)}
        choices.append(choice)
    return {
        "id": f"cmpl-{secrets.token_hex(12)}",
        "object": "text_completion",
        "created": int(time.time()),
        "model": name,
        "choices": choices,
        "usage": _usage(orders, outcomes),
    }


def _of_completion(outcome: Outcome, as_ids: bool) -> dict[str, Any]:
    return {
        "tokens": [f"token_id:{token}" if as_ids else str(token) for token in outcome.ids],
        "token_logprobs": [_finite(logprob) for logprob in outcome.logprobs],
        "top_logprobs": None,
        "text_offset": [],
    }


def _of_prompt(order: Order, outcome: Outcome) -> list[dict[str, Any] | None] | None:
    """Return the prompt's log-probabilities: nothing for the first token, and one entry for each other."""
    if not order.prompt_logprobs:
        return None
    pairs = zip(order.prompt[1:], outcome.prompt_logprobs, strict=True)
    return [None, *({str(token): {"logprob": _finite(logprob), "rank": None}} for token, logprob in pairs)]


def _versions(outcome: Outcome) -> list[dict[str, Any]]:
    return [{"version": outcome.version, "start": 0, "end": len(outcome.ids)}] if outcome.ids else []


def _stop_reason(outcome: Outcome) -> int | None:
    return outcome.ids[-1] if outcome.finish_reason == "stop" else None


def _finite(logprob: float) -> float:
    """Return a number that JSON can write: as vLLM, which puts -9999 in place of minus infinity and nan."""
    return logprob if math.isfinite(logprob) else _FLOOR


def _usage(orders: Sequence[Order], outcomes: Sequence[Outcome]) -> dict[str, int]:
    read, written = sum(len(order.prompt) for order in orders), sum(len(outcome.ids) for outcome in outcomes)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
