"""The agent of asynchronous rollouts with servers, which samples completions independently."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor

from turngym.agents.core import Decision, Request, build_each
from turngym.agents.episodes.stream import StreamAgent
from turngym.agents.models.agent import ModelAgent
from turngym.agents.models.completion import BackgroundSampler, Completion
from turngym.trainers.loop.asynchronous.agent import VersionedAgent
from turngym.trainers.loop.asynchronous.weights import SamplerWeights

_Asked = tuple[Request, tuple[int, ...]]
"""A request and its prompt."""


class BackgroundAgent(VersionedAgent, StreamAgent):
    """Wraps an agent, and samples its completions in the background, each separately.

    New weights are also synced in the background; meanwhile, running episodes continue with the old weights. First
    turns wait for the newest weights, and a weight sync waits for first turns in progress, so all episodes of a group
    start with the same weights, which are at least as new as the group.

    Args:
        agent: The inner agent.
        sampler: The sampler.
        weights: The sampler's weights.
    """

    def __init__(self, agent: ModelAgent, sampler: BackgroundSampler, weights: SamplerWeights) -> None:
        super().__init__(agent, weights.refresh)
        self.sampler = sampler
        self.weights = weights
        self._ready: list[tuple[Request, Decision]] = []
        self._held: list[_Asked] = []
        self._asked: dict[Future[Completion], _Asked] = {}
        self._arrived = -1
        self._handing: Future[int] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="hand-over")
        self._given_up = threading.Event()

    def begin(self, requests: Sequence[Request]) -> None:
        """Start working on these requests and return immediately."""
        fresh = []
        for request in requests:
            known = self._take_over(request)
            if known is None:
                fresh.append(request)
            else:
                self._ready.append((request, known))
        for request, built in zip(fresh, build_each(fresh, self.agent.next_prompt), strict=True):
            if isinstance(built, Decision):
                self._ready.append((request, built))
            else:
                self._held.append((request, built))
        self._advance()

    def decided(self, wait: bool) -> list[tuple[Request, Decision]]:
        """Return newly answered requests, each once."""
        self._take_answers()
        while wait and not self._ready and self.is_working():
            self.rest(None)
            self._take_answers()
        found, self._ready = self._ready, []
        return found

    def is_working(self) -> bool:
        """Return True if an answer is pending."""
        return bool(self._asked or self._held or self._ready)

    def rest(self, seconds: float | None) -> None:
        """Wait for an answer or new weights."""
        awaited: list[Future[object]] = [*self._asked]  # type: ignore[list-item]
        if self._handing is not None:
            awaited.append(self._handing)  # type: ignore[arg-type]
        if awaited and not self._ready:
            futures.wait(awaited, seconds, futures.FIRST_COMPLETED)

    def abandon(self) -> None:
        """Cancel all requests; waits only for a weight sync in progress."""
        self._given_up.set()
        for future in self._asked:
            future.cancel()
        self._asked, self._held, self._ready = {}, [], []
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _take_answers(self) -> None:
        for future in [future for future in self._asked if future.done()]:
            request, prompt = self._asked.pop(future)
            self._ready.append((request, self.agent.decision(request, prompt, future.result())))
        self._advance()

    def _advance(self) -> None:
        """Sync new weights, and start the requests that need not wait for them."""
        if self._handing is not None and self._handing.done():
            self._arrived, self._handing = self._handing.result(), None
        is_behind = self._arrived < self.weights.newest
        if is_behind and self._handing is None and not any(request.turn == 0 for request, _ in self._asked.values()):
            self._handing = self._thread.submit(self._hand_over)
        waiting = self._held
        self._held = []
        for request, prompt in waiting:
            if self._arrived < 0 or (request.turn == 0 and is_behind):
                self._held.append((request, prompt))
            else:
                uniforms, sampling = self.agent.uniforms(request), self.agent.sampling
                self._asked[self.sampler.submit(prompt, uniforms, sampling, self._given_up)] = request, prompt

    def _hand_over(self) -> int:
        version = self.refresh()
        self.sampler.follow()
        return version
