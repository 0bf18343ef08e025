"""Loading language models: a folder or name that transformers knows, a GGUF file, or a checkpoint of our own."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging as transformers_logging

from turngym.errors import MissingExtra, ModelError

transformers_logging.disable_progress_bar()  # loading and saving are one line of a run, not a bar each


@dataclass
class LanguageModel:
    """A causal language model with its tokenizer.

    Args:
        network: The transformers model.
        tokenizer: Its tokenizer, chat template included.
        name: Where it came from.
    """

    network: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    name: str

    @property
    def stop_ids(self) -> frozenset[int]:
        """The tokens that end a completion."""
        found = {self.tokenizer.eos_token_id}
        configured = getattr(self.network.generation_config, "eos_token_id", None)
        found.update(configured if isinstance(configured, list) else [configured])
        return frozenset(token for token in found if token is not None)

    def save(self, folder: Path) -> None:
        """Write network and tokenizer in the format of transformers."""
        self.network.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)


def load_model(source: str) -> LanguageModel:
    """Load a model.

    Args:
        source: A folder or a hub name that transformers can load, or the path of a ``.gguf`` file.

    Raises:
        ModelError: It is no causal language model, or its tokenizer has no chat template.
        MissingExtra: A GGUF file without the package gguf.
    """
    path = Path(source)
    if path.suffix == ".gguf":
        network, tokenizer = _load_gguf(path)
    else:
        network, tokenizer = _load(source, {})
    if tokenizer.chat_template is None:
        raise ModelError(
            f"the tokenizer of {source} has no chat template, so prompts cannot be built: use an instruct model, or "
            "set tokenizer.chat_template and save the folder again."
        )
    if tokenizer.eos_token_id is None:
        raise ModelError(f"the tokenizer of {source} has no end token: set eos_token and save the folder again.")
    missing = {"past_key_values", "logits_to_keep"} - set(inspect.signature(type(network).forward).parameters)
    if missing:
        raise ModelError(
            f"{source} is a {type(network).__name__}, whose forward takes no {' and no '.join(sorted(missing))}: use a "
            "transformer with a key-value cache."
        )
    network.eval()
    if torch.cuda.is_available():
        torch.nn.Module.to(network, "cuda")
    return LanguageModel(network, tokenizer, source)


def _load(source: str, extra: dict[str, Any]) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    if Path(source).exists() and not Path(source).is_dir():
        raise ModelError(f"{source} is a file, expected a model folder, a hub name or a .gguf file.")
    if source.startswith((".", "/", "~")) and not Path(source).exists():
        raise ModelError(f"there is no model at {source}: pass an existing folder, a hub name or a .gguf file.")
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, **extra)
        network = AutoModelForCausalLM.from_pretrained(source, dtype="auto", **extra)
    except (OSError, ValueError, KeyError) as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(
            f"{source} could not be loaded as a causal language model ({first}). Pass a folder with config.json, "
            "weights and tokenizer, a hub name, or a .gguf file."
        ) from error
    return network, tokenizer


def _load_gguf(path: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a GGUF file into a plain float32 model, which unlike the quantised object can be trained and saved."""
    try:
        import gguf  # noqa: F401
    except ImportError as error:
        raise MissingExtra('reading a GGUF file needs the package gguf: pip install "turngym[gguf]".') from error
    if not path.is_file():
        raise ModelError(f"there is no file {path}: pass an existing .gguf file, a model folder or a hub name.")
    loaded, tokenizer = _load(str(path.parent), {"gguf_file": path.name})
    config = AutoConfig.from_pretrained(str(path.parent), gguf_file=path.name)
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    network = AutoModelForCausalLM.from_config(config)
    network.load_state_dict(loaded.state_dict())
    network.generation_config = loaded.generation_config
    return network.float(), tokenizer
