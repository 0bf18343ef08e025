"""``turngym gateway``: a model behind the protocols that agent programs speak, with a log of every token."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from turngym.benchmarks.cli.options.parsing import Pairs, key_values, parse
from turngym.errors import ConfigError
from turngym.terminal.console import Console

KEY_VARIABLE = "TURNGYM_KEY"
LIMITS = (
    "max_new_tokens",
    "idle_seconds",
    "max_body",
    "calls_per_second",
    "max_at_once",
    "max_calls",
    "max_episodes",
)
"""Options that are limits of :class:`turngym.agents.gateway.limits.GatewayLimits`."""


@dataclass(frozen=True)
class Arguments:
    """Serve a model to any agent program and record the exact tokens of every call.

    Programs use the OpenAI API (chat completions, completions, responses) or the Anthropic API (messages), with
    http://127.0.0.1:8000/episode/NAME/v1 as base URL and the printed key as API key. Requires the extras `train` and
    `serve`.

    Args:
        model: Model: hf:PATH_OR_NAME or vllm:PATH_OR_NAME; a bare path or name means hf.
        server: Loading option, such as dtype=bfloat16.
        host: Address to listen on. Every request needs a key, also on loopback.
        port: Port to listen on; 0 selects a free one.
        key: Operator key (default: random). The variable TURNGYM_KEY is safer, because command lines are visible to
            other users.
        records: Log folder: one file per episode, one line per completion.
        temperature: Sampling temperature; client uses that of the requests.
        top_p: Nucleus sampling threshold; client uses that of the requests. Training needs 1.
        max_new_tokens: Maximum completion length in tokens.
        retries: Response to a repeated identical request: same, the first completion; new, a new sample; counter, the
            first completion if the client marks a retry.
        idle_seconds: Idle time in seconds after which an episode ends.
        max_body: Maximum request size in bytes.
        calls_per_second: Request rate limit of an episode, averaged over ten seconds; excess requests get 429.
        max_at_once: Maximum concurrent requests of an episode, counting completions (`n`); excess requests get 429.
        max_calls: Maximum number of completions of an episode.
        max_episodes: Maximum number of open episodes.
        seed: Sampling seed.
    """

    model: str
    server: Pairs = ()
    host: str = "127.0.0.1"
    port: int = 8000
    key: str = ""
    records: Path | None = None
    temperature: float | Literal["client"] = 1.0
    top_p: float | Literal["client"] = 1.0
    max_new_tokens: int = 1024
    retries: Literal["counter", "new", "same"] = "counter"
    idle_seconds: float = 600.0
    max_body: int = 8 * 2**20
    calls_per_second: float = 200.0
    max_at_once: int = 64
    max_calls: int = 2000
    max_episodes: int = 4096
    seed: int = 0


def main(argv: Sequence[str]) -> int:
    """Serve until interrupted."""
    arguments = parse(Arguments, argv, "gateway")
    from turngym.agents.gateway.calls import Records
    from turngym.agents.gateway.limits import GatewayLimits, GatewayRules
    from turngym.agents.gateway.policy import gateway_of
    from turngym.agents.gateway.server import serve

    if not 0 <= arguments.port < 2**16:
        raise ConfigError(f"--port must be between 0 and {2**16 - 1}, got {arguments.port}.")
    temperature = None if arguments.temperature == "client" else arguments.temperature
    top_p = None if arguments.top_p == "client" else arguments.top_p
    rules = GatewayRules(arguments.retries, temperature, top_p)
    limits = GatewayLimits(**{name: getattr(arguments, name) for name in LIMITS})
    gateway = gateway_of(
        arguments.model,
        key_values(arguments.server, "--server"),
        limits=limits,
        rules=rules,
        seed=arguments.seed,
        operator_key=arguments.key or os.environ.get(KEY_VARIABLE, ""),
        records=Records(arguments.records) if arguments.records is not None else None,
    )
    console = Console(highlight=False)

    def announce(url: str) -> None:
        is_random = not (arguments.key or os.environ.get(KEY_VARIABLE))
        told = f"the key is {gateway.episodes.operator_key}" if is_random else "the key is the one that was given"
        text = f"serving {arguments.model} at {url}/episode/NAME/v1 ({told}); Ctrl+C ends it"
        console.print(text, markup=False, soft_wrap=True)

    serve(gateway, host=arguments.host, port=arguments.port, on_start=announce)
    return 0
