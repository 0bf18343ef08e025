"""(l) A turn limit as the end of an episode, against values of the critic after it.

A maze with the reward at the goal alone and at most 25 turns of one token; the policy does not see the turn. PPO does
not discount, Turn-PPO by 0.99 a turn.
"""

from __future__ import annotations

from lab.experiment import Arm, Contrast, Experiment
from lab.runs import Method, Setting
from lab.task import Play
from lab.worlds import Maze

_ACTED = {"rollout/truncated": 0.05}


def _arm(method: str, is_bootstrapped: bool) -> Arm:
    settings = {"bootstrap_truncated": is_bootstrapped, "invalid_penalty": 0.0}
    return Arm(Method(method, {method: settings}), acts=_ACTED)


EXPERIMENT = Experiment(
    name="l",
    claim="A turn limit that counts as the end of an episode beats values after it, where success must come within it.",
    about=__doc__,
    source="code of verl and RAGEN, against Pardo et al. 2018 (arXiv 1712.00378)",
    varied="turns of an episode",
    levels={"25 turns": Setting(Maze(size=5, limit=25), 8_000, Play(groups=4, group_size=8), minibatches=4)},
    arms={
        f"{method}, {name}": _arm(method, is_bootstrapped)
        for method in ("ppo", "turn_ppo")
        for name, is_bootstrapped in (("ended", False), ("valued", True))
    },
    contrasts=tuple(
        Contrast(f"{each}, ended", f"{each}, valued", ("25 turns",), primary=each == "ppo")
        for each in ("ppo", "turn_ppo")
    ),
    reasons={
        "ppo.bootstrap_truncated": "under test",
        "turn_ppo.bootstrap_truncated": "under test",
        "turn_ppo.invalid_penalty": "0: no action is invalid",
    },
    under_test=frozenset({"bootstrap_truncated"}),
    most_seeds=20,
    rates=(0.03,),
    watched=("credit/explained_variance", "rollout/turns", "policy/entropy_sampled"),
)
