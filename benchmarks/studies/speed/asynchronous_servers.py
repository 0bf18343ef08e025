"""Two servers of a policy that sleep instead of computing, behind the pool and the hand-over of real ones."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import numpy as np

from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.served.client import Answer, PolicyClient
from turngym.agents.models.served.config import ServedConfig
from turngym.agents.models.served.members import State
from turngym.agents.models.served.pool import ServerPool
from turngym.agents.models.served.sync.core import Weights, WeightSync
from turngym.agents.sampling import Sampling
from turngym.trainers.engine.fingerprint import Expected
from turngym.trainers.loop.served_check import WeightCheck
from turngym.trainers.loop.served_rollouts import ServedRollouts

SERVERS = 2
LOAD_SECONDS = 0.05
_TOKENS = 200


class SleepingServer(PolicyClient):
    """Sleeps an exponential time for each completion, and takes any weights.

    Args:
        number: Its number.
        seconds: Mean time of a completion.
    """

    def __init__(self, number: int, seconds: float) -> None:
        super().__init__(f"http://127.0.0.1:{number + 1}")
        self.seconds = seconds
        self.label = ""

    def generate(
        self,
        prompt: Sequence[int],
        seed: int,
        sampling: Sampling,
        stop_ids: Sequence[int],
        timeout: float,
        *,
        prompt_logprobs: bool = False,
        model: str | None = None,
    ) -> Answer:
        """Sleep, and return random tokens."""
        label, draws = self.label, np.random.default_rng(seed)
        time.sleep(float(draws.exponential(self.seconds)))
        ids = tuple(int(token) for token in draws.integers(10, 10 + _TOKENS, sampling.max_new_tokens))
        return Answer(ids, (-math.log(_TOKENS),) * len(ids), (label,))


class _Sync(WeightSync):
    def publish(self, label: str, weights: Weights) -> None:
        """Write nothing."""

    def load(self, server: PolicyClient, label: str) -> None:
        """Load nothing."""

    def deliver(self, server: PolicyClient, label: str) -> None:
        """Sleep as long as it takes to load weights."""
        time.sleep(LOAD_SECONDS)
        assert isinstance(server, SleepingServer)
        server.label = label


class _Check(WeightCheck):
    def require(self, server: PolicyClient, label: str, wanted: Expected) -> float:
        """Compare nothing."""
        return 0.0


@contextmanager
def sleeping_servers(seconds: float, model: LanguageModel, in_background: bool = True) -> Iterator[None]:
    """Let servers that sleep generate for a model.

    Args:
        seconds: Mean time of a completion.
        model: The model.
        in_background: Whether completions may begin and end each on their own; otherwise a call waits for all of its
            completions.
    """
    servers = [SleepingServer(number, seconds) for number in range(SERVERS)]
    with closing(ServerPool(servers, model.stop_ids, ServedConfig(timeout=60, patience=60))) as pool:
        for member in pool.members:
            member.state = State.IN_USE
        check = _Check(model, "float32", 1.0, 0, 0.0, 60.0)
        rollouts = ServedRollouts(model, pool, _Sync(60.0), lambda model: {}, check)
        model.generate, model.background = rollouts.generate, rollouts if in_background else None
        try:
            yield
        finally:
            model.generate = model.background = None
