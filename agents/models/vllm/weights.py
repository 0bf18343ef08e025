"""New weights for a vLLM model: preparing them, and checking that the model computes with them afterwards.

vLLM may compute with a packed copy of a matrix that it made when the matrix was loaded; the parameter itself is then no
evidence. With tied embeddings such a copy of the output layer stays unchanged unless ``lm_head.weight`` is passed by
that name. So the check reads some columns of each matrix through the call that vLLM multiplies with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM

from turngym.agents.models.sources import loading_model
from turngym.errors import ModelError

HEAD = "lm_head.weight"
_EMBEDDING = "embed_tokens.weight"
_COLUMNS = 8


def with_head(weights: Mapping[str, Tensor], is_tied: bool) -> dict[str, Tensor]:
    """Return the weights with the output layer under its own name, which tied models omit from their files.

    Args:
        weights: Name, as transformers has it, to tensor.
        is_tied: Whether the output layer is the embedding.

    Raises:
        ModelError: The embedding cannot be found among the weights.

    >>> sorted(with_head({"model.embed_tokens.weight": torch.zeros(1)}, is_tied=True))
    ['lm_head.weight', 'model.embed_tokens.weight']
    """
    if not is_tied or HEAD in weights:
        return dict(weights)
    names = [name for name in weights if name.endswith(_EMBEDDING)]
    if len(names) != 1:
        raise ModelError(
            f"the model ties its output layer to its embedding, and {len(names)} of the weights are called "
            f"*{_EMBEDDING}: pass {HEAD} as well."
        )
    return {**weights, HEAD: weights[names[0]]}


def shapes_of(source: str, is_tied: bool) -> dict[str, torch.Size]:
    """Return name and shape of each weight of a model folder or hub name, without loading any."""
    with loading_model(source), torch.device("meta"):
        network = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(source))
    names = {name for name, _ in network.named_parameters(remove_duplicate=False)} | ({HEAD} if is_tied else set())
    return {name: tensor.shape for name, tensor in with_head(network.state_dict(), is_tied).items() if name in names}


def require_shapes(weights: Mapping[str, Tensor], shapes: Mapping[str, torch.Size]) -> None:
    """Raise if the weights belong to another model.

    Raises:
        ModelError: One is missing, or has another shape.

    >>> require_shapes({"a": torch.zeros(2)}, {"a": torch.Size([2])})
    """
    for name, shape in shapes.items():
        found = tuple(weights[name].shape) if name in weights else "missing"
        if found != tuple(shape):
            raise ModelError(f"the weights are of another model: {name} is {found}, expected {tuple(shape)}.")


def stale_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> list[str]:
    """Return the names of a vLLM model's parameters that differ from ``weights``, or are not used in computation.

    Args:
        model: vLLM's model, in this process and not split over devices.
        weights: Name, as transformers has it, to tensor.
    """
    packed: Mapping[str, Sequence[str]] = getattr(model, "packed_modules_mapping", {})
    found = []
    for name, parameter in model.named_parameters(remove_duplicate=False):
        wanted = _wanted(name, weights, packed)
        if wanted is None:
            continue
        module = model.get_submodule(name.rpartition(".")[0])
        if not _is_as(parameter.detach(), wanted) or not _computes_with(module, name, wanted):
            found.append(name)
    return found


def _wanted(name: str, weights: Mapping[str, Tensor], packed: Mapping[str, Sequence[str]]) -> Tensor | None:
    """Return what a parameter should contain; vLLM may stack several matrices of transformers into one."""
    if name in weights:
        return weights[name]
    path = name.split(".")
    for index, part in enumerate(path):
        names = [".".join([*path[:index], own, *path[index + 1 :]]) for own in packed.get(part, ())]
        if names and all(each in weights for each in names):
            return torch.cat([weights[each] for each in names])
    return None


def _is_as(parameter: Tensor, wanted: Tensor) -> bool:
    """Return whether a parameter equals the expected values; one that vLLM emptied after packing is skipped."""
    if parameter.numel() == 0:
        return True
    rows = parameter[: len(wanted)]  # the vocabulary may be padded
    return rows.shape == wanted.shape and torch.equal(rows, wanted.to(rows))


def _computes_with(module: nn.Module, name: str, wanted: Tensor) -> bool:
    """Return whether a module with a packed copy of its matrix gives the expected columns."""
    method: Any = getattr(module, "quant_method", None)
    if not hasattr(module, "cpu_linear") or not hasattr(method, "apply") or not name.endswith(".weight"):
        return True
    if wanted.ndim != 2:
        return True
    width = wanted.shape[1]
    columns = torch.linspace(0, width - 1, min(_COLUMNS, width)).long()
    questions = torch.zeros(len(columns), width, dtype=_dtype(module))
    questions[torch.arange(len(columns)), columns] = 1  # 1 * w and zeros: exact in every format
    with torch.inference_mode():
        answers = method.apply(module, questions)[:, : len(wanted)]
    return torch.equal(answers, wanted.detach().to(answers).T[columns])


def _dtype(module: nn.Module) -> torch.dtype:
    return next(module.parameters()).dtype
