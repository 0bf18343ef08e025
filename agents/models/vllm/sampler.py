"""Token generation with vLLM in this process: batches without padding, kept prefixes, weights that can be replaced."""

from __future__ import annotations

import gc
import os
import random
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import AutoConfig

from turngym.agents.models.generate import Completion
from turngym.agents.models.sources import loading_model
from turngym.agents.models.vllm.config import VllmConfig, require_vllm
from turngym.agents.models.vllm.weights import require_shapes, shapes_of, stale_weights, with_head
from turngym.agents.sampling import Sampling, seed_of
from turngym.errors import ConfigError, ModelError

_QUIET = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_NO_USAGE_STATS": "1",
}
"""Run in this process, so that weights can be replaced; no log output; no usage statistics."""


class VllmSampler:
    """A model that vLLM generates with. One per process at a time, because vLLM has global state.

    The log-probabilities are the sampler's own: at the sampling temperature, and where ``top_p`` is below 1 among the
    tokens that it leaves, whereas the backend ``transformers`` reports those among all tokens.

    Args:
        source: A model folder or a hub name.
        config: vLLM settings.
        stop_ids: Tokens that end a completion; the one sampled is part of it.

    Raises:
        MissingExtra: vLLM is not installed.
        ConfigError: This process already has one.
        ModelError: vLLM cannot be started with this model.
    """

    def __init__(self, source: str, config: VllmConfig, stop_ids: frozenset[int]) -> None:
        require_vllm()
        self._llm: Any = None
        self.source = source
        _take_the_place(self)
        self.config = config
        self.stop_ids = stop_ids
        with _our_own_state():
            self._llm, self._is_compiled = _start(source, config)
        settings = self._llm.llm_engine.model_config
        self.max_model_len = int(settings.max_model_len)
        self._is_tied = bool(settings.hf_config.get_text_config().tie_word_embeddings)

    def generate(
        self, prompts: Sequence[Sequence[int]], uniforms: Sequence[NDArray[np.float64]], sampling: Sampling
    ) -> list[Completion]:
        """Sample one completion for each prompt.

        Args:
            prompts: Token ids, no prompt empty.
            uniforms: Random numbers for each prompt; they fix the seed of its completion, which depends on nothing
                else but for the last bits of the numbers.
            sampling: Temperature, top-p, length limit.

        Raises:
            ModelError: A prompt is too long, or vLLM fails.
        """
        from vllm import SamplingParams

        self._require_room(prompts, sampling.max_new_tokens)
        requests = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
        params = [
            SamplingParams(
                temperature=sampling.temperature,
                top_p=sampling.top_p,
                max_tokens=sampling.max_new_tokens,
                seed=seed_of(draws),
                logprobs=0,
                stop_token_ids=sorted(self.stop_ids),
                ignore_eos=True,  # only our stop tokens, not those of the model's generation config
                detokenize=False,
            )
            for draws in uniforms
        ]
        outputs = self._run(requests, params)
        return [_completion(output.outputs[0]) for output in outputs]

    def score(self, sequences: Sequence[Sequence[int]]) -> list[tuple[float, ...]]:
        """Return the log-probability of each token but the first of some sequences, at temperature 1.

        They are computed again, without prefixes that are kept.

        Raises:
            ModelError: A sequence is too long, or vLLM fails.
        """
        from vllm import SamplingParams

        self._require_room(sequences, 1)
        requests = [{"prompt_token_ids": list(each)} for each in sequences]
        params = SamplingParams(max_tokens=1, prompt_logprobs=0, detokenize=False)
        outputs = self._run(requests, [params] * len(requests))
        return [
            tuple(float(row[token].logprob) for token, row in zip(each[1:], output.prompt_logprobs[1:], strict=True))
            for each, output in zip(sequences, outputs, strict=True)
        ]

    def load_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Replace the weights, forget what was computed with the old ones, and check that the new ones are in use.

        Args:
            weights: Name, as transformers has it, to tensor: a ``state_dict``, or the content of a model folder.

        Raises:
            ConfigError: The model is split over several GPUs.
            ModelError: vLLM does not accept them, or still computes with old ones.
        """
        if self.config.tensor_parallel_size > 1:
            raise ConfigError(
                "weights can be replaced only with tensor_parallel_size=1, where vLLM is in this process."
            )
        whole = with_head(weights, self._is_tied)
        require_shapes(whole, shapes_of(self.source, self._is_tied))  # vLLM would fail half-way
        self._reload(whole)
        stale = self.stale(whole)
        if stale:
            raise ModelError(
                f"vLLM continues with the old weights of {', '.join(stale[:3])}{' and others' if stale[3:] else ''}: "
                "generate with the backend transformers, or restart vLLM from a saved folder."
            )

    def _reload(self, weights: Mapping[str, Tensor]) -> None:
        tensors = [(name, tensor.detach()) for name, tensor in weights.items()]
        try:
            with torch.no_grad():
                self._llm.collective_rpc("reload_weights", kwargs={"weights_iterator": iter(tensors)})
        except (RuntimeError, ValueError, KeyError, AttributeError) as error:
            raise ModelError(f"vLLM does not take the new weights ({_first_line(error)}).") from error
        if not self._llm.reset_prefix_cache():
            raise ModelError("vLLM does not forget the prefixes of the old weights: it is still generating.")

    def stale(self, weights: Mapping[str, Tensor]) -> list[str]:
        """Return the names of the parameters for which vLLM does not use ``weights``."""
        return [name for part in self._llm.apply_model(lambda model: stale_weights(model, weights)) for name in part]

    def close(self) -> None:
        """Shut vLLM down, so that another model can be loaded; may be called twice."""
        if self._llm is None:
            return
        self._llm.llm_engine.engine_core.shutdown()
        self._llm = None
        _end_everything()

    def _require_room(self, prompts: Sequence[Sequence[int]], new: int) -> None:
        longest = max(map(len, prompts), default=0)
        if longest + new > self.max_model_len:
            raise ModelError(
                f"a prompt of {longest} tokens and {new} new ones are more than vLLM's max_model_len="
                f"{self.max_model_len}: raise it, lower max_new_tokens, or show less of the past in prompts."
            )

    def _run(self, requests: Sequence[Mapping[str, Any]], params: Sequence[Any]) -> Sequence[Any]:
        stance = nullcontext() if self._is_compiled else torch.compiler.set_stance("force_eager")
        try:
            with torch.random.fork_rng(devices=[]), stance:
                return list(self._llm.generate(requests, params, use_tqdm=False))
        except (RuntimeError, ValueError) as error:
            self._give_up()
            raise ModelError(_advice(f"vLLM fails with {self.source}", error)) from error
        except BaseException:
            self._give_up()
            raise

    def _give_up(self) -> None:
        """Abort pending requests, so that no later call gets their completions."""
        engine = self._llm.llm_engine
        engine.abort_request(list(engine.output_processor.request_states), internal=True)


_place: weakref.ref[VllmSampler] | None = None


def _take_the_place(sampler: VllmSampler) -> None:
    """Register the sampler that uses vLLM in this process.

    Raises:
        ConfigError: Another one is registered.
    """
    global _place
    gc.unfreeze()  # vLLM freezes the garbage collector's objects when it starts
    gc.collect()  # an unused sampler may be kept alive by a reference cycle
    other = None if _place is None else _place()
    if other is not None and other._llm is not None:
        raise ConfigError(
            f"vLLM holds {other.source} already, and one model a process is all that it can: call end_vllm() of "
            f"{__name__} first, or run a server for each further model and play with openai:MODEL@URL."
        )
    if _place is not None:
        _end_everything()
    _place = weakref.ref(sampler)


def end_vllm() -> None:
    """Close the sampler that uses vLLM in this process, if there is one.

    Deleting it may not be enough: vLLM keeps caught exceptions, and with them the frames of its callers.
    """
    sampler = None if _place is None else _place()
    if sampler is not None:
        sampler.close()


def _end_everything() -> None:
    from vllm.distributed import cleanup_dist_env_and_memory

    gc.collect()
    cleanup_dist_env_and_memory()


def _start(source: str, config: VllmConfig) -> tuple[Any, bool]:
    """Return vLLM's engine and whether it is compiled."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    from vllm import LLM
    from vllm.platforms import current_platform

    on_cpu = bool(current_platform.is_cpu())
    eager = on_cpu if config.enforce_eager is None else config.enforce_eager
    cache = config.kv_cache_gib or (1.0 if on_cpu else 0.0)
    try:
        llm = LLM(
            source,
            dtype=_dtype(source) if config.dtype == "auto" else config.dtype,
            max_model_len=config.max_model_len or None,
            gpu_memory_utilization=config.gpu_memory_utilization,
            kv_cache_memory_bytes=int(cache * 2**30) or None,
            tensor_parallel_size=config.tensor_parallel_size,
            enforce_eager=eager,
            max_num_seqs=config.max_num_seqs,
            logprobs_mode="processed_logprobs",  # those of the distribution that is sampled from
            enable_prefix_caching=True,
            generation_config="vllm",  # only our sampling settings
            use_tqdm_on_load=False,
            seed=0,
        )
    except (RuntimeError, ValueError, OSError, AssertionError, NotImplementedError) as error:
        raise ModelError(_advice(f"vLLM cannot be started with {source}", error)) from error
    return llm, not eager


def _dtype(source: str) -> str:
    """Return the format that the weights were saved in; vLLM's own ``auto`` would halve float32."""
    with loading_model(source):
        found = getattr(AutoConfig.from_pretrained(source), "dtype", None)
    return "auto" if found is None else str(found).removeprefix("torch.")


@contextmanager
def _our_own_state() -> Iterator[None]:
    """Restore the global state that starting vLLM changes: random generators, torch's threads, warnings."""
    states = random.getstate(), np.random.get_state()
    set_threads, threads = torch.set_num_threads, torch.get_num_threads()
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own imports
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])
            torch.set_num_threads = set_threads
            torch.set_num_threads(threads)


def _completion(output: Any) -> Completion:
    ids = tuple(int(token) for token in output.token_ids)
    logprobs = tuple(float(row[token].logprob) for token, row in zip(ids, output.logprobs, strict=True))
    return Completion(ids, logprobs)


def _advice(what: str, error: BaseException) -> str:
    line = _first_line(error)
    if isinstance(error, torch.OutOfMemoryError) or "memory" in line.lower():
        way_out = "lower max_model_len, max_num_seqs or kv_cache_gib, or raise gpu_memory_utilization if memory is free"
    else:
        way_out = "the backend transformers may be able to, as hf:PATH"
    return f"{what} ({line}): {way_out}."


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300].rstrip(".") if lines else type(error).__name__
