"""Conversations of other suites as turns: every answer of the assistant is a turn."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from turngym.agents.recordings.imports import Content
from turngym.agents.recordings.imports.atif import text_of
from turngym.envs.tools.tool_schema import write_call


def turns_of(messages: Iterable[Mapping[str, Any]], score: float) -> tuple[list[Content], str, str]:
    """Return the turns of a conversation, the rules, and what was seen last.

    Args:
        messages: Messages with ``role``, ``content`` and perhaps ``tool_calls``.
        score: Reward of the whole episode, which the last turn gets.

    >>> turns, rules, last = turns_of([{"role": "user", "content": "1 + 1?"}, {"role": "assistant", "content": "2"}], 1)
    >>> turns[0]["observation"], turns[0]["action"], turns[0]["reward"]
    ('1 + 1?', '2', 1.0)
    """
    turns: list[Content] = []
    rules, seen = "", list[str]()
    for message in messages:
        said = text_of(message.get("content"))
        if message["role"] == "system" and not turns:
            rules = f"{rules}\n{said}".strip()
        elif message["role"] == "assistant":
            calls = [_call(each) for each in message.get("tool_calls") or ()]
            action = "\n".join(calls) if calls else said
            turn = {"observation": "\n\n".join(seen), "completion": said or action, "action": action}
            turns.append({**turn, "reward": 0.0, "action_is_valid": True})
            seen = []
        else:
            seen.append(said)
    if turns:
        turns[-1]["reward"] = float(score)
    return turns, rules, "\n\n".join(seen)


def _call(call: Mapping[str, Any]) -> str:
    """Return a call of a tool as an action, whether its name stands in it or in its ``function``."""
    inner = call.get("function")
    told: Mapping[str, Any] = inner if isinstance(inner, dict) else call
    name = inner if isinstance(inner, str) else told.get("name", "")
    arguments = told.get("arguments") or {}
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError):  # a text that is no JSON stays one
            arguments = json.loads(arguments)
    return write_call(str(name), arguments)


def rewards_of(rewards: Mapping[str, Any]) -> float:
    """Return a reward by names as one number: numbers are summed, tables with a weight weighted.

    >>> rewards_of({"exact": {"score": 1.0, "weight": 0.5}, "length": 0.25})
    0.75
    """
    found = 0.0
    for value in rewards.values():
        is_table = isinstance(value, dict)
        found += float(value["score"]) * float(value.get("weight", 1.0)) if is_table else float(value)
    return found


def sampled(ids: Sequence[Any], mask: Sequence[Any], logprobs: Sequence[Any]) -> Content:
    """Return the tokens that a model wrote, with one log-probability each.

    Raises:
        ValueError: The lengths differ.

    >>> sampled([5, 6, 7], [False, True, True], [-1.0, -0.5])
    {'completion_ids': [6, 7], 'completion_logprobs': [-1.0, -0.5]}
    """
    if len(ids) != len(mask):
        raise ValueError(f"there are {len(ids)} token ids for a mask of {len(mask)}")
    kept = [int(each) for each, is_written in zip(ids, mask, strict=True) if is_written]
    if logprobs and len(logprobs) != len(kept):
        raise ValueError(f"there are {len(logprobs)} log-probabilities for {len(kept)} tokens")
    return {"completion_ids": kept, "completion_logprobs": [float(each) for each in logprobs]} if kept else {}
