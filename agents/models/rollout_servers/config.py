"""Settings of servers for sampling in training; imports neither vLLM nor torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from turngym.agents.chat_client.config import read_address
from turngym.errors import ConfigError

SyncName: TypeAlias = Literal["auto", "folder", "adapter", "native", "nccl", "ipc"]
_MOST_SERVERS = 1024


@dataclass(frozen=True)
class ServedConfig:
    """Settings of servers for sampling in training.

    Args:
        sync: Transport of new weights. ``folder``: files in a shared folder, which always works. ``adapter``: only
            adapter files, for servers that have the base model. ``native``: files as in ``folder``, loaded by vLLM's
            weight transfer protocol. ``nccl``: GPU to GPU by that protocol. ``ipc``: the same within one GPU. ``auto``:
            ``adapter`` for adapters on servers started by the run, else ``folder``.
        folder: Folder of the files; empty for ``weights`` in the run folder.
        key_variable: Environment variable with the servers' key (default: ``TURNGYM_API_KEY``).
        python: Python interpreter with vLLM, for servers started by the run; empty for this one.
        devices: GPU indices for servers started by the run, ``tensor_parallel_size`` each; empty leaves the choice to
            vLLM.
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

    sync: SyncName = "auto"
    folder: str = ""
    key_variable: str = ""
    python: str = ""
    devices: tuple[int, ...] = ()
    concurrency: int = 128
    retries: int = 5
    timeout: float = 600.0
    sync_timeout: float = 600.0
    start_timeout: float = 900.0
    patience: float = 900.0
    poll: float = 5.0
    restarts: int = 3
    max_gap: float = 0.0
    sleep: int = 0

    def __post_init__(self) -> None:
        if self.sync not in get_args(SyncName):
            raise ConfigError(f"sync of servers must be one of {', '.join(get_args(SyncName))}, got {self.sync!r}.")
        for name, least in (("concurrency", 1), ("retries", 0), ("restarts", 0)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise ConfigError(f"{name} of servers must be a whole number of at least {least}, got {value!r}.")
        for name in ("timeout", "sync_timeout", "start_timeout", "patience", "poll"):
            value = getattr(self, name)
            if type(value) not in (int, float) or not 0 < value < 1e6:
                raise ConfigError(f"{name} of servers must be a number of seconds above 0, got {value!r}.")
        if type(self.max_gap) not in (int, float) or not 0 <= self.max_gap < 1e6:
            raise ConfigError(f"max_gap must be 0 (automatic) or a difference above it, got {self.max_gap!r}.")
        if self.sleep not in (0, 1, 2):
            raise ConfigError(f"sleep must be 0, 1 or 2, the levels of vLLM, got {self.sleep!r}.")
        if any(type(number) is not int or number < 0 for number in self.devices):
            raise ConfigError(f"devices must be numbers of GPUs, such as 1 2 3, got {self.devices!r}.")


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
    if type(start) is not int or not 0 <= start <= _MOST_SERVERS:
        raise ConfigError(f"start_servers must be a number from 0 to {_MOST_SERVERS}, got {start!r}.")
    for url in servers:
        read_address(url)
    if len(set(servers)) != len(servers):
        raise ConfigError("a server is named twice in --rollout.servers: name each one once.")
    needed = start * tensor_parallel
    if config.devices and len(config.devices) != needed:
        raise ConfigError(
            f"{start} servers of {tensor_parallel} GPUs each need {needed} devices, got {len(config.devices)}."
        )
