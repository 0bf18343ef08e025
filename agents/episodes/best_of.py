"""Best of several attempts at a task, chosen by a verifier (best-of-n)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from turngym.agents.intervals import Estimate, cluster_bootstrap, share


def chosen(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the attempt with the highest verifier score, the first among ties; attempts without a score come last.

    >>> tries = [{"verifier": {"score": score}, "attempt": i} for i, score in enumerate([0.5, None, 0.9, 0.9])]
    >>> chosen(tries)["attempt"]
    2
    """
    return max(rows, key=_score)  # max() keeps the first of equal ones


def _score(row: Mapping[str, Any]) -> float:
    score = row["verifier"]["score"]
    return -math.inf if score is None else float(score)


def best_of(records: Sequence[Mapping[str, Any]]) -> dict[str, Estimate]:
    """Return the gain of best-of-n, over tasks with all attempts; empty without verifier scores.

    ``chosen_of_N`` is the share of tasks whose chosen attempt succeeded, ``mean_of_N`` the share of all attempts,
    ``oracle_of_N`` the share of tasks with any successful attempt, and ``gain_of_N`` the difference of the first two,
    paired by task.

    Args:
        records: Episodes with ``task``, ``attempt``, ``success``, ``block_id`` and ``verifier``.

    >>> def row(task, attempt, success, score):
    ...     return {"task": task, "attempt": attempt, "success": success, "block_id": str(task),
    ...             "verifier": {"score": score}}
    >>> rows = [row(0, 0, 0, 0.1), row(0, 1, 1, 0.8), row(1, 0, 0, 0.3), row(1, 1, 0, 0.2)]
    >>> {name: estimate.value for name, estimate in best_of(rows).items()}
    {'chosen_of_2': 0.5, 'mean_of_2': 0.25, 'oracle_of_2': 0.5, 'gain_of_2': 0.25}
    """
    tasks: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for record in records:
        if "verifier" in record:
            tasks[record["task"]].append(record)
    most = max(map(len, tasks.values()), default=0)
    whole = [sorted(rows, key=lambda row: row["attempt"]) for rows in tasks.values() if len(rows) == most]
    if most < 2:
        return {}
    blocks = [rows[0]["block_id"] for rows in whole]
    picked = [float(chosen(rows)["success"]) for rows in whole]
    means = [sum(row["success"] for row in rows) / most for rows in whole]
    return {
        f"chosen_of_{most}": share(picked, blocks),
        f"mean_of_{most}": cluster_bootstrap(means, blocks),
        f"oracle_of_{most}": share([float(any(row["success"] for row in rows)) for rows in whole], blocks),
        f"gain_of_{most}": cluster_bootstrap([a - b for a, b in zip(picked, means, strict=True)], blocks),
    }
