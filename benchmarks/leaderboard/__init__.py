"""Leaderboards: submissions that played the same tasks, in tables with intervals and rank ranges."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.benchmarks.leaderboard.entries import Entry, read_entries
    from turngym.benchmarks.leaderboard.table import Group, Leaderboard, build_leaderboard
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.benchmarks.leaderboard.entries": ("Entry", "read_entries"),
            "turngym.benchmarks.leaderboard.table": ("Group", "Leaderboard", "build_leaderboard"),
        },
    )

__all__ = ["Entry", "Group", "Leaderboard", "build_leaderboard", "read_entries"]
