"""Set-up of a run: vector, model, agent, learner."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from turngym.agents.agent_program import QUESTIONS
from turngym.agents.episodes.groups import group_specs
from turngym.agents.episodes.rollout import rollout
from turngym.agents.models.agent import ModelAgent
from turngym.agents.models.attention import require_attention, set_attention
from turngym.agents.models.checkpoint_tensors import is_checkpoint
from turngym.agents.models.embedded import build_model, build_tokenizer
from turngym.agents.models.loading import LanguageModel, chosen_device, load_model, load_vocabulary, sees
from turngym.agents.models.quantized import require_quantizer
from turngym.agents.models.vision.embedded import build_vision_model, with_pictures
from turngym.agents.models.vllm.config import require_vllm
from turngym.agents.players.expert import ExpertAgent
from turngym.agents.players.random import RandomAgent
from turngym.agents.players.transformers import transformers_agent
from turngym.agents.prompting.prompts import PromptBuilder
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.envs.tools.questions.reading import read_set
from turngym.envs.vector import TextVectorEnv, make_vec
from turngym.envs.vector.backends.remote.ray_session import import_ray
from turngym.errors import ConfigError, missing_extra
from turngym.seeding import stream_seed
from turngym.trainers.algorithms import build, check_group_size
from turngym.trainers.algorithms.base.per_environment import Part, PerEnvironment
from turngym.trainers.core.algorithm import Algorithm, Need
from turngym.trainers.engine.adapters import add_adapters
from turngym.trainers.engine.layouts.pictures import layout_for
from turngym.trainers.engine.learner import Learner
from turngym.trainers.engine.lessons import lessons_of
from turngym.trainers.engine.optimizer import eight_bit_adamw
from turngym.trainers.engine.ranks import SINGLE, Ranks
from turngym.trainers.engine.ranks.launch import rank_device
from turngym.trainers.engine.ranks.sharded import Sharded
from turngym.trainers.engine.ranks.spread import Replicated, Spread
from turngym.trainers.engine.teachers import OWN_TEACHERS, Teaching
from turngym.trainers.loop.requirements import require_kind, require_own_teacher
from turngym.trainers.loop.sft import SupervisedLearner
from turngym.trainers.loop.tasks.shared_play import slots_of
from turngym.trainers.settings.config import EMBEDDED, TrainConfig
from turngym.trainers.settings.precision import DTYPES
from turngym.trainers.settings.rollout import SamplerName
from turngym.web.asgi_server import require_asgi
from turngym.wrappers.actions.action_format import action_format
from turngym.wrappers.wrapping import wrapping

_TOKENIZER_EPISODES = 200
_SMALL = 10_000_000
_SHARDS = (2, 9)
"""Oldest version of torch with a suitable FSDP."""


def training_vector(config: TrainConfig, ranks: Ranks = SINGLE) -> TextVectorEnv:
    """Return a rank's vector for rollouts: train split, no autoreset."""
    settings = config.rollout
    if "split" in config.env_options:
        raise ConfigError("training draws from the split train and evaluation from dev and test: leave out split.")
    if config.env == QUESTIONS and (data := config.env_options.get("data")):
        _require_held_out(config, str(data))
    return make_vec(
        config.env,
        settings.num_envs or slots_of(settings.groups, settings.group_size, ranks),
        wrappers=wrapping(*config.wrappers),
        backend=settings.backend,
        num_workers=settings.num_workers or None,
        autoreset_mode="disabled",
        split="train",
        **config.env_options,
    )


def _require_held_out(config: TrainConfig, data: str) -> None:
    """Raise if a file of questions has none for an evaluation during or after training."""
    there = set(read_set(data).splits)
    for split, option in (("dev", "every"), ("test", "episodes")):
        if getattr(config.evaluation, option) and not there & {"", split}:
            raise ConfigError(
                f"{data} has no question of the split {split!r}, which training evaluates on: add one, or pass "
                f"--evaluation.{option} 0."
            )


def build_algorithm(config: TrainConfig) -> Algorithm[object]:
    """Return the algorithm, checked against the group size.

    Raises:
        UnknownName: There is no such algorithm.
        ConfigError: A setting is invalid, a group method has groups of one, or a multi-agent method a single agent.
    """
    algorithm = _method(config)
    require_own_teacher(config, algorithm)
    if Need.SAMPLED_ENTROPIES in algorithm.needs and config.rollout.sampler not in ("auto", "transformers"):
        raise ConfigError(
            f"{config.algorithm} reads the entropy of what is sampled from, which {config.rollout.sampler} does not "
            "tell. Pass --rollout.sampler transformers."
        )
    return algorithm


def _method(config: TrainConfig) -> Algorithm[Any]:
    """Return the method of a run, or those of its environments if they differ."""
    parts = []
    for label, _, own in config.members:
        method = build(own.algorithm, own.algorithm_options)
        check_group_size(method, own.rollout.group_size)
        require_kind(own, method)
        parts.append(Part(own.env, label, own.algorithm, method))
    chosen = {(each.config.algorithm, repr(each.config.algorithm_options)) for each in config.members}
    return PerEnvironment(parts) if len(chosen) > 1 else parts[0].method


def _teaching(config: TrainConfig, model: LanguageModel, ranks: Ranks) -> Teaching | None:
    """Return the configured teacher; another model is loaded in its own precision."""
    if not config.teacher:
        return None
    lessons = lessons_of(config.teacher_prompt, model)
    own = next((name for name in OWN_TEACHERS if name == config.teacher), None)
    if own is not None:
        return Teaching(own, config.teacher_rate, lessons)
    dtype = DTYPES.get(config.teacher_precision, "auto")
    device = rank_device(config.device, ranks)
    return Teaching(load_model(config.teacher, dtype, device, config.attention), lessons=lessons)


def _sample_trajectories(vector: TextVectorEnv, seed: int) -> list[Trajectory]:
    """Play some episodes, with the solver if there is one, to collect texts."""
    specs = [EpisodeSpec(i, stream_seed("tokenizer", seed, i) % 2**31, i) for i in range(_TOKENIZER_EPISODES)]
    try:
        return rollout(vector, ExpertAgent(), specs)
    except ConfigError:
        return rollout(vector, RandomAgent(seed), specs)


def environment_texts(vector: TextVectorEnv, format: str, seed: int) -> list[str]:
    """Return texts of an environment: its rules, observations, and actions in the answer format."""
    write = action_format(format, all(vector.call("finds_action"))).write
    texts = list(dict.fromkeys(str(text) for text in vector.call("instructions")))
    for trajectory in _sample_trajectories(vector, seed):
        for turn in trajectory.turns:
            texts += [turn.observation, write(turn.action)]
        texts.append(trajectory.final_observation)
    return texts


def chosen_sampler(config: TrainConfig, algorithm: Algorithm[Any], ranks: Ranks) -> SamplerName:
    """Return the sampler for ``auto``: vLLM in this process if installed and supported, else the network itself.

    vLLM is supported for text models loaded from unmodified files on the first GPU, in a single process that syncs
    weights after each iteration, and for methods that do not use entropies.
    """
    settings, device = config.rollout, chosen_device(config.device)
    if settings.sampler != "auto":
        return settings.sampler
    has_place = device.type == "cuda" and not device.index and ranks.size == 1 and not settings.ray.workers
    is_plain = config.model != EMBEDDED and config.quantize == "none" and not config.model.endswith(".gguf")
    follows = not settings.is_journaled and settings.refresh_every == 1 and not settings.own_sampler()
    fits = has_place and is_plain and follows and Need.SAMPLED_ENTROPIES not in algorithm.needs
    return "vllm" if fits and importlib.util.find_spec("vllm") and not sees(config.model) else "transformers"


def stays_on_cpu(config: TrainConfig) -> bool:
    """Return True if a model is so small that a CPU is faster than launching GPU kernels.

    >>> stays_on_cpu(TrainConfig()), stays_on_cpu(TrainConfig(device="cuda"))
    (True, False)
    """
    weights = 10 * config.embedded.layers * config.embedded.hidden_size**2
    return config.model == EMBEDDED and config.device == "auto" and weights < _SMALL


def _build_embedded(config: TrainConfig, texts: Sequence[str]) -> LanguageModel:
    """Build the embedded model with a tokenizer trained on texts of the environment."""
    tokenizer = build_tokenizer(texts, config.embedded.vocabulary, config.embedded.words_apart)
    seed = stream_seed("weights", config.seed) % 2**31
    if config.embedded.vision:
        network, takes = build_vision_model(with_pictures(tokenizer), config.embedded, seed)
        return LanguageModel(network, tokenizer, EMBEDDED, pictures=takes)
    return LanguageModel(build_model(tokenizer, config.embedded, seed), tokenizer, EMBEDDED)


def with_adapters(config: TrainConfig, model: LanguageModel) -> LanguageModel:
    """Return the trained model: with the configured low-rank adapters, or unchanged without any."""
    if not config.lora_rank:
        return model
    return add_adapters(
        model,
        config.lora_rank,
        config.seed,
        config.lora_alpha,
        targets=config.lora_targets,
        rslora=config.lora_rslora,
    )


def check_template(config: TrainConfig) -> None:
    """Raise if a model's chat template cannot render the configured prompts.

    Raises:
        ModelError: There is no such model, or it has no chat template.
        ConfigError: The template cannot be rendered, or cannot continue a conversation in that prompt mode.
    """
    path = Path(config.model)
    if config.model != EMBEDDED and path.suffix != ".gguf" and not is_checkpoint(path):
        vocabulary = load_vocabulary(config.model)
        PromptBuilder(vocabulary.tokenizer, config.rollout.prompt, vocabulary.stop_ids)


def initial_model(config: TrainConfig, texts: Callable[[], Sequence[str]], warms_up: bool = False) -> LanguageModel:
    """Return the model before the warm-up; only the embedded one needs texts of the environment.

    Weights are float32 if a warm-up trains them, else in the run's precision.
    """
    if config.model == EMBEDDED:
        model = _build_embedded(config, texts())
        set_attention(model.network, config.attention)
        return model
    dtype = "float32" if warms_up else DTYPES[config.precision]
    quantize = "none" if warms_up else config.quantize
    return load_model(config.model, dtype, config.device, config.attention, quantize)


def _spread_over(ranks: Ranks, config: TrainConfig) -> Spread:
    """Return the configured distribution of a model over ranks."""
    if config.update.sharding == "full" and ranks.size > 1:
        return Sharded(ranks, config.update.shard_group)
    return Replicated(ranks)


def build_learner(
    config: TrainConfig, model: LanguageModel, algorithm: Algorithm[object], ranks: Ranks = SINGLE
) -> Learner:
    """Return the learner; the critic's initial weights depend only on the seed."""
    with torch.random.fork_rng():
        torch.manual_seed(stream_seed("critic", config.seed) % 2**31)
        make = algorithm.learner(config) or Learner
        return make(
            model,
            algorithm,
            config.update,
            config.rollout.temperature,
            config.seed,
            iterations=config.iterations,
            spread=_spread_over(ranks, config),
            teaching=_teaching(config, model, ranks),
        )


def build_supervised(
    config: TrainConfig, model: LanguageModel, trajectories: Sequence[Trajectory]
) -> SupervisedLearner:
    """Return the supervised learner, with the memory settings of the run's updates."""
    return SupervisedLearner(
        model.network,
        trajectories,
        config.warmup,
        config.seed,
        layout_for(model, "auto"),
        config.update.max_micro_batch_tokens,
        config.update.gradient_checkpointing,
    )


def policy_agent(
    config: TrainConfig, model: LanguageModel, iteration: int = 0, temperature: float | None = None
) -> ModelAgent:
    """Return the agent that plays with the policy."""
    return transformers_agent(model, config.agent_settings(temperature), iteration)


def require_drafts(config: TrainConfig, model: LanguageModel) -> None:
    """Raise if drafting of tokens is configured but not supported by the model.

    Raises:
        ConfigError: It does not.
    """
    for member in config.members:
        if member.config.rollout.draft_tokens:
            policy_agent(member.config, model)


def iteration_specs(config: TrainConfig, iteration: int, attempt: int = 0) -> Sequence[EpisodeSpec]:
    """Return the episodes of one iteration: ``groups`` new seeds, each ``group_size`` times."""
    shape = config.rollout.groups, config.rollout.group_size
    return group_specs(*shape, iteration=iteration, seed=config.seed, attempt=attempt)


def torch_version() -> tuple[int, ...]:
    """Return major and minor version of torch."""
    return tuple(int(part) for part in torch.__version__.split(".")[:2])


def require_ranks(config: TrainConfig, ranks: Ranks) -> None:
    """Raise if the settings are not supported with several ranks.

    Raises:
        ConfigError: The sampler is vLLM in the learner's process, or ``update.shard_group`` does not divide their
            number.
    """
    if ranks.size > 1 and (group := config.update.shard_group) and ranks.size % group:
        raise ConfigError(
            f"{ranks.size} ranks cannot be divided into groups of {group}: pass a divisor of {ranks.size} as "
            "--update.shard-group, or leave it out for one copy of the model on each machine."
        )
    if ranks.size > 1 and config.rollout.sampler == "vllm" and not config.rollout.ray.workers:
        raise ConfigError(
            f"{ranks.size} ranks cannot each run vLLM inside of their process, where it makes ranks of its own: pass "
            "--rollout.sampler transformers, let --rollout.ray.workers sample, or train in one process."
        )


def require_packages(config: TrainConfig) -> None:
    """Raise if a required package is not installed; a task package lists its tasks.

    Raises:
        MissingExtra: The message names the package and the extra.
        ConfigError: The optimiser or the attention does not support the device.
    """
    require_attention(config.attention, chosen_device(config.device))
    if config.rollout.needs_vllm:
        require_vllm()
    if config.agent.is_used:
        require_asgi("the gateway of agent programs")
    if config.agent.package:
        config.agent.source.write()
    if config.rollout.ray.workers:
        import_ray()
    if config.update.optimizer == "adamw_8bit":
        eight_bit_adamw()
    if config.update.offload and chosen_device(config.device).type == "cpu":
        raise ConfigError("the model is on the CPU, so nothing can be offloaded to it: leave out --update.offload.")
    if config.quantize != "none" and config.update.sharding == "full":
        raise ConfigError(
            f"weights in {config.quantize} cannot be divided over ranks: leave out --update.sharding full."
        )
    require_quantizer(config.quantize)
    if config.update.sharding == "full" and torch_version() < _SHARDS:
        raise ConfigError(
            f"--update.sharding full needs torch 2.9 or later, and {torch.__version__} is installed: upgrade it, "
            "or leave it out."
        )
    if config.lora_rank and importlib.util.find_spec("peft") is None:
        raise missing_extra("low-rank adapters", "peft", "train")
