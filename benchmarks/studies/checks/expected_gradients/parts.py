"""Parts that methods share, each by itself: averages, divergences, ratios, group sizes, corrections for the sampler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, get_args

from turngym.benchmarks.studies.checks.expected_gradients.gradients import Arm, Objective
from turngym.benchmarks.studies.checks.expected_gradients.methods import BASES
from turngym.benchmarks.studies.checks.expected_gradients.world import SAMPLER, Rules
from turngym.trainers.algorithms.base.reward_kl import RewardKLEstimator
from turngym.trainers.core.weights import NORMALISATIONS


class Part(NamedTuple):
    """One row of a table.

    Args:
        name: What it is about.
        arm: What is measured.
        objective: What it is compared with.
        less: What is subtracted, so that the part alone is left.
        size: Episodes of a group.
        in_limit: Whether it is measured in the limit of a large batch too.
        is_branched: Whether the second episode of a group branches off from the first at its second turn.
    """

    name: str
    arm: Arm
    objective: Objective = Objective()
    less: Arm | None = None
    size: int = 2
    in_limit: bool = False
    is_branched: bool = False


def _rloo(settings: Mapping[str, Any], modifier: str = "", of_modifier: Mapping[str, Any] | None = None) -> Arm:
    """Return ``rloo``, which has no bias but for what these settings give it."""
    parts: dict[str, Mapping[str, Any]] = {"rloo": {**BASES["rloo"], "reward_kl_coef": 0.0, **settings}}
    if modifier:
        parts[modifier] = of_modifier or {}
    return Arm("+".join(parts), parts)


def _ppo(settings: Mapping[str, Any], algorithm: str = "ppo") -> Arm:
    """Return ``ppo`` with a critic that is far from right, which gives it no bias with a decay of 1."""
    return Arm(algorithm, {"ppo": {**BASES["ppo"], **settings}})


def _elsewhere(modifier: str = "", of_modifier: Mapping[str, Any] | None = None) -> Arm:
    """Return ``rloo`` on episodes of another sampler, with ratios against the trainer."""
    return replace(_rloo({}, modifier, of_modifier), sampler=SAMPLER, old_logprobs="trainer")


PLAIN = _rloo({})
_IN_LOSS = ("k2", "k3", "k1+", "abs")

SUM = {"normalisation": "trajectory_sum"}
_COMPARED = {**SUM, "kl_coef": 0.0}
TURNS = {**BASES["ppo"], "gamma": 1.0, "lam": 1.0, "kl_coef": 0.0, "invalid_penalty": 0.0}

_CREDIT = [
    Part("division by the standard deviation of the group (`grpo`)", Arm("grpo", {"grpo": _COMPARED})),
    Part(
        "turns compared with those of the same anchor (`gigpo`)",
        Arm("gigpo", {"gigpo": {**_COMPARED, "mode": "mean_norm", "invalid_penalty": 0.0}}),
    ),
    Part(
        "episodes compared with those of equal length (`stratified_grpo`)",
        Arm("stratified_grpo", {"stratified_grpo": {**SUM, "scale_by_std": False}}),
    ),
    Part("length-weighted baseline that contains the own return (`opo`)", Arm("opo", {"opo": SUM})),
    Part(
        "an invalid action penalised in its own turn, 0.1 (`dr_grpo`)",
        Arm("dr_grpo", {"dr_grpo": {"invalid_penalty": 0.1, "constant": 1.0}}),
        Objective(penalty=0.1),
    ),
    Part(
        "an episode and a branch from its second turn: the shared turn counts once, the mean depends on it "
        "(`arpo`, returns of 0 and 1)",
        Arm("arpo", {"arpo": SUM}, Rules(is_binary=True), collects=False),
        is_branched=True,
    ),
    Part("whitening over the tokens of the batch (`ppo`)", _ppo({"whiten": True})),
    Part("bootstrapping truncated episodes from a critic (`ppo`)", _ppo({"bootstrap_truncated": True})),
    Part("lambda 0.95 with an inaccurate critic (`ppo`)", _ppo({"lam": 0.95})),
    Part(
        "a discount of 0.95 per turn, by which turns are not weighted (`turn_ppo`)",
        Arm("turn_ppo", {"turn_ppo": {**TURNS, "gamma": 0.95}}),
        Objective(discount=0.95),
    ),
]
"""One reason each."""

PARTS: dict[str, list[Part]] = {
    "credit": [part._replace(in_limit=not part.is_branched) for part in _CREDIT],
    "normalisation": [Part(f"`{name}`", _rloo({"normalisation": name}), in_limit=True) for name in NORMALISATIONS],
    "ratio": [
        Part("`token`, token advantages from a critic", _ppo({})),
        Part("`turn_geometric_by_token`, the same advantages", _ppo({"ratio": "turn_geometric_by_token"})),
        Part("`turn_geometric`, the same advantages", _ppo({"ratio": "turn_geometric"})),
        Part("`turn_geometric`, one advantage per turn", _rloo({"ratio": "turn_geometric"})),
        Part("`turn_product`, one advantage per turn, not divided among its tokens", _rloo({"ratio": "turn_product"})),
        Part(
            "`turn_product` in `turn_ppo`, which divides it among its tokens",
            Arm("turn_ppo", {"turn_ppo": TURNS}),
        ),
        Part("`turn_geometric` in `turn_ppo`", Arm("turn_ppo", {"turn_ppo": {**TURNS, "ratio": "turn_geometric"}})),
    ],
    "divergence": [
        *(
            Part(
                f"`{name}` in the reward",
                _rloo({"reward_kl_coef": 1.0, "reward_kl_estimator": name}),
                Objective(reward=0.0, reward_divergence=1.0),
                PLAIN,
            )
            for name in get_args(RewardKLEstimator)
        ),
        *(
            Part(
                f"`{name}` in the loss",
                _rloo({"kl_coef": 1.0, "kl_estimator": name}),
                Objective(reward=0.0, divergence=1.0),
                PLAIN,
            )
            for name in _IN_LOSS
        ),
        Part("entropy in the loss", _rloo({"entropy_coef": 1.0}), Objective(reward=0.0, entropy=1.0), PLAIN),
    ],
    "group": [
        Part(f"{size} episodes", Arm("dr_grpo", {"dr_grpo": {"constant": 1.0}}), size=size) for size in (2, 3, 4)
    ],
    "sampler": [
        Part("ratios against the sampler, clipped", replace(_rloo({}), sampler=SAMPLER)),
        Part("ratios against the trainer", _elsewhere()),
        Part("`tis` of tokens", _elsewhere("tis")),
        Part("`tis` of turns", _elsewhere("tis", {"level": "turn"})),
        Part("`tis` of episodes", _elsewhere("tis", {"level": "episode"})),
        Part("`tis` of episodes, `cap` 1.2", _elsewhere("tis", {"level": "episode", "cap": 1.2})),
        Part("`icepop` of tokens", _elsewhere("icepop")),
        Part("`icepop` of episodes", _elsewhere("icepop", {"level": "episode"})),
        Part("`mis` of episodes, from 0.8 to 1.25", _elsewhere("mis", {"low": 0.8, "high": 1.25})),
    ],
}
