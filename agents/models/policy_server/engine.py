"""The engine of a policy server: one thread owns the network; completions join a running batch, new weights wait."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel

from turngym.agents.models.forward_pass import cache_keyword
from turngym.agents.models.kv_cache.memory import can_be_kept
from turngym.agents.models.kv_cache.requests import Running
from turngym.agents.models.kv_cache.sessions import Sessions
from turngym.agents.models.loading import LanguageModel, vocabulary_size
from turngym.agents.models.policy_server.jobs import ABORT, Job
from turngym.agents.models.policy_server.requests import Limits, Order, Refused
from turngym.agents.models.policy_server.weights import ServedWeights
from turngym.agents.models.sampler import automatic_budget
from turngym.agents.models.weights import evaluating
from turngym.errors import ModelError, TurngymError, error_text

_NO_LIMIT = 4096


class Engine:
    """Samples completions for many clients, with one set of weights for all tokens of each.

    Requests that arrive together are generated together, and join those on their way. New weights wait until the
    completions on their way are done; behind ``pause("keep")`` these start again with the new weights instead.

    Args:
        model: The model.
        weights: Its weights and adapters; those that can be loaded.
        cache_tokens: Size of the KV cache in tokens; 0 uses half of a GPU's free memory, or a quarter of the host's.
        max_rows: Completions on their way at once.
        max_waiting: Completions that may wait; more are refused.
        longest: Maximum length of prompt plus completion; 0 for the model's limit.
        draft_tokens: See :class:`~turngym.agents.models.sampler.Sampler`.

    Raises:
        ModelError: The model's keys and values cannot be kept from turn to turn.
    """

    def __init__(
        self,
        model: LanguageModel,
        weights: ServedWeights,
        *,
        cache_tokens: int = 0,
        max_rows: int = 256,
        max_waiting: int = 4096,
        longest: int = 0,
        draft_tokens: int = 0,
    ) -> None:
        if not can_be_kept(model.network):
            raise ModelError(
                f"{model.name} cannot be served here: its layers do not keep keys and values in a way that can be cut. "
                "Serve it with vLLM."
            )
        self.model = model
        self.weights = weights
        self.max_waiting = max_waiting
        budget = cache_tokens or automatic_budget(model.network)
        allowed = min(limit for limit in (longest, model.context, budget - 1) if limit > 0)
        self.limits = Limits(vocabulary_size(model), allowed if longest or model.context else min(allowed, _NO_LIMIT))
        self.version = "default"
        self._sessions = Sessions(model.network, model.stop_ids, budget, max_rows, draft_tokens)
        self._changed = threading.Condition()
        self._queue: deque[Job] = deque()
        self._groups: deque[list[Job]] = deque()
        """Parts of a batch that failed: each is computed again without the others."""
        self._ready: deque[Running] = deque()
        self._jobs: dict[int, Job] = {}
        self._commands: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._paused = ""
        self._is_closed = False
        self._thread = threading.Thread(target=self._work, name="turngym-engine", daemon=True)
        self._thread.start()

    def submit(self, order: Order) -> Job:
        """Ask for a completion.

        Raises:
            Refused: There is no such model, or too many wait already.
        """
        if not self.weights.has(order.model):
            raise Refused(f"there is no model {order.model!r} here", 404)
        stop_ids = order.stop_ids if order.ignores_end else order.stop_ids | self.model.stop_ids
        job = Job(order, stop_ids)
        with self._changed:
            if self._is_closed:
                raise Refused("the server is shutting down", 503)
            if len(self._queue) >= self.max_waiting:
                raise Refused(f"{self.max_waiting} requests wait already: try again later", 503)
            self._queue.append(job)
            self._changed.notify_all()
        return job

    def pause(self, mode: str) -> None:
        """Start no completions until :meth:`resume`.

        Args:
            mode: Handling of running requests: ``wait`` returns when they are done, ``abort`` ends them with the tokens
                so far, ``keep`` suspends them.
        """
        with self._changed:
            self._paused = mode
            self._changed.notify_all()
            if mode != "keep":
                self._changed.wait_for(lambda: not self._jobs or self._paused != mode or self._is_closed)

    def resume(self) -> None:
        """Continue after a pause."""
        with self._changed:
            self._paused = ""
            self._changed.notify_all()

    @property
    def is_paused(self) -> bool:
        """True if no completions are started."""
        return bool(self._paused)

    def between(self, change: Callable[[], Any]) -> Any:
        """Run something in the engine's thread while no completion is on its way, and return its result.

        Re-raises its exceptions.
        """
        future: Future[Any] = Future()
        with self._changed:
            if self._is_closed:
                raise Refused("the server is shutting down", 503)
            self._commands.append((change, future))
            self._changed.notify_all()
        return future.result()

    def forget_prefixes(self) -> bool:
        """Drop all keys and values; False while completions are on their way, which need theirs."""
        with self._changed:
            if self._jobs:
                return False
        self.between(self._sessions.drop)
        return True

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of waiting and running completions."""
        with self._changed:
            return {"waiting": len(self._queue), "running": len(self._jobs)}

    def close(self) -> None:
        """End the engine; completions that are not over fail."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    # All below runs in the engine's thread.

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(self._has_work)
                if self._is_closed:
                    break
                self._drop_cancelled()
                if self._paused == ABORT:
                    self._abort()
                change = self._next_change()
                if not change and not self._paused and not self._commands:
                    self._admit()
            if change:
                self._run_change(*change)
            elif self._jobs and self._paused != "keep":
                self._advance()
        self._end()

    def _has_work(self) -> bool:
        if self._is_closed or self._commands:
            return True
        if self._paused == "keep":
            return False
        return bool(self._jobs) or bool((self._queue or self._groups) and not self._paused)

    def _drop_cancelled(self) -> None:
        self._groups = deque([job for job in group if not job.is_cancelled] for group in self._groups)
        if any(job.is_cancelled for job in self._queue):
            self._queue = deque(job for job in self._queue if not job.is_cancelled)
        for job in [job for job in self._jobs.values() if job.is_cancelled]:
            self._release(job)

    def _release(self, job: Job) -> None:
        del self._jobs[job.running.number]
        self._sessions.cancel(job.running)
        if job.running in self._ready:
            self._ready.remove(job.running)
        self._changed.notify_all()

    def _abort(self) -> None:
        for job in list(self._jobs.values()):
            self._release(job)
            job.finish(ABORT)

    def _next_change(self) -> tuple[Callable[[], Any], Future[Any]] | None:
        """Return the next change if nothing stands in its way; completions on hold start again behind it."""
        if not self._commands:
            return None
        if self._paused == "keep":
            for job in reversed(list(self._jobs.values())):
                self._release(job)
                job.running.restart()
                self._queue.appendleft(job)
        return None if self._jobs else self._commands.popleft()

    def _run_change(self, change: Callable[[], Any], future: Future[Any]) -> None:
        try:
            future.set_result(change())
        except BaseException as error:
            future.set_exception(error)

    def _admit(self) -> None:
        """Let waiting completions join, in order, as long as they want the weights that those on their way have.

        A part of a batch that failed stays alone until it is done.
        """
        if self._groups:
            if not self._jobs:
                for job in self._groups.popleft():
                    self._start(job)
            return
        while self._queue and (not self._jobs or self.weights.is_active(self._queue[0].order.model)):
            self._start(self._queue.popleft())

    def _start(self, job: Job) -> None:
        try:
            self.weights.activate(job.order.model)
        except Exception as error:  # of one completion alone
            job.fail(ModelError(error_text(error)))
            return
        job.version = self.version
        self._jobs[job.running.number] = job
        self._ready.append(job.running)

    def _advance(self) -> None:
        """Extend what is on its way by a token."""
        try:
            self._sessions.forget_old_weights()
            for job in [self._jobs[running.number] for running in self._ready]:
                if job.order.prompt_logprobs and not job.prompt_logprobs and not job.running.ids:
                    job.prompt_logprobs = token_logprobs(self.model.network, job.order.prompt)
            self._sessions.advance(self._ready)
        except Exception as error:
            self._sessions.drop()
            self._isolate(ModelError(f"the model failed: {error_text(error)}"))
            return
        with self._changed:
            for job in [job for job in self._jobs.values() if job.running.is_done]:
                del self._jobs[job.running.number]
                job.finish()
            self._changed.notify_all()

    def _isolate(self, error: TurngymError) -> None:
        """Halve a batch that failed, so that it is computed again in parts, until the completion at fault is alone."""
        jobs = list(self._jobs.values())
        if len(jobs) <= 1:
            self._fail_all(error)
            return
        with self._changed:
            for job in jobs:
                job.running.restart()
                job.running.row = -1
                job.prompt_logprobs = ()
            middle = len(jobs) // 2
            self._groups.extendleft([jobs[middle:], jobs[:middle]])
            self._jobs.clear()
            self._ready.clear()
            self._changed.notify_all()

    def _fail_all(self, error: TurngymError) -> None:
        with self._changed:
            for job in self._jobs.values():
                job.fail(error)
            self._jobs.clear()
            self._ready.clear()
            self._changed.notify_all()

    def _end(self) -> None:
        with self._changed:
            for job in [*self._queue, *(job for group in self._groups for job in group)]:
                job.fail(ModelError("the server is shutting down"))
            for _, future in self._commands:
                future.set_exception(Refused("the server is shutting down", 503))
        self._fail_all(ModelError("the server is shutting down"))


_CHUNK = 128
"""Tokens that go through the network at once: their distributions must fit into memory."""


@torch.inference_mode()
def token_logprobs(network: PreTrainedModel, ids: Sequence[int]) -> tuple[float, ...]:
    """Return the log-probability of each token but the first after those before it, at temperature 1.

    Args:
        network: A causal language model with a key-value cache.
        ids: The sequence.
    """
    given = torch.tensor([list(ids)], device=network.device)
    cache = DynamicCache(config=network.config)
    held = {cache_keyword(type(network)) or "past_key_values": cache}
    found: list[float] = []
    with evaluating(network):
        for start in range(0, len(ids) - 1, _CHUNK):
            piece = given[:, start : min(start + _CHUNK, len(ids) - 1)]
            output: Any = network(input_ids=piece, **held, use_cache=True)
            logprobs = torch.log_softmax(output.logits[0].float(), dim=-1)
            following = given[0, start + 1 : start + 1 + piece.shape[1], None]
            found += logprobs.gather(-1, following)[:, 0].tolist()
    return tuple(found)
