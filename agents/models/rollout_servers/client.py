"""One server of a policy: token ids in; token ids, log-probabilities and the version of the weights out.

The routes are those of vLLM's server with ``VLLM_SERVER_DEV_MODE=1`` and ``--enable-scale-out``. Failures are
:class:`~turngym.agents.chat_client.exchange.CallFailed`; whether they are the server's or the request's is up to
callers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from turngym.agents.chat_client.config import read_address
from turngym.agents.chat_client.exchange import LARGEST_ANSWER, CallFailed, Exchange
from turngym.agents.sampling import Sampling

_SHORT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    """Completion sampled by a server.

    Args:
        ids: Token ids.
        logprobs: Log-probability of each, of the distribution that it was sampled from.
        versions: Names of the weights that it was sampled with, in order; more than one if they changed meanwhile.
        prompt_logprobs: Log-probability of each token of the prompt but the first, where they were asked for.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    versions: tuple[str, ...]
    prompt_logprobs: tuple[float, ...] = ()


class PolicyClient:
    """A server of a policy; safe to use from several threads.

    Args:
        url: Location.
        key: Its key; empty sends none.
        model: Name of the model or adapter to sample with; empty for the server's own.
    """

    def __init__(self, url: str, key: str = "", model: str = "") -> None:
        address = read_address(url)
        self.url = url
        self.model = model
        self._root = address.path.removesuffix("/chat/completions").removesuffix("/v1")
        self._exchange = Exchange(address, key)

    def generate(
        self,
        prompt: Sequence[int],
        seed: int,
        sampling: Sampling,
        stop_ids: Sequence[int],
        timeout: float,
        *,
        prompt_logprobs: bool = False,
        model: str | None = None,
    ) -> Answer:
        """Sample one completion.

        Args:
            prompt: Token ids.
            seed: Fixes what is sampled.
            sampling: Temperature, top-p, length limit.
            stop_ids: Tokens that end it; the one sampled is part of it.
            timeout: Seconds until the whole answer must have arrived.
            prompt_logprobs: Whether the prompt's log-probabilities are wanted as well, at temperature 1.
            model: Another model or adapter than its own one.

        Raises:
            CallFailed: There was no usable answer.
        """
        settings: dict[str, Any] = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": sampling.max_new_tokens,
            "seed": seed,
            "logprobs": 0,
            "stop_token_ids": list(stop_ids),
            "ignore_eos": True,  # only our stop tokens, not those of the model's generation config
            "detokenize": False,
        }
        if prompt_logprobs:
            settings["prompt_logprobs"] = 0
        body: dict[str, Any] = {"token_ids": list(prompt), "sampling_params": settings}
        if name := self.model if model is None else model:
            body["model"] = name
        found = self.post("/inference/v1/generate", body, timeout)
        return read_generated(found, prompt, sampling.max_new_tokens, prompt_logprobs)

    def check_health(self, timeout: float) -> None:
        """Raise if the server does not say that it is well.

        Raises:
            CallFailed: It does not.
        """
        self._exchange.send("GET", f"{self._root}/health", None, timeout)

    def check_routes(self, timeout: float) -> None:
        """Raise if the server does not name its weights, or does not sample token ids with their log-probabilities.

        Raises:
            CallFailed: It does not, or refuses the key.
        """
        self.version()
        answer = self.generate([0], 0, Sampling(max_new_tokens=1), [], timeout, model="")
        if len(answer.versions) != 1:
            raise CallFailed("malformed", "its completions do not name their weights", is_retried=False)

    def longest(self) -> int:
        """Return the longest sequence, prompt and completion, that the server takes; 0 if it does not say.

        Raises:
            CallFailed: There was no usable answer.
        """
        found = self.get("/v1/models", _SHORT_SECONDS)
        try:
            limits = [entry.get("max_model_len") for entry in found["data"]]
        except (KeyError, TypeError, AttributeError) as error:
            raise CallFailed("malformed", f"no list of models: {found!r:.200}") from error
        return min((limit for limit in limits if type(limit) is int and limit > 0), default=0)

    def pause(self, timeout: float) -> None:
        """Let running completions end, and start no others until :meth:`resume`."""
        self.post("/pause", None, timeout, mode="wait", clear_cache="true")

    def resume(self, timeout: float) -> None:
        """Continue after a pause."""
        self.post("/resume", None, timeout)

    def call_workers(self, method: str, timeout: float, **arguments: str) -> None:
        """Call a method of the server's workers."""
        self.post("/collective_rpc", {"method": method, "kwargs": arguments}, timeout)

    def forget_prefixes(self, timeout: float) -> None:
        """Drop the keys and values of prompts that were computed with other weights.

        Raises:
            CallFailed: The server keeps them.
        """
        answer = self.post("/reset_prefix_cache", None, timeout)
        if answer.get("success") is not True:
            raise CallFailed("prefixes", f"it keeps the prefixes of the old weights: {answer!r:.200}")

    def set_version(self, version: str, timeout: float) -> None:
        """Name the weights, as in :attr:`Answer.versions` from now on."""
        self.post("/update_weight_version", {"new_version": version}, timeout)

    def version(self, timeout: float = _SHORT_SECONDS) -> str:
        """Return the name of the weights."""
        return str(self.get("/weight_info", timeout).get("weight_version", ""))

    def sleep(self, level: int, timeout: float) -> None:
        """Free memory of the GPU until :meth:`wake`."""
        self.post("/sleep", None, timeout, level=str(level), mode="wait")

    def wake(self, timeout: float, part: str = "") -> None:
        """Take the memory back: ``weights``, ``kv_cache``, or all of it."""
        self.post("/wake_up", None, timeout, **({"tags": part} if part else {}))

    def get(self, path: str, timeout: float) -> Mapping[str, Any]:
        """Return what the server answers to a GET request; see :meth:`post`."""
        return _read_object(self._exchange.send("GET", self._root + path, None, timeout))

    def post(self, path: str, body: Mapping[str, Any] | None, timeout: float, **query: str) -> Mapping[str, Any]:
        """Return what the server answers to a POST request; an empty answer is an empty object.

        Raises:
            CallFailed: There was no usable answer.
        """
        return _read_object(self.tell(path, body, timeout, **query))

    def tell(self, path: str, body: Mapping[str, Any] | None, timeout: float, **query: str) -> bytes:
        """Send a POST request whose answer need not be JSON; see :meth:`post`."""
        where = f"{self._root}{path}?{urlencode(query)}" if query else self._root + path
        return self._exchange.send("POST", where, None if body is None else json.dumps(body).encode(), timeout)

    def cut(self) -> None:
        """Close every connection, so that calls that wait for an answer fail."""
        self._exchange.cut()


def _read_object(content: bytes) -> Mapping[str, Any]:
    if len(content) > LARGEST_ANSWER:
        raise CallFailed("malformed", f"an answer of more than {LARGEST_ANSWER} bytes")
    if not content.strip():
        return {}
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CallFailed("malformed", content[:300].decode("utf8", "replace")) from error
    return found if isinstance(found, dict) else {"answer": found}


def read_generated(
    content: Mapping[str, Any], prompt: Sequence[int], most: int, prompt_logprobs: bool = False
) -> Answer:
    """Return the completion in an answer.

    Args:
        content: The answer.
        prompt: The prompt's token ids.
        most: Maximum completion length in tokens.
        prompt_logprobs: Whether the prompt's log-probabilities were asked for.

    Raises:
        CallFailed: It does not follow the protocol.
    """
    try:
        (choice,) = content["choices"]
        ids, parts = choice["token_ids"], choice["logprobs"]["content"]
        if not 0 < len(ids) <= most or any(type(token) is not int or token < 0 for token in ids):
            raise ValueError("no completion of the length that was asked for")
        if [part["token_id"] for part in parts] != ids:
            raise ValueError("log-probabilities of other tokens")
        logprobs = tuple(_logprob(part["logprob"]) for part in parts)
        versions = tuple(str(span["version"]) for span in choice.get("weight_versions") or ())
        if choice.get("finish_reason") not in ("stop", "length"):
            raise ValueError(f"finish_reason {choice.get('finish_reason')!r}")
        rows = content["prompt_logprobs"][1:] if prompt_logprobs else []
        of_prompt = (
            tuple(_logprob(row[str(token)]["logprob"]) for row, token in zip(rows, prompt[1:], strict=True))
            if (prompt_logprobs)
            else ()
        )
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise CallFailed("malformed", f"{error!r:.200} in {content!r:.300}") from error
    return Answer(tuple(ids), logprobs, versions, of_prompt)


def _logprob(value: Any) -> float:
    if type(value) not in (int, float) or not -sys.float_info.max <= value <= 1e-3:
        raise ValueError(f"no log-probability: {value!r}")
    return float(value)
