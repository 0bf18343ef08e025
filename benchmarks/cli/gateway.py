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
"""Options that are limits of :class:`turngym.trainers.integrations.gateway.limits.GatewayLimits`."""


@dataclass(frozen=True)
class Arguments:
    """Serve a model to agent programs of any kind, and keep the exact tokens of every call.

    Programs speak OpenAI's protocol (chat completions, completions, responses) or Anthropic's (messages). Give them
    http://127.0.0.1:8000/episode/NAME/v1 as base URL and the key that is shown as API key. It needs the extras
    `train` and `serve`.

    Args:
        model: The model: hf:PATH_OR_NAME or vllm:PATH_OR_NAME; a path or name alone is hf.
        server: How it is loaded, such as dtype=bfloat16; may be repeated.
        host: Address to listen on. Every request needs a key, on every address.
        port: Port to listen on; 0 for any that is free.
        key: The operator's key, a random one unless given. The variable TURNGYM_KEY is safer: a command line can be
            read by others on the machine.
        records: Folder for the log: one file for each episode, one line for each answer.
        temperature: Sampling temperature of every answer; client leaves it to the requests.
        top_p: Share of the probability that is sampled from; client leaves it to the requests. Training needs 1.
        max_new_tokens: Longest answer.
        retries: What a repeated identical request gets: same, the first answer; new, a new sample; counter, the first
            answer if the client's package marks it as a retry.
        idle_seconds: An episode without a request for so long has ended.
        max_body: Bytes of a request.
        calls_per_second: Requests of one episode that begin in a second, on average over ten; others are refused (429).
        max_at_once: Requests of one episode, and answers to them (`n`), at once; more are refused (429).
        max_calls: Answers of one episode.
        max_episodes: Open episodes.
        seed: Seed of the samples.
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
    from turngym.trainers.integrations.gateway.limits import GatewayLimits, GatewayRules
    from turngym.trainers.integrations.gateway.policy import gateway_of
    from turngym.trainers.integrations.gateway.records import Records
    from turngym.trainers.integrations.gateway.server import serve

    if not 0 <= arguments.port < 2**16:
        raise ConfigError(f"--port must lie between 0 and {2**16 - 1}, got {arguments.port}.")
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
