"""Why two copies, or two processes, show different episodes for the same seed and actions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from turngym.envs.checks.case import Case, replay
from turngym.envs.checks.elsewhere import PLAIN, SHIFTED, ProcessResult, Setting, elsewhere
from turngym.envs.checks.rule import Finding, Skipped, difference


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why episodes differ.

    Args:
        cause: Name of the rule that is broken, empty if all is equal.
        found: The first difference.
    """

    cause: str = ""
    found: Finding | None = None


def here(case: Case) -> Diagnosis:
    """Return why two copies of this process show different episodes, if they do."""
    if "here" not in case.facts:
        case.facts["here"] = _diagnosed_here(case)
    return case.facts["here"]  # type: ignore[no-any-return]


def _diagnosed_here(case: Case) -> Diagnosis:
    twin = case.kept("second")
    found = None
    for episode in case.recorded:
        theirs = replay(twin, episode.seed, episode.actions)
        found = found or next(difference("two copies differ", episode.texts, theirs, episode.seed), None)
    if found is None:
        return Diagnosis()
    frozen = Setting(clock="frozen", twice=True)
    try:
        one = elsewhere(case).run(frozen)
        if not one.error and one.episodes == one.again:
            return Diagnosis("no-clock", found)  # what differs with a running clock is equal with a frozen one
        other = elsewhere(case).run(frozen, anew=True)
        if not one.error and (one.episodes, one.again) == (other.episodes, other.again):
            return Diagnosis("copies-isolated", found)  # the second copy sees what the first left
    except Skipped:
        pass
    return Diagnosis("seed-repeats", found)


def there(case: Case) -> Diagnosis:
    """Return why another process shows other episodes than this one, if it does.

    Raises:
        Skipped: There is no other process, or two copies differ even in this one.
    """
    if here(case).cause:
        raise Skipped("two copies differ even in one process")
    if "there" not in case.facts:
        case.facts["there"] = _diagnosed_there(case)
    return case.facts["there"]  # type: ignore[no-any-return]


def _diagnosed_there(case: Case) -> Diagnosis:
    processes = elsewhere(case)
    plain, shifted = processes.run(PLAIN), processes.run(SHIFTED)
    if plain.kind == "making":
        return Diagnosis("same-in-other-process", Finding(f"another process cannot make it: {plain.error}"))
    if not (found := _differs(case, plain) or _differs(case, shifted)):
        return Diagnosis()
    if _seen(plain) != _seen(processes.run(PLAIN, anew=True)):
        return Diagnosis("same-in-other-process", found)
    unshifted = processes.run(Setting(SHIFTED.hash_seed))
    if _seen(unshifted) != _seen(plain):
        return Diagnosis("no-hash-order", found)  # only the hash seed differs between the two
    return Diagnosis("no-clock" if _seen(shifted) != _seen(unshifted) else "same-in-other-process", found)


def _seen(seen: ProcessResult) -> Any:
    return seen.episodes, seen.error


def _differs(case: Case, seen: ProcessResult) -> Finding | None:
    if seen.error:
        return Finding(f"in another process, playing raised {seen.error}", case.first.seed)
    for episode, theirs in zip(case.recorded, seen.episodes, strict=True):
        if found := next(difference("another process differs", episode.texts, theirs, episode.seed), None):
            return found
    return None
