"""Several servers of one policy: they share the requests, and those that fail are left out until they return."""

from __future__ import annotations

import hashlib
import math
import threading
import time
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from turngym.agents.chat_client.exchange import CallFailed
from turngym.agents.models.completion import Completion
from turngym.agents.models.rollout_servers.client import Answer, PolicyClient
from turngym.agents.models.rollout_servers.config import ServedConfig
from turngym.agents.models.rollout_servers.members import STALE, Handover, Member, ServerCounts, State
from turngym.agents.sampling import Sampling, seed_of
from turngym.errors import ModelError

BLOCK = 128
"""Tokens of a block; servers keep the keys and values of whole blocks."""
_MOST_BLOCKS = 200_000


class Affinity:
    """Remembers by whom the blocks of prompts were computed last, the longest unused ones being forgotten.

    Args:
        most: Maximum number of blocks.

    >>> affinity = Affinity()
    >>> affinity.note(range(300), 1)
    >>> affinity.find(range(256)), affinity.find(range(100)), affinity.find(range(5, 300))
    (1, None, None)
    """

    def __init__(self, most: int = _MOST_BLOCKS) -> None:
        self.most = most
        self._owners: OrderedDict[bytes, int] = OrderedDict()

    def find(self, prompt: Sequence[int]) -> int | None:
        """Return the number of the server that knows most of a prompt; None if none knows a block of it."""
        found = None
        for name in _blocks(prompt):
            if name not in self._owners:
                break
            found = self._owners[name]
        return found

    def note(self, prompt: Sequence[int], server: int) -> None:
        """Remember that a server computed a prompt."""
        for name in _blocks(prompt):
            self._owners[name] = server
            self._owners.move_to_end(name)
        while len(self._owners) > self.most:
            self._owners.popitem(last=False)

    def clear(self) -> None:
        """Forget everything, as servers do when their weights change."""
        self._owners.clear()


def _blocks(prompt: Sequence[int]) -> Iterator[bytes]:
    """Yield a name for each whole block of a prompt with all before it."""
    chain = hashlib.blake2b(digest_size=16)
    for start, end in pairwise(range(0, len(prompt) + 1, BLOCK)):
        chain.update(array("q", prompt[start:end]).tobytes())
        yield chain.digest()


_IMBALANCE = 1.25
"""Maximum load, relative to the mean, of a server preferred for its cached prefix."""


class ServerPool:
    """Samples with several servers as if they were one; safe to use from several threads.

    Every completion is of one version of the weights, that which its server was given last; another one is sampled
    again. What is sampled depends on the prompt and its random numbers, not on the server, but for the last bits.

    Args:
        servers: The servers.
        stop_ids: Tokens that end a completion.
        config: Limits and waits.
        words: Token ids of the model are below this number; a completion with others is malformed.
    """

    def __init__(
        self, servers: Sequence[PolicyClient], stop_ids: frozenset[int], config: ServedConfig, words: int = 2**31
    ) -> None:
        self.members = [Member(server) for server in servers]
        self.stop_ids = sorted(stop_ids)
        self.config = config
        self.words = words
        self.counts = ServerCounts()
        self.current: Handover | None = None
        self.changed = threading.Condition()
        self.is_closing = False
        self._affinity = Affinity()
        self._threads = ThreadPoolExecutor(config.concurrency * len(self.members), thread_name_prefix="served")

    def generate(
        self, prompts: Sequence[Sequence[int]], uniforms: Sequence[NDArray[np.float64]], sampling: Sampling
    ) -> list[Completion]:
        """Sample one completion for each prompt.

        Args:
            prompts: Token ids, no prompt empty.
            uniforms: Random numbers for each prompt; they fix the seed of its completion.
            sampling: Temperature, top-p, length limit.

        Raises:
            ModelError: A request is refused, or fails too often, or there is no server left.
        """
        given_up = threading.Event()
        work = [self.submit(prompt, draws, sampling, given_up) for prompt, draws in zip(prompts, uniforms, strict=True)]
        try:
            return [future.result() for future in work]
        except BaseException:
            given_up.set()
            self._abandon(work)
            raise

    def submit(
        self, prompt: Sequence[int], uniforms: NDArray[np.float64], sampling: Sampling, given_up: threading.Event
    ) -> Future[Completion]:
        """Start to sample a completion, see :class:`~turngym.agents.models.completion.BackgroundSampler`."""
        return self._threads.submit(self._complete, prompt, seed_of(uniforms), sampling, given_up)

    def _abandon(self, work: Sequence[Future[Completion]]) -> None:
        for future in work:
            future.cancel()
        with self.changed:
            self.changed.notify_all()

    def _complete(self, prompt: Sequence[int], seed: int, sampling: Sampling, given_up: threading.Event) -> Completion:
        """Sample one completion, by another server after each failure."""
        tried: list[Member] = []
        while True:
            member = self._take(prompt, tried, given_up)
            server, label, version = member.server, member.label, member.version
            try:
                answer = server.generate(prompt, seed, sampling, self.stop_ids, self.config.timeout)
                self._require_version(answer, label)
                if max(answer.ids) >= self.words:
                    raise CallFailed("malformed", f"token {max(answer.ids)} of a vocabulary of {self.words}")
            except CallFailed as failure:
                if not failure.is_retried:
                    raise ModelError(f"the server {server.url} refuses a request: {failure}.") from failure
                self.lose(member, failure, server)
                tried.append(member)
                if len(tried) > self.config.retries:
                    raise ModelError(
                        f"a request failed {len(tried)} times, at last by the server {server.url}: {failure}."
                    ) from failure
                with self.changed:
                    self.counts.retries += 1
            else:
                with self.changed:
                    self._affinity.note((*prompt, *answer.ids), self.members.index(member))
                return Completion(answer.ids, answer.logprobs, version=version)
            finally:
                self._release(member)

    def _require_version(self, answer: Answer, label: str) -> None:
        if answer.versions != (label,):
            with self.changed:
                self.counts.stale += 1
            raise CallFailed(STALE, f"a completion of the weights {answer.versions}, expected {label}")

    def _take(self, prompt: Sequence[int], tried: Sequence[Member], given_up: threading.Event) -> Member:
        """Wait for a server that can take a request, and count the request to it."""
        with self.changed:
            alone_since = time.monotonic()
            while True:
                if self.is_closing or given_up.is_set():
                    raise ModelError("the request was given up.")
                working = [member for member in self.members if member.state in (State.IN_USE, State.UPDATING)]
                able = [m for m in working if m.state is State.IN_USE and m.in_flight < self.config.concurrency]
                if able:
                    member = self._choose(able, prompt, tried)
                    member.in_flight += 1
                    return member
                if working:
                    alone_since = time.monotonic()
                left = alone_since + self.config.patience - time.monotonic()
                if left <= 0 or all(member.state is State.GIVEN_UP for member in self.members):
                    raise ModelError(self.why_none())
                self.changed.wait(min(left, self.config.poll))

    def _choose(self, able: Sequence[Member], prompt: Sequence[int], tried: Sequence[Member]) -> Member:
        """Return the server that knows the prompt's beginning, or the one with the fewest requests."""
        fresh = [member for member in able if not any(member is other for other in tried)] or able
        least = min(fresh, key=lambda member: member.in_flight)
        known = self._affinity.find(prompt)
        chosen = least
        if known is not None and any(self.members[known] is member for member in fresh):
            bound = math.ceil(_IMBALANCE * (1 + sum(member.in_flight for member in able)) / len(able))
            if self.members[known].in_flight < bound:
                chosen = self.members[known]
        self._affinity.note(prompt, self.members.index(chosen))
        return chosen

    def _release(self, member: Member) -> None:
        with self.changed:
            member.in_flight -= 1
            self.changed.notify_all()

    @property
    def has_any(self) -> bool:
        """True if any server is in use."""
        return any(member.state is State.IN_USE for member in self.members)

    @property
    def misses_any(self) -> bool:
        """True if any server that may return is not in use."""
        return any(member.state is State.LOST for member in self.members)

    def why_none(self) -> str:
        """Return why no server can be used."""
        reasons = "; ".join(f"{member.server.url}: {member.reason}" for member in self.members)
        return (
            f"no server can be used ({reasons}). Look at their logs; when they answer again, --resume continues from "
            "the last checkpoint."
        )

    def lose(self, member: Member, failure: CallFailed, server: PolicyClient | None = None) -> None:
        """Leave a server out; its requests fail at once and go to others.

        Args:
            member: The server.
            failure: Why.
            server: The client that failed, which may have been replaced since.
        """
        with self.changed:
            if member.state not in (State.IN_USE, State.UPDATING) or server not in (None, member.server):
                return
            member.state, member.reason, member.label = State.LOST, str(failure), ""
            self.counts.faults += 1
            self.changed.notify_all()
        member.server.cut()

    def hand_over(self, handover: Handover) -> None:
        """Give new weights to every server that can be used; the others get them when they return.

        Args:
            handover: The weights.
        """
        began = time.perf_counter()
        with self.changed:
            self.current = handover
            self._affinity.clear()
            targets = [member for member in self.members if member.state is State.IN_USE]
            for member in targets:
                member.state = State.UPDATING
        with ThreadPoolExecutor(max(len(targets), 1), thread_name_prefix="hand-over") as threads:
            list(threads.map(self._update, targets))
        with self.changed:
            self.counts.syncs += 1
            self.counts.sync_seconds += time.perf_counter() - began

    def _update(self, member: Member) -> None:
        """Hand the current weights to a server that is in use, when its requests are done."""
        with self.changed:
            self.changed.wait_for(lambda: not member.in_flight or member.state is not State.UPDATING)
            if member.state is not State.UPDATING:
                return
        try:
            self.bring(member)
        except CallFailed as failure:
            self.lose(member, failure)

    def bring(self, member: Member) -> None:
        """Give a server the current weights, check that it computes with them, and use it.

        Raises:
            CallFailed: It does not take them, or computes with others.
        """
        with member.lock:
            while True:
                handover = self.current
                if handover is not None and member.label != handover.label:
                    handover.deliver(member.server)
                    gap = handover.check(member.server)
                    member.label, member.version = handover.label, handover.version
                    with self.changed:
                        self.counts.gap = max(self.counts.gap, gap)
                with self.changed:
                    if self.current is handover:
                        member.state = State.IN_USE
                        self.changed.notify_all()
                        return

    def metrics(self) -> dict[str, float]:
        """Return what happened since the last call."""
        with self.changed:
            found, self.counts = self.counts, ServerCounts()
            in_use = sum(member.state is State.IN_USE for member in self.members)
        return {
            "rollout/servers": float(in_use),
            "rollout/server_faults": float(found.faults),
            "rollout/server_retries": float(found.retries),
            "rollout/server_stale": float(found.stale),
            "rollout/server_returns": float(found.returns),
            "rollout/server_restarts": float(found.restarts),
            "rollout/weight_syncs": float(found.syncs),
            "rollout/weight_gap": found.gap,
            "time/weight_sync": found.sync_seconds,
        }

    def each(self, call: Callable[[PolicyClient], None]) -> None:
        """Call something for every server in use at the same time; a server that fails is left out."""

        def one(member: Member) -> None:
            try:
                call(member.server)
            except CallFailed as failure:
                self.lose(member, failure)

        targets = [member for member in self.members if member.state is State.IN_USE]
        with ThreadPoolExecutor(max(len(targets), 1), thread_name_prefix="served-each") as threads:
            list(threads.map(one, targets))

    def close(self) -> None:
        """End waiting requests; the servers continue."""
        with self.changed:
            self.is_closing = True
            self.changed.notify_all()
        for member in self.members:
            member.server.cut()
        self._threads.shutdown(wait=True, cancel_futures=True)
