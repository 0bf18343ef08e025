"""The settings of a training run: one validated frozen dataclass."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from turngym.agents.agent_program import TASK_FILE, ProgramConfig
from turngym.agents.models.attention import ATTENTIONS, Attention
from turngym.agents.models.embedded import EmbeddedConfig
from turngym.agents.models.quantized import Quantize
from turngym.agents.models.rollout_servers.config import ServedConfig
from turngym.agents.models.settings import ModelSettings
from turngym.agents.models.vllm.config import VllmConfig
from turngym.agents.players import AgentSettings
from turngym.agents.prompt_text import PromptConfig
from turngym.errors import ConfigError
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.settings.guards import GuardConfig
from turngym.trainers.settings.precision import Precision, require_known
from turngym.trainers.settings.presets import PresetName, require_preset
from turngym.trainers.settings.ray import RayConfig
from turngym.trainers.settings.rollout import RolloutConfig
from turngym.trainers.settings.self_play import SelfPlayConfig
from turngym.trainers.settings.supervised import SupervisedConfig
from turngym.wrappers.wrapping import wrapping

__all__ = [
    "DEFAULT_ENV",
    "DEFAULT_OPTIONS",
    "EMBEDDED",
    "EvaluationConfig",
    "RolloutConfig",
    "SelfPlayConfig",
    "TrainConfig",
    "config_from_json",
]

EMBEDDED = "embedded"
_MOST_THREADS = 1024
DEFAULT_ENV = "turngym/Sokoban-v0"
DEFAULT_OPTIONS: Mapping[str, Any] = {"view": "coordinates", "max_turns": 15}


@dataclass(frozen=True)
class EvaluationConfig:
    """Evaluation of the policy on held-out instances.

    Args:
        episodes: Number of held-out instances.
        every: Iterations between evaluations on the dev split (the learning curve); 0 for none.
        curve_episodes: Number of dev instances per point of the curve.
    """

    episodes: int = 200
    every: int = 40
    curve_episodes: int = 100

    def __post_init__(self) -> None:
        if self.episodes < 0 or self.every < 0 or self.curve_episodes < 1:
            raise ConfigError("evaluation episodes and every must be 0 or more, curve_episodes at least 1.")


@dataclass(frozen=True)
class TrainConfig:
    """A training run; the defaults are the preset ``quickstart``, for the embedded model.

    Use ``with_preset`` of ``turngym.trainers.settings.presets`` for other models.

    Args:
        env: Id of the environment, or of a multi-agent game, which is trained by self-play.
        env_options: Options of the environment.
        wrappers: Wrappers, the first innermost, each as in ``history:k=4``.
        algorithm: Name of the algorithm, or ``module:Class`` or ``path/to/file.py:Class``; modifiers are added as in
            ``grpo+epo``.
        algorithm_options: Non-default settings of each part of the algorithm.
        reward_model: Reward model with its options: ``progrm``, ``spa:path=FOLDER``, ``milestones`` or
            ``otc:most_calls=8``; empty for the environment's rewards only.
        model: ``embedded``, a model folder, a Hub name, or a GGUF file.
        preset: Base of the model-dependent settings: ``quickstart``, ``small`` (up to 1B, one GPU), ``lora`` or
            ``large``; by default selected by model size on the command line.
        preset_reason: Reason for the choice.
        iterations: Cycles of rollouts followed by updates.
        max_seconds: Wall-clock limit in seconds, checked between iterations; 0 for none.
        max_environment_turns: Limit on environment turns, checked between iterations; 0 for none.
        seed: Seed of the run.
        threads: Number of torch threads; 0 for torch's default.
        control: Also train a control: a copy of the warm start that continues imitation of the demonstrations for the
            same time.
        checkpoint_every: Iterations between checkpoints; the last is always kept.
        lora_rank: Rank of low-rank adapters (LoRA); 0 trains all weights.
        lora_alpha: Scale of the adapters before division by the rank; 0 for twice the rank.
        lora_targets: Layers with adapters: ``all-linear`` for all but the output layer, or names such as ``q_proj
            v_proj``.
        lora_rslora: Divide the scale by the square root of the rank (rank-stabilised LoRA).
        quantize: Format of the frozen weights under adapters (QLoRA): ``int8`` or ``nf4`` take half or a quarter of the
            memory of 16 bits and need the package bitsandbytes; ``none`` keeps ``precision``.
        precision: Compute precision. ``bf16`` and ``fp16`` keep float32 master weights of the trained parameters;
            ``auto`` is bf16 where the device is faster with it (a GPU, or a CPU with AMX or AVX-512 bf16), else fp32.
        attention: Attention implementation: ``sdpa`` on any device; on a GPU ``flex_attention``, which exploits the
            masks of token trees and packed sequences, or ``flash_attention_2`` (package flash-attn), which does not
            support trees.
        device: Device of the model: ``auto`` (a GPU if available), ``cpu``, ``cuda``, ``cuda:1``.
        embedded: Size of the embedded model.
        warmup: Supervised warm-up before training.
        rollout: Rollouts.
        update: Updates of the weights.
        evaluation: Evaluation of the policy.
        self_play: Opponents of the learner in multi-agent games.
        agent: Agent program that replaces the built-in agent and calls the model over HTTP; tasks from a file.
        guards: Conditions for warnings and for stopping.
        track: Tracking service for metrics, in addition to the run folder: ``wandb`` or ``trackio``.
    """

    env: str = DEFAULT_ENV
    env_options: Mapping[str, Any] = field(default_factory=lambda: dict(DEFAULT_OPTIONS))
    wrappers: tuple[str, ...] = ()
    algorithm: str = "gigpo"
    algorithm_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reward_model: str = ""
    model: str = EMBEDDED
    preset: PresetName = "quickstart"
    preset_reason: str = field(default="", compare=False)
    iterations: int = 240
    max_seconds: float = 300.0
    max_environment_turns: int = 0
    seed: int = 0
    threads: int = 1
    control: bool = True
    checkpoint_every: int = 40
    lora_rank: int = 0
    lora_alpha: int = 0
    lora_targets: tuple[str, ...] = ("all-linear",)
    lora_rslora: bool = False
    quantize: Quantize = "none"
    precision: Precision = "fp32"
    attention: Attention = "sdpa"
    device: str = "auto"
    embedded: EmbeddedConfig = field(default_factory=EmbeddedConfig)
    warmup: SupervisedConfig = field(default_factory=lambda: SupervisedConfig(epochs=18))
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    update: UpdateConfig = field(default_factory=lambda: UpdateConfig(minibatches=4))
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    self_play: SelfPlayConfig = field(default_factory=SelfPlayConfig)
    agent: ProgramConfig = field(default_factory=ProgramConfig)
    guards: GuardConfig = field(default_factory=GuardConfig)
    track: Literal["none", "wandb", "trackio"] = "none"

    def __post_init__(self) -> None:
        for name in ("iterations", "max_seconds", "max_environment_turns", "threads", "lora_rank", "lora_alpha"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must be 0 or more, got {getattr(self, name)}.")
        if self.threads > _MOST_THREADS:
            raise ConfigError(f"threads must be at most {_MOST_THREADS}, got {self.threads}: take one for each core.")
        require_preset(self.preset)
        self._take_tasks()
        wrapping(*self.wrappers)  # raises if it cannot be read
        require_known(self.precision)
        if self.attention not in ATTENTIONS:
            raise ConfigError(f"attention must be one of {', '.join(ATTENTIONS)}, got {self.attention!r}.")
        if self.attention == "flash_attention_2" and self.update.layout == "tree":
            raise ConfigError(
                "flash_attention_2 takes no mask, which token trees need: pass --attention flex_attention, or "
                "--update.layout packed."
            )
        if not self.lora_targets:
            raise ConfigError("lora_targets must be all-linear or names of layers, got none.")
        if not self.lora_rank and (self.lora_targets != ("all-linear",) or self.lora_rslora):
            raise ConfigError("--lora-targets and --lora-rslora are for low-rank adapters: pass --lora-rank as well.")
        if self.rollout.served.sync == "adapter" and not self.lora_rank:
            raise ConfigError("--rollout.served.sync adapter hands over low-rank adapters: pass --lora-rank as well.")
        if self.quantize != "none" and not self.lora_rank:
            raise ConfigError(f"weights in {self.quantize} are not trained themselves: pass --lora-rank as well.")
        if self.checkpoint_every < 1:
            raise ConfigError(f"checkpoint_every must be at least 1, got {self.checkpoint_every}.")

    def _take_tasks(self) -> None:
        """Take the tasks of a file as the environment, if there are some."""
        if not self.agent.tasks:
            return
        if self.env not in (DEFAULT_ENV, TASK_FILE):
            raise ConfigError(f"tasks come from a file or from an environment: leave out --agent.tasks or {self.env}.")
        object.__setattr__(self, "env", TASK_FILE)
        object.__setattr__(self, "env_options", self.agent.env_options)

    def agent_settings(self, temperature: float | None = None) -> AgentSettings:
        """Return the settings of the agent that plays with the policy."""
        return AgentSettings(
            seed=self.seed,
            format=self.rollout.format,
            temperature=self.rollout.temperature if temperature is None else temperature,
            max_new_tokens=self.rollout.max_new_tokens,
            prompt=dataclasses.asdict(self.rollout.prompt),
            server={"cache_tokens": self.rollout.cache_tokens} if self.rollout.cache_tokens else {},
        )

    def model_settings(self, stage: str) -> ModelSettings:
        """Return what the folder of a model of this run says about how it was trained.

        Args:
            stage: ``trained``, ``warm-up`` or ``control``.
        """
        return ModelSettings(
            env=self.env,
            env_options=dict(self.env_options),
            wrappers=self.wrappers,
            format=self.rollout.format,
            max_new_tokens=self.rollout.max_new_tokens,
            temperature=self.rollout.temperature,
            prompt=dataclasses.asdict(self.rollout.prompt),
            stage=stage,
        )

    def as_json(self) -> dict[str, Any]:
        """Return the settings as a value that JSON can hold."""
        return dataclasses.asdict(self)


_NESTED: Mapping[str, type[Any]] = {
    "embedded": EmbeddedConfig,
    "warmup": SupervisedConfig,
    "update": UpdateConfig,
    "evaluation": EvaluationConfig,
}


def config_from_json(content: Mapping[str, Any]) -> TrainConfig:
    """Return the settings that ``as_json`` wrote.

    >>> config_from_json(TrainConfig(seed=3).as_json()) == TrainConfig(seed=3)
    True
    """
    values = dict(content)
    for name, kind in _NESTED.items():
        values[name] = kind(**values[name])
    rollout = dict(values["rollout"])
    rollout["prompt"] = PromptConfig(**rollout["prompt"])
    if "vllm" in rollout:
        rollout["vllm"] = VllmConfig(**rollout["vllm"])
    if "ray" in rollout:
        rollout["ray"] = RayConfig(**rollout["ray"])
    if "served" in rollout:
        served = rollout["served"]
        rollout["served"] = ServedConfig(**{**served, "devices": tuple(served["devices"])})
    rollout["servers"] = tuple(rollout.get("servers", ()))
    values["rollout"] = RolloutConfig(**rollout)
    agent = values.get("agent", {})
    values["agent"] = ProgramConfig(**{**agent, "mounts": tuple(agent.get("mounts", ()))})
    values["guards"] = GuardConfig(**values.get("guards", {}))
    values["wrappers"] = tuple(values.get("wrappers", ()))
    values["lora_targets"] = tuple(values.get("lora_targets", ("all-linear",)))
    chosen: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.get("self_play", {}).items()}
    values["self_play"] = SelfPlayConfig(**chosen)
    return TrainConfig(**values)
