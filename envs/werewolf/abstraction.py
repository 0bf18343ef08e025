"""An abstraction of Werewolf for solvers: seats that look alike to the one that decides are one target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from turngym.envs.werewolf.knowledge import Knowledge
from turngym.envs.werewolf.roles import WEREWOLF


def knowledge_of(seat: int, role: str, lines: Sequence[str]) -> Knowledge:
    """Return what a seat knows from the lines that it has read."""
    found = Knowledge()
    found.start(seat, role)
    found.hear(lines)
    return found


def kind_of(known: Knowledge, target: int) -> str:
    """Return what a seat is to another one: the first that holds of a few kinds.

    >>> known = knowledge_of(0, "villager", ["[Day 1] player_2: I am the seer."])
    >>> kind_of(known, 2), kind_of(known, 1)
    ('claimant', 'other')
    """
    if target == known.seat:
        return "self"
    if known.role == WEREWOLF and target in known.wolves:
        return "teammate"
    if target in known.seen:
        return "known werewolf" if known.seen[target] else "known innocent"
    if target in known.claims:
        return "claimant"
    if (called := known.believed().get(target)) is not None:
        return "called a werewolf" if called else "called innocent"
    accusers = known.accusers()
    if known.seat in accusers and target in accusers[known.seat]:
        return "accuser"
    return "accused" if len(accusers.get(target, ())) > 1 else "other"


def view_of(known: Knowledge, phase: str, targets: Sequence[int]) -> str:
    """Return phase, number of the living, and how many seats of each kind there are."""
    others = [seat for seat in known.living if seat != known.seat]
    counts = Counter(kind_of(known, target) for target in targets or others)
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    own = "; it has claimed to be the seer" if known.seat in known.claims else ""
    return f"{phase}, {len(known.living)} living: {kinds}{own}"
