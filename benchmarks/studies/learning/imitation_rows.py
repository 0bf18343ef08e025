"""What models reached by imitation alone, as rows of the page of what was learnt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

COLUMNS = ("task", "games", "actions", "seeds", "success, % [95 %]", "untrained", "random", "expert", "command")
_OTHERS = ("untrained", "random", "expert")


def rows(found: Mapping[str, Any], task: str) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each row, given a result file of ``alfworld_imitation.py``.

    Args:
        found: The file.
        task: What is played.

    >>> mean, one = {"mean": 0.5, "low": -0.1, "high": 0.9}, {"valid_seen": {"success": {"value": 0.25}}}
    >>> others = dict.fromkeys(_OTHERS, one)
    >>> file = {"success": {"greedy": {"valid_seen": mean}}, "others": others, "runs": {"0": {}}, "command": "x"}
    >>> next(rows(file, "ALFWorld"))
    ('ALFWorld', 'valid_seen', 'greedy', '1', '50.0 [0.0, 90.0]', '25.0', '25.0', '25.0', '`x`')
    """
    for way, splits in found["success"].items():
        for split, success in splits.items():
            low, high = max(success["low"], 0.0), min(success["high"], 1.0)
            mean = f"{100 * success['mean']:.1f} [{100 * low:.1f}, {100 * high:.1f}]"
            others = (f"{100 * found['others'][name][split]['success']['value']:.1f}" for name in _OTHERS)
            yield (task, split, way, str(len(found["runs"])), mean, *others, f"`{found['command']}`")
