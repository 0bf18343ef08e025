"""Resolution of model paths: folders, Hub names, checkpoints of runs, and errors for missing ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError

from huggingface_hub import HfApi, constants, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError

from turngym.agents.models.settings import run_of
from turngym.errors import ModelError, TurngymError, error_text

_HUB_SECONDS = 10.0
ADAPTER_SETTINGS = "adapter_config.json"
ADAPTER_TENSORS = "adapter_model.safetensors"


def require_model(source: str) -> None:
    """Raise if there can be no model at a source, without loading anything.

    Raises:
        ModelError: It is a path without a folder, or a hub name while the hub cannot be reached.
    """
    _require_folder(source)
    _require_hub(source)


def _require_folder(source: str) -> None:
    """Raise if a path names no folder; hub names do not look like paths."""
    if Path(source).exists() and not Path(source).is_dir():
        raise ModelError(f"{source} is a file, expected a model folder, a hub name or a .gguf file.")
    if source.startswith((".", "/", "~")) and not Path(source).exists():
        raise ModelError(f"there is no model at {source}: pass an existing folder, a hub name or a .gguf file.")
    if Path(source, "metrics.jsonl").exists() and Path(source, "model").is_dir():
        raise ModelError(f"{source} is the folder of a training run: its model is hf:{Path(source, 'model')}.")


@contextmanager
def loading_model(source: str) -> Iterator[None]:
    """Report whatever the files of a model cause while transformers reads them as an error of the model.

    Raises:
        ModelError: The model cannot be loaded.
    """
    try:
        yield
    except TurngymError:
        raise
    except UnpicklingError as error:
        raise ModelError(
            f"the weights of {source} are a pickle that holds more than weights, which could run code, so it is not "
            "loaded: pass a model with safetensors files."
        ) from error
    except Exception as error:  # untrusted file: anything may be raised
        raise _unloadable(source, error) from error


def _unloadable(source: str, error: Exception) -> ModelError:
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return ModelError(
        f"{source} could not be loaded as a causal language model ({first}). Pass a folder with config.json, weights "
        "and tokenizer, a hub name, or a .gguf file."
    )


def _require_hub(source: str) -> None:
    """Fail at once if the hub cannot be reached; otherwise it is retried for a minute."""
    if Path(source).exists() or constants.HF_HUB_OFFLINE:
        return
    try:
        if try_to_load_from_cache(source, "config.json") is None:
            HfApi().model_info(source, timeout=_HUB_SECONDS)
    except (HfHubHTTPError, ValueError):
        return  # the hub has answered, or it is not a name: loading reports what is wrong
    except Exception as error:
        raise ModelError(
            f"there is no folder {source}, and the hub cannot be reached ({error_text(error)}): pass the folder of a "
            "model, or check the network."
        ) from error


def base_of_checkpoint(path: Path) -> str:
    """Return the model that the run of a checkpoint started with."""
    run = run_of(path)
    base = None if run is None else _first_model(run)
    if base is None:
        raise ModelError(f"{path} is a checkpoint outside of its run: pass the one in the run's folder, or a model.")
    return base


def is_adapter(folder: Path) -> bool:
    """Return whether a folder holds low-rank adapters and no whole model."""
    return (folder / ADAPTER_SETTINGS).is_file() and not (folder / "config.json").exists()


def bases_of_adapter(folder: Path) -> list[str]:
    """Return the model that adapters were trained on, then its own base if it is adapters too, up to a whole model.

    Adapters in the folder of a run that was moved belong to the warm start next to them.

    Raises:
        ModelError: Their settings do not name one, or adapters are their own base.
    """
    found = [_named_base(folder)]
    seen = {folder.resolve()}
    while is_adapter(inner := Path(found[-1])):
        if inner.resolve() in seen:
            raise ModelError(f"{folder} holds adapters that name themselves as their base model.")
        seen.add(inner.resolve())
        found.append(_named_base(inner))
    return found


def _named_base(folder: Path) -> str:
    try:
        base = json.loads((folder / ADAPTER_SETTINGS).read_text("utf8"))["base_model_name_or_path"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelError(f"{folder / ADAPTER_SETTINGS} does not name the base model ({error_text(error)}).") from error
    warmup = folder.absolute().parent / "warmup"
    if isinstance(base, str) and not Path(base).exists() and (warmup / "config.json").is_file():
        return str(warmup)
    return str(base)


def whole_model_advice(folder: Path) -> str:
    """Return the message for a folder of adapters where a whole model is needed."""
    run = run_of(folder)
    return (
        f"{folder} holds low-rank adapters and no whole model: `turngym export-model {run or 'RUN'} --out FOLDER` "
        "writes one."
    )


def _first_model(run: Path) -> str | None:
    """Return the model that a run started with; None if its folder does not say."""
    if (run / "warmup" / "config.json").is_file():
        return str(run / "warmup")
    try:
        name = json.loads((run / "config.json").read_text("utf8"))["model"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return name if isinstance(name, str) and not name.endswith(".gguf") else None
