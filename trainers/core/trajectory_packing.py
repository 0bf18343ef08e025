"""Compact JSON of whole trajectories, with usage, notes and snapshots, for other processes of the run.

For a prompt that continues the previous turn only the new tokens are stored, and each image of an episode once.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from turngym.agents.chat import Note
from turngym.agents.trajectory import Branch, Trajectory, Turn
from turngym.agents.trajectory_json import trajectory_from_json, trajectory_to_json
from turngym.agents.usage import Usage


def packed(trajectory: Trajectory) -> dict[str, Any]:
    """Return a trajectory as JSON-compatible data, without its branching point.

    >>> from turngym.agents.trajectory import EpisodeSpec
    >>> played = Trajectory(EpisodeSpec(0, 7), turns=[Turn("", "", "go", notes=(Note("summary", "a wall"),))])
    >>> unpacked(packed(played)) == played
    True
    """
    content = trajectory_to_json(replace(trajectory, spec=replace(trajectory.spec, branch=None)))
    before: tuple[int, ...] = ()
    pictures: dict[bytes, int] = {}
    for turn, of_turn in zip(trajectory.turns, content["turns"], strict=True):
        shared = len(before) if before and turn.prompt_ids[: len(before)] == before else 0
        of_turn.pop("pictures", None)
        of_turn["prompt_ids"] = list(turn.prompt_ids[shared:])
        of_turn["packed"] = {
            "shared": shared,
            "pictures": [pictures.setdefault(file, len(pictures)) for file in turn.pictures],
            "snapshot": _text(turn.snapshot),
            "notes": [[note.purpose, note.text] for note in turn.notes],
            "usage": None if turn.usage is None else asdict(turn.usage),
        }
        before = turn.prompt_ids + turn.completion_ids
    return {**content, "packed_pictures": [_text(file) for file in pictures]}


def unpacked(content: Mapping[str, Any], branch: Branch | None = None) -> Trajectory:
    """Return the trajectory of a result of ``packed``.

    Args:
        content: Result of ``packed``.
        branch: Branching point in another episode.
    """
    plain = dict(content)
    pictures = [base64.b64decode(file) for file in plain.pop("packed_pictures")]
    plain["turns"] = [dict(turn) for turn in plain["turns"]]
    extras = [turn.pop("packed") for turn in plain["turns"]]
    found = trajectory_from_json(plain)
    found.spec = replace(found.spec, branch=branch)
    before: tuple[int, ...] = ()
    for turn, extra in zip(found.turns, extras, strict=True):
        _complete(turn, extra, before, pictures)
        before = turn.prompt_ids + turn.completion_ids
    return found


def _complete(turn: Turn, extra: Mapping[str, Any], before: tuple[int, ...], pictures: list[bytes]) -> None:
    """Restore shared data of a turn, and data missing in the plain format."""
    turn.prompt_ids = before[: extra["shared"]] + turn.prompt_ids
    turn.pictures = tuple(pictures[index] for index in extra["pictures"])
    turn.snapshot = base64.b64decode(extra["snapshot"])
    turn.notes = tuple(Note(purpose, text) for purpose, text in extra["notes"])
    turn.usage = None if extra["usage"] is None else Usage(**extra["usage"])


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
