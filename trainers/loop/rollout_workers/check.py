"""Verify that rollout workers use the current weights."""

from __future__ import annotations

from collections.abc import Sequence

from turngym.agents.models.loading import LanguageModel
from turngym.trainers.engine.fingerprint import Expected, Fingerprints, Reading
from turngym.trainers.loop.rollout_workers.worker import Answer


class VersionCheck:
    """Compares what each worker computes for a probe with what the learner computed at the weight sync.

    The bytes of what is trained arrive as they were sent. The rest of the model does not travel if every machine finds
    it by itself: it may be another revision there, and a worker's libraries may be other versions.

    Args:
        temperature: Temperature of the rollouts.
    """

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature
        self._prints: Fingerprints | None = None
        self._expected: Expected | None = None
        self._version = 0
        self._sound: dict[str, int] = {}

    def probe(self, model: LanguageModel) -> Sequence[Sequence[int]]:
        """Return the sequences that workers compute with new weights."""
        if self._prints is None:
            self._prints = Fingerprints.of(model, self.temperature)
        return self._prints.sequences

    def expect(self, model: LanguageModel, version: int) -> None:
        """Note what a version of the weights gives, when it is synced."""
        self.probe(model)
        assert self._prints is not None
        self._expected, self._version = self._prints.expect(model.network), version

    def fault_of(self, worker: str, answer: Answer) -> str:
        """Return what is wrong with the weights that an answer was played with, in words; nothing for sound ones.

        Args:
            worker: Name of the worker.
            answer: Its answer.
        """
        assert self._prints is not None and self._expected is not None
        if answer.version != self._version:
            return f"it played with version {answer.version} of the weights, expected {self._version}"
        if answer.scores is None:
            is_known = self._sound.get(worker) == self._version
            return "" if is_known else f"it has not shown what version {self._version} of the weights gives"
        verdict = self._prints.compare(worker, self._expected, Reading(answer.scores, ()))
        if verdict.faults:
            return verdict.text
        self._sound[worker] = self._version
        return ""
