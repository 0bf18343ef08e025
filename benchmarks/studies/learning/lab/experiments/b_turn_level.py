"""(b) A turn as the action, against a token as the action, and against groups of episodes.

A maze in which every fifth move goes astray. An action is a word: its symbol, 1, 4 or 16 times; any other answer is
invalid and does nothing. At first half of the answers of several tokens are words, whatever their length, so the levels
differ in the number of tokens alone.
"""

from __future__ import annotations

from lab.experiment import Arm, Contrast, Experiment
from lab.runs import Method, Setting
from lab.task import Play
from lab.worlds import Maze

_WORLD = Maze(size=8, limit=40, slip=0.2)
_ACTED = {"loss/clip_fraction_turn": 1e-4}


def _level(tokens: int) -> Setting:
    play = Play(groups=4, group_size=8, turn_tokens=tokens)
    return Setting(_WORLD, 30_000, play, minibatches=4, copying=0.5 ** (1 / max(tokens - 1, 1)))


EXPERIMENT = Experiment(
    name="b",
    claim="Turn-level PPO beats token-level PPO and GRPO with turns of many tokens in a stochastic environment.",
    about=__doc__,
    source="Turn-PPO (arXiv 2512.17008)",
    varied="tokens of a turn",
    levels={f"{tokens} tokens": _level(tokens) for tokens in (1, 4, 16)},
    arms={
        "ppo": Arm(
            Method(
                "ppo",
                {
                    "ppo": {
                        "kl_coef": 0.001,
                        "invalid_penalty": 0.1,
                        "normalisation": "trajectory",
                    }
                },
            )
        ),
        "grpo": Arm(Method("grpo", {"grpo": {"kl_coef": 0.001, "invalid_penalty": 0.1}})),
        "turn_ppo": Arm(Method("turn_ppo"), acts=_ACTED),
        "turn_ppo, undiscounted": Arm(Method("turn_ppo", {"turn_ppo": {"gamma": 1.0, "lam": 1.0}}), acts=_ACTED),
    },
    contrasts=(
        Contrast("turn_ppo", "ppo", ("4 tokens", "16 tokens")),
        Contrast("turn_ppo", "grpo", ("4 tokens", "16 tokens")),
        Contrast("turn_ppo, undiscounted", "ppo", ("4 tokens", "16 tokens")),
    ),
    reasons={
        "ppo.kl_coef": "0.001, that of Turn-PPO, in all arms",
        "ppo.invalid_penalty": "0.1, that of Turn-PPO, in all arms",
        "ppo.normalisation": "over trajectories, as in the other arms",
        "grpo.kl_coef": "0.001, that of Turn-PPO, in all arms",
        "grpo.invalid_penalty": "0.1, that of Turn-PPO, in all arms",
        "turn_ppo.gamma": "1 in the undiscounted arm, as PPO has it: what is left is the turn as the action",
        "turn_ppo.lam": "1 in the undiscounted arm, as PPO has it",
    },
    under_test=frozenset({"gamma", "lam", "ratio", "value_position"}),
    watched=("credit/explained_variance", "loss/clip_fraction_token", "policy/entropy_sampled"),
)
