"""Saving and restoring the states of a vector's environments; failures affect only their slot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from turngym.agents.trajectory import EpisodeSpec
from turngym.envs.vector import TextVectorEnv
from turngym.errors import ConfigError, SnapshotUnsupported, error_text


class Restored(NamedTuple):
    """Observation of a restored environment, or the fault that prevented restoring."""

    text: str
    image: NDArray[np.uint8] | None
    info: dict[str, Any]
    fault: str


def text_and_image(observations: Any, index: int) -> tuple[str, NDArray[np.uint8] | None]:
    """Return the text of an observation in a batch, and its image if it has one."""
    if isinstance(observations, dict):
        return observations["text"][index], observations.get("image", {index: None})[index]
    return observations[index], None


def saved_states(vector: TextVectorEnv, slots: Sequence[int]) -> dict[int, bytes]:
    """Return the snapshot of each slot; empty if the environment failed.

    Raises:
        SnapshotUnsupported: The environments cannot save their state.
    """
    if not slots:
        return {}
    try:
        return dict(zip(slots, vector.snapshot(slots), strict=True))
    except SnapshotUnsupported:
        raise
    except Exception:  # user code: a failure is a fault of the slot
        if len(slots) == 1:
            return {slots[0]: b""}
        return {slot: state for each in slots for slot, state in saved_states(vector, [each]).items()}


def bring_back(vector: TextVectorEnv, states: Mapping[int, bytes]) -> dict[int, Restored]:
    """Restore snapshots into slots, and return the observation of each."""
    if not states:
        return {}
    slots = list(states)
    try:
        observations, infos = vector.restore([states[slot] for slot in slots], slots)
    except Exception as error:  # user code: a failure is a fault of the slot
        if len(slots) == 1:
            lost = {"success": -1, "score": math.nan}
            return {slots[0]: Restored("", None, lost, f"restore failed: {error_text(error)}")}
        return {slot: seen for each in slots for slot, seen in bring_back(vector, {each: states[each]}).items()}
    return {
        slot: Restored(*text_and_image(observations, position), info, str(info["fault"]))
        for position, (slot, info) in enumerate(zip(slots, infos.rows, strict=True))
    }


def branch_state(spec: EpisodeSpec) -> bytes:
    """Return the snapshot of an episode's branching point; empty if it starts with a reset.

    Raises:
        ConfigError: The turn of the branching point has no snapshot.
    """
    branch = spec.branch
    if branch is None:
        return b""
    if not branch.trajectory.turns[branch.turn].snapshot:
        raise ConfigError(
            f"episode {spec.episode} is to branch off at turn {branch.turn} of episode "
            f"{branch.trajectory.spec.episode}, which has no snapshot there: roll out with snapshots=True."
        )
    return branch.trajectory.turns[branch.turn].snapshot
