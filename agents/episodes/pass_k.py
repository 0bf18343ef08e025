"""Repeated attempts at a task: at least one of k succeeds (pass@k), or all k do (pass^k)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import comb
from typing import Any

from turngym.agents.intervals import Estimate, cluster_bootstrap, share


def pass_at_k(attempts: int, successes: int, k: int) -> float:
    """Return an unbiased estimate of the probability that at least one of ``k`` attempts succeeds.

    With ``c`` successes in ``n`` attempts, the share of subsets of ``k`` attempts that contain a success:

        1 - C(n - c, k) / C(n, k)

    Chen et al. 2021, eq. 1.

    Args:
        attempts: Attempts at the task, n.
        successes: Those that succeeded, c.
        k: Size of the subsets, at most n.

    Raises:
        ValueError: The numbers contradict one another.

    >>> pass_at_k(4, 1, 2)
    0.5
    """
    _check(attempts, successes, k)
    return 1 - comb(attempts - successes, k) / comb(attempts, k)


def pass_hat_k(attempts: int, successes: int, k: int) -> float:
    """Return an unbiased estimate of the probability that all of ``k`` attempts succeed.

    The share of subsets of ``k`` attempts that contain only successes, C(c, k) / C(n, k). Yao et al. 2024.

    Args:
        attempts: Attempts at the task, n.
        successes: Those that succeeded, c.
        k: Size of the subsets, at most n.

    Raises:
        ValueError: The numbers contradict one another.

    >>> pass_hat_k(4, 3, 2)
    0.5
    """
    _check(attempts, successes, k)
    return comb(successes, k) / comb(attempts, k)


def _check(attempts: int, successes: int, k: int) -> None:
    if not (1 <= k <= attempts and 0 <= successes <= attempts):
        raise ValueError(
            f"expected 1 <= k <= attempts and 0 <= successes <= attempts, got k={k}, {attempts} attempts and "
            f"{successes} successes."
        )


def told_ks(repeats: int) -> tuple[int, ...]:
    """Return the values of k to report for a number of attempts: all up to 8, then powers of two, and the last.

    >>> told_ks(3), told_ks(20)
    ((1, 2, 3), (1, 2, 4, 8, 16, 20))
    """
    if repeats <= 8:
        return tuple(range(1, repeats + 1))
    powers = [2**i for i in range(repeats.bit_length()) if 2**i < repeats]
    return (*powers, repeats)


def repeated_attempts(records: Sequence[Mapping[str, Any]]) -> dict[str, Estimate]:
    """Return ``pass@k`` and ``pass^k`` with intervals, as means over tasks; empty without repeated tasks.

    Tasks with fewer than k attempts, as in an incomplete evaluation, are excluded for that k; ``count`` is the number
    of tasks included.

    Attempts that learn from earlier ones are marked with ``in_order`` and are not exchangeable; for them,
    ``solved_by_try_k`` is the share of tasks solved by one of the first k attempts.

    Args:
        records: Episodes with ``task``, ``attempt``, ``success`` and ``block_id``.

    >>> def row(task, attempt, success):
    ...     return {"task": task, "attempt": attempt, "success": success, "block_id": str(task)}
    >>> found = repeated_attempts([row(0, 0, 1), row(0, 1, 0), row(1, 0, 1), row(1, 1, 1)])
    >>> {name: estimate.value for name, estimate in found.items()}
    {'pass@1': 0.75, 'pass^1': 0.75, 'pass@2': 1.0, 'pass^2': 0.5}
    """
    tasks: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for record in records:
        tasks[record.get("task", -1)].append(record)
    most = max((record.get("attempt", 0) for record in records), default=0) + 1
    found: dict[str, Estimate] = {}
    for k in told_ks(most) if most > 1 else ():
        enough = [rows for rows in tasks.values() if len(rows) >= k]
        if any(record.get("in_order") for record in records):
            found.update(_solved_by(enough, k))
            continue
        blocks = [rows[0]["block_id"] for rows in enough]
        counts = [(len(rows), sum(row["success"] for row in rows)) for rows in enough]
        if enough:
            found[f"pass@{k}"] = cluster_bootstrap([pass_at_k(n, c, k) for n, c in counts], blocks)
            found[f"pass^{k}"] = cluster_bootstrap([pass_hat_k(n, c, k) for n, c in counts], blocks)
    return found


def _solved_by(tasks: Sequence[Sequence[Mapping[str, Any]]], k: int) -> dict[str, Estimate]:
    first = [[row for row in rows if row["attempt"] < k] for rows in tasks]
    whole = [rows for rows in first if len(rows) == k]
    if not whole:
        return {}
    solved = [float(any(row["success"] for row in rows)) for rows in whole]
    return {f"solved_by_try_{k}": share(solved, [rows[0]["block_id"] for rows in whole])}
