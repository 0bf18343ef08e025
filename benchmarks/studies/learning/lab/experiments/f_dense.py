"""(f) Rewards for progress, against a reward at the end, for three methods.

The dense reward of a maze is the progress towards the goal as a share of the largest distance: a difference of
potentials, so the best policy is the same. Success is measured in the same way for both.
"""

from __future__ import annotations

from typing import Any

from lab.experiment import Arm, Contrast, Experiment
from lab.runs import Method, Setting
from lab.task import Play
from lab.worlds import Maze

_LEVELS = {
    "8 x 8": (Maze(size=8, limit=30), 8_000),
    "12 x 12": (Maze(size=12, limit=60), 16_000),
    "10 x 10, far": (Maze(size=10, limit=50), 24_000),
}
_METHODS: dict[str, dict[str, Any]] = {
    "ppo": {},
    "grpo": {"kl_coef": 0.0},
    "gigpo": {"kl_coef": 0.0},
}

EXPERIMENT = Experiment(
    name="f",
    claim="Dense rewards beat sparse ones.",
    about=__doc__,
    source="GEM (arXiv 2510.01051) and others",
    varied="how far the goal is",
    levels={name: Setting(world, turns, Play(groups=4, group_size=8)) for name, (world, turns) in _LEVELS.items()},
    arms={
        f"{method}, {rewards}": Arm(
            Method(method, {method: settings}),
            changes={"dense": float(rewards == "dense")},
            acts={"rollout/reward_sum": 0.0} if rewards == "dense" else {},
        )
        for method, settings in _METHODS.items()
        for rewards in ("dense", "sparse")
    },
    contrasts=tuple(Contrast(f"{method}, dense", f"{method}, sparse", tuple(_LEVELS)) for method in _METHODS),
    reasons={
        "grpo.kl_coef": "0, as in the other arms",
        "gigpo.kl_coef": "0, as in the other arms",
    },
    watched=("rollout/reward_sum", "credit/groups_with_equal_returns"),
)
