"""(g) Values that are played, learnt off-policy or over turns, against PPO's critic, where it has a hard time.

A slippery maze whose observations carry an irrelevant symbol: with 8 of them the critic sees each context rarely. Runs
are bounded by iterations, so that all arms train on the same number of episodes; VinePPO's continuations come on top
(``turns``), and (g2) gives it and PPO the same turns. One token a turn and one update of the policy a batch: ratios and
clips do nothing, only credit differs.

ArCHer's critic takes 20 updates an iteration (its source 50), from its replay. It is another network than PPO's and has
a step size of its own, the one of three that taught it most in runs with another seed. Its runs cost ten of PPO's, so
there are two step sizes and at most 100 seeds.
"""

from __future__ import annotations

from lab.experiment import Arm, Contrast, Experiment
from lab.runs import Method, Setting
from lab.task import Play
from lab.worlds import NoisyMaze

_PLAY = Play(groups=2, group_size=4)
_PPO = Arm(Method("ppo"))
_VINE = Arm(Method("vine_ppo", {"vine_ppo": {"kl_coef": 0.0}}), acts={"credit/states_measured": 1})
_ARCHER = {"bootstrap_truncated": False, "critic_updates": 20, "replay_ratio": 1, "buckets": 1024, "width": 32}
_WATCHED = ("credit/explained_variance", "credit/states_measured", "train/grad_norm")


def _world(symbols: int) -> NoisyMaze:
    return NoisyMaze(size=5, limit=16, slip=0.1, symbols=symbols, nearest=0.7)


EXPERIMENT = Experiment(
    name="g",
    claim="VinePPO, ArCHer and bi-level GAE beat PPO where its critic is hard to learn.",
    about=__doc__,
    source="VinePPO (arXiv 2410.01679), ArCHer (arXiv 2402.19446), VAGEN (its repository)",
    varied="irrelevant symbols in observations; equal episodes",
    levels={
        f"{symbols} symbol{'s' * (symbols > 1)}": Setting(_world(symbols), 0, _PLAY, iterations=80)
        for symbols in (1, 8)
    },
    arms={
        "ppo": _PPO,
        "vine_ppo": _VINE,
        "archer": Arm(
            Method("archer", {"archer": _ARCHER}), acts={"credit/replayed_turns": 1}, own={"critic_rate": 0.003}
        ),
        "bi_level_gae": Arm(
            Method("bi_level_gae", {"bi_level_gae": {"reward_kl_coef": 0.0}}),
            acts={"train/grad_norm": 1e-4},
        ),
    },
    contrasts=tuple(Contrast(arm, "ppo", ("8 symbols",)) for arm in ("vine_ppo", "archer", "bi_level_gae")),
    reasons={
        "archer.bootstrap_truncated": "off, as in the code of the papers",
        "archer.critic_updates": "20, for the 50 epochs of the source, which cost too much here",
        "archer.replay_ratio": "1, so that 20 updates cost less",
        "archer.buckets": "1024, enough for the words of this world",
        "archer.width": "32, that of the policy's network",
        "vine_ppo.kl_coef": "0, as in the other arms",
        "bi_level_gae.reward_kl_coef": "0, as in the other arms",
    },
    under_test=frozenset({"gamma", "normalisation"}),
    most_seeds=100,
    rates=(0.03, 0.1),
    watched=_WATCHED,
)

EQUAL_TURNS = Experiment(
    name="g2",
    claim="VinePPO beats PPO where its critic is hard to learn even if its continuations count as turns.",
    about="""VinePPO and PPO with equal turns.

The maze of (g) with 8 irrelevant symbols. The nine continuations that VinePPO plays from every turn count as turns like
all others, so it makes far fewer iterations.
""",
    source="VinePPO (arXiv 2410.01679)",
    varied="environment turns, continuations included",
    levels={f"{turns:,} turns": Setting(_world(8), turns, _PLAY) for turns in (20_000, 80_000)},
    arms={"ppo": _PPO, "vine_ppo": _VINE},
    contrasts=(Contrast("vine_ppo", "ppo", ("20,000 turns", "80,000 turns")),),
    reasons={"vine_ppo.kl_coef": "0, as in the other arm"},
    under_test=frozenset({"normalisation"}),
    watched=_WATCHED,
)
