"""Requests of policy server clients: bodies are validated here, before any work."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from turngym.agents.sampling import Sampling

LARGEST_REQUEST = 16 * 2**20
_MOST_PROMPTS = 256
_MOST_NAME = 200
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "n": (None, 1),
    "best_of": (None, 1),
    "top_k": (None, 0, -1),
    "min_p": (None, 0),
    "presence_penalty": (None, 0),
    "frequency_penalty": (None, 0),
    "repetition_penalty": (None, 1),
    "min_tokens": (None, 0),
    "stop": (None, [], ""),
    "bad_words": (None, []),
    "logit_bias": (None, {}),
    "allowed_token_ids": (None,),
    "structured_outputs": (None,),
    "stream": (None, False),
    "echo": (None, False),
    "suffix": (None,),
}
"""Options that vLLM has and this server has not, with the values that change nothing."""
_READ = {"temperature", "top_p", "max_tokens", "seed", "stop_token_ids", "ignore_eos", "logprobs", "prompt_logprobs"}
_IGNORED = {"detokenize", "skip_special_tokens", "spaces_between_special_tokens", "include_stop_str_in_output"}
_OF_GENERATE = {"request_id", "token_ids", "sampling_params", "model", "return_token_ids", "priority"}
_OF_COMPLETIONS = {"model", "prompt", "return_token_ids", "return_tokens_as_token_ids", "user", "add_special_tokens"}


class Refused(Exception):
    """A request that is not answered.

    Args:
        text: Why.
        status: Status of HTTP.
    """

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Limits:
    """Limits of requests.

    Args:
        words: Tokens are below this number.
        longest: Maximum tokens of a prompt and its completion.
    """

    words: int
    longest: int


@dataclass(frozen=True)
class Order:
    """One completion to sample.

    Args:
        prompt: Token ids.
        sampling: Temperature, top-p, length limit.
        seed: Fixes what is sampled.
        stop_ids: Tokens that end it, in addition to the model's own.
        ignores_end: Whether the model's own end tokens do not end it.
        logprobs: Whether the log-probabilities of its tokens are wanted.
        prompt_logprobs: Whether those of the prompt's tokens are wanted.
        model: Name of the model or adapter; empty for the model.
    """

    prompt: tuple[int, ...]
    sampling: Sampling
    seed: int
    stop_ids: frozenset[int] = frozenset()
    ignores_end: bool = False
    logprobs: bool = True
    prompt_logprobs: bool = False
    model: str = ""


def read_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object in a body; an empty body is an empty object.

    Raises:
        Refused: It is something else.

    >>> read_object(b'{"token_ids": [1]}'), read_object(b"")
    ({'token_ids': [1]}, {})
    """
    try:
        found = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise Refused("the body is not JSON") from error
    if not isinstance(found, dict):
        raise Refused("the body is not a JSON object")
    return found


def read_generate(body: Mapping[str, Any], limits: Limits) -> Order:
    """Return the completion that a request to ``/inference/v1/generate`` asks for.

    Raises:
        Refused: It asks for something that is not served.

    >>> read_generate({"token_ids": [5, 6], "sampling_params": {"max_tokens": 3, "seed": 7}}, Limits(300, 64)).seed
    7
    """
    _require_known(body, _OF_GENERATE, _NEUTRAL)
    settings = body.get("sampling_params")
    if not isinstance(settings, dict):
        raise Refused('the body needs "token_ids" and "sampling_params"')
    _require_known(settings, _READ | _IGNORED, _NEUTRAL)
    return _order(_token_ids(body.get("token_ids"), limits), settings, _name(body.get("model")), limits)


def read_completions(body: Mapping[str, Any], limits: Limits) -> list[Order]:
    """Return the completions that a request to ``/v1/completions`` asks for, one for each prompt of token ids.

    Raises:
        Refused: It asks for something that is not served.
    """
    _require_known(body, _OF_COMPLETIONS | _READ | _IGNORED, _NEUTRAL)
    prompts = body.get("prompt")
    if not isinstance(prompts, list) or not prompts:
        raise Refused('"prompt" must be a list of token ids, or a list of such lists: no text is served')
    if all(isinstance(each, int) for each in prompts):
        prompts = [prompts]
    if len(prompts) > _MOST_PROMPTS:
        raise Refused(f"at most {_MOST_PROMPTS} prompts a request, got {len(prompts)}")
    name = _name(body.get("model"))
    return [_order(_token_ids(prompt, limits), body, name, limits, tokens=16) for prompt in prompts]


def _require_known(given: Mapping[str, Any], known: set[str], neutral: Mapping[str, tuple[Any, ...]]) -> None:
    for key, value in given.items():
        if key in known:
            continue
        if value not in neutral.get(key, ()):
            raise Refused(f"{key[:60]!r} is not served here, or not with this value")


def _order(prompt: tuple[int, ...], given: Mapping[str, Any], name: str, limits: Limits, tokens: int = 0) -> Order:
    room = limits.longest - len(prompt)
    most = _whole(given, "max_tokens", 1, limits.longest, tokens or max(room, 1))
    if most > room:
        raise Refused(f"a prompt of {len(prompt)} tokens and {most} new ones are more than the {limits.longest} served")
    temperature, top_p = _number(given, "temperature", 0.0, 100.0, 1.0), _number(given, "top_p", 0.0, 1.0, 1.0)
    if top_p == 0:
        raise Refused('"top_p" must be in (0, 1]')
    stop = given.get("stop_token_ids")
    return Order(
        prompt=prompt,
        sampling=Sampling(temperature, top_p, most),
        seed=_whole(given, "seed", -(2**63), 2**63 - 1, secrets.randbits(62)),
        stop_ids=frozenset(() if stop is None else _ids(stop, "stop_token_ids", limits.words)),
        ignores_end=_flag(given, "ignore_eos"),
        logprobs=_wants(given, "logprobs"),
        prompt_logprobs=_wants(given, "prompt_logprobs"),
        model=name,
    )


def _token_ids(value: Any, limits: Limits) -> tuple[int, ...]:
    found = _ids(value, "token_ids", limits.words)
    if not 0 < len(found) < limits.longest:
        raise Refused(f"a prompt has 1 to {limits.longest - 1} tokens here, got {len(found)}")
    return found


def _ids(value: Any, name: str, words: int) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(each) is int and 0 <= each < words for each in value):
        raise Refused(f"{name} must be a list of whole numbers from 0 to {words - 1}")
    return tuple(value)


def _whole(given: Mapping[str, Any], name: str, least: int, most: int, default: int) -> int:
    value = given.get(name)
    if value is None:
        return default
    if type(value) is not int or not least <= value <= most:
        raise Refused(f'"{name}" must be a whole number from {least} to {most}')
    return value


def _number(given: Mapping[str, Any], name: str, least: float, most: float, default: float) -> float:
    value = given.get(name)
    if value is None:
        return default
    if type(value) not in (int, float) or not least <= value <= most:  # false for NaN
        raise Refused(f'"{name}" must be a number from {least:g} to {most:g}')
    return float(value)


def _flag(given: Mapping[str, Any], name: str) -> bool:
    value = given.get(name, False)
    if not isinstance(value, bool):
        raise Refused(f'"{name}" must be true or false')
    return value


def _wants(given: Mapping[str, Any], name: str) -> bool:
    """Return whether log-probabilities are wanted: only those of the tokens themselves are served."""
    value = given.get(name)
    if value is None or value is False:
        return False
    if value is not True and (type(value) is not int or value not in (0, 1)):
        raise Refused(f'"{name}" must be 0 (those of the tokens themselves) or left out')
    return True


def _name(value: Any) -> str:
    if value is None:
        return ""
    return read_name(value, "model")


def read_name(value: Any, what: str) -> str:
    """Return the name of a model, an adapter or a version.

    Raises:
        Refused: It is not a name.
    """
    if not isinstance(value, str) or not 0 < len(value) <= _MOST_NAME or not value.isprintable():
        raise Refused(f'"{what}" must be a name of 1 to {_MOST_NAME} characters')
    return value
