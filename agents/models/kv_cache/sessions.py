"""Sessions whose keys and values are kept from turn to turn, for any number of episodes within a budget of tokens."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from turngym.agents.models.completion import Completion
from turngym.agents.models.kv_cache.admission import Admission, Admitted
from turngym.agents.models.kv_cache.drafting import PAYS, RECOVERY, TRUST, draft, room
from turngym.agents.models.kv_cache.draws import Draws
from turngym.agents.models.kv_cache.forward import Forward
from turngym.agents.models.kv_cache.packed import PackedForward, packing_pays
from turngym.agents.models.kv_cache.requests import CacheCounts, Running
from turngym.agents.models.kv_cache.store import Store
from turngym.agents.models.weights import WeightsWatch, evaluating
from turngym.agents.sampling import Sampling
from turngym.errors import ConfigError


class Sessions:
    """Generates completions and keeps what it computed for the turns to come.

    A prompt continues from the row of the cache whose tokens are its beginning, whichever episode that row was made
    for, so :meth:`complete` needs no session: it takes prompts. :meth:`open`, :meth:`extend`, :meth:`generate` and
    :meth:`close` are for loops that append. Rows are found by token ids: a rewritten history is cut where it differs,
    equal prompts are computed once and copied. A finished completion makes room at once for one that waits. When the
    budget is full, the rows used longest ago are evicted and their prompts computed again. New weights drop everything.

    Args:
        network: A causal language model, see :func:`~turngym.agents.models.kv_cache.memory.can_be_kept`.
        stop_ids: Tokens that end a completion; the one sampled is part of it.
        budget: Capacity of the cache in tokens.
        max_rows: Completions that are sampled together.
        draft_tokens: Maximum number of tokens that are drafted for a completion and checked in one pass; 0 drafts none.
            See :func:`~turngym.agents.models.kv_cache.drafting.draft`.

    Raises:
        ConfigError: Tokens are to be drafted where decode steps are CUDA graphs of one token.
    """

    def __init__(
        self,
        network: PreTrainedModel,
        stop_ids: frozenset[int],
        budget: int,
        max_rows: int = 512,
        draft_tokens: int = 0,
    ) -> None:
        self.network = network
        self.stop_ids = stop_ids
        self.max_rows = max_rows
        self.draft_tokens = draft_tokens
        is_packed = packing_pays(network)
        if draft_tokens and is_packed:
            raise ConfigError(
                f"draft_tokens is {draft_tokens}, and nothing is drafted for {network.dtype} weights on a GPU: their "
                "decode steps are CUDA graphs of one token. Leave it out."
            )
        self.store = Store(int(network.config.num_hidden_layers), budget, is_packed)
        self._admission = Admission(self.store)
        kind = PackedForward if is_packed else Forward
        self._forward: Forward | PackedForward = kind(network, self.store.memory, self.store.slots)
        self._watch = WeightsWatch()
        self._open: dict[int, list[int]] = {}
        self._opened = 0

    @property
    def counts(self) -> CacheCounts:
        """Counts of prompt tokens so far, by origin."""
        return self.store.counts

    def open(self, ids: Sequence[int] = ()) -> int:
        """Start a session with some tokens; returns its number."""
        self._opened += 1
        self._open[self._opened] = list(ids)
        return self._opened

    def ids(self, session: int) -> tuple[int, ...]:
        """Return the tokens of a session.

        Raises:
            ConfigError: It is not open.
        """
        return tuple(self._tokens(session))

    def extend(self, session: int, ids: Sequence[int]) -> None:
        """Append tokens to a session; they go through the network when it generates next.

        Raises:
            ConfigError: It is not open.
        """
        self._tokens(session).extend(ids)

    def generate(
        self, sessions: Sequence[int], uniforms: Sequence[NDArray[np.float64]], sampling: Sampling
    ) -> list[Completion]:
        """Sample one completion for each session, and append it to the session.

        Raises:
            ConfigError: One is not open, or the budget is too small for one.
        """
        found = self.complete([self._tokens(session) for session in sessions], uniforms, sampling)
        for session, completion in zip(sessions, found, strict=True):
            self.extend(session, completion.ids)
        return found

    def close(self, session: int) -> None:
        """End a session, whose row is free at once.

        Raises:
            ConfigError: It is not open.
        """
        tokens = np.asarray(self._tokens(session), dtype=np.int64)
        del self._open[session]
        slots = self.store.slots
        held = (slots.common(tokens) == slots.lengths) & (slots.lengths > 0)
        if held.any():
            row = int(np.where(held, slots.lengths, 0).argmax())
            slots.lengths[row] = 0

    def _tokens(self, session: int) -> list[int]:
        if session not in self._open:
            raise ConfigError(f"session {session} is not open: open() returns the number of a new one.")
        return self._open[session]

    def drop(self) -> None:
        """Forget all keys and values and give their memory back; sessions stay open and are computed again."""
        self.store.release()

    @torch.inference_mode()
    def complete(
        self, prompts: Sequence[Sequence[int]], uniforms: Sequence[NDArray[np.float64]], sampling: Sampling
    ) -> list[Completion]:
        """Sample one completion for each prompt.

        Args:
            prompts: Token ids, no prompt empty.
            uniforms: One array of at least ``max_new_tokens`` numbers for each prompt.
            sampling: Temperature, top-p, length limit.

        Raises:
            ConfigError: The budget is too small for one of them.
        """
        pairs = enumerate(zip(prompts, uniforms, strict=True))
        requests = [Running(i, p, u, sampling, self.stop_ids) for i, (p, u) in pairs]
        self.forget_old_weights()
        waiting = deque(requests)
        with evaluating(self.network):
            while waiting or self.store.running:
                self._advance(waiting)
        return [request.completion() for request in requests]

    def forget_old_weights(self) -> None:
        """Drop what was computed if the weights have changed since, requests that run included."""
        if self._watch.has_changed(self.network):
            self.store.drop()
            self._forward.follow()

    @torch.inference_mode()
    def advance(self, waiting: deque[Running]) -> None:
        """Admit waiting requests if there is room, and extend those that run by a token; the done leave their rows.

        Args:
            waiting: Requests without a row; those that get one are removed, those that lose theirs are put back.

        Raises:
            ConfigError: The budget is too small for one of them; whatever ran is dropped.
        """
        with evaluating(self.network):
            self._advance(waiting)

    def _advance(self, waiting: deque[Running]) -> None:
        store = self.store
        try:
            free = self.max_rows - len(store.running)
            admitted = self._admission.admit(waiting, free, _longest(waiting)) if waiting and free else []
            if admitted:
                self._sample(*self._prefill(admitted))
            if store.running and not (admitted and waiting):
                waiting.extendleft(self._step())
        except BaseException:
            store.drop()  # rows may be half written
            raise

    def cancel(self, request: Running) -> None:
        """End a request that runs; its row is free at once."""
        if request.row >= 0:
            self.store.free(request.row)

    def _prefill(self, admitted: Sequence[Admitted]) -> tuple[list[Running], Tensor]:
        """Feed the tokens of new requests that their rows do not hold; leaders first, the others copy from them."""
        alone = [each.request for each in admitted if each.leader is None]
        logits = self._feed(alone)
        followers: dict[tuple[int, int], list[Running]] = {}
        rest = []
        for each in admitted:
            if each.leader is not None:
                followers.setdefault((each.leader.row, each.shared), []).append(each.request)
                if each.shared == each.request.length == each.leader.length:
                    logits[each.request.row] = logits[each.leader.row]
                    self.store.counts.reused += each.request.length
                else:
                    rest.append(each)
        for (leader, shared), requests in followers.items():
            self.store.copy(leader, [request.row for request in requests], shared)
            self.store.counts.forks += len(requests)
        for each in rest:
            self.store.slots.lengths[each.request.row] = min(each.shared, each.request.length - 1)
        logits.update(self._feed([each.request for each in rest]))
        requests = [each.request for each in admitted]
        return requests, torch.stack([logits[request.row] for request in requests])

    def _feed(self, requests: Sequence[Running]) -> dict[int, Tensor]:
        """Prefill requests from where their rows end."""
        held = {request.row: int(self.store.slots.lengths[request.row]) for request in requests}
        self.store.counts.reused += sum(held.values())
        self.store.counts.prefilled += sum(request.length - held[request.row] for request in requests)
        return self._forward.prefill([(r.row, r.tokens()[held[r.row] :]) for r in requests])

    def _step(self) -> list[Running]:
        """Extend all running requests by a token; returns those that had to give way to longer ones."""
        store, moved = self.store, []
        if store.longest() + 1 > store.memory.columns:
            moved = self._admission.grow()
        behind = max(store.running) + 1 - len(store.running)
        if self._forward.takes_first_rows and 4 * behind > len(store.running):
            store.move_running_to_the_front()
        requests = list(store.running.values())
        steps = self._burst(requests)
        lengths = {request.row: len(request.ids) for request in requests}
        drafts = self._drafts(requests)
        if drafts:
            self._check(requests, drafts)
        else:
            draws = Draws(requests, steps, self.network.device)
            self._forward.decode({r.row: r.ids[-1] for r in requests}, steps, draws)
            draws.finish()
        for request in requests:
            before = lengths[request.row]
            store.slots.append(request.row, request.ids[before - 1 : -1])
        self._free_finished(requests)
        return moved

    def _drafts(self, requests: Sequence[Running]) -> dict[int, list[int]]:
        """Return row -> the tokens that may follow; nothing where none are found."""
        most = room(self.draft_tokens, len(requests)) if isinstance(self._forward, Forward) else 0
        if not most:
            return {}
        found, likely = {}, 0.0
        for request in requests:
            missing = request.sampling.max_new_tokens - len(request.ids) - 1
            columns = self.store.memory.columns - int(self.store.slots.lengths[request.row]) - 1
            found[request.row] = draft(request.tokens(), min(most, missing, columns)).tolist()
            likely += min(len(found[request.row]), request.trust)
        if likely >= PAYS * len(requests):
            return found
        for request in requests:
            request.trust = max(request.trust, min(request.trust + RECOVERY, TRUST))  # what failed is tried again later
        return {}

    def _check(self, requests: Sequence[Running], drafts: dict[int, list[int]]) -> None:
        """Extend requests by the tokens of their drafts that are sampled, and by the one sampled after them.

        A token is drawn from its distribution by its own number, with a draft as without, so that what is sampled
        does not depend on the draft, beyond the rounding of a wider pass.
        """
        assert isinstance(self._forward, Forward)
        logits = self._forward.check({r.row: [r.ids[-1], *drafts[r.row]] for r in requests})
        draws = Draws(requests, logits.shape[1], logits.device)
        for step in range(logits.shape[1]):
            draws(logits[:, step], step)
        before = {request.row: len(request.ids) for request in requests}
        draws.finish(drafts)
        for request in requests:
            accepted = len(request.ids) - before[request.row] - 1
            if drafts[request.row]:
                request.trust = (request.trust + accepted) / 2
            self.store.counts.drafted += len(drafts[request.row])
            self.store.counts.accepted += accepted

    def _burst(self, requests: Sequence[Running]) -> int:
        """Return how many tokens are sampled before the host looks at them."""
        free = self.store.memory.columns - self.store.longest()
        missing = max(request.sampling.max_new_tokens - len(request.ids) for request in requests)
        return max(1, min(self._forward.burst, free, missing))

    def _sample(self, requests: Sequence[Running], logits: Tensor) -> None:
        """Sample the first token of requests."""
        draws = Draws(requests, 1, logits.device)
        draws(logits, 0)
        draws.finish()
        self._free_finished(requests)

    def _free_finished(self, requests: Sequence[Running]) -> None:
        for request in requests:
            if request.is_done:
                self.store.free(request.row)


def _longest(waiting: Iterable[Running]) -> int:
    return max(request.sampling.max_new_tokens for request in waiting)
