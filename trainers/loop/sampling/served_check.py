"""Verify that servers use the current weights, by scoring a probe."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from turngym.agents.chat_client.exchange import CallFailed
from turngym.agents.models.completion import Completion
from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.rollout_servers.client import Answer, PolicyClient
from turngym.agents.models.rollout_servers.keeper import WRONG_WEIGHTS
from turngym.agents.models.rollout_servers.members import STALE
from turngym.agents.sampling import Sampling, seed_of
from turngym.trainers.engine.fingerprint import Expected, Fingerprints, Gaps, Limits, handed_over
from turngym.trainers.engine.probe_sequences import probe_sequences

_AT_ONCE = 16


class WeightCheck:
    """Compares servers with the policy after each weight sync; safe to use from several threads.

    Args:
        model: The policy.
        format: Data type of the servers' weights.
        temperature: Sampling temperature of the servers.
        longest: Maximum sequence length of the servers; 0 for any.
        max_gap: Maximum difference of log-probabilities; 0 for a bound explained by rounding.
        timeout: Seconds for each request.
        scores: Also compare log-probabilities of prompts. vLLM 0.32 crashes when it computes them with an adapter.
    """

    def __init__(
        self,
        model: LanguageModel,
        format: str,
        temperature: float,
        longest: int,
        max_gap: float,
        timeout: float,
        scores: bool = True,
    ) -> None:
        self.model = model
        self.format = format
        self.timeout = timeout
        self.scores = scores
        vocabulary = int(model.network.config.get_text_config().vocab_size)
        limits = Limits.of(format)
        if max_gap:
            limits = replace(limits, most=Gaps(max_gap, max_gap, max_gap), least=Gaps(max_gap, max_gap, max_gap))
        self._stop_ids = sorted(model.stop_ids)
        self._prints = Fingerprints(probe_sequences(vocabulary, longest), temperature, limits)

    def expect(self) -> Expected:
        """Compute the expected values for the weights being synced."""
        return self._prints.expect(handed_over(self.model, self.format))

    def require(self, server: PolicyClient, label: str, wanted: Expected) -> float:
        """Return the maximum difference of a server's log-probabilities from the trainer's.

        Args:
            server: The server.
            label: Name of the weights.
            wanted: Values of the trainer at the weight sync.

        Raises:
            CallFailed: The server uses or reports other weights, or does not answer.
        """
        probe = _Probe(server, label, self._stop_ids, self.timeout)
        reading = self._prints.read(probe.generate, probe.score if self.scores else None)
        verdict = self._prints.compare(server.url, wanted, reading)
        if verdict.faults:
            raise CallFailed(WRONG_WEIGHTS, verdict.text)
        return verdict.gaps.largest


class _Probe:
    """Adapter of a server for fingerprints."""

    def __init__(self, server: PolicyClient, label: str, stop_ids: Sequence[int], timeout: float) -> None:
        self.server = server
        self.label = label
        self.stop_ids = stop_ids
        self.timeout = timeout

    def generate(
        self, prompts: Sequence[Sequence[int]], uniforms: Sequence[NDArray[np.float64]], sampling: Sampling
    ) -> list[Completion]:
        """Sample one completion for each prompt."""
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="probe") as threads:
            found = threads.map(
                lambda prompt, draws: self._ask(prompt, seed_of(draws), sampling, False), prompts, uniforms
            )
            return [Completion(answer.ids, answer.logprobs) for answer in found]

    def score(self, sequences: Sequence[Sequence[int]]) -> list[tuple[float, ...]]:
        """Return the log-probabilities of the tokens of sequences, computed again."""
        one = Sampling(max_new_tokens=1)
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="probe") as threads:
            found = threads.map(lambda ids: self._ask(ids, 0, one, True), sequences)
            return [answer.prompt_logprobs for answer in found]

    def _ask(self, prompt: Sequence[int], seed: int, sampling: Sampling, with_prompt: bool) -> Answer:
        answer = self.server.generate(prompt, seed, sampling, self.stop_ids, self.timeout, prompt_logprobs=with_prompt)
        if answer.versions != (self.label,):
            raise CallFailed(STALE, f"it samples with the weights {answer.versions}, expected {self.label}")
        return answer
