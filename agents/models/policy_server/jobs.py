"""One completion that a client waits for."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np

from turngym.agents.models.kv_cache.requests import Running
from turngym.agents.models.policy_server.requests import Order
from turngym.errors import TurngymError

STOP, LENGTH, ABORT = "stop", "length", "abort"


@dataclass(frozen=True)
class Outcome:
    """A completion and how it came about.

    Args:
        ids: Token ids.
        logprobs: Log-probability of each.
        finish_reason: ``stop``, ``length`` or ``abort``.
        version: Name of the weights; they are the same for all tokens.
        prompt_logprobs: Log-probability of each token of the prompt but the first, if wanted.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: str
    version: str
    prompt_logprobs: tuple[float, ...] = ()


class Job:
    """A completion on its way; made by a connection's thread, worked on by the engine's.

    Args:
        order: Request to sample.
        stop_ids: All tokens that end it.
    """

    def __init__(self, order: Order, stop_ids: frozenset[int]) -> None:
        self.order = order
        draws = np.random.Generator(np.random.Philox(key=order.seed % 2**64)).random(order.sampling.max_new_tokens)
        self.running = Running(id(self), order.prompt, draws, order.sampling, stop_ids)
        self.version = ""
        self.prompt_logprobs: tuple[float, ...] = ()
        self.is_cancelled = False
        self._over = threading.Event()
        self._outcome: Outcome | TurngymError | None = None

    def wait(self, seconds: float) -> bool:
        """Return whether it is over, after so many seconds at most."""
        return self._over.wait(seconds)

    def outcome(self) -> Outcome:
        """Return the completion of a job that is over.

        Raises:
            TurngymError: It failed.
        """
        if isinstance(self._outcome, Outcome):
            return self._outcome
        raise TurngymError("the completion is not over") if self._outcome is None else self._outcome

    def finish(self, reason: str = "") -> None:
        """End it with the tokens that there are.

        Args:
            reason: Why it ends; found in its last token unless given.
        """
        run = self.running
        if not reason:
            reason = STOP if run.ids[-1] in run.stop_ids else LENGTH
        self._outcome = Outcome(tuple(run.ids), tuple(run.logprobs), reason, self.version, self.prompt_logprobs)
        self._over.set()

    def fail(self, error: TurngymError) -> None:
        """End it without a completion."""
        self._outcome = error
        self._over.set()

    def cancel(self) -> None:
        """Say that nobody waits for it any more."""
        self.is_cancelled = True
