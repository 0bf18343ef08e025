"""Types that more than one layer uses."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

Split: TypeAlias = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")

StrPath: TypeAlias = str | os.PathLike[str]
"""A path, as public functions take it."""


class _Unknown(float):
    """NaN that equals NaN, so the infos of equal episodes are equal, as Gymnasium's checker requires."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and math.isnan(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = float.__hash__


UNKNOWN = _Unknown("nan")
"""The progress of a task for which it is not known."""

JSONValue: TypeAlias = Any  # a value that json.dumps accepts; the recursive type is not worth its noise


class Info(TypedDict):
    """The ``info`` of every environment; all keys but ``columns`` are always present, with fixed types."""

    anchor: str
    """Canonical text of what the agent can know now: no hidden fact, no turn counter."""
    legal_actions: tuple[str, ...]
    """The actions that are legal now; empty if there is no list."""
    action_is_valid: bool
    """True if the last action text was understood and legal; True after a reset."""
    success: int
    """-1 while the episode runs, then 1 if the task was solved and 0 if not."""
    progress: float
    """Progress of the task, in [0, 1]; nan if unknown."""
    score: float
    """The benchmark's number for the episode so far."""
    fault: str
    """Cause of the fault, empty if there is none."""
    columns: NotRequired[Mapping[str, float | str]]
    """Named finite numbers and texts about the turn just taken, for training methods and for whoever reads
    trajectories: at most 64 names and 100,000 characters. A number whose name starts with ``reward/`` is a part of the
    reward."""


INFO_TYPES: dict[str, type] = {
    "anchor": str,
    "legal_actions": tuple,
    "action_is_valid": bool,
    "success": int,
    "progress": float,
    "score": float,
    "fault": str,
}
