"""What tests of vectors share: a plan to play by, and checks of what broke."""

import time
from typing import Any

from turngym.envs.vector import TextVectorEnv
from turngym.system.processes import has_ended
from turngym.types import INFO_TYPES


def is_running(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    return not has_ended(pid)


def assert_gone(pids: list[int]) -> None:
    """Fail unless the processes end soon."""
    deadline = time.monotonic() + 20
    while any(map(is_running, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(is_running, pids))


def assert_faulted(row: dict[str, Any], fault: str) -> None:
    assert {key: type(value) for key, value in row.items()} == INFO_TYPES
    assert row["fault"].startswith(fault) and row["success"] == 0


def play(vector: TextVectorEnv, turns: int, plan: dict[tuple[int, int], str]) -> list[Any]:
    """Play, saying up or down unless the plan has something else for (turn, slot); return all that was seen."""
    seen: list[Any] = [vector.reset(seed=4)[0]]
    for turn in range(turns):
        actions = [
            plan.get((turn, slot), "down" if (turn + slot) % 4 == 3 else "up") for slot in range(vector.num_envs)
        ]
        observations, rewards, terminations, truncations, infos = vector.step(actions)
        seen.append((observations, rewards.tolist(), terminations.tolist(), truncations.tolist(), infos.rows))
    return seen


def without(seen: list[Any], slot: int) -> list[Any]:
    """Return what was seen of the other slots."""
    keep = [seen[0][:slot] + seen[0][slot + 1 :]]
    return keep + [[list(part[:slot]) + list(part[slot + 1 :]) for part in turn] for turn in seen[1:]]


FAULTS = {
    "raise": "exception: ValueError: no such door",
    "exit": "exception: SystemExit: 3",
    "quit": "worker died (exit code 3)",
    "kill": "worker died (exit code -9)",
    "garbage": "garbage on the pipe",
    "hang": "timeout: step took longer than 1.5 s",
}
