"""(d) EPO against an entropy bonus of the same weight, and against none, over long episodes.

The maze of (a), 30 or 60 turns, a reward at the goal alone. There is no divergence from the first policy, which is
uniform here, so that it would be an entropy bonus itself. With the range of the paper, 0 to twice the mean of earlier
entropies, the penalty may never act: ``loss/entropy_penalty`` shows it. The tight range is ours. The entropy of first
and last turns tells whether it cascades over an episode.
"""

from __future__ import annotations

from typing import Any

from lab.experiment import Arm, Contrast, Experiment
from lab.runs import Method, Setting
from lab.task import Play
from lab.worlds import Maze

_ACTED = {"loss/entropy_penalty": 1e-5}
_LEVELS = {"30 turns": Maze(size=8, limit=30), "60 turns": Maze(size=12, limit=60)}
_CLAIMED = tuple(_LEVELS)


def _bonus(coefficient: float) -> Arm:
    return Arm(Method("grpo", {"grpo": {"kl_coef": 0.0, "entropy_coef": coefficient}}))


def _epo(**settings: Any) -> Arm:
    return Arm(Method("grpo+epo", {"grpo": {"kl_coef": 0.0}, "epo": settings}), acts=_ACTED)


EXPERIMENT = Experiment(
    name="d",
    claim="EPO beats an entropy bonus and none where episodes have 30 and more turns and only the end pays.",
    about=__doc__,
    source="EPO (arXiv 2509.22576)",
    varied="turns of an episode",
    levels={name: Setting(world, 0, Play(groups=4, group_size=8), iterations=14) for name, world in _LEVELS.items()},
    arms={
        "none": Arm(Method("grpo", {"grpo": {"kl_coef": 0.0}})),
        "bonus 0.001": _bonus(0.001),
        "epo 0.001": _epo(),
        "bonus 0.01": _bonus(0.01),
        "epo 0.01": _epo(coefficient=0.01),
        "epo 0.01, tight": _epo(coefficient=0.01, kappa_low=0.8, kappa_high=1.2),
    },
    contrasts=(
        Contrast("epo 0.001", "none", _CLAIMED),
        Contrast("epo 0.001", "bonus 0.001", _CLAIMED),
        Contrast("epo 0.01", "none", _CLAIMED),
        Contrast("epo 0.01", "bonus 0.01", _CLAIMED),
        Contrast("epo 0.01, tight", "bonus 0.01", _CLAIMED),
        Contrast("epo 0.01, tight", "none", _CLAIMED),
    ),
    reasons={
        "grpo.kl_coef": "0: the first policy is uniform, so a divergence from it rewards entropy",
        "grpo.entropy_coef": "the bonus of the arms that have one, with the coefficient of EPO",
        "epo.coefficient": "0.001 is the paper's; 0.01 as well, which a small network may need",
        "epo.kappa_low": "0.8 in the tight arm, so that the smoothing acts",
        "epo.kappa_high": "1.2 in the tight arm, so that the smoothing acts",
    },
    under_test=frozenset({"entropy_coef"}),
    watched=(
        "loss/entropy_penalty",
        "policy/entropy_first_turn",
        "policy/entropy_last_turn",
        "policy/entropy_turns_17_to_32",
        "policy/entropy_turns_from_33",
    ),
)
