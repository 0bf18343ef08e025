"""Trajectories that the tests of reward models build on."""

from collections.abc import Sequence

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn


def walk(
    actions: str | Sequence[str],
    success: int = 0,
    *,
    instance: str = "task",
    group: int = 0,
    episode: int = 0,
    rewards: Sequence[float] = (),
    progress: Sequence[float] = (),
    fault: str = "",
) -> Trajectory:
    """Return an episode on a line: ``r`` goes right, ``l`` left, anything else stays; what is seen is the place."""
    place, seen = 0, ["at 0"]
    for action in actions:
        place += {"r": 1, "l": -1}.get(action, 0)
        seen.append(f"at {place}")
    paid = list(rewards) or [0.0] * max(len(actions) - 1, 0) + [float(success == 1)]
    turns = [
        Turn(seen[k], seen[k], action, reward=paid[k], progress=progress[k] if progress else float("nan"))
        for k, action in enumerate(actions)
    ]
    return Trajectory(
        EpisodeSpec(episode, 0, group),
        env_id="line",
        instance=instance,
        turns=turns,
        terminated=success == 1,
        truncated=success != 1,
        success=success,
        final_observation=seen[-1],
        final_anchor=seen[-1],
        fault=fault,
        progress=progress[-1] if progress else float("nan"),
    )


def line_episodes() -> list[Trajectory]:
    """Return solved and failed episodes of two tasks: three steps to the right solve one."""
    solved = ["rrr", "rlrrr", "xrrr", "rrxr", "rrlrr", "lrrrr"]
    failed = ["lll", "rlrl", "xxxx", "rrl", "lrlr", "llr"]
    return [
        walk(actions, success, instance=name)
        for name in ("one", "two")
        for group, success in ((solved, 1), (failed, 0))
        for actions in group
    ]
