"""Loading language models: a folder or name that transformers knows, a GGUF file, or a turngym checkpoint."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoTokenizer,
    DynamicCache,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.cache_utils import CacheLayerMixin
from transformers.utils import logging as transformers_logging

from turngym.agents.models.attention import require_attention, set_attention
from turngym.agents.models.checkpoint_tensors import POLICY, is_checkpoint, read_tensors
from turngym.agents.models.completion import BackgroundSampler
from turngym.agents.models.forward_pass import cache_keyword, forward_arguments
from turngym.agents.models.generate import Generate
from turngym.agents.models.quantized import quantized_arguments, require_quantizer
from turngym.agents.models.sources import (
    ADAPTER_TENSORS,
    base_of_checkpoint,
    bases_of_adapter,
    is_adapter,
    loading_model,
    require_model,
    whole_model_advice,
)
from turngym.agents.models.vision.pictures import PictureInputs, picture_inputs
from turngym.errors import ConfigError, MissingExtra, ModelError
from turngym.types import StrPath

transformers_logging.disable_progress_bar()  # no progress bars for loading and saving


class Vocabulary(Protocol):
    """Model properties that an agent needs, independent of the generation backend."""

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The tokenizer, chat template included."""
        ...

    @property
    def stop_ids(self) -> frozenset[int]:
        """The tokens that end a completion."""
        ...


@dataclass(frozen=True)
class TokenizerOnly:
    """The vocabulary of a model whose network is elsewhere.

    Args:
        tokenizer: Its tokenizer, chat template included.
        stop_ids: The tokens that end a completion.
    """

    tokenizer: PreTrainedTokenizerBase
    stop_ids: frozenset[int]


@dataclass
class LanguageModel:
    """A causal language model with its tokenizer.

    Args:
        network: The transformers model.
        tokenizer: Its tokenizer, chat template included.
        name: Origin.
        generate: Generates in place of its network, if set.
        longest: Longest sequence that ``generate`` takes; 0 for the network's own limit.
        pictures: Image handling of the model; None if it accepts none.
        background: Generates single completions in the background, where ``generate`` can.
        version: Number of the weights, where they change while they are sampled with; -1 if unknown.
    """

    network: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    name: str
    generate: Generate | None = None
    longest: int = 0
    pictures: PictureInputs | None = None
    background: BackgroundSampler | None = None
    version: int = -1

    @property
    def context(self) -> int:
        """Longest sequence, prompt and completion, that the model supports; 0 if its configuration does not say."""
        of_network = getattr(self.network.config.get_text_config(), "max_position_embeddings", None)
        return min([int(limit) for limit in (self.longest, of_network) if limit], default=0)

    @property
    def stop_ids(self) -> frozenset[int]:
        """The tokens that end a completion."""
        return _stop_ids(self.tokenizer, self.network.generation_config)

    def with_network(self, network: PreTrainedModel, name: str = "") -> LanguageModel:
        """Return a model with another network, such as a frozen copy, which generates itself."""
        return LanguageModel(network, self.tokenizer, name or self.name, pictures=self.pictures)

    def text_of(self, ids: Sequence[int]) -> str:
        """Return the text of token ids, special tokens included."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def save(self, folder: StrPath) -> None:
        """Write network and tokenizer in the format of transformers."""
        self.network.save_pretrained(folder)
        self.save_tokenizer(folder)

    def save_tokenizer(self, folder: StrPath) -> None:
        """Write what makes prompts: the tokenizer, and the processor of images if there is one."""
        self.tokenizer.save_pretrained(folder)
        if self.pictures is not None:
            self.pictures.processor.save_pretrained(folder)


def vocabulary_size(model: Vocabulary) -> int:
    """Return the number of token ids that a model takes: those of its embedding, else of its tokenizer."""
    network = getattr(model, "network", None)
    if network is None:
        return len(model.tokenizer)
    return int(network.get_input_embeddings().weight.shape[0])


DTYPES = ("auto", "float32", "bfloat16", "float16")
"""Formats that weights can be loaded in; ``auto`` is that of the files."""


def chosen_device(name: str) -> torch.device:
    """Return the device of a name; ``auto`` is a GPU if there is one.

    Raises:
        ConfigError: There is no such device here.

    >>> chosen_device("cpu")
    device(type='cpu')
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        raise ConfigError(
            f"device {name!r} cannot be used here: pass auto, cpu, or cuda where there is a GPU."
        ) from error
    return device


def _require_dtype(name: str) -> None:
    """Raise for an unknown weight format.

    Raises:
        ConfigError: The format is unknown.
    """
    if name not in DTYPES:
        raise ConfigError(f"dtype must be one of {', '.join(DTYPES)}, got {name!r}.")


def load_model(
    source: str, dtype: str = "auto", device: str = "auto", attention: str = "sdpa", quantize: str = "none"
) -> LanguageModel:
    """Load a model.

    Args:
        source: A folder or a hub name that transformers can load, the path of a ``.gguf`` file, a checkpoint in the
            folder of a run, or a folder of low-rank adapters, which are merged into their base model.
        dtype: Format of the weights, one of :data:`DTYPES`.
        device: Device: ``auto`` (a GPU if available), ``cpu``, ``cuda``, ``cuda:1``.
        attention: Attention implementation, see :mod:`turngym.agents.models.attention`.
        quantize: Format of the linear layers' weights, for training adapters on them: ``int8``, ``nf4``, or ``none``.

    Raises:
        ConfigError: There is no such format or device, or no such attention on it, or a GGUF file or a checkpoint is to
            be quantized.
        ModelError: It is not a causal language model, or its tokenizer has no chat template.
        MissingExtra: A GGUF file without the package gguf, or quantized weights without bitsandbytes.
    """
    _require_dtype(dtype)
    require_quantizer(quantize)
    place = chosen_device(device)
    require_attention(attention, place)
    path, base = Path(source), source
    if quantize != "none":
        network, tokenizer = _load_quantized(path, source, quantize, dtype, place)
    elif path.suffix == ".gguf":
        network, tokenizer = _load_gguf(path)
    elif is_checkpoint(path):
        base = base_of_checkpoint(path)
        network, tokenizer = _load_checkpoint(path, base)
    elif is_adapter(path):
        network, tokenizer = _load_adapted(path)
    else:
        network, tokenizer = _load(source, {})
    _require_usable(tokenizer, source)
    _require_cache(network, source)
    network.eval()
    if quantize == "none":
        if dtype != "auto":
            set_format(network, getattr(torch, dtype))
        torch.nn.Module.to(network, place)
    set_attention(network, attention)
    return LanguageModel(network, tokenizer, source, pictures=picture_inputs(network.config, base, tokenizer))


def set_format(network: torch.nn.Module, dtype: torch.dtype) -> None:
    """Change the format of a network's weights, and only of those.

    Buffers computed from the configuration, such as rotary frequencies, are unchanged: in 16 bits the positions of long
    sequences would be wrong.
    """
    for tensor in network.state_dict(keep_vars=True).values():
        if tensor.is_floating_point():
            tensor.data = tensor.data.to(dtype)


def load_vocabulary(source: str) -> TokenizerOnly:
    """Load what an agent must know of a model without its network.

    Args:
        source: A folder or a hub name that transformers can load.

    Raises:
        ModelError: There is no model, or its tokenizer has no chat template or no end token.
    """
    require_model(source)
    whole = bases_of_adapter(Path(source))[-1] if is_adapter(Path(source)) else source
    with loading_model(whole):
        tokenizer = AutoTokenizer.from_pretrained(source)
        config = AutoConfig.from_pretrained(whole)
        try:
            generation = GenerationConfig.from_pretrained(whole)
        except OSError:  # there is none: transformers makes it from the model's configuration
            generation = GenerationConfig.from_model_config(config)
    _require_usable(tokenizer, source)
    return TokenizerOnly(tokenizer, _stop_ids(tokenizer, generation))


def _stop_ids(tokenizer: PreTrainedTokenizerBase, generation: GenerationConfig | None) -> frozenset[int]:
    found = {tokenizer.eos_token_id}
    configured = getattr(generation, "eos_token_id", None)
    found.update(configured if isinstance(configured, list) else [configured])
    return frozenset(token for token in found if token is not None)


def _require_cache(network: PreTrainedModel, source: str) -> None:
    """Raise ModelError unless the network keeps keys and values and computes the last logits alone."""
    kind = type(network)
    lacks = [] if cache_keyword(kind) else ["key-value cache"]
    lacks += [] if "logits_to_keep" in forward_arguments(kind) else ["logits_to_keep"]
    if not lacks:
        layers = DynamicCache(config=network.config).layers
        if layers and not any(isinstance(layer, CacheLayerMixin) for layer in layers):  # recurrent throughout: Mamba
            lacks = ["key-value cache"]
    if lacks:
        raise ModelError(
            f"{source} is a {kind.__name__}, whose forward takes no {' and no '.join(lacks)}: use a transformer with a "
            "key-value cache."
        )


def _require_usable(tokenizer: PreTrainedTokenizerBase, source: str) -> None:
    if tokenizer.chat_template is None:
        raise ModelError(
            f"the tokenizer of {source} has no chat template, so prompts cannot be built: use an instruct model, or "
            "set tokenizer.chat_template and save the folder again."
        )
    if tokenizer.eos_token_id is None:
        raise ModelError(f"the tokenizer of {source} has no end token: set eos_token and save the folder again.")


def _load_quantized(
    path: Path, source: str, quantize: str, dtype: str, device: torch.device
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    if is_adapter(path):
        raise ConfigError(whole_model_advice(path))
    if path.suffix == ".gguf" or is_checkpoint(path):
        raise ConfigError(f"{source} cannot be quantized while it is loaded: pass a model folder or a hub name.")
    format = torch.float32 if dtype == "auto" else getattr(torch, dtype)
    return _load(source, {}, quantized_arguments(quantize, format, device))


def _load(
    source: str, extra: dict[str, Any], of_network: Mapping[str, Any] = MappingProxyType({"dtype": "auto"})
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    require_model(source)
    with loading_model(source):
        tokenizer = AutoTokenizer.from_pretrained(source, **extra)
        kind = AutoModelForImageTextToText if sees(source, extra) else AutoModelForCausalLM
        network = kind.from_pretrained(source, **extra, **of_network)
    return network, tokenizer


def sees(source: str, extra: Mapping[str, Any] = MappingProxyType({})) -> bool:
    """Return whether a model takes pictures, by its files; those loaded with further arguments are of text alone."""
    return not extra and hasattr(AutoConfig.from_pretrained(source), "vision_config")


def _load_checkpoint(path: Path, base: str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load the policy of a checkpoint: its weights in the model that its run started with."""
    network, tokenizer = _load_adapted(Path(base)) if is_adapter(Path(base)) else _load(base, {})
    set_format(network, torch.float32)
    try:
        weights = read_tensors(path, POLICY)
    except (OSError, SafetensorError) as error:
        raise ModelError(f"the checkpoint {path} cannot be read ({error}): pass another one.") from error
    if set(weights) - set(network.state_dict()):
        raise ModelError(whole_model_advice(path))
    network.load_state_dict(weights, strict=False)  # tied weights are stored once
    return network, tokenizer


def _load_adapted(folder: Path) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a base model and merge adapters into its weights, in the format that they were trained in."""
    from turngym.agents.models.policy_server.adapters import read_adapter
    from turngym.agents.models.policy_server.requests import Refused

    base = Path(bases_of_adapter(folder)[0])
    if base.suffix == ".gguf":
        network, _ = _load_gguf(base)
    else:
        network, _ = _load_adapted(base) if is_adapter(base) else _load(str(base), {})
    with loading_model(str(folder)):
        tokenizer = AutoTokenizer.from_pretrained(folder)
        with safe_open(folder / ADAPTER_TENSORS, framework="pt") as file:
            dtype = (file.metadata() or {}).get("base_dtype", "auto")
    if dtype in DTYPES and dtype != "auto":
        set_format(network, getattr(torch, dtype))
    try:
        read_adapter(folder, network).merge_into(network)
    except Refused as error:
        raise ModelError(f"the adapters in {folder} cannot be used: {error}.") from error
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
    config = copy.deepcopy(loaded.config)  # to read it from the file again takes a fifth of the time
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    network = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    network.load_state_dict(loaded.state_dict())
    network.generation_config = loaded.generation_config
    return network.float(), tokenizer


def require_same_tokens(model: Vocabulary, other: Vocabulary, name: str) -> None:
    """Refuse a model that takes some token ids for other texts.

    Args:
        model: The model whose tokens are read.
        other: A model that is to read them too.
        name: Role of the other tokenizer, such as ``reference``.

    Raises:
        ConfigError: Their tokenizers differ; the message shows where.
    """
    mine, theirs = (_tokens(each) for each in (model, other))
    differing = sorted(id for id in mine.keys() | theirs.keys() if mine.get(id) != theirs.get(id))
    if differing:
        first = differing[0]
        raise ConfigError(
            f"the tokenizer of the {name} is not that of the policy: {len(differing):,} of {len(mine):,} token ids "
            f"differ, such as {first} ({mine.get(first, 'no token')!r} and {theirs.get(first, 'no token')!r}). Both "
            "read the same ids, so pass a model with the policy's tokenizer."
        )


def _tokens(model: Vocabulary) -> dict[int, str]:
    return {id: token for token, id in model.tokenizer.get_vocab().items()}
