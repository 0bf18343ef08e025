"""Checkpoints between iterations: written atomically, and read without pickle."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor, nn

from turngym.agents.models.checkpoint_tensors import POLICY, read_tensors, stored_shapes
from turngym.agents.models.loading import LanguageModel
from turngym.errors import CheckpointError
from turngym.storage.files import read_content, write_json
from turngym.trainers.engine.learner import Learner
from turngym.trainers.engine.ranks.sharding import is_part, is_sharded
from turngym.trainers.engine.sharing import distinct_tensors, frozen_parameters
from turngym.trainers.loop.checkpoints.pieces import divided_tensors, read_divided, require_seen, write_pieces

_HASHED = 4096


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    state = optimizer.state_dict()["state"]
    return {f"{index}.{key}": value for index, entry in state.items() for key, value in _flat(entry)}


def _flat(entry: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of a parameter's state, including those nested by 8-bit optimisers."""
    for key, value in entry.items():
        if isinstance(value, Mapping):
            yield from ((f"{key}/{inner}", tensor) for inner, tensor in _flat(value))
        else:
            yield key, torch.as_tensor(value).clone()


def _saved_optimizer(path: Path, learner: Learner) -> dict[str, Tensor]:
    """Return the optimiser's tensors of a checkpoint; for sharded weights, this rank's part."""
    parameters = [p for group in learner.optimizer.param_groups for p in group["params"]]
    if not any(map(is_part, parameters)):
        return read_tensors(path, "optimizer")
    found: dict[str, Tensor] = {}
    for name, shape in stored_shapes(path, "optimizer").items():
        parameter = parameters[int(name.partition(".")[0])]
        found[name] = torch.empty_like(parameter) if shape and is_part(parameter) else torch.empty(shape)
    read_divided(path, "optimizer", found)
    return found


def _load_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Any]] = {}
    for name, tensor in tensors.items():
        index, _, path = name.partition(".")
        *outer, key = path.split("/")
        entry = state.setdefault(int(index), {})
        for part in outer:
            entry = entry.setdefault(part, {})
        is_count = not tensor.ndim and not tensor.is_floating_point()
        entry[key] = int(tensor) if is_count else tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _modules(learner: Learner) -> dict[str, nn.Module]:
    found: dict[str, nn.Module] = {"policy": learner.network}
    if learner.critic is not None:
        found["critic"] = learner.critic
    if learner.reference not in (None, learner.network):
        found["reference"] = learner.reference
    if learner.teacher is not None and learner.teacher.rate:
        found["teacher"] = learner.teacher.network
    if learner.sampler is not None:
        found["sampler"] = learner.sampler
    found.update({f"module.{name}": module for name, module in learner.algorithm.modules().items()})
    return found


def _own_tensors(learner: Learner) -> dict[str, dict[str, Tensor]]:
    """Return the tensors of each module in a checkpoint, without sharded modules."""
    whole = [(name, module) for name, module in _modules(learner).items() if not is_sharded(module)]
    return distinct_tensors(whole, frozen_parameters(learner.model.network))


def _divided_tensors(learner: Learner) -> dict[str, dict[str, Tensor]]:
    """Return the tensors of each sharded module in a checkpoint."""
    adapted = bool(frozen_parameters(learner.network))
    modules = {name: module for name, module in _modules(learner).items() if is_sharded(module)}
    return {name: divided_tensors(module, trained_only=adapted) for name, module in modules.items()}


def write_divided(folder: Path, learner: Learner, iteration: int) -> None:
    """Write the sharded tensors, before :func:`save_checkpoint`; called on every rank.

    Args:
        folder: Folder of the checkpoints.
        learner: Saved state.
        iteration: Number of the next iteration.

    Raises:
        CheckpointError: Some rank does not see the folder.
        OSError: A rank cannot write.
    """
    parts: dict[str, Mapping[str, Tensor]] = {**_divided_tensors(learner)}
    if not parts or learner.ranks.from_first((folder / f"{iteration:06d}").exists()):
        return
    learner.ranks.on_first(lambda: folder.mkdir(parents=True, exist_ok=True))
    require_seen(learner.ranks, folder)
    parts["optimizer"] = _optimizer_tensors(learner.optimizer)
    write_pieces(learner.ranks, _pieces(folder / f"{iteration:06d}"), parts)


def _pieces(target: Path) -> Path:
    """Return the folder of the ranks' parts of a checkpoint."""
    return target.with_name(f".{target.name}.pieces.tmp")


def save_checkpoint(folder: Path, learner: Learner, iteration: int, extra: Mapping[str, Any], keep: int = 2) -> Path:
    """Write the complete training state, and delete all but the newest ``keep`` checkpoints.

    Called by one process, after :func:`write_divided`. Frozen weights of the policy are excluded, because they are
    those of the initial model.

    Args:
        folder: Folder of the checkpoints.
        learner: Saved state.
        iteration: Number of the next iteration.
        extra: Additional JSON-compatible values.
        keep: Number of checkpoints to keep.
    """
    target = folder / f"{iteration:06d}"
    if target.exists():
        return target  # the iteration was already saved
    state = {
        "iteration": iteration,
        "updates": learner.updates,
        "policy_updates": learner.policy_updates,
        "loss_scale": [learner.loss_scale.value, learner.loss_scale.good],
        "algorithm": learner.algorithm.state(),
        "extra": dict(extra),
    }
    if frozen_parameters(learner.network):
        state["frozen"] = _fingerprint(frozen_parameters(learner.model.network))
    _write(target, learner, state)
    keep_newest(folder, keep)
    return target


def _write(target: Path, learner: Learner, state: Mapping[str, Any]) -> None:
    """Write a checkpoint atomically: under a temporary name, flushed to disk, then renamed."""
    divided = _divided_tensors(learner)
    temporary = _pieces(target) if divided else target.with_name(f".{target.name}.{os.getpid()}.tmp")
    if not divided:
        for left_over in target.parent.glob(".*.tmp"):
            shutil.rmtree(left_over)
        temporary.mkdir(parents=True)
    try:
        modules = _modules(learner)
        for name, tensors in _own_tensors(learner).items():
            masters = learner.masters.within(modules[name])
            exact = {key: masters[key].detach() if key in masters else tensor for key, tensor in tensors.items()}
            save_file(exact, temporary / f"{name}.safetensors")
        if not divided:
            save_file(_optimizer_tensors(learner.optimizer), temporary / "optimizer.safetensors")
        pieces = sorted(file.relative_to(temporary).as_posix() for file in temporary.glob("*/*"))
        write_json(temporary / "state.json", {**state, "pieces": pieces} if divided else state)
        for file in temporary.iterdir():
            _flush(file)
        temporary.replace(target)
    except (OSError, SafetensorError):
        if not divided:  # otherwise the ranks' pieces are used by another attempt
            shutil.rmtree(temporary, ignore_errors=True)
        raise


def _fingerprint(parameters: Iterable[nn.Parameter]) -> str:
    """Return a hash of shapes and some weights of each tensor; for quantized ones it depends on the device."""
    found = hashlib.sha256()
    for parameter in parameters:
        if not parameter.is_floating_point():
            continue
        few = parameter.detach().reshape(-1)[:_HASHED].cpu().contiguous()
        found.update(f"{tuple(parameter.shape)} {parameter.dtype}".encode())
        found.update(few.view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def _flush(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def keep_newest(folder: Path, keep: int) -> None:
    """Remove all but the newest checkpoints."""
    for old in all_checkpoints(folder)[:-keep]:
        removed = old.with_name(f".{old.name}.tmp")  # a kill during deletion leaves no partial checkpoint
        old.replace(removed)
        shutil.rmtree(removed)


def all_checkpoints(folder: Path) -> list[Path]:
    """Return the complete checkpoints, oldest first."""
    return sorted(path for path in folder.glob("[0-9]*") if path.is_dir())


def _load_module(module: nn.Module, own: Collection[str], folder: Path, part: str) -> dict[str, Tensor]:
    """Load a module's own tensors, and return the tensors of the file."""
    saved = read_tensors(folder, part)
    if saved.keys() != set(own):
        file = folder / f"{part}.safetensors"
        raise CheckpointError(f"{file} belongs to another model: resume with the settings of that run.")
    module.load_state_dict(saved, strict=False)
    return saved


def _require_pieces(path: Path, state: Mapping[str, Any]) -> None:
    """Raise if a rank's file is missing."""
    missing = [name for name in state.get("pieces", []) if not (path / name).is_file()]
    if missing:
        raise OSError(f"{', '.join(missing)} is missing")


def _require_same_model(path: Path, state: Mapping[str, Any], model: LanguageModel) -> None:
    """Raise if adapters belong to a base model with other weights."""
    if state.get("frozen", "") not in ("", _fingerprint(frozen_parameters(model.network))):
        raise CheckpointError(
            f"{path} holds adapters of other weights than those of {model.name}, which has changed since: restore "
            "that model, or start a new run."
        )


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Context that names an unreadable checkpoint in errors."""
    try:
        yield
    except CheckpointError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise CheckpointError(
            f"the checkpoint {path} is empty or damaged ({type(error).__name__}: {error}): delete this folder, and "
            "--resume continues from the one before it."
        ) from error


def load_policy(path: Path, model: LanguageModel) -> None:
    """Load the trained weights of a checkpoint into the model of a run, including its adapters.

    Raises:
        CheckpointError: It is empty, damaged, or belongs to another model.
    """
    with _readable(path):
        state = read_content(path / "state.json")
        _require_pieces(path, state)
        _require_same_model(path, state, model)
        own = distinct_tensors([("policy", model.network)], frozen_parameters(model.network))["policy"]
        _load_module(model.network, own.keys(), path, POLICY)


def load_checkpoint(path: Path, learner: Learner) -> tuple[int, dict[str, Any]]:
    """Restore a learner from a checkpoint of any number of ranks; call its ``publish`` afterwards.

    Returns:
        The number of the next iteration, and ``extra``.

    Raises:
        CheckpointError: The checkpoint is empty, damaged, or belongs to another model or algorithm.
    """
    with _readable(path):
        state = read_content(path / "state.json")
        _require_same_model(path, state, learner.model)
        _require_pieces(path, state)
        modules = _modules(learner)
        for name, own in _own_tensors(learner).items():
            saved = _load_module(modules[name], own.keys(), path, name)
            learner.masters.load(modules[name], saved)
        for name, tensors in _divided_tensors(learner).items():
            read_divided(path, name, tensors)
        _load_optimizer(learner.optimizer, _saved_optimizer(path, learner))
        learner.updates = int(state["updates"])
        learner.policy_updates = int(state.get("policy_updates", learner.updates))  # older checkpoints count all
        if "loss_scale" in state:  # not in older checkpoints
            learner.loss_scale.value, learner.loss_scale.good = state["loss_scale"]
        learner.algorithm.load_state(state["algorithm"])
        return int(state["iteration"]), dict(state["extra"])
