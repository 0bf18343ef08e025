"""(g) Values that are played, learnt off-policy or over turns, against PPO's critic, where it has a hard time.

A slippery maze whose observations carry an irrelevant symbol: with 8 of them the critic sees each context rarely. Runs
are bounded by iterations, so that all arms train on the same number of episodes; VinePPO's continuations come on top
(``turns``), and at one level every arm has the same turns, continuations included. One token a turn and one update a
batch: ratios and clips do nothing, only credit differs.
"""

from __future__ import annotations

from lab.experiment import Arm, Contrast, Experiment
from lab.runs import Method, Setting
from lab.task import Play
from lab.worlds import NoisyMaze

_PLAY = Play(groups=2, group_size=4)


def _world(symbols: int) -> NoisyMaze:
    return NoisyMaze(size=5, limit=16, slip=0.1, symbols=symbols, nearest=0.7)


_EQUAL = ("8 symbols", "8 symbols, equal turns")

EXPERIMENT = Experiment(
    name="g",
    claim="VinePPO, ArCHer and bi-level GAE beat PPO where its critic is hard to learn.",
    source="VinePPO (arXiv 2410.01679), ArCHer (arXiv 2402.19446), VAGEN",
    varied="irrelevant symbols in observations, and what is equal between arms",
    levels={
        "1 symbol": Setting(_world(1), 0, _PLAY, iterations=80),
        "8 symbols": Setting(_world(8), 0, _PLAY, iterations=160),
        "8 symbols, equal turns": Setting(_world(8), 16_000, _PLAY),
    },
    arms={
        "ppo": Arm(Method("ppo", {"ppo": {"bootstrap_truncated": False}})),
        "vine_ppo": Arm(Method("vine_ppo", {"vine_ppo": {"kl_coef": 0.0}}), acts={"credit/states_measured": 1}),
        "archer": Arm(Method("archer", {"archer": {"bootstrap_truncated": False}}), acts={"credit/replayed_turns": 1}),
        "bi_level_gae": Arm(
            Method("bi_level_gae", {"bi_level_gae": {"bootstrap_truncated": False, "reward_kl_coef": 0.0}}),
            acts={"train/grad_norm": 1e-4},
        ),
    },
    contrasts=tuple(Contrast(arm, "ppo", _EQUAL) for arm in ("vine_ppo", "archer", "bi_level_gae")),
    reasons={
        "ppo.bootstrap_truncated": "off, as in the code of the papers",
        "archer.bootstrap_truncated": "off, as in the code of the papers",
        "bi_level_gae.bootstrap_truncated": "off, as in the code of the papers",
        "vine_ppo.kl_coef": "0, as in the other arms",
        "bi_level_gae.reward_kl_coef": "0, as in the other arms",
    },
    under_test=frozenset({"gamma", "normalisation"}),
    watched=("credit/explained_variance", "credit/states_measured", "train/grad_norm"),
)
