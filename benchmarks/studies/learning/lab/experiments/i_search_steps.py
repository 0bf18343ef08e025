"""(i) StepSearch's rewards for single searches, on questions over several hops.

A question's answer stands at the end of a chain of documents, which are found one after another; one search finds one
document. Information gain and redundancy are those of ``turngym.envs.search.step_rewards`` with the weight of the
source, 0.6 times (gain less redundancy); the answer pays 1. With one hop the answer stands in the first document.

Two things make redundancy weigh more here than with a language model: policies begin at random, so that they repeat
searches often, and a search returns one document instead of three, so that a repeated one is redundant as a whole.
"""

from __future__ import annotations

from typing import Any

from lab.experiment import Arm, Contrast, Experiment
from lab.questions import Questions
from lab.runs import Method, Setting
from lab.task import Play

_WEIGHT = 0.6
_METHODS: dict[str, dict[str, Any]] = {
    "ppo": {},
    "grpo": {"kl_coef": 0.0, "normalisation": "token"},
}
_STEPS = {
    "": {},
    ", steps": {"gain": _WEIGHT, "penalty": _WEIGHT},
    ", gain": {"gain": _WEIGHT},
    ", penalty": {"penalty": _WEIGHT},
}
_SEVERAL = ("2 hops", "3 hops", "4 hops")


def _level(hops: int) -> Setting:
    return Setting(Questions(hops=hops, limit=2 * hops + 2), 8_000, Play(groups=4, group_size=8))


def _arm(method: str, steps: str) -> Arm:
    acts = {"train/grad_norm": 1e-4} if steps else {}
    return Arm(Method(method, {method: _METHODS[method]}), changes=_STEPS[steps], acts=acts)


EXPERIMENT = Experiment(
    name="i",
    claim="StepSearch's step rewards beat the answer's reward alone on questions of two and more hops.",
    about=__doc__,
    source="StepSearch (arXiv 2505.15107)",
    varied="documents that lead to the answer",
    levels={"1 hop": _level(1), **{name: _level(int(name[0])) for name in _SEVERAL}},
    arms={
        **{f"ppo{steps}": _arm("ppo", steps) for steps in _STEPS},
        **{f"grpo{steps}": _arm("grpo", steps) for steps in ("", ", steps")},
    },
    contrasts=(
        Contrast("ppo, steps", "ppo", _SEVERAL),
        Contrast("grpo, steps", "grpo", _SEVERAL),
        Contrast("ppo, gain", "ppo", _SEVERAL, primary=False),
        Contrast("ppo, penalty", "ppo", _SEVERAL, primary=False),
    ),
    reasons={
        "grpo.kl_coef": "0, as in the other arms",
        "grpo.normalisation": "over tokens, as in the other arms",
    },
    most_seeds=160,
    watched=("rollout/reward_sum", "rollout/turns", "credit/explained_variance"),
)
