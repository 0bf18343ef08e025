"""Snapshots of worlds whose engine has none: the actions of the episode, taken again, and a look at where they led."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from turngym.envs.core import TextEnv
from turngym.errors import SnapshotUnsupported


def require_same(env: TextEnv[Any], found: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Raise unless replaying has led to where the snapshot was taken.

    Args:
        env: The environment, its instance drawn.
        found: Parts of the state, as they are after the replay.
        state: The snapshot, which holds these parts and may hold others.

    Raises:
        SnapshotUnsupported: A part differs.
    """
    if any(state[name] != value for name, value in found.items()):
        raise SnapshotUnsupported(
            f"replaying {env.instance} of {env.env_id} diverged: another version of its package or its files?"
        )
