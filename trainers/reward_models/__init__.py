"""Reward models by name; one file and one page each.

A specification is written as those of wrappers are: ``progrm:path=FOLDER,weight=0.5``. Importing this package does not
import torch; the first look-up of a trainable one does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turngym.errors import CheckpointError, ConfigError, nearest
from turngym.loading import Wanted, load_object, split_place
from turngym.registry import Registry
from turngym.storage.bounded import read_json
from turngym.wrappers.wrapping import Wrapping

if TYPE_CHECKING:
    from turngym.trainers.reward_models.base.model import RewardModel

REWARD_MODELS: Registry[type[RewardModel[Any]]] = Registry(
    "reward model", "turngym.trainers.reward_models", extra="train"
)
FILE = "reward_model.json"
FORMAT = "turngym reward model 1"


def make_reward_model(specification: str) -> RewardModel[Any]:
    """Return the reward model that ``name`` or ``name:option=value,option=value`` describes.

    A trainable one with ``path`` is loaded from that folder; what its head is made of is as it was saved there.

    Raises:
        UnknownName: There is no such reward model.
        ConfigError: An option is wrong, or contradicts what was saved.
        CheckpointError: The folder holds no reward model, or it is damaged.

    >>> make_reward_model("milestones:weight=0.5").config.weight
    0.5
    """
    read = Wrapping.read(specification, "reward model")
    kind = reward_model_class(read.name)
    known = [field.name for field in dataclasses.fields(kind.Config)]
    for option in read.options:
        if option not in known:
            raise ConfigError(f"the reward model {read.name!r} has no option {option!r}. {nearest(option, known)}")
    path = read.options.get("path")
    if not path:
        return kind(_config(kind, read.options))
    return load_reward_model(Path(str(path)), read.options, read.name)


def reward_model_class(name: str) -> type[RewardModel[Any]]:
    """Return the class of a reward model.

    Args:
        name: A registered name, ``"module:Class"``, or ``"path/to/file.py:Class"``.

    Raises:
        UnknownName: There is no such reward model, module, file, or class in it.
        ConfigError: It is not a reward model.
    """
    if not split_place(name)[0]:
        return REWARD_MODELS[name]
    from turngym.trainers.reward_models.base.model import RewardModel

    form = "a class of turngym.trainers.reward_models.base.model.RewardModel"
    wanted = Wanted("a reward model", form, lambda found: isinstance(found, type) and issubclass(found, RewardModel))
    found: type[RewardModel[Any]] = load_object(name, wanted, REWARD_MODELS)
    return found


def load_reward_model(folder: Path, options: Mapping[str, Any] | None = None, name: str = "") -> RewardModel[Any]:
    """Return a fitted reward model from its folder.

    Args:
        folder: Path of the saved model.
        options: Settings that differ from the saved ones.
        name: Required type; any if empty.

    Raises:
        ConfigError: It is of another kind, or an option contradicts what was saved.
        CheckpointError: The folder holds no reward model, or it is damaged.
    """
    own = reward_model_class(name) if split_place(name)[0] else None
    try:
        stored = read_json(folder / FILE)
        if stored["format"] != FORMAT:
            raise ValueError(f"its format is {stored['format']!r}, expected {FORMAT!r}")
        kind, settings = REWARD_MODELS[str(stored["name"])] if own is None else own, dict(stored["config"])
        if not kind.is_trainable:
            raise ValueError(f"{stored['name']!r} is a rule, which is never saved")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(
            f"{folder} holds no reward model ({type(error).__name__}: {error}): pass a folder that "
            "`turngym fit-reward` wrote."
        ) from error
    if name and stored["name"] != (name if own is None else own.name):
        raise ConfigError(f"{folder} holds the reward model {stored['name']!r}, not {name!r}.")
    fixed = getattr(kind, "fixed", frozenset[str]())
    for option, value in (options or {}).items():
        if option in fixed and settings.get(option) != value:
            raise ConfigError(
                f"{folder} was fitted with {option}={settings.get(option)!r}, not {value!r}: leave it out."
            )
    if "features" not in (options or {}):
        _require_safe_features(settings.get("features"), folder)
    model = kind(_config(kind, {**settings, "path": str(folder), **(options or {})}))
    model.load(folder, stored)
    return model


def _require_safe_features(features: object, folder: Path) -> None:
    """Refuse to load a language model that only the folder names, unless it is here as weights that cannot be code.

    Raises:
        CheckpointError: It would be downloaded, or is something else.
    """
    source = Path(str(features).partition(":")[2])
    if str(features).startswith(("model:", "trained:")) and not any(source.glob("*.safetensors")):
        raise CheckpointError(
            f"{folder} reads its features from {str(features)[:200]!r}, no folder with a model in safetensors: "
            "pass that model yourself, as --option features=model:FOLDER or in NAME:path=FOLDER,features=model:FOLDER."
        )


def _config(kind: type[RewardModel[Any]], options: Mapping[str, Any]) -> Any:
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    known = {field.name: field.default for field in dataclasses.fields(kind.Config)}
    for key, value in values.items():
        expected = known.get(key)
        wants_number = isinstance(expected, int | float) and not isinstance(expected, bool)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        same = is_number if wants_number else isinstance(value, type(expected))
        if not same or (isinstance(expected, int) and isinstance(value, float)):
            raise ConfigError(f"the reward model option {key} must be like {expected!r}, got {value!r}.")
    try:
        return kind.Config(**values)
    except TypeError as error:
        raise ConfigError(f"the settings of the reward model do not fit: {error}.") from error
