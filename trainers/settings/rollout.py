"""Settings of rollouts."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Literal, TypeAlias

from turngym.agents.models.rollout_servers.config import MOST_SERVERS, ServedConfig, require_servers
from turngym.agents.models.vllm.config import VllmConfig
from turngym.agents.prompt_text import PromptConfig
from turngym.errors import ConfigError
from turngym.options import Natural, Options, Positive, above, between
from turngym.trainers.settings.ray import RayConfig
from turngym.wrappers.actions.action_format import AUTO

SamplerName: TypeAlias = Literal["auto", "transformers", "vllm", "vllm-server"]


class RolloutConfig(Options):
    """Rollouts.

    Args:
        groups: Task instances per iteration.
        group_size: Episodes per instance.
        num_envs: Number of vector slots; 0 for one per episode of an iteration.
        backend: Backend of the vector.
        num_workers: Number of worker processes of the backend; 0 for automatic.
        schedule: ``lockstep`` is reproducible to the bit, ``continuous`` never waits for the slowest environment,
            ``async`` also plays during updates.
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
        sampler: Sampler: ``transformers``, ``vllm`` in the learner's process, ``vllm-server`` in separate processes, or
            ``auto``: ``vllm`` for a text model on one GPU where vLLM is installed, else ``transformers``.
        servers: URLs of running servers, such as ``http://127.0.0.1:8000``, for the sampler vllm-server.
        start_servers: Number of local servers to start, for the sampler vllm-server.
        served: Servers for sampling.
        vllm: vLLM settings, in this process or as a server.
        ray: Rollout workers on a Ray cluster.
        cache_tokens: KV cache size of the sampler transformers in tokens; least recently used sequences are evicted and
            recomputed. 0 uses half of a GPU's free memory, or a quarter of the host's.
        draft_tokens: Maximum number of tokens that the sampler transformers drafts by copying earlier text and verifies
            in one pass; for few concurrent episodes whose replies repeat their prompts. Drafts change samples only by
            rounding.
    """

    groups: Positive = 32
    group_size: Positive = 8
    num_envs: Natural = 0
    backend: str = "sync"
    num_workers: Natural = 0
    schedule: Literal["lockstep", "continuous", "async"] = "lockstep"
    max_staleness: Natural = 1
    on_stale: Literal["wait", "drop"] = "wait"
    journal: bool = False
    temperature: Annotated[float, above(0)] = 1.0
    max_new_tokens: Positive = 8
    format: str = AUTO
    prompt: PromptConfig = field(default_factory=lambda: PromptConfig(instructions=False))
    refresh_every: Positive = 1
    sampler: SamplerName = "auto"
    servers: tuple[str, ...] = ()
    start_servers: Annotated[int, between(0, MOST_SERVERS)] = 0
    served: ServedConfig = field(default_factory=ServedConfig)
    vllm: VllmConfig = field(default_factory=lambda: VllmConfig(gpu_memory_utilization=0.4))
    ray: RayConfig = field(default_factory=RayConfig)
    cache_tokens: int = 0
    draft_tokens: Natural = 0

    @property
    def needs_vllm(self) -> bool:
        """True if vLLM must be installed next to turngym."""
        starts_it = self.start_servers > 0 and not self.served.python
        return self.sampler == "vllm" or (self.sampler == "vllm-server" and starts_it)

    def check(self) -> None:
        """Check what depends on several settings."""
        require_servers(self.sampler, self.servers, self.start_servers, self.vllm.tensor_parallel_size, self.served)
        if self.sampler in ("vllm", "vllm-server") and self.refresh_every > 1:
            raise ConfigError(
                "vLLM always gets the current weights: leave out refresh_every, or sample with transformers."
            )
        if self.sampler == "vllm" and self.vllm.tensor_parallel_size > 1:
            raise ConfigError("weights are synced to vLLM in one process: train with tensor_parallel_size 1.")
        if self.draft_tokens and self.sampler in ("vllm", "vllm-server"):
            raise ConfigError(
                f"draft_tokens is a setting of the sampler transformers, got {self.draft_tokens} with {self.sampler}: "
                "leave it out, or start servers of `turngym serve-model --draft-tokens`."
            )
        if self.ray.workers > self.groups:
            raise ConfigError(
                f"{self.ray.workers} rollout workers divide {self.groups} groups: lower ray.workers, or raise groups."
            )
        if self.ray.workers and self.sampler == "vllm-server":
            raise ConfigError(
                "rollout workers on a Ray cluster have their own models: leave out --rollout.ray.workers, or the "
                "sampler vllm-server."
            )
        longest = self.prompt.max_prompt_tokens + self.max_new_tokens
        if self.cache_tokens and self.cache_tokens <= longest:
            raise ConfigError(
                f"cache_tokens must be 0 (automatic) or more than a prompt and a completion, which may have {longest} "
                f"tokens together, got {self.cache_tokens}: raise it, or lower prompt.max_prompt_tokens."
            )
        self._check_schedule()

    def _check_schedule(self) -> None:
        if self.schedule == "async" and self.served.sleep:
            raise ConfigError("servers that sleep during updates cannot sample then: leave out served.sleep.")
        if self.is_journaled and self.refresh_every > 1:
            raise ConfigError(
                "refresh_every holds the sampler's weights back by itself: leave it out with schedule async and with "
                "journal, and bound the age of samples with max_staleness."
            )
        if self.ray.workers and self.is_journaled and not self.staleness:
            raise ConfigError(
                "rollout workers keep a journal of rollouts that overlap with updates: leave out --rollout.journal, or "
                "pass --rollout.schedule async with --rollout.max-staleness 1 or more."
            )
        if self.is_journaled and self.order == "continuous" and 0 < self.num_envs < self.group_size:
            raise ConfigError(
                f"the episodes of a group start together, so num_envs must be at least group_size={self.group_size}, "
                f"got {self.num_envs}: raise it, or leave it out."
            )

    @property
    def order(self) -> Literal["lockstep", "continuous"]:
        """Synchronisation of slots: asynchronous rollouts without staleness are ``lockstep``."""
        if self.schedule == "async":
            return "continuous" if self.max_staleness else "lockstep"
        return self.schedule

    def own_sampler(self) -> dict[str, int]:
        """Return the settings of the sampler transformers that are not their defaults."""
        given = {"cache_tokens": self.cache_tokens, "draft_tokens": self.draft_tokens}
        return {name: value for name, value in given.items() if value}

    @property
    def is_journaled(self) -> bool:
        """True if episodes are kept in a journal."""
        return self.journal or self.schedule == "async"

    @property
    def staleness(self) -> int:
        """Maximum iterations of rollouts ahead of the learner."""
        return self.max_staleness if self.schedule == "async" else 0
