"""Settings of rollouts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from turngym.agents.models.rollout_servers.config import ServedConfig, require_servers
from turngym.agents.models.vllm.config import VllmConfig
from turngym.agents.prompt_text import PromptConfig
from turngym.errors import ConfigError
from turngym.trainers.settings.ray import RayConfig
from turngym.wrappers.actions.action_format import AUTO

SamplerName: TypeAlias = Literal["transformers", "vllm", "vllm-server"]


@dataclass(frozen=True)
class RolloutConfig:
    """Rollouts.

    Args:
        groups: Task instances per iteration.
        group_size: Episodes per instance.
        num_envs: Number of vector slots; 0 for one per episode of an iteration.
        backend: Backend of the vector.
        num_workers: Number of worker processes of the backend; 0 for automatic.
        schedule: ``lockstep`` is reproducible to the bit, ``continuous`` never waits for the slowest environment,
            ``async`` continues playing while the learner learns.
        max_staleness: With ``async``: maximum iterations between the weights that started a group and the update that
            trains on it. 0 is bit-identical to ``lockstep``.
        on_stale: With ``async``: ``wait`` makes the learner wait for groups before they exceed the bound, ``drop``
            drops and replaces groups that exceed it, mostly long episodes.
        journal: Save every finished episode immediately, and in ``continuous`` and ``async`` schedules every turn, so
            that ``--resume`` repeats nothing. Always on with ``async``.
        temperature: Sampling temperature in training; above 0.
        max_new_tokens: Maximum completion length in tokens.
        format: Action format: auto (the environment's notation if it defines one, else tag), tag, boxed, json or plain.
        prompt: Prompt settings.
        refresh_every: Iterations between weight syncs of the sampler: 1 always uses current weights, 4 makes samples up
            to 3 iterations stale.
        sampler: Sampler: ``transformers``, ``vllm`` in the learner's process, or ``vllm-server`` in separate processes.
        servers: URLs of running servers, such as ``http://127.0.0.1:8000``, for the sampler vllm-server.
        start_servers: Number of local servers to start, for the sampler vllm-server.
        served: Servers for sampling.
        vllm: vLLM settings, in this process or as a server.
        ray: Rollout workers on a Ray cluster.
        cache_tokens: KV cache size of the sampler transformers in tokens; least recently used sequences are evicted and
            recomputed. 0 uses a quarter of the device's memory.
    """

    groups: int = 32
    group_size: int = 8
    num_envs: int = 0
    backend: str = "sync"
    num_workers: int = 0
    schedule: Literal["lockstep", "continuous", "async"] = "lockstep"
    max_staleness: int = 1
    on_stale: Literal["wait", "drop"] = "wait"
    journal: bool = False
    temperature: float = 1.0
    max_new_tokens: int = 8
    format: str = AUTO
    prompt: PromptConfig = field(default_factory=lambda: PromptConfig(instructions=False))
    refresh_every: int = 1
    sampler: SamplerName = "transformers"
    servers: tuple[str, ...] = ()
    start_servers: int = 0
    served: ServedConfig = field(default_factory=ServedConfig)
    vllm: VllmConfig = field(default_factory=lambda: VllmConfig(gpu_memory_utilization=0.4))
    ray: RayConfig = field(default_factory=RayConfig)
    cache_tokens: int = 0

    @property
    def needs_vllm(self) -> bool:
        """True if vLLM must be installed beside turngym."""
        starts_it = self.start_servers > 0 and not self.served.python
        return self.sampler == "vllm" or (self.sampler == "vllm-server" and starts_it)

    def __post_init__(self) -> None:
        for name in ("groups", "group_size", "max_new_tokens", "refresh_every"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}.")
        if self.temperature <= 0:
            raise ConfigError(f"training samples, so temperature must be above 0, got {self.temperature}.")
        if self.sampler not in get_args(SamplerName):
            raise ConfigError(f"sampler must be one of {', '.join(get_args(SamplerName))}, got {self.sampler!r}.")
        require_servers(self.sampler, self.servers, self.start_servers, self.vllm.tensor_parallel_size, self.served)
        if self.sampler != "transformers" and self.refresh_every > 1:
            raise ConfigError("vLLM is given the weights of now: leave out refresh_every, or sample with transformers.")
        if self.sampler == "vllm" and self.vllm.tensor_parallel_size > 1:
            raise ConfigError("weights are handed to vLLM in one process: train with tensor_parallel_size 1.")
        if self.ray.workers > self.groups:
            raise ConfigError(
                f"{self.ray.workers} rollout workers divide {self.groups} groups: lower ray.workers, or raise groups."
            )
        if self.ray.workers and self.sampler == "vllm-server":
            raise ConfigError(
                "rollout workers on a Ray cluster have models of their own: leave out --rollout.ray.workers, or the "
                "sampler vllm-server."
            )
        longest = self.prompt.max_prompt_tokens + self.max_new_tokens
        if self.cache_tokens and self.cache_tokens <= longest:
            raise ConfigError(
                f"cache_tokens must be 0 (automatic) or more than a prompt and a completion, which may have {longest} "
                f"tokens together, got {self.cache_tokens}: raise it, or lower prompt.max_prompt_tokens."
            )
        self._check_schedule()
        if self.num_envs < 0 or self.num_workers < 0:
            raise ConfigError("num_envs and num_workers must be 0 (automatic) or more.")

    def _check_schedule(self) -> None:
        if self.schedule not in ("lockstep", "continuous", "async"):
            raise ConfigError(f"schedule must be 'lockstep', 'continuous' or 'async', got {self.schedule!r}.")
        if self.schedule == "async" and self.served.sleep:
            raise ConfigError("servers that sleep while the learner learns cannot sample then: leave out served.sleep.")
        if self.on_stale not in ("wait", "drop"):
            raise ConfigError(f"on_stale must be 'wait' or 'drop', got {self.on_stale!r}.")
        if self.max_staleness < 0:
            raise ConfigError(f"max_staleness must be 0 or more iterations, got {self.max_staleness}.")
        if self.is_journaled and self.refresh_every > 1:
            raise ConfigError(
                "refresh_every holds the sampler's weights back by itself: leave it out with schedule async and with "
                "journal, and bound the age of samples with max_staleness."
            )
        if self.is_journaled and self.ray.workers:
            raise ConfigError(
                "rollout workers play whole iterations: leave out --rollout.ray.workers, or schedule async and journal."
            )
        if self.is_journaled and self.order == "continuous" and 0 < self.num_envs < self.group_size:
            raise ConfigError(
                f"the episodes of a group begin together, so num_envs must be at least group_size={self.group_size}, "
                f"got {self.num_envs}: raise it, or leave it out."
            )

    @property
    def order(self) -> Literal["lockstep", "continuous"]:
        """Synchronisation of slots: asynchronous rollouts without staleness are ``lockstep``."""
        if self.schedule == "async":
            return "continuous" if self.max_staleness else "lockstep"
        return self.schedule

    @property
    def is_journaled(self) -> bool:
        """True if episodes are kept in a journal."""
        return self.journal or self.schedule == "async"

    @property
    def staleness(self) -> int:
        """Maximum iterations of rollouts ahead of the learner."""
        return self.max_staleness if self.schedule == "async" else 0
