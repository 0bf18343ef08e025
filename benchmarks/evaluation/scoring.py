"""Scores of a verifier for episodes as they end, several at a time where the verifier can."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from turngym.agents.trajectory import Trajectory
from turngym.agents.usage import Usage, total
from turngym.agents.verifiers import Verdict, Verifier, judge

Keep = Callable[[Verdict | None], None]


class Scoring:
    """Hands each episode on with its verdict. Nothing is kept of an episode whose verdict an interrupt took.

    Args:
        verifier: Scores; None hands on at once.
    """

    def __init__(self, verifier: Verifier | None) -> None:
        self.verifier = verifier
        workers = getattr(verifier, "workers", 1)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="verifier") if workers > 1 else None
        self._pending: dict[Future[Verdict], Keep] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            try:
                if error is None:
                    self._hand_on(wait=True)
            except BaseException:
                self._cut()
                raise
            if error is not None:
                self._cut()
            self._pool.shutdown(cancel_futures=True)

    def _cut(self) -> None:
        """Let verdicts that are under way end soon, where the verifier can."""
        assert self._pool is not None
        self._pool.shutdown(wait=False, cancel_futures=True)
        getattr(self.verifier, "abandon", lambda: None)()

    def add(self, trajectory: Trajectory, keep: Keep) -> None:
        """Score an episode and call ``keep`` with the verdict, here or at a later call."""
        if self.verifier is None:
            return keep(None)
        if self._pool is None:
            return keep(judge(self.verifier, trajectory))
        self._pending[self._pool.submit(judge, self.verifier, trajectory)] = keep
        return self._hand_on(wait=False)

    def _hand_on(self, wait: bool) -> None:
        for future in [each for each in self._pending if wait or each.done()]:
            verdict = future.result()
            self._pending.pop(future)(verdict)


def verifier_usage(rows: Iterable[Mapping[str, Any]]) -> Usage:
    """Return what a verifier used for all episodes together."""
    return total(Usage.from_json(row["verifier"]["usage"]) for row in rows if "verifier" in row)
