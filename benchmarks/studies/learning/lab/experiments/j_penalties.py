"""(j) A penalty for invalid actions and for answers that do not parse.

A maze whose walls refuse a step. At one level half of the actions are never legal; at the other an action is a word of
4 tokens, and half of the first answers are none. The penalties are those of the papers and five times as much.
"""

from __future__ import annotations

from dataclasses import replace

from lab.experiment import Arm, Contrast, Experiment
from lab.runs import Method, Setting
from lab.task import Play
from lab.worlds import Maze

_WORLD = Maze(size=6, limit=30, walls_invalid=True)
_LEVELS = ("illegal actions", "misspelt answers")


def _arm(method: str, penalty: float) -> Arm:
    own = {"kl_coef": 0.01} if method == "grpo" else {}
    acts = {"rollout/invalid_actions": 0.01} if penalty else {}
    return Arm(Method(method, {method: {**own, "invalid_penalty": penalty}}), acts=acts)


EXPERIMENT = Experiment(
    name="j",
    claim="A penalty for invalid actions and unreadable answers helps.",
    about=__doc__,
    source="GiGPO (arXiv 2505.10978), RAGEN and others",
    varied="what can be invalid",
    levels={
        _LEVELS[0]: Setting(replace(_WORLD, extra_actions=4), 12_000, Play(groups=4, group_size=8)),
        _LEVELS[1]: Setting(_WORLD, 12_000, Play(groups=4, group_size=8, turn_tokens=4), copying=0.5 ** (1 / 3)),
    },
    arms={f"{method} {penalty:g}": _arm(method, penalty) for method in ("grpo", "ppo") for penalty in (0.0, 0.1, 0.5)},
    contrasts=tuple(
        Contrast(f"{method} {penalty}", f"{method} 0", _LEVELS)
        for method in ("grpo", "ppo")
        for penalty in ("0.1", "0.5")
    ),
    reasons={
        "grpo.kl_coef": "0.01, that of GiGPO's paper, which has the penalty",
        "grpo.invalid_penalty": "under test",
        "ppo.invalid_penalty": "under test",
    },
    under_test=frozenset({"invalid_penalty"}),
    watched=("rollout/invalid_actions",),
)
