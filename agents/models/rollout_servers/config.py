"""Settings of servers for sampling in training; imports neither vLLM nor torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from turngym.agents.chat_client.config import read_address
from turngym.errors import ConfigError
from turngym.options import Amount, Natural, Options, Positive, Seconds

_SyncName: TypeAlias = Literal["auto", "folder", "adapter", "native", "nccl", "ipc"]
MOST_SERVERS = 1024


class ServedConfig(Options):
    """Settings of servers for sampling in training.

    Args:
        sync: Transport of new weights. ``folder``: files in a shared folder, which always works. ``adapter``: only
            adapter files, for servers that have the base model. ``native``: files as in ``folder``, loaded by vLLM's
            weight transfer protocol. ``nccl``: GPU to GPU by that protocol. ``ipc``: the same within one GPU. ``auto``:
            ``adapter`` for adapters on servers started by the run, else ``folder``.
        folder: Folder of the files; empty for ``weights`` in the run folder.
        key_variable: Environment variable with the servers' key (default: ``TURNGYM_API_KEY``).
        python: Python interpreter with vLLM, for servers started by the run; empty for this one.
        devices: GPU indices for servers started by the run, ``tensor_parallel_size`` each; by default the
            model's own GPU if servers sleep or sync by ``ipc``, else others if there are enough, else vLLM's choice.
        concurrency: Maximum concurrent requests per server.
        retries: Retries of a failed request, on another server if there is one.
        timeout: Timeout of a completion in seconds.
        sync_timeout: Timeout of each step of a weight sync in seconds.
        start_timeout: Timeout for the start of a server in seconds.
        patience: Seconds to wait for a healthy server before failing.
        poll: Seconds between health checks of a server.
        restarts: Maximum restarts of each server started by the run.
        max_gap: Maximum difference between the log-probabilities of server and trainer on the probe after a weight
            sync; 0 for the default of the weight format.
        sleep: Sleep level of servers during updates, on a shared GPU: 1 offloads the weights to host memory, 2 drops
            them; 0 keeps them awake.
    """

    sync: _SyncName = "auto"
    folder: str = ""
    key_variable: str = ""
    python: str = ""
    devices: tuple[Natural, ...] = ()
    concurrency: Positive = 128
    retries: Natural = 5
    timeout: Seconds = 600.0
    sync_timeout: Seconds = 600.0
    start_timeout: Seconds = 900.0
    patience: Seconds = 900.0
    poll: Seconds = 5.0
    restarts: Natural = 3
    max_gap: Amount = 0.0
    sleep: Literal[0, 1, 2] = 0


def require_servers(
    sampler: str, servers: Sequence[str], start: int, tensor_parallel: int, config: ServedConfig
) -> None:
    """Raise if the settings of served samplers contradict each other.

    Args:
        sampler: Name of the sampler.
        servers: URLs of servers that run already.
        start: Number of servers to start.
        tensor_parallel: Number of GPUs of each server that is started.
        config: All else.

    Raises:
        ConfigError: There is no server, or there are both kinds, or a setting is for the other kind.
    """
    if sampler != "vllm-server":
        if servers or start or config != ServedConfig():
            raise ConfigError(
                "servers are used with --rollout.sampler vllm-server alone, and so are their settings: pass it as well."
            )
        return
    if bool(servers) == bool(start):
        raise ConfigError(
            "the sampler vllm-server needs servers: pass either --rollout.servers URL ... of those that run, or "
            "--rollout.start-servers N to start some."
        )
    for url in servers:
        read_address(url)
    if len(set(servers)) != len(servers):
        raise ConfigError("a server is named twice in --rollout.servers: name each one once.")
    needed = start * tensor_parallel
    if config.devices and len(config.devices) != needed:
        raise ConfigError(
            f"{start} servers of {tensor_parallel} GPUs each need {needed} devices, got {len(config.devices)}."
        )
