"""Limits and policies of a gateway."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, TypeAlias

from turngym.errors import ConfigError

Retries: TypeAlias = Literal["counter", "new", "same"]
_RETRIES = ("counter", "new", "same")
_POSITIVE = (
    "max_body",
    "max_action",
    "max_depth",
    "max_choices",
    "max_calls",
    "max_at_once",
    "calls_per_second",
    "max_episodes",
    "idle_seconds",
    "max_new_tokens",
    "chunk",
    "max_batch",
    "max_connections",
    "request_seconds",
    "work_seconds",
    "max_messages",
    "max_bytes_each",
    "max_bytes",
    "max_kept",
)


@dataclass(frozen=True)
class GatewayLimits:
    """Limits of a gateway.

    Args:
        max_body: Maximum request size in bytes.
        max_action: Bytes of an action, of a message of MCP, and of a reward that an agent gives itself.
        max_depth: Nested objects and lists in a request.
        max_choices: Answers to one request (``n``).
        max_calls: Sampled answers of one episode.
        max_at_once: Requests of one episode that are read, and answers that are sampled for it, at once.
        calls_per_second: Requests of one episode that start in one second, on average over ten.
        max_episodes: Maximum number of open episodes.
        idle_seconds: An episode without a request for that long has ended: its agent is dead.
        max_new_tokens: Longest answer; a request for more gets that many.
        chunk: Tokens after which new requests join the batch, and stop words and streams are looked after.
        max_batch: Answers that are sampled together.
        max_connections: Open connections of one episode.
        request_seconds: Time for a request to arrive.
        work_seconds: Time to read, render and tokenise a request.
        max_messages: Messages, calls and tools of a request.
        max_bytes_each: Bytes of one episode's requests that are under way at once.
        max_bytes: The same of all episodes.
        max_kept: About how many bytes are kept of an episode: tokens, observations and stored conversations.

    Raises:
        ConfigError: A limit is not positive.
    """

    max_body: int = 8 * 2**20
    max_action: int = 2**16
    max_depth: int = 64
    max_choices: int = 16
    max_calls: int = 2000
    max_at_once: int = 64
    calls_per_second: float = 200.0
    max_episodes: int = 4096
    idle_seconds: float = 600.0
    max_new_tokens: int = 1024
    chunk: int = 64
    max_batch: int = 256
    max_connections: int = 128
    request_seconds: float = 30.0
    work_seconds: float = 10.0
    max_messages: int = 10_000
    max_bytes_each: int = 32 * 2**20
    max_bytes: int = 128 * 2**20
    max_kept: int = 256 * 2**20

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            value = getattr(self, name)
            if not 0 < value < float("inf"):
                raise ConfigError(f"{name} of a gateway must be greater than 0, got {value!r}.")
        assert {field.name for field in fields(self)} == set(_POSITIVE)


@dataclass(frozen=True)
class GatewayRules:
    """Policies of a gateway towards agents.

    Args:
        retries: Response to a repeated identical request: ``same``, the first answer; ``new``, a new sample;
            ``counter``, the first answer if the client marks a retry, else a new sample.
        temperature: Sampling temperature of every request; None for what each request asks for. Training needs one.
        top_p: The same for nucleus sampling; training needs 1.
        train_abandoned: Whether answers that no client received are trained on.
        timeout: Status of an episode whose agent died: ``truncated``, or a ``fault``, which is not trained on.

    Raises:
        ConfigError: A value is unknown.
    """

    retries: Retries = "counter"
    temperature: float | None = 1.0
    top_p: float | None = 1.0
    train_abandoned: bool = False
    timeout: Literal["truncated", "fault"] = "truncated"

    def __post_init__(self) -> None:
        if self.retries not in _RETRIES:
            raise ConfigError(f"retries must be one of {', '.join(_RETRIES)}, got {self.retries!r}.")
        if self.timeout not in ("truncated", "fault"):
            raise ConfigError(f"timeout must be truncated or fault, got {self.timeout!r}.")
        if self.temperature is not None and not 0 <= self.temperature < float("inf"):
            raise ConfigError(f"temperature must be 0 (greedy) or more, got {self.temperature}.")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p must be in (0, 1], got {self.top_p}.")
