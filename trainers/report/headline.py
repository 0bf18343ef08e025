"""The headline of a report: a few sentences and the numbers behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turngym.agents.episodes.evaluate import EvaluationResult
from turngym.trainers.core.wording import counted, percent, points
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.report.findings import (
    MODES,
    STAGES,
    Difference,
    HeldOut,
    RunData,
    Stage,
    Verdict,
    as_json,
    difference_from,
    held_out,
    read_run,
    success_interval,
)

POLICIES: Mapping[Stage, str] = {
    "before": "before training (warm-up)",
    "after": "after training",
    "control": "control (supervised)",
}


def why_unclear(difference: Difference) -> str:
    """Return why a difference is not significant."""
    if difference.estimate.low <= 0 <= difference.estimate.high:
        return "the interval includes 0"
    changed = difference.gained + difference.lost
    return f"only {counted(changed, 'instance')} came out differently, too few to tell"


def _headline_sentence(run: RunData) -> str:
    """Return a sentence on success before and after training, without overclaiming."""
    if run.mode is None:
        return "This run has no evaluation on held-out instances, so it does not show what training did."
    before, after = run.evaluation("before", run.mode), run.evaluation("after", run.mode)
    if before and after:
        return _change(run, before, after, run.mode)
    found = after or before
    if not found:
        return "Only the control was evaluated, so the run does not show what training did."
    when, other = ("after", "before") if after else ("before", "after")
    return (
        f"Success on {_instances(run, found.success.blocks)} was {percent(found.success.value)} {when} training "
        f"with {run.mode} actions. Nothing was evaluated that way {other} training, "
        "so the run does not show what training did."
    )


def _change(run: RunData, before: EvaluationResult, after: EvaluationResult, mode: str) -> str:
    difference = difference_from(run, "before", mode)
    if difference is None:
        return (
            f"Success with {mode} actions was {percent(before.success.value)} before training and "
            f"{percent(after.success.value)} after it. The two cannot be paired (no instance is recorded for both), "
            "so the run does not show an improvement."
        )
    where = _instances(run, difference.estimate.count)
    levels = f"{percent(difference.second)} to {percent(difference.first)} with {mode} actions"
    paired = f"paired difference {points(difference.estimate)}"
    if difference.verdict == "unclear":
        return (
            f"This run does not show an improvement: success on {where} went from {levels} "
            f"({paired}; {why_unclear(difference)}).{_left_out(difference)}"
        )
    start = "Success" if difference.verdict == "better" else "Training made the policy worse: success"
    verb = "went" if difference.verdict == "better" else "fell"
    return f"{start} on {where} {verb} from {levels} ({paired}).{_left_out(difference)}"


def _left_out(difference: Difference) -> str:
    if not difference.unmatched:
        return ""
    return f" {counted(difference.unmatched, 'instance')} that only one of the two played: left out."


def _instances(run: RunData, count: int) -> str:
    """Return the instances in words, called held-out only where training is not known to have shown any."""
    return counted(count, "evaluated instance" if held_out(run).seen else "held-out instance")


def control_sentence(run: RunData, mode: str | None = None) -> str:
    """Return how training compares with the same time spent on supervised learning; empty if unknown.

    Args:
        run: The run.
        mode: Whether actions are ``sampled`` or ``greedy``; that of the headline unless given.
    """
    mode = mode or run.mode
    difference = difference_from(run, "control", mode) if mode else None
    if difference is None:
        return _without_control(run)
    verdicts: Mapping[Verdict, str] = {
        "better": "Training did better than the control",
        "worse": "Training did worse than the control",
        "unclear": "Training cannot be told apart from the control",
    }
    reason = f"; {why_unclear(difference)}" if difference.verdict == "unclear" else ""
    count = run.config.get("warmup", {}).get("demonstrations")
    shown = f" from the same {counted(count, 'demonstration')}" if count else ""
    return (
        f"{verdicts[difference.verdict]}, which continued with supervised learning{shown} instead: "
        f"{percent(difference.first)} against {percent(difference.second)} "
        f"(paired difference {points(difference.estimate)}{reason}).{_left_out(difference)}"
    )


def _without_control(run: RunData) -> str:
    """Return what an improvement leaves open where no control was asked for."""
    gain = difference_from(run, "before", run.mode) if run.mode else None
    if run.config.get("control", True) or gain is None or gain.verdict != "better":
        return ""
    return (
        "No control was run, so whether the same time of supervised learning would have done as well is unknown: "
        "train without --no-control to see it."
    )


def held_out_sentence(found: HeldOut) -> str:
    """Return how the evaluated instances relate to those of training, in words.

    >>> held_out_sentence(HeldOut(200, 0, 12345))
    '200 distinct instances were evaluated; 0 of them are among the 12,345 that training showed, compared by hash.'
    """
    if not found.distinct:
        return "No evaluated instance is recorded, so they cannot be compared with those of training."
    evaluated = f"{counted(found.distinct, 'distinct instance')} {'was' if found.distinct == 1 else 'were'} evaluated"
    if found.seen is None or found.shown is None:
        return f"{evaluated}; which instances training showed is not recorded, so overlap is unknown."
    warning = " Those are not held-out instances." if found.seen else ""
    verb = "is" if found.seen == 1 else "are"
    among = f"{found.seen:,} of them {verb} among the {found.shown:,} that training showed, compared by hash."
    return f"{evaluated}; {among}{warning}"


def _level(result: EvaluationResult | None) -> dict[str, Any] | None:
    if result is None:
        return None
    low, high = success_interval(result.success)
    return {"success": result.success.value, "low": low, "high": high, "episodes": result.success.count}


def headline(folder: RunFolder) -> dict[str, Any]:
    """Return the headline and the numbers behind it, as a value that JSON can hold.

    Keys: ``sentence``, ``control_sentence``, ``held_out_sentence``; ``mode`` (``"sampled"``, ``"greedy"`` or None: what
    the sentences are about); ``verdict`` (``"better"``, ``"worse"``, ``"unclear"`` or None: after against before);
    ``modes`` (mode -> ``before``, ``after``, ``control`` levels and ``after_minus_before``, ``after_minus_control``
    paired differences, each None where it is unknown; shares, not percentages); ``held_out``; ``missing``.
    """
    return headline_of(read_run(folder))


def headline_of(run: RunData) -> dict[str, Any]:
    """Return what ``headline`` does for a run that was read already."""
    modes = {
        mode: {
            **{stage: _level(run.evaluation(stage, mode)) for stage in STAGES},
            "after_minus_before": as_json(difference_from(run, "before", mode)),
            "after_minus_control": as_json(difference_from(run, "control", mode)),
        }
        for mode in MODES
    }
    main = modes[run.mode]["after_minus_before"] if run.mode else None
    return {
        "sentence": _headline_sentence(run),
        "control_sentence": control_sentence(run),
        "held_out_sentence": held_out_sentence(held_out(run)),
        "mode": run.mode,
        "verdict": main["verdict"] if main else None,
        "modes": modes,
        "held_out": held_out(run)._asdict(),
        "missing": list(run.missing),
    }
