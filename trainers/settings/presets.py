"""Training settings by model size: one table, with a reason for each.

``quickstart`` is for the embedded model of 0.3 M parameters. Every setting here has a value for every preset, so a
value for one model size is never silently used for another.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from turngym.errors import ConfigError, nearest

if TYPE_CHECKING:
    from turngym.trainers.settings.config import TrainConfig

PresetName: TypeAlias = Literal["quickstart", "small", "lora", "large"]
PRESETS: Mapping[PresetName, str] = {
    "quickstart": "the embedded model, on a CPU in minutes",
    "small": "all weights of a model of up to 1B, on one GPU",
    "lora": "low-rank adapters for a model of any size",
    "large": "all weights of a model above 1B",
}
"""Description of each preset."""
_MOST_TINY = 10_000_000
"""Maximum number of parameters of a model that is trained like the embedded one."""
_MOST_SMALL = 1_300_000_000
"""Maximum number of parameters of a "1B" model."""
_OF_METHOD = "method."


@dataclass(frozen=True)
class Setting:
    """A setting with its value in every preset.

    Args:
        name: Path in :class:``~turngym.trainers.settings.config.TrainConfig``, such as ``update.learning_rate``; with
            the prefix ``method.``, a setting of the base method, if it has it and does not keep its own default.
        quickstart: Its value for the embedded model.
        small: Its value for a model of up to 1B.
        lora: Its value for adapters.
        large: Its value for a larger model.
        reason: Reason for the dependence on the model.
    """

    name: str
    quickstart: Any
    small: Any
    lora: Any
    large: Any
    reason: str

    def value(self, preset: PresetName) -> Any:
        """Return the value in a preset; None for the method's default."""
        return getattr(self, preset)


SETTINGS: tuple[Setting, ...] = (
    Setting("rollout.max_new_tokens", 8, 512, 512, 1024, "A pretrained model reasons before it acts."),
    Setting(
        "rollout.prompt.instructions", False, True, True, True, "The embedded model learns the rules in the warm-up."
    ),
    Setting("rollout.prompt.history", 0, 4, 4, 4, "Earlier turns help a model that can read them."),
    Setting("rollout.prompt.max_prompt_tokens", 4096, 4096, 8192, 8192, "Bounds the memory of a rollout."),
    Setting(
        "rollout.prompt.fit",
        "auto",
        "drop_oldest",
        "drop_oldest",
        "drop_oldest",
        "Old turns of long windows are dropped; auto ends the episode.",
    ),
    Setting("rollout.groups", 32, 16, 16, 16, "128 episodes per iteration, as in most papers."),
    Setting("rollout.num_envs", 0, 64, 64, 32, "Bounds the KV cache of a rollout; 0 plays all episodes at once."),
    Setting(
        "update.learning_rate",
        3e-4,
        1e-6,
        1e-5,
        1e-6,
        "Large steps destroy pretraining; adapters tolerate ten times larger ones.",
    ),
    Setting("update.critic_learning_rate", 1e-3, 1e-5, 1e-5, 1e-5, "A critic starts from the same pretrained network."),
    Setting("update.warmup_updates", 0, 10, 10, 10, "AdamW's first steps have full size for any gradient."),
    Setting(
        "update.old_logprobs",
        "sampler",
        "trainer",
        "trainer",
        "trainer",
        "16-bit rounding changes ratios to the sampler: GSPO clips most long completions for this alone.",
    ),
    Setting("update.max_micro_batch_tokens", 0, 4096, 4096, 2048, "Bounds the activations; 0 depends on the device."),
    Setting("update.gradient_checkpointing", False, False, True, True, "Activations take more memory than the model."),
    Setting("iterations", 240, 150, 150, 150, "About 20,000 episodes."),
    Setting("max_seconds", 300.0, 0.0, 0.0, 0.0, "Five minutes for a demonstration; 0 for no limit."),
    Setting("checkpoint_every", 40, 20, 20, 20, "An iteration of a larger model takes minutes."),
    Setting("evaluation.every", 40, 20, 20, 20, "An iteration of a larger model takes minutes."),
    Setting("evaluation.curve_episodes", 100, 64, 64, 64, "Evaluation should not cost more than training."),
    Setting("precision", "fp32", "auto", "auto", "auto", "16 bits for larger models: bf16 where it is faster."),
    Setting("lora_rank", 0, 0, 32, 0, "Adapters of all linear layers."),
    Setting("threads", 1, 0, 0, 0, "One thread is reproducible on any CPU; 0 for torch's default."),
    Setting("control", True, False, False, False, "A control needs the memory of a second model."),
    Setting("warmup.models", "embedded", "embedded", "embedded", "embedded", "A pretrained model needs no warm-up."),
    Setting("warmup.epochs", 18, 3, 3, 3, "With an explicit warm-up; more epochs memorise the demonstrations."),
    Setting("warmup.learning_rate", 2e-3, 1e-5, 1e-5, 1e-5, "For an explicit warm-up."),
    Setting("warmup.batch_size", 64, 16, 16, 16, "For an explicit warm-up."),
    Setting("method.entropy_coef", 0.01, None, None, None, "A small model stops exploring early."),
    Setting("method.invalid_penalty", 0.1, None, None, None, "It learns the answer format from few demonstrations."),
    Setting("method.kl_coef", 0.0, None, None, None, "There is no pretrained policy to stay close to."),
    Setting("method.reward_kl_coef", 0.0, None, None, None, "There is no pretrained policy to stay close to."),
    Setting("method.dual_clip", 3.0, None, None, None, "Large steps need a bound on both sides."),
)


MAIN_SETTINGS = (
    "rollout.max_new_tokens",
    "rollout.prompt.instructions",
    "rollout.prompt.history",
    "update.learning_rate",
    "max_seconds",
    "precision",
    "lora_rank",
)
"""Settings in which presets differ most."""


class Choice(NamedTuple):
    """A preset with the reason for its choice."""

    name: PresetName
    reason: str


def with_preset(config: TrainConfig, name: str, reason: str = "") -> TrainConfig:
    """Return settings with those of a preset applied.

    Args:
        config: The settings of a run; others are not changed.
        name: The preset.
        reason: Reason for the choice, stored in the run folder.

    Raises:
        ConfigError: There is no such preset.

    >>> from turngym.trainers.settings.config import TrainConfig
    >>> config = with_preset(TrainConfig(model="path/to/model"), "small")
    >>> config.update.learning_rate, config.max_seconds
    (1e-06, 0.0)
    """
    preset = _require_preset(name)
    values: dict[str, Any] = {}
    for setting in SETTINGS:
        if not setting.name.startswith(_OF_METHOD):
            _put(values, setting.name.split("."), setting.value(preset))
    values |= {"preset": preset, "preset_reason": reason}
    options = {part: dict(given) for part, given in config.algorithm_options.items()}
    for part, found in _method_options(config.algorithm, preset).items():
        options[part] = {**found, **options.get(part, {})}
    values["algorithm_options"] = options
    changed: TrainConfig = _replaced(config, values)
    return changed


def _require_preset(name: str) -> PresetName:
    """Return the name of a preset.

    Raises:
        ConfigError: There is no such preset.
    """
    for known in PRESETS:
        if name == known:
            return known
    raise ConfigError(f"there is no preset {name!r}. {nearest(name, PRESETS)}")


def preset_for(parameters: int, has_adapters: bool = False) -> Choice:
    """Return the preset for a model by its number of parameters.

    Args:
        parameters: Number of parameters.
        has_adapters: True with low-rank adapters.

    >>> preset_for(494_032_768)
    Choice(name='small', reason='the model has 494 M parameters, at most 1.3 B')
    """
    size = f"the model has {count_in_words(parameters)} parameters"
    if has_adapters:
        return Choice("lora", f"low-rank adapters were asked for, and {size}")
    if parameters <= _MOST_TINY:
        return Choice("quickstart", f"{size}, at most {count_in_words(_MOST_TINY)}")
    if parameters <= _MOST_SMALL:
        return Choice("small", f"{size}, at most {count_in_words(_MOST_SMALL)}")
    gigabytes = 16 * parameters / 1e9
    return Choice(
        "large",
        f"{size}, more than {count_in_words(_MOST_SMALL)}; training all weights takes {gigabytes:.0f} GB and "
        "activations, --lora-rank trains adapters",
    )


def preset_sentence(config: TrainConfig) -> str:
    """Return a sentence with a run's preset, its reason, and the run's main settings.

    >>> from turngym.trainers.settings.config import TrainConfig
    >>> preset_sentence(TrainConfig(preset_reason="it was given"))
    'preset quickstart (it was given): 8 new tokens a turn, no rules in prompts, learning rate 0.0003, 300 s at most'
    """
    rules = "rules in prompts" if config.rollout.prompt.instructions else "no rules in prompts"
    limit = f"{config.max_seconds:g} s at most" if config.max_seconds else "no time limit"
    return (
        f"preset {config.preset} ({config.preset_reason or 'no other one was asked for'}): "
        f"{config.rollout.max_new_tokens} new tokens a turn, {rules}, learning rate {config.update.learning_rate:g}, "
        f"{limit}"
    )


def preset_warning(config: TrainConfig, parameters: int) -> str:
    """Return a warning if the preset does not suit a model of that size; empty otherwise.

    >>> from turngym.trainers.settings.config import TrainConfig
    >>> preset_warning(TrainConfig(), 300_000)
    ''
    """
    if config.preset != "quickstart" or parameters <= _MOST_TINY:
        return ""
    better = preset_for(parameters, has_adapters=config.lora_rank > 0).name
    return (
        f"the settings are those of the preset quickstart, made for the embedded model, and this one has "
        f"{count_in_words(parameters)} parameters: the preset {better} is made for it."
    )


def count_in_words(parameters: int) -> str:
    """Return a number of parameters with three digits.

    >>> count_in_words(1_235_814_400), count_in_words(494_032_768), count_in_words(309_000)
    ('1.24 B', '494 M', '0.309 M')
    """
    size, unit = (parameters / 1e9, "B") if parameters >= 1e9 else (parameters / 1e6, "M")
    return f"{size:.3g} {unit}"


def preset_table(only: Sequence[str] = ()) -> str:
    """Return settings of all presets as a table in Markdown.

    Args:
        only: Names of the settings; by default all.
    """
    names = get_args(PresetName)
    lines = [f"| setting | {' | '.join(f'`{name}`' for name in names)} | reason |", "|---" * (len(names) + 2) + "|"]
    for setting in SETTINGS:
        if only and setting.name not in only:
            continue
        values = " | ".join(_shown(setting.value(name)) for name in names)
        lines.append(f"| `{setting.name.replace('_', '-')}` | {values} | {setting.reason} |")
    return "\n".join(lines) + "\n"


def _shown(value: Any) -> str:
    if value is None:
        return "the paper's"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _method_options(algorithm: str, preset: PresetName) -> dict[str, dict[str, Any]]:
    """Return a preset's settings that the base method of an algorithm has."""
    from turngym.trainers.algorithms import parts

    base, kind = parts(algorithm)[0]
    default = kind()
    found = {}
    for setting in SETTINGS:
        prefix, name = setting.name[: len(_OF_METHOD)], setting.name[len(_OF_METHOD) :]
        value = setting.value(preset)
        if prefix != _OF_METHOD or value is None or name in getattr(default, "keeps", ()):
            continue
        if getattr(default, name, value) != value:
            found[name] = value
    return {base: found} if found else {}


def _put(values: dict[str, Any], path: list[str], value: Any) -> None:
    for name in path[:-1]:
        values = values.setdefault(name, {})
    values[path[-1]] = value


def _replaced(config: Any, values: Mapping[str, Any]) -> Any:
    """Return a configuration object with replaced values, also in nested objects."""
    changed = {}
    for name, value in values.items():
        inner = getattr(config, name)
        changed[name] = _replaced(inner, value) if dataclasses.is_dataclass(inner) else value
    return dataclasses.replace(config, **changed)
