"""Notes of a check: facts that a reader of the result should know, which make no submission wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from turngym.agents.recordings.remade import CANNOT_BE_MADE, refused
from turngym.agents.recordings.submission import Submission
from turngym.benchmarks.suites import SuiteEntry
from turngym.benchmarks.verification.replay import Replay, chance_unnoticed
from turngym.benchmarks.verification.tasks import known_entries
from turngym.envs.registration import env_refusal, is_foreign
from turngym.plugins import is_registered
from turngym.trainers.core.wording import counted

_TO_REPLAY = (
    "to have it replayed, register it in a package (`turngym new-env NAME --package` writes one), declare file_options "
    "on its class, and evaluate it by its id; the package must be installed where it is verified"
)


def notes(submission: Submission) -> Iterator[str]:
    """Yield what the files alone tell."""
    if submission.transcripts is None:
        yield "there are no transcripts: what the agent wrote cannot be read"
    errors = sum(row["status"] == "agent_error" for row in submission.episodes)
    if errors:
        yield f"in {errors} episodes the agent failed to answer, which counts as played"
    cut = sum(row["status"] == "context" for row in submission.episodes)
    if cut:
        yield f"in {cut} episodes the next prompt did not fit the model's context, which counts as failed"
    if submission.metadata.get("trained_on_suite") is None:
        yield "metadata.json does not say whether the agent was trained on the suite"


def task_notes(submission: Submission) -> Iterator[str]:
    """Yield where fewer tasks were played than the protocol asks, and where nobody checked which were played."""
    known, short = known_entries(submission), []
    for each in submission.config["environments"]:
        label, count = each["label"], len(each["seeds"])
        if env_refusal(each["env"], each["options"]):
            yield f"{label}: its {counted(count, 'task')} may have been chosen, as they cannot be drawn again here"
        elif label in known and _has_more(known[label], count):
            short.append(f"{label}: only the first {counted(count, 'task')} of {_most(known[label])} were played")
    if len(known) > 1 and short:
        yield f"only the first tasks of {counted(len(short), 'environment')} of the suite were played"
    else:
        yield from short


def _most(entry: SuiteEntry) -> int:
    return len(entry.seeds) or entry.episodes


def _has_more(entry: SuiteEntry, count: int) -> bool:
    """Return whether an environment has tasks, of those that are asked for, beyond a number."""
    try:
        return count < _most(entry) and (not entry.takes_fewer or entry.has_more_than(count))
    except CANNOT_BE_MADE:
        return False  # which the findings report


def replay_notes(submission: Submission, again: Replay | None) -> Iterator[str]:
    """Yield which environments were not played again and why, and how likely forgeries would have gone unnoticed.

    Args:
        submission: The submission.
        again: The outcome of replaying it; None if nothing was played again.
    """
    environments = {each["label"]: each for each in submission.config["environments"]}
    skipped = {label: refused(each) for label, each in environments.items()} if again is None else again.skipped
    for label, reason in skipped.items():
        if reason:
            yield f"{label} was not played again: {reason}{_advice(environments[label])}"
    for label, found in again.claims.items() if again else ():
        if told := unnoticed(label, *found):
            yield told


def _advice(environment: Mapping[str, Any]) -> str:
    """Return how an environment of its author's own can be replayed."""
    env_id = environment["env"]
    return "" if not is_foreign(env_id) or is_registered(env_id) else f"; {_TO_REPLAY}"


def unnoticed(label: str, claims: int, played: int) -> str:
    """Return how likely forged claims would have gone unnoticed; empty where all were played again."""
    if played == claims:
        return ""
    chances = [f"{forged} forged {chance_unnoticed(claims, played, forged):.0%}" for forged in (1, 5, 10)]
    return (
        f"{label}: {played} of {claims} claimed episodes were played again; unnoticed would have gone "
        f"{', '.join(chances)}: --replay 1 plays all"
    )
