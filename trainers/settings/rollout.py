"""How a run gathers its trajectories."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from turngym.agents.models.vllm_config import VllmConfig
from turngym.agents.prompt_text import PromptConfig
from turngym.errors import ConfigError
from turngym.trainers.settings.ray import RayConfig


@dataclass(frozen=True)
class RolloutConfig:
    """How trajectories are gathered.

    Args:
        groups: Task instances per iteration.
        group_size: Episodes of each instance.
        num_envs: Slots of the vector; 0 takes one for each episode of an iteration.
        backend: Backend of the vector.
        num_workers: Worker processes, where the backend has them; 0 lets the vector choose.
        schedule: ``lockstep`` is reproducible to the bit, ``continuous`` never waits for the slowest environment.
        temperature: Sampling temperature while training; above 0.
        max_new_tokens: Longest completion.
        format: How an action is written: tag, boxed, json or plain.
        prompt: What goes into a prompt.
        refresh_every: Iterations that are sampled with the same weights: 1 always takes those of now, 4 makes samples
            up to 3 iterations stale.
        sampler: What generates while training: ``transformers``, or ``vllm`` beside the learner in the same process.
        vllm: How vLLM is started.
        ray: Rollout workers on a Ray cluster.
        cache_tokens: Most tokens whose keys and values the sampler transformers keeps from turn to turn; what was used
            longest ago makes room and is computed again. 0 takes a quarter of the device's memory.
    """

    groups: int = 32
    group_size: int = 8
    num_envs: int = 0
    backend: str = "sync"
    num_workers: int = 0
    schedule: Literal["lockstep", "continuous"] = "lockstep"
    temperature: float = 1.0
    max_new_tokens: int = 8
    format: str = "tag"
    prompt: PromptConfig = field(default_factory=lambda: PromptConfig(instructions=False))
    refresh_every: int = 1
    sampler: Literal["transformers", "vllm"] = "transformers"
    vllm: VllmConfig = field(default_factory=lambda: VllmConfig(gpu_memory_utilization=0.4))
    ray: RayConfig = field(default_factory=RayConfig)
    cache_tokens: int = 0

    def __post_init__(self) -> None:
        for name in ("groups", "group_size", "max_new_tokens", "refresh_every"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}.")
        if self.temperature <= 0:
            raise ConfigError(f"training samples, so temperature must be above 0, got {self.temperature}.")
        if self.sampler not in ("transformers", "vllm"):
            raise ConfigError(f"sampler must be 'transformers' or 'vllm', got {self.sampler!r}.")
        if self.sampler == "vllm" and self.refresh_every > 1:
            raise ConfigError("vLLM is given the weights of now: leave out refresh_every, or sample with transformers.")
        if self.sampler == "vllm" and self.vllm.tensor_parallel_size > 1:
            raise ConfigError("weights are handed to vLLM in one process: train with tensor_parallel_size 1.")
        if self.ray.workers > self.groups:
            raise ConfigError(
                f"{self.ray.workers} rollout workers divide {self.groups} groups: lower ray.workers, or raise groups."
            )
        longest = self.prompt.max_prompt_tokens + self.max_new_tokens
        if self.cache_tokens and self.cache_tokens <= longest:
            raise ConfigError(
                f"cache_tokens must be 0 (automatic) or more than a prompt and a completion, which may have {longest} "
                f"tokens together, got {self.cache_tokens}: raise it, or lower prompt.max_prompt_tokens."
            )
        if self.num_envs < 0 or self.num_workers < 0:
            raise ConfigError("num_envs and num_workers must be 0 (automatic) or more.")
