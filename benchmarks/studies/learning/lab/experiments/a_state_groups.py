"""(a) Comparing turns that start from the same state, against comparing whole episodes.

A maze with one goal, 60 turns, a reward at the goal alone and 4 groups of 8 episodes. The levels vary how often a visit
of a state can be recognised: of the anchors that methods compare by, that share is the state itself, and every other
one is unique, as where a text contains the time of day. What the policy sees is the same at every level, so nothing but
the credit changes; GRPO does not read anchors and runs once for all levels.
"""

from __future__ import annotations

from lab.experiment import Arm, Contrast, Experiment
from lab.runs import Method, Setting
from lab.task import Play
from lab.worlds import AlikeMaze, Maze

_WORLD = Maze(size=12, limit=60)
_LEVELS = {"0 %": 0.0, "20 %": 0.2, "50 %": 0.5, "100 %": 1.0}
_CLAIMED = ("50 %", "100 %")
_SHARED = "credit/turns_with_shared_anchor"

EXPERIMENT = Experiment(
    name="a",
    claim="GiGPO and HGPO beat GRPO where states repeat, episodes are long and only the end pays.",
    about=__doc__,
    source="GiGPO (arXiv 2505.10978), HGPO (arXiv 2602.22817)",
    varied="share of turns whose state can be recognised",
    levels={
        name: Setting(_WORLD, 24_000, Play(groups=4, group_size=8, shared_anchors=share))
        for name, share in _LEVELS.items()
    },
    arms={
        "grpo": Arm(
            Method("grpo", {"grpo": {"kl_coef": 0.01, "invalid_penalty": 0.1, "normalisation": "token"}}),
            level_free=True,
        ),
        "gigpo": Arm(Method("gigpo"), acts={_SHARED: 0.1}),
        "hgpo": Arm(Method("hgpo", {"hgpo": {"over": "trajectories"}}), acts={"credit/levels_per_turn": 0.1}),
    },
    contrasts=(
        Contrast("gigpo", "grpo", _CLAIMED),
        Contrast("hgpo", "grpo", _CLAIMED),
        Contrast("hgpo", "gigpo", _CLAIMED),
    ),
    reasons={
        "grpo.kl_coef": "0.01, that of GiGPO's paper, where GRPO is the baseline",
        "grpo.invalid_penalty": "0.1, that of GiGPO's paper; no action of the maze is invalid",
        "grpo.normalisation": "over tokens, as in verl-agent, where the paper ran all three",
        "hgpo.over": "not read without base_group; as in the other arms",
    },
    watched=(_SHARED, "credit/levels_per_turn", "credit/groups_with_equal_returns", "rollout/turns"),
)

_ALIKE = Play(groups=4, group_size=8)
_HGPO = Arm(Method("hgpo", {"hgpo": {"over": "trajectories"}}), acts={"credit/levels_per_turn": 0.1})

HISTORY = Experiment(
    name="a2",
    claim="HGPO beats GiGPO where what a turn is worth depends on what came before the observation that is compared.",
    about="""HGPO where its condition holds.

The maze of (a). To the methods several cells look alike, as to an agent that is told what it sees now; the policy tells
them apart, as by its history. GiGPO compares turns with the same look; HGPO those with the same last looks as well,
which together tell cells apart.
""",
    source="HGPO (arXiv 2602.22817)",
    varied="cells that look alike to the methods; the policy tells them apart, as by its history",
    levels={
        f"{alike} alike": Setting(AlikeMaze(size=12, limit=60, alike=alike), 16_000, _ALIKE) for alike in (1, 3, 9)
    },
    arms={"gigpo": Arm(Method("gigpo"), acts={_SHARED: 0.1}), "hgpo": _HGPO},
    contrasts=(Contrast("hgpo", "gigpo", ("3 alike", "9 alike")),),
    reasons={"hgpo.over": "not read without base_group; as in (a)"},
    watched=(_SHARED, "credit/levels_per_turn", "rollout/turns"),
)
