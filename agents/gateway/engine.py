"""Sampling for many requests at once: those that are waiting share a batch, and no long answer holds up another.

Answers are sampled in chunks of some tokens. After each chunk the answers that are finished leave, requests that have
arrived join, and streams are told what is new. The token at a position is chosen with the random number of that
position, so neither the chunks nor the batch change what is sampled.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from turngym.agents.gateway.limits import GatewayLimits
from turngym.agents.models.completion import Completion, Generate
from turngym.agents.sampling import Sampling
from turngym.errors import ModelError

_CLOSING_SECONDS = 30.0


class Sampled(NamedTuple):
    """A finished answer.

    Args:
        ids: The sampled tokens.
        logprobs: Their log-probabilities.
        stop: Why it ended: an end token, a stop word, or its longest length.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    stop: Literal["stop", "word", "length"]


@dataclass(eq=False)
class Job:
    """An answer to sample.

    Args:
        prompt: The prompt.
        uniforms: A random number for each token.
        temperature: Sampling temperature.
        top_p: Share of the probability that is sampled from.
        ends_at: Returns after how many of some tokens an answer has a stop word; 0 if it has none.
        on_tokens: Called in the engine's thread with all tokens so far, after each chunk.
    """

    prompt: tuple[int, ...]
    uniforms: NDArray[np.float64]
    temperature: float
    top_p: float
    ends_at: Callable[[Sequence[int]], int] | None = None
    on_tokens: Callable[[tuple[int, ...]], None] | None = None
    result: Future[Sampled] = field(default_factory=Future)
    ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()

    @property
    def left(self) -> int:
        """Tokens that it may still have."""
        return len(self.uniforms) - len(self.ids)


class Engine:
    """Samples answers in a separate thread.

    Args:
        generate: The backend's core call: prompts, random numbers and settings to completions.
        stop_ids: Tokens that end an answer.
        limits: Size of chunks and batches.
    """

    def __init__(self, generate: Generate, stop_ids: frozenset[int], limits: GatewayLimits) -> None:
        self.generate = generate
        self.stop_ids = stop_ids
        self.limits = limits
        self._waiting: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._running: list[Job] = []
        self._closed = False
        self._turn = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="turngym-gateway-sampler", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> Future[Sampled]:
        """Let an answer be sampled; cancelling the result drops it after the current chunk."""
        if self._closed:
            raise RuntimeError("the sampler is closed")
        self._waiting.put(job)
        return job.result

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Sample nothing while the block runs, such as while weights are replaced."""
        with self._turn:
            yield

    def close(self) -> None:
        """End the thread; answers that are not finished are cancelled."""
        self._closed = True
        self._waiting.put(None)
        self._thread.join(_CLOSING_SECONDS)

    def _run(self) -> None:
        while self._take_in():
            for jobs in self._batches():
                with self._turn:
                    self._advance(jobs)
            self._running = [job for job in self._running if not job.result.done()]
        for job in self._running:
            job.result.cancel()

    def _take_in(self) -> bool:
        """Take in the jobs that are waiting, for one if there are none; False to end."""
        jobs = [] if self._running else [self._waiting.get()]
        while not self._waiting.empty():
            jobs.append(self._waiting.get())
        self._running += [job for job in jobs if job is not None]
        return None not in jobs

    def _batches(self) -> list[list[Job]]:
        """Return the jobs of each batch: equal settings, at most so many."""
        found: dict[tuple[float, float], list[Job]] = {}
        for job in self._running:
            if not job.result.cancelled():
                found.setdefault((job.temperature, job.top_p), []).append(job)
        size = self.limits.max_batch
        return [jobs[start : start + size] for jobs in found.values() for start in range(0, len(jobs), size)]

    def _advance(self, jobs: Sequence[Job]) -> None:
        """Sample the next chunk of some answers; a batch that fails is halved until the answer at fault is alone."""
        try:
            found = self._sampled(jobs)
        except Exception as error:  # of the backend, or of one request
            if len(jobs) == 1:
                _fail(jobs[0], error)
                return
            middle = len(jobs) // 2
            self._advance(jobs[:middle])
            self._advance(jobs[middle:])
            return
        for job, completion in zip(jobs, found, strict=True):
            try:
                self._add(job, completion)
            except Exception as error:  # of one request alone
                _fail(job, error)

    def _sampled(self, jobs: Sequence[Job]) -> Sequence[Completion]:
        length = min(self.limits.chunk, min(job.left for job in jobs))
        sampling = Sampling(jobs[0].temperature, jobs[0].top_p, length)
        draws = [job.uniforms[len(job.ids) : len(job.ids) + length] for job in jobs]
        found = self.generate([job.prompt + job.ids for job in jobs], draws, sampling)
        if len(found) != len(jobs):
            raise ModelError(f"the backend returned {len(found)} completions for {len(jobs)} prompts.")
        return found

    def _add(self, job: Job, completion: Completion) -> None:
        job.ids += completion.ids
        job.logprobs += completion.logprobs
        word = job.ends_at(job.ids) if job.ends_at is not None else 0
        if word:
            job.ids, job.logprobs = job.ids[:word], job.logprobs[:word]
        ended = job.ids[-1] in self.stop_ids
        if job.on_tokens is not None:
            job.on_tokens(job.ids)
        if (word or ended or not job.left) and job.result.set_running_or_notify_cancel():
            stop: Literal["stop", "word", "length"] = "stop" if ended else "word" if word else "length"
            job.result.set_result(Sampled(job.ids, job.logprobs, stop))


def _fail(job: Job, error: Exception) -> None:
    if not job.result.done() and job.result.set_running_or_notify_cancel():
        job.result.set_exception(error)
