"""``turngym serve-model``: a model as a policy server, for training with samplers in other processes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from turngym.benchmarks.cli.options.parsing import parse
from turngym.errors import ConfigError
from turngym.imports import collection_paused
from turngym.terminal.console import Console

TOKEN_VARIABLE = "TURNGYM_TOKEN"


@dataclass(frozen=True)
class Arguments:
    """Serve a model over the vLLM routes used in training: token ids in, token ids and log-probabilities out.

    A replacement for a vLLM server (`turngym train --rollout.sampler vllm-server --rollout.servers URL`) without vLLM,
    also on a CPU.

    Args:
        model: Model folder, Hub name, .gguf file, or checkpoint of a run.
        dtype: Format of the weights: auto, float32, bfloat16 or float16.
        device: Device: auto, cpu, cuda.
        weights_folder: Folder below which new weights and adapters are read (default: none are read).
        host: Address to listen on; other than loopback requires a token.
        port: Port to listen on; 0 selects a free one.
        token: Token that clients send as `Authorization: Bearer TOKEN`; the variable TURNGYM_TOKEN is safer. By default
            a random one is stored in a private file whose path is printed.
        cache_tokens: Size of the KV cache in tokens; 0 uses half of a GPU's free memory, or a quarter of the host's.
        draft_tokens: Maximum number of tokens drafted by copying earlier text and verified in one pass; for few
            concurrent completions that repeat their prompts. Drafts change samples only by rounding.
        max_model_len: Maximum length of prompt plus completion; 0 for the model's limit.
        max_num_seqs: Maximum number of concurrent completions.
        max_connections: Maximum number of connections; excess ones get status 503.
    """

    model: Positional[str]
    dtype: str = "auto"
    device: str = "auto"
    weights_folder: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    token: str = ""
    cache_tokens: int = 0
    draft_tokens: int = 0
    max_model_len: int = 0
    max_num_seqs: int = 256
    max_connections: int = 1024


def main(argv: Sequence[str]) -> int:
    """Serve until interrupted."""
    with collection_paused():
        from turngym.agents.models.loading import load_model
        from turngym.agents.models.policy_server.engine import Engine
        from turngym.agents.models.policy_server.server import PolicyServer
        from turngym.agents.models.policy_server.weights import ServedWeights
        from turngym.web.access import own_token

    arguments = parse(Arguments, argv, "serve-model")
    _check(arguments)
    model = load_model(arguments.model, arguments.dtype, arguments.device)
    engine = Engine(
        model,
        ServedWeights(model, arguments.model, arguments.weights_folder),
        cache_tokens=arguments.cache_tokens,
        max_rows=arguments.max_num_seqs,
        longest=arguments.max_model_len,
        draft_tokens=arguments.draft_tokens,
    )
    token, guard = arguments.token or os.environ.get(TOKEN_VARIABLE, ""), "the token that was given is needed"
    if not token:
        token, file = own_token("serve-model")
        guard = f"the token in {file} is needed"
    with closing(engine):
        try:
            server = PolicyServer(engine, arguments.host, arguments.port, token, arguments.max_connections)
        except OSError as error:
            raise ConfigError(f"cannot listen on {arguments.host}:{arguments.port} ({error}): pass --port.") from error
        text = f"serving {arguments.model} at {server.url} ({guard}, at most {engine.limits.longest} tokens)"
        Console(highlight=False).print(f"{text}; Ctrl+C ends it", markup=False, soft_wrap=True)
        with server:
            server.serve_forever()
    return 0


def _check(arguments: Arguments) -> None:
    """Raise for options that make no sense.

    Raises:
        ConfigError: There is such an option.
    """
    if not arguments.host:
        raise ConfigError("--host must be the address to listen on, such as 127.0.0.1, got ''.")
    if not 0 <= arguments.port < 2**16:
        raise ConfigError(f"--port must be between 0 and {2**16 - 1}, got {arguments.port}.")
    if arguments.weights_folder is not None and not arguments.weights_folder.is_dir():
        raise ConfigError(f"--weights-folder must be an existing folder, got {arguments.weights_folder}.")
    least_values = {"cache_tokens": 0, "draft_tokens": 0, "max_model_len": 0, "max_num_seqs": 1, "max_connections": 1}
    for name, least in least_values.items():
        if getattr(arguments, name) < least:
            option = f"--{name.replace('_', '-')}"
            raise ConfigError(f"{option} must be at least {least}, got {getattr(arguments, name)}.")
