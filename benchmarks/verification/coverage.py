"""Published numbers that a check did not recompute: nothing but the submission itself stands behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from turngym.agents.recordings.submission import Submission
from turngym.agents.usage import Usage, total
from turngym.benchmarks.verification.replay import Replay
from turngym.trainers.core.wording import counted

PLAYED = ("success", "score", "return", "turns", "invalid_actions")
"""Numbers that follow from playing the actions again."""


def not_recomputed(submission: Submission, again: Replay | None, baselines: bool = False) -> dict[str, str]:
    """Return the numbers that were taken from the submission as they are, each with the reason.

    Args:
        submission: The submission.
        again: The outcome of replaying it; None if nothing was played again.
        baselines: Whether the baselines were played by this check.
    """
    found = dict.fromkeys(PLAYED, "nothing was played again") if again is None else dict(_of_play(submission, again))
    found["seconds"] = "its author gives the times"
    if _reports_usage(submission):
        found["usage"] = "the agent reports its tokens, calls, latency and costs"
    found |= {name: "it depends on the verifier's scores, which the submission gives" for name in _chosen(submission)}
    if submission.baselines and not baselines:
        found["normalised_mean"] = f"it depends on the baselines, and {_of_baselines(again)}; --baselines plays them"
    return found


def _of_play(submission: Submission, again: Replay) -> Iterator[tuple[str, str]]:
    """Yield the numbers that depend on episodes which were not played again."""
    left = sum(each["status"] != "env_error" for each in submission.episodes) - sum(again.played.values())
    if again.skipped:
        yield from dict.fromkeys(
            PLAYED, f"{counted(len(again.skipped), 'environment')} could not be played again"
        ).items()
        return
    if any(claims > played for claims, played in again.claims.values()):
        yield submission.config["suite"]["metric"], "some of the episodes that raise it were not played again"
    if left:
        yield from dict.fromkeys(PLAYED[1:], f"{left} episodes that claim nothing were not played again").items()
    broken = sum(row["status"] == "env_error" for row in submission.episodes)
    if broken:
        yield from dict.fromkeys(PLAYED[2:], f"{broken} episodes broke, which no replay confirms").items()
    if again.lenient:
        message = f"{again.lenient} episodes that broke or did not fit count as 0, and scores can be lower"
        yield "score", message


def _reports_usage(submission: Submission) -> bool:
    used = total(Usage.from_json(seat) for row in submission.episodes for seat in row["seats"].values())
    return bool(used.tokens_in or used.tokens_out or used.cost or used.calls or used.latency)


def _chosen(submission: Submission) -> list[str]:
    """Return the names of the numbers that depend on which attempt a verifier chose."""
    tables: Iterator[Mapping[str, Any]] = iter(submission.results["environments"].values())
    return sorted({name for table in tables for name in table if name.startswith(("chosen_of_", "gain_of_"))})


def _of_baselines(again: Replay | None) -> str:
    if again is None:
        return "they were not played again"
    count, played = again.baselines
    how = "all" if played == count else f"{played} of {count}"
    return f"{how} of their episodes came out the same, which does not show who played them"
