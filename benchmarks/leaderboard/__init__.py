"""Leaderboards: submissions that played the same tasks, in tables with intervals and rank ranges."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.benchmarks.leaderboard.entries import Row, read_rows
    from turngym.benchmarks.leaderboard.table import Group, Leaderboard, leaderboard
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.benchmarks.leaderboard.entries": ("Row", "read_rows"),
            "turngym.benchmarks.leaderboard.table": ("Group", "Leaderboard", "leaderboard"),
        },
    )

__all__ = ["Group", "Leaderboard", "Row", "leaderboard", "read_rows"]
