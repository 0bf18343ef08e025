"""Rollouts with servers during training: weights are synced, and failed servers are replaced."""

from __future__ import annotations

import os
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from turngym.agents.chat_client.config import read_address, read_key
from turngym.agents.chat_client.exchange import CallFailed
from turngym.agents.models.completion import Completion
from turngym.agents.models.loading import LanguageModel, vocabulary_size
from turngym.agents.models.rollout_servers.client import PolicyClient
from turngym.agents.models.rollout_servers.config import ServedConfig
from turngym.agents.models.rollout_servers.keeper import Keeper
from turngym.agents.models.rollout_servers.launcher import ADAPTER, OwnServer, ServerCommand
from turngym.agents.models.rollout_servers.pool import ServerPool
from turngym.agents.models.rollout_servers.sync.core import Weights, WeightSync
from turngym.agents.models.rollout_servers.sync.folder import AdapterSync, FolderSync, NativeSync
from turngym.agents.models.rollout_servers.sync.gpu import GpuSync
from turngym.agents.models.rollout_servers.vllm_plugin import FILE
from turngym.agents.models.vllm.weights import with_head
from turngym.agents.sampling import Sampling
from turngym.errors import ConfigError, ModelError
from turngym.trainers.engine.adapters import (
    ALL_LINEAR,
    adapted_layers,
    adapter_tensors,
    lora_config,
    without_adapters,
)
from turngym.trainers.engine.fingerprint import Expected
from turngym.trainers.loop.sampling.samplers import SamplerSetup
from turngym.trainers.loop.sampling.served_check import WeightCheck
from turngym.trainers.settings.config import TrainConfig
from turngym.trainers.settings.rollout import RolloutConfig


@dataclass(frozen=True)
class Handed:
    """Weights being synced to servers by :mod:`turngym.agents.models.rollout_servers.pool`."""

    label: str
    version: int
    sync: WeightSync
    weights_check: WeightCheck
    wanted: Expected
    wakes: bool = False

    def deliver(self, server: PolicyClient) -> None:
        """Let a server load the weights."""
        if self.wakes:
            if torch.cuda.is_available():
                torch.cuda.empty_cache()  # the server uses memory freed by the update
            server.wake(self.sync.timeout, "weights")
        self.sync.deliver(server, self.label)
        if self.wakes:
            server.wake(self.sync.timeout, "kv_cache")

    def check(self, server: PolicyClient) -> float:
        """Return the difference of the server's log-probabilities from the trainer's."""
        return self.weights_check.require(server, self.label, self.wanted)


class ServedRollouts:
    """Sampling with the policy's current weights, synced to the servers after every change.

    Args:
        model: The policy.
        pool: The servers.
        sync: Transport of weights.
        weights_of: Returns the weights of a model to sync.
        weights_check: Compares servers with the policy.
        version: Returns the version of the policy if the model does not have one.
        sleep: Sleep level of servers between rollouts; 0 for none.
    """

    def __init__(
        self,
        model: LanguageModel,
        pool: ServerPool,
        sync: WeightSync,
        weights_of: Callable[[LanguageModel], Weights],
        weights_check: WeightCheck,
        version: Callable[[], int] = lambda: -1,
        sleep: int = 0,
    ) -> None:
        self.model = model
        self.pool = pool
        self.sync = sync
        self.weights_of = weights_of
        self.weights_check = weights_check
        self.version = version
        self.sleep = sleep
        self._run = secrets.token_hex(4)
        self._count = 0
        self._state: tuple[object, ...] = ()
        self._is_asleep = False

    def generate(
        self, prompts: Sequence[Sequence[int]], uniforms: Sequence[NDArray[np.float64]], sampling: Sampling
    ) -> list[Completion]:
        """Sample one completion for each prompt."""
        self.follow()
        return self.pool.generate(prompts, uniforms, sampling)

    def submit(
        self, prompt: Sequence[int], uniforms: NDArray[np.float64], sampling: Sampling, given_up: threading.Event
    ) -> Future[Completion]:
        """Start sampling a completion with the servers' weights, and return immediately."""
        return self.pool.submit(prompt, uniforms, sampling, given_up)

    def follow(self) -> None:
        """Sync the policy's weights to the servers if they have changed."""
        state = tuple((id(p), p._version) for p in self.model.network.parameters())
        if state != self._state or self._is_asleep:
            self._hand_over()
            self._state = state

    def _hand_over(self) -> None:
        self._count += 1
        label = f"{self._run}-{self._count}"  # distinct from names of another run on the same servers
        self.sync.publish(label, self.weights_of(self.model))
        wanted = self.weights_check.expect()
        version = self.version() if self.model.version < 0 else self.model.version
        handed = Handed(label, version, self.sync, self.weights_check, wanted, self._is_asleep)
        self.pool.hand_over(handed)
        self.sync.settle()
        self._is_asleep = False
        if self._count == 1 and not self.pool.has_any:
            raise ModelError(self.pool.why_none())  # an error of the settings, not of a server

    def rest(self) -> None:
        """Let the servers free GPU memory until the next request, if ``sleep`` is set."""
        if self.sleep and not self._is_asleep:
            self.pool.each(lambda server: server.sleep(self.sleep, self.sync.timeout))
            self._is_asleep = True

    def metrics(self) -> Mapping[str, float]:
        """Return metrics since the last call."""
        return self.pool.metrics()


def _longest(pool: ServerPool) -> int:
    """Return the maximum sequence length of all servers in use; 0 if unknown."""
    found = []
    for member in pool.members:
        try:
            found.append(member.server.longest())
        except CallFailed as failure:
            pool.lose(member, failure)
    return min(filter(None, found), default=0)


@contextmanager
def served_rollouts(setup: SamplerSetup) -> Iterator[ServedRollouts]:
    """Context in which servers generate for a policy.

    Raises:
        ConfigError: Weights are synced between GPUs, but the policy is not on a GPU.
    """
    settings, model = setup.config.rollout, setup.model
    if settings.served.sync in ("nccl", "ipc") and model.network.device.type != "cuda":
        raise ConfigError(
            f"--rollout.served.sync {settings.served.sync} sends from a GPU, and the model is on "
            f"{model.network.device.type}: pass folder or native."
        )
    served = settings.served
    with ExitStack() as stack:
        own = _own_servers(setup)
        for server in own:
            stack.callback(server.stop)
        pool = ServerPool(
            [each.start() for each in own] or _given(settings), model.stop_ids, served, vocabulary_size(model)
        )
        sync, weights_of = _way(setup, pool)
        stack.callback(sync.close)
        keeper = Keeper(pool, own)
        stack.callback(keeper.close)
        stack.callback(pool.close)
        keeper.open()
        longest = _longest(pool)
        check = WeightCheck(
            model,
            setup.vllm.dtype,
            settings.temperature,
            longest,
            served.max_gap,
            served.sync_timeout,
            scores=not _hands_adapters(setup.config),
        )
        rollouts = ServedRollouts(model, pool, sync, weights_of, check, setup.version, served.sleep)
        try:
            model.generate, model.background, model.longest = rollouts.generate, rollouts, longest
            yield rollouts
        finally:
            model.generate, model.background, model.longest = None, None, 0


def _given(settings: RolloutConfig) -> list[PolicyClient]:
    variable = settings.served.key_variable
    model = ADAPTER if settings.served.sync == "adapter" else ""
    return [PolicyClient(url, read_key(read_address(url), variable), model) for url in settings.servers]


def _whole_weights(model: LanguageModel) -> Weights:
    """Return all weights of a model, with adapters merged and tied output layers also under their own name."""
    network = without_adapters(model).network
    return with_head(network.state_dict(), network.config.get_text_config().tie_word_embeddings)


def _hands_adapters(config: TrainConfig) -> bool:
    """Return True if only adapters are synced."""
    if config.rollout.served.sync != "auto":
        return config.rollout.served.sync == "adapter"
    is_plain = config.lora_targets == (ALL_LINEAR,) and config.quantize == "none" and not config.model.endswith(".gguf")
    return config.lora_rank > 0 and config.rollout.start_servers > 0 and is_plain


def _way(setup: SamplerSetup, pool: ServerPool) -> tuple[WeightSync, Callable[[LanguageModel], Weights]]:
    """Return the transport, and the function that selects the weights."""
    config = setup.config
    served = config.rollout.served
    folder = Path(served.folder) if served.folder else setup.folder / "weights"
    if not served.folder:
        shutil.rmtree(folder, ignore_errors=True)  # left by a killed run
    if not _hands_adapters(config):
        if served.sync == "native":
            return NativeSync(folder, served.sync_timeout), _whole_weights
        files = FolderSync(folder, served.sync_timeout)
        if served.sync in ("nccl", "ipc"):
            return GpuSync(served.sync, files, lambda: pool.misses_any), _whole_weights
        return files, _whole_weights
    targets = sorted({name.rpartition(".")[2] for name in adapted_layers(setup.model.network)})
    settings: Any = lora_config(config.lora_rank, config.lora_alpha, targets, config.lora_rslora)
    plain = {name: sorted(value) if isinstance(value, set) else value for name, value in settings.to_dict().items()}
    sync = AdapterSync(folder, served.sync_timeout, {**plain, "inference_mode": True})
    return sync, lambda model: adapter_tensors(model.network)


def server_devices(
    served: ServedConfig, needed: int, own: torch.device, visible: Sequence[int | str]
) -> tuple[int | str, ...]:
    """Return the GPUs of servers started by a run; empty lets vLLM choose, which uses the first ones.

    Args:
        served: The settings; their GPUs have precedence.
        needed: Number of GPUs of all servers.
        own: Device of the policy.
        visible: GPUs visible to this process, as in CUDA_VISIBLE_DEVICES.

    >>> server_devices(ServedConfig(), 1, torch.device("cuda:1"), [4, 5, 6])
    (4,)
    >>> server_devices(ServedConfig(sync="ipc"), 1, torch.device("cuda:1"), [4, 5, 6])
    (5,)
    """
    if served.devices or own.type != "cuda":
        return served.devices
    index = own.index or 0
    if (served.sleep or served.sync == "ipc") and needed == 1:
        return (visible[index],)
    others = [each for number, each in enumerate(visible) if number != index]
    return tuple(others[:needed]) if len(others) >= needed else ()


def _visible() -> list[int | str]:
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    return list(range(torch.cuda.device_count())) if named is None else [each.strip() for each in named.split(",")]


def _own_servers(setup: SamplerSetup) -> list[OwnServer]:
    settings = setup.config.rollout
    served, each = settings.served, settings.vllm.tensor_parallel_size
    on_cpu = setup.model.network.device.type == "cpu"
    rank = setup.config.lora_rank if _hands_adapters(setup.config) else 0
    transfer = {"native": FILE, "nccl": "nccl", "ipc": "ipc"}.get(served.sync, "")
    command = ServerCommand(
        setup.source, setup.vllm, on_cpu=on_cpu, lora_rank=rank, transfer=transfer, sleeps=bool(served.sleep)
    )
    if served.python:
        command = replace(command, python=served.python)
    count = settings.start_servers
    devices = server_devices(served, count * each, setup.model.network.device, _visible())
    return [
        OwnServer(
            replace(command, devices=devices[number * each : (number + 1) * each]),
            setup.folder / "servers" / f"server-{number}.log",
            ADAPTER if rank else "",
        )
        for number in range(count)
    ]
