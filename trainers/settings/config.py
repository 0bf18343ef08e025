"""The settings of a training run: one validated frozen dataclass."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Annotated, Any, Literal, Self

from turngym.agents.agent_program import QUESTIONS, ProgramConfig
from turngym.agents.models.attention import Attention
from turngym.agents.models.embedded import EmbeddedConfig
from turngym.agents.models.quantized import Quantize
from turngym.agents.models.settings import ModelSettings
from turngym.agents.players import AgentSettings
from turngym.errors import ConfigError
from turngym.options import Amount, Natural, Options, Positive, Rate, between
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.settings.guards import GuardConfig
from turngym.trainers.settings.mixture import Member, members_of, require_mixture
from turngym.trainers.settings.precision import Precision
from turngym.trainers.settings.presets import PresetName
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
]

EMBEDDED = "embedded"
_MOST_THREADS = 1024
DEFAULT_ENV = "turngym/Sokoban-v0"
DEFAULT_OPTIONS: Mapping[str, Any] = {"view": "coordinates", "max_turns": 15}


class EvaluationConfig(Options):
    """Evaluation of the policy on held-out instances.

    Args:
        episodes: Number of held-out instances.
        every: Iterations between evaluations on the dev split (the learning curve); 0 for none.
        curve_episodes: Number of dev instances per point of the curve.
    """

    episodes: Natural = 200
    every: Natural = 40
    curve_episodes: Positive = 100


class TrainConfig(Options):
    """A training run; the defaults are the preset ``quickstart``, for the embedded model.

    Use ``--preset`` for other models; in Python, ``with_preset`` of ``turngym.trainers.settings.presets``.

    Args:
        env: Id of the environment, or of a multi-agent game, which is trained by self-play.
        env_options: Options of the environment.
        envs: Ids of several environments or games to train on together; empty for ``env`` alone.
        weights: Share of the groups for each of several environments; empty for equal shares. With 0 an environment is
            only evaluated.
        per_env: Settings of single environments by short name, such as ``FrozenLake.rollout.format=boxed``.
        wrappers: Wrappers, the first innermost, each as in ``history:k=4``.
        start: Recorded states that groups start from: ``FOLDER@TURN`` or ``FOLDER:EPISODE@TURN``, such as
            ``runs/base@50%``; empty to start with resets. Evaluations always start with a reset.
        curriculum: Choice of the tasks of each iteration by earlier results, with its options: ``pools``,
            ``pcl:tasks=128``, ``v0`` or ``spo``; empty for a new instance per group.
        algorithm: Name of the algorithm, or ``module:Class`` or ``path/to/file.py:Class``; modifiers are added as in
            ``grpo+epo``. ``turngym train --algorithm NAME --help-all`` lists its settings.
        algorithm_options: Non-default settings of each part of the algorithm.
        reward_model: Reward model with its options: ``progrm``, ``spa:path=FOLDER``, ``milestones`` or
            ``ruler:judge=openai:MODEL@URL``; empty for the environment's rewards only.
        teacher: Teacher, for methods that learn from one: a model folder or Hub name with the policy's tokenizer,
            ``base`` (the policy before training), ``ema`` (its moving average) or ``policy`` (itself).
        teacher_prompt: Text shown to the teacher before the policy's prompts: ``sibling`` (another episode of the group
            that solved the task), ``feedback`` (the final observation), ``column=NAME`` (a text column of the episode),
            ``hint=TEXT``, or several of them. Episodes without such a text add no signal.
        teacher_rate: Share of the policy in the moving average ``ema`` after each iteration.
        teacher_precision: Precision of a teacher that is another model; ``auto`` is that of its files.
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
        device: Device of the model: ``auto`` (a GPU if available, but the CPU for an embedded model of less than 10 M
            weights), ``cpu``, ``cuda``, ``cuda:1``.
        embedded: Size of the embedded model.
        warmup: Supervised warm-up before training.
        rollout: Rollouts.
        update: Updates of the weights.
        evaluation: Evaluation of the policy.
        self_play: Opponents of the learner in multi-agent games.
        agent: Agent program that replaces the built-in agent and calls the model over HTTP; tasks from a file.
        guards: Conditions for warnings and for stopping.
        track: Trackers for metrics, histograms, transcripts and images, in addition to the run folder: ``wandb``,
            ``mlflow``, ``trackio``, ``prometheus``; ``tensorboard`` is written if installed.
    """

    env: str = DEFAULT_ENV
    env_options: Mapping[str, Any] = field(default_factory=lambda: dict(DEFAULT_OPTIONS))
    envs: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    per_env: Mapping[str, Any] = field(default_factory=dict)
    wrappers: tuple[str, ...] = ()
    start: str = ""
    curriculum: str = ""
    algorithm: str = "gigpo"
    algorithm_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reward_model: str = ""
    teacher: str = ""
    teacher_prompt: tuple[str, ...] = ()
    teacher_rate: Rate = 0.05
    teacher_precision: Precision = "auto"
    model: str = EMBEDDED
    preset: PresetName = "quickstart"
    preset_reason: str = field(default="", compare=False)
    iterations: Natural = 240
    max_seconds: Amount = 300.0
    max_environment_turns: Natural = 0
    seed: int = 0
    threads: Annotated[int, between(0, _MOST_THREADS)] = 1
    control: bool = True
    checkpoint_every: Positive = 40
    lora_rank: Natural = 0
    lora_alpha: Natural = 0
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
    track: tuple[Literal["tensorboard", "wandb", "mlflow", "trackio", "prometheus"], ...] = ()

    def check(self) -> None:
        """Check what depends on several settings."""
        self._take_tasks()
        self._take_mixture()
        wrapping(*self.wrappers)  # raises if invalid
        if self.warmup.log and self.model != EMBEDDED and self.warmup.models == "embedded":
            raise ConfigError(f"--warmup.log needs a warm-up, and {self.model} has none: pass --warmup.models any.")
        if self.attention == "flash_attention_2" and self.update.layout == "tree":
            raise ConfigError(
                "flash_attention_2 takes no mask, which token trees need: pass --attention flex_attention, or "
                "--update.layout packed."
            )
        if self.teacher_prompt and not self.teacher:
            raise ConfigError("--teacher-prompt is shown to a teacher: pass --teacher as well, such as --teacher ema.")
        if self.teacher == "policy" and not self.teacher_prompt:
            raise ConfigError(
                "a policy learns nothing from itself with the same prompt: pass --teacher-prompt as well."
            )
        if not self.lora_targets:
            raise ConfigError("lora_targets must be all-linear or names of layers, got none.")
        if not self.lora_rank and (self.lora_targets != ("all-linear",) or self.lora_rslora):
            raise ConfigError("--lora-targets and --lora-rslora are for low-rank adapters: pass --lora-rank as well.")
        if self.rollout.served.sync == "adapter" and not self.lora_rank:
            raise ConfigError("--rollout.served.sync adapter syncs low-rank adapters: pass --lora-rank as well.")
        if self.rollout.served.sync == "adapter" and self.rollout.served.sleep == 2:
            raise ConfigError(
                "servers that sleep at level 2 drop all weights, and adapters alone do not bring them back: pass "
                "--rollout.served.sleep 1, or another --rollout.served.sync."
            )
        if self.quantize != "none" and not self.lora_rank:
            raise ConfigError(f"weights in {self.quantize} are not trained themselves: pass --lora-rank as well.")

    def _take_tasks(self) -> None:
        """Set the environment to the tasks of a file or package, if configured."""
        if not self.agent.task_file:
            return
        if self.env not in (DEFAULT_ENV, QUESTIONS):
            raise ConfigError(
                "tasks come from a file, a package or an environment: leave out --agent.tasks, --agent.package or "
                f"{self.env}."
            )
        object.__setattr__(self, "env", QUESTIONS)
        object.__setattr__(self, "env_options", self.agent.env_options)

    def _take_mixture(self) -> None:
        """Check several environments, and set ``env`` to the first."""
        require_mixture(self.envs, self.weights, self.per_env)
        if self.envs:
            if self.env == DEFAULT_ENV and self.env_options == DEFAULT_OPTIONS:
                object.__setattr__(self, "env_options", {})
            object.__setattr__(self, "env", self.envs[0])
            members_of(self)

    @property
    def members(self) -> tuple[Member, ...]:
        """The environments of the run, each with the settings of a run on it alone; usually one."""
        return members_of(self)

    def agent_settings(self, temperature: float | None = None) -> AgentSettings:
        """Return the settings of the agent that plays with the policy."""
        return AgentSettings(
            seed=self.seed,
            format=self.rollout.format,
            temperature=self.rollout.temperature if temperature is None else temperature,
            max_new_tokens=self.rollout.max_new_tokens,
            prompt=dataclasses.asdict(self.rollout.prompt),
            server=self.rollout.own_sampler(),
        )

    def model_settings(self, stage: str) -> ModelSettings:
        """Return the metadata of the training for the folder of a model of this run.

        Args:
            stage: ``trained``, ``warm-up`` or ``control``.
        """
        first, *others = [
            ModelSettings(
                env=each.env,
                env_options=dict(each.env_options),
                wrappers=each.wrappers,
                format=each.rollout.format,
                max_new_tokens=each.rollout.max_new_tokens,
                temperature=each.rollout.temperature,
                prompt=dataclasses.asdict(each.rollout.prompt),
                stage=stage,
            )
            for each in (member.config for member in self.members)
        ]
        return dataclasses.replace(first, others=tuple(others))

    def as_json(self) -> dict[str, Any]:
        """Return the settings as JSON-compatible data."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Return the settings of a result of ``as_json``.

        >>> TrainConfig.from_json(TrainConfig(seed=3).as_json()) == TrainConfig(seed=3)
        True
        """
        return cls.build("the training configuration", content)

    def first_difference(self, other: TrainConfig) -> tuple[str, Any, Any] | None:
        """Return name and both values of the first differing setting; None if all are equal.

        >>> TrainConfig(seed=3).first_difference(TrainConfig())
        ('seed', 3, 0)
        >>> from turngym.trainers.settings.rollout import RolloutConfig
        >>> TrainConfig(rollout=RolloutConfig(groups=4)).first_difference(TrainConfig(rollout=RolloutConfig(groups=8)))
        ('rollout.groups', 4, 8)
        """
        return next(_differences(self, other), None)


def _differences(one: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:
    for each in dataclasses.fields(one):
        mine, theirs = getattr(one, each.name), getattr(other, each.name)
        if dataclasses.is_dataclass(mine) and dataclasses.is_dataclass(theirs):
            yield from ((f"{each.name}.{name}", *values) for name, *values in _differences(mine, theirs))
        elif mine != theirs:
            yield each.name, mine, theirs
