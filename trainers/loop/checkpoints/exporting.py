"""Export of a run's trained model as a folder for transformers or peft."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch
from safetensors.torch import save_file

from turngym.agents.models.checkpoint_tensors import is_checkpoint
from turngym.agents.models.loading import LanguageModel, load_model, set_format
from turngym.agents.models.settings import ModelSettings, model_settings, run_of
from turngym.agents.models.sources import ADAPTER_TENSORS
from turngym.errors import CheckpointError, ConfigError, RunFolderExists
from turngym.storage.folders import require_folder, require_kind
from turngym.trainers.engine.adapters import (
    ALL_LINEAR,
    adapted_layers,
    adapter_tensors,
    lora_config,
    without_adapters,
)
from turngym.trainers.loop.checkpoints.checkpoint import all_checkpoints, load_policy
from turngym.trainers.loop.setup import with_adapters
from turngym.trainers.settings.config import TrainConfig
from turngym.trainers.settings.precision import DTYPES

_ExportDtype: TypeAlias = Literal["auto", "float32", "bfloat16", "float16"]

_READ = ("model", "seed", "precision", "lora_rank", "lora_alpha", "lora_targets", "lora_rslora", "quantize")
"""Settings that determine the trained model; others may name untrusted code."""


@dataclass(frozen=True)
class Exported:
    """Description of an export.

    Args:
        folder: Path.
        iteration: Number of training iterations.
        base: Base model of adapters; empty for a whole model.
        dtype: Data type of the weights.
    """

    folder: Path
    iteration: int
    base: str
    dtype: str


def export_model(
    run: Path, to: Path | None = None, *, adapters: bool = False, dtype: _ExportDtype = "auto"
) -> Exported:
    """Write the trained model of a run, by default of its newest checkpoint.

    Args:
        run: Folder of a run or of one of its checkpoints.
        to: New folder (default: ``exported`` in the run folder).
        adapters: Write the low-rank adapters in peft's format instead of merged weights.
        dtype: Format of the weights; ``auto`` is that of the training.

    Raises:
        CheckpointError: The checkpoint is missing or damaged.
        ConfigError: There is no run, or it has no adapters.
        ModelError: The run's initial model cannot be loaded.
        RunFolderExists: The new folder exists.
    """
    folder, checkpoint = _place(run)
    target = to or folder / "exported"
    _require_new(target)
    config = _settings(folder)
    if adapters and not config.lora_rank:
        raise ConfigError(f"{folder} trained all weights and has no low-rank adapters: leave out --adapters.")
    trained = _trained(config, folder, checkpoint)
    with _new_folder(target) as temporary:
        if adapters:
            base = base_of_run(config, folder)
            found = write_adapters(trained, config, base, temporary, dtype)
        else:
            base, found = "", _write_merged(trained, config, temporary, dtype)
        trained.save_tokenizer(temporary)
        settings = model_settings(str(checkpoint))
        if settings is not None:
            replace(settings, stage="trained", turngym=ModelSettings.turngym).write(temporary)
    return Exported(target, int(checkpoint.name), base, found)


def _place(path: Path) -> tuple[Path, Path]:
    """Return the folder of the run, and the checkpoint.

    Raises:
        ConfigError: The path is neither a run nor a checkpoint of one.
        CheckpointError: The run has no checkpoint.
    """
    if is_checkpoint(path):
        run = run_of(path)
        if run is None or not path.name.isdecimal():
            raise ConfigError(f"{path} is a checkpoint outside of its run: pass the one in the run's folder.")
        return run, path
    if not path.is_dir():
        raise ConfigError(
            f"there is no folder {path}: pass the folder of a training run, or of one of its checkpoints."
        )
    require_kind(path, "training run")
    if not (path / "config.json").is_file() or not (path / "metrics.jsonl").is_file():
        raise ConfigError(f"{path} is not a training run: pass the folder of one, or of one of its checkpoints.")
    found = all_checkpoints(path / "checkpoints")
    if not found:
        raise CheckpointError(
            f"the run in {path} has no checkpoint yet: let it train, or continue with it by "
            f"`turngym train --resume --run-dir {path}`."
        )
    return path, found[-1]


def _require_new(target: Path) -> None:
    require_folder(target)
    if target.exists() and any(target.iterdir()):
        raise RunFolderExists(f"{target} exists already and is not empty: pass another folder as --to.")
    require_folder(target.parent)


def _settings(run: Path) -> TrainConfig:
    """Return the settings that determine the trained model."""
    file = run / "config.json"
    try:
        content: Mapping[str, Any] = json.loads(file.read_text("utf8"))
        values = {name: value for name, value in content.items() if name in _READ}
        values |= {"lora_targets": tuple(values.get("lora_targets", ("all-linear",)))}
        return replace(TrainConfig(), **values)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{file} is damaged ({error}): restore it.") from error


def base_of_run(config: TrainConfig, run: Path) -> str:
    """Return the initial model of training: the run's warm start if there is one."""
    if (run / "warmup" / "done").is_file():
        return str((run / "warmup").absolute())
    return str(Path(config.model).absolute()) if Path(config.model).exists() else config.model


def _trained(config: TrainConfig, run: Path, checkpoint: Path) -> LanguageModel:
    """Return the policy of a checkpoint, including adapters."""
    dtype = DTYPES[config.precision] if config.lora_rank else "float32"
    base = load_model(base_of_run(config, run), dtype, "cpu", quantize=config.quantize)
    model = with_adapters(config, base)
    load_policy(checkpoint, model)
    return model


def _write_merged(model: LanguageModel, config: TrainConfig, folder: Path, dtype: _ExportDtype) -> str:
    """Write the whole model; adapters are merged in float32, so weights are rounded once."""
    found = DTYPES[config.precision] if dtype == "auto" else dtype
    set_format(model.network, torch.float32)
    merged = without_adapters(model)
    set_format(merged.network, getattr(torch, found))
    merged.network.config.dtype = getattr(torch, found)
    merged.network.save_pretrained(folder)
    return found


def write_adapters(
    model: LanguageModel, config: TrainConfig, base: str, folder: Path, dtype: _ExportDtype = "auto"
) -> str:
    """Write the adapters in peft's format, with the base model's data type in training; return their data type."""
    found = "float32" if dtype == "auto" else dtype
    tensors = {name: each.to(getattr(torch, found)) for name, each in adapter_tensors(model.network).items()}
    save_file(tensors, folder / ADAPTER_TENSORS, {"format": "pt", "base_dtype": DTYPES[config.precision]})
    targets = sorted({name.rpartition(".")[2] for name in adapted_layers(model.network)})
    if config.lora_targets != (ALL_LINEAR,):
        targets = list(config.lora_targets)
    settings = lora_config(config.lora_rank, config.lora_alpha, targets, config.lora_rslora)
    settings.base_model_name_or_path = base
    settings.inference_mode = True
    settings.save_pretrained(str(folder))
    return found


@contextmanager
def _new_folder(target: Path) -> Iterator[Path]:
    """Context for writing a folder atomically: under a temporary name, then renamed."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    temporary.mkdir(parents=True)
    try:
        yield temporary
        temporary.replace(target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
