"""(e) Normalising returns over the batch, against groups of episodes and against returns as they are.

The maze of (a), with the reward at the goal alone or with one for every step towards it, and three discounts.
"""

from __future__ import annotations

from lab.experiment import Arm, Contrast, Experiment
from lab.runs import Method, Setting
from lab.task import Play
from lab.worlds import Maze

_LEVELS = ("sparse", "dense")
_ACTED = {"train/grad_norm": 1e-4}
_PLAIN = "lab.methods:PlainReinforce"

EXPERIMENT = Experiment(
    name="e",
    claim="Return batch normalisation beats GRPO and REINFORCE without it, with dense rewards and with sparse ones.",
    about=__doc__,
    source="GEM (arXiv 2510.01051)",
    varied="rewards",
    levels={
        "sparse": Setting(Maze(size=12, limit=60), 16_000, Play(groups=4, group_size=8)),
        "dense": Setting(Maze(size=12, limit=60, dense=1.0), 16_000, Play(groups=4, group_size=8)),
    },
    arms={
        "grpo": Arm(Method("grpo", {"grpo": {"kl_coef": 0.0, "normalisation": "token"}})),
        "rebn 0.9": Arm(Method("reinforce"), acts=_ACTED),
        "rebn 0.99": Arm(Method("reinforce", {"reinforce": {"gamma": 0.99}}), acts=_ACTED),
        "rebn 1": Arm(Method("reinforce", {"reinforce": {"gamma": 1.0}}), acts=_ACTED),
        "plain 0.9": Arm(Method(_PLAIN), acts=_ACTED),
        "plain 0.99": Arm(Method(_PLAIN, {"PlainReinforce": {"gamma": 0.99}}), acts=_ACTED),
    },
    contrasts=(
        *(Contrast(f"rebn {gamma}", "grpo", _LEVELS) for gamma in ("0.9", "0.99", "1")),
        *(Contrast(f"rebn {gamma}", f"plain {gamma}", _LEVELS) for gamma in ("0.9", "0.99")),
    ),
    reasons={
        "grpo.kl_coef": "0, as in the other arms",
        "grpo.normalisation": "over tokens, as in the other arms",
        "reinforce.gamma": "varied: 0.9 is the paper's for games, 1 for questions",
        "PlainReinforce.gamma": "varied as in the arm that it is compared with",
    },
    under_test=frozenset({"ddof", "epsilon"}),
    watched=("train/grad_norm", "rollout/turns", "policy/entropy_sampled"),
)
