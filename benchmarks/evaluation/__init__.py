"""Evaluations: their plan, the run, the folder that it writes and reads, and comparisons of two."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.agents.recordings.submission import Submission, load_submission
    from turngym.benchmarks.evaluation.comparison import Comparison, compare
    from turngym.benchmarks.evaluation.plan import Execution, Plan, play_plan, result_of
    from turngym.benchmarks.evaluation.run import EvaluationRun, Watcher
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.benchmarks.evaluation.comparison": ("Comparison", "compare"),
            "turngym.benchmarks.evaluation.plan": ("Execution", "Plan", "play_plan", "result_of"),
            "turngym.benchmarks.evaluation.run": ("EvaluationRun", "Watcher"),
            "turngym.agents.recordings.submission": ("Submission", "load_submission"),
        },
    )

__all__ = [
    "Comparison",
    "EvaluationRun",
    "Execution",
    "Plan",
    "Submission",
    "Watcher",
    "compare",
    "load_submission",
    "play_plan",
    "result_of",
]
