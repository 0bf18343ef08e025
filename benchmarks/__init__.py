"""Suites, evaluations, tournaments, leaderboards and the commands of ``turngym``.

>>> from turngym.benchmarks import evaluate
>>> evaluate("turngym/GuessTheNumber-v0", "random", episodes=4).mean.count
4
"""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.agents.recordings.submission import Submission, load_submission
    from turngym.benchmarks.evaluation.comparison import Comparison, compare
    from turngym.benchmarks.evaluation.evaluate import evaluate
    from turngym.benchmarks.evaluation.records import Evaluation
    from turngym.benchmarks.evaluation.states import recorded_states
    from turngym.benchmarks.exports import export
    from turngym.benchmarks.leaderboard.entries import Entry, read_entries
    from turngym.benchmarks.leaderboard.table import Leaderboard, build_leaderboard
    from turngym.benchmarks.pages.leaderboard import leaderboard_page
    from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry
    from turngym.benchmarks.tournaments.plan import TournamentPlan
    from turngym.benchmarks.tournaments.run import play_tournament
    from turngym.benchmarks.verification.verify import Verification, verify_submission
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.benchmarks.evaluation.comparison": ("Comparison", "compare"),
            "turngym.benchmarks.evaluation.evaluate": ("evaluate",),
            "turngym.benchmarks.evaluation.records": ("Evaluation",),
            "turngym.benchmarks.evaluation.states": ("recorded_states",),
            "turngym.agents.recordings.submission": ("Submission", "load_submission"),
            "turngym.benchmarks.exports": ("export",),
            "turngym.benchmarks.leaderboard.entries": ("Entry", "read_entries"),
            "turngym.benchmarks.leaderboard.table": ("Leaderboard", "build_leaderboard"),
            "turngym.benchmarks.pages.leaderboard": ("leaderboard_page",),
            "turngym.benchmarks.suites": ("SUITES", "Suite", "SuiteEntry"),
            "turngym.benchmarks.tournaments.plan": ("TournamentPlan",),
            "turngym.benchmarks.tournaments.run": ("play_tournament",),
            "turngym.benchmarks.verification.verify": ("Verification", "verify_submission"),
        },
    )

__all__ = [
    "SUITES",
    "Comparison",
    "Entry",
    "Evaluation",
    "Leaderboard",
    "Submission",
    "Suite",
    "SuiteEntry",
    "TournamentPlan",
    "Verification",
    "build_leaderboard",
    "compare",
    "evaluate",
    "export",
    "leaderboard_page",
    "load_submission",
    "play_tournament",
    "read_entries",
    "recorded_states",
    "verify_submission",
]
