"""(c) Turn-level ratios and the clipping-bias correction, where batches are used many times.

Turns of 4 tokens. The levels reuse a batch more and more: passes over it, and iterations that are sampled with the same
weights. All arms have one step size, so that reuse alone decides who collapses: a run has collapsed if it loses half of
its best success after it had reached 20 %. The norm of C is ``train/clipping_bias_norm``; ``raw`` divides by it,
the default by at least 1, which acts where ``train/clipping_bias_divisor`` is above 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lab.experiment import Arm, Contrast, Experiment
from lab.runs import Method, Setting
from lab.task import Play
from lab.worlds import Maze

_WORLD = Maze(size=5, limit=20, nearest=0.3)
_PPO = {"normalisation": "trajectory", "bootstrap_truncated": False}
_TURN = {"loss/clip_fraction_turn": 1e-4}
_DIVIDED = {"train/clipping_bias_divisor": 1.01}
_MOST = ("8 passes, stale", "16 passes, very stale")


def _level(epochs: int, refresh_every: int = 1) -> Setting:
    play = Play(groups=4, group_size=8, turn_tokens=4)
    return Setting(_WORLD, 12_000, play, epochs, 4, refresh_every, copying=0.5 ** (1 / 3))


def _method(modifier: str = "", **settings: Any) -> Method:
    parts: dict[str, Mapping[str, Any]] = {"ppo": _PPO}
    if settings:
        parts[modifier] = settings
    return Method(f"ppo+{modifier}" if modifier else "ppo", parts)


_NEW = ("turn_is", "s_ppo", "s_ppo raw", "st_ppo", "st_ppo raw")

EXPERIMENT = Experiment(
    name="c",
    claim="Turn-level ratios, S-PPO and ST-PPO stay stable where token-level PPO collapses under reuse of its samples.",
    source="ST-PPO / SORL (arXiv 2511.20718)",
    varied="reuse of a batch (4 minibatches a pass; stale: 4, very stale: 8 iterations with the same sampler)",
    levels={
        "1 pass": _level(1),
        "8 passes": _level(8),
        "8 passes, stale": _level(8, 4),
        "16 passes, very stale": _level(16, 8),
    },
    arms={
        "ppo": Arm(_method()),
        "turn_is": Arm(_method("turn_is"), acts=_TURN),
        "s_ppo": Arm(_method("s_ppo"), acts=_DIVIDED),
        "s_ppo raw": Arm(_method("s_ppo", normaliser="raw"), acts={"train/clipping_bias_norm": 1e-6}),
        "st_ppo": Arm(_method("st_ppo"), acts=_DIVIDED),
        "st_ppo raw": Arm(_method("st_ppo", normaliser="raw"), acts={"train/clipping_bias_norm": 1e-6}),
    },
    contrasts=(
        *(Contrast(arm, "ppo", _MOST) for arm in _NEW),
        *(Contrast(arm, "ppo", _MOST, outcome="kept", effect=0.3) for arm in _NEW),
    ),
    reasons={
        "ppo.normalisation": "over the tokens of a trajectory first, as the paper has it",
        "ppo.bootstrap_truncated": "off, as in the code of the papers",
        "s_ppo.normaliser": "varied: the paper's guard is not known",
        "st_ppo.normaliser": "varied: the paper's guard is not known",
    },
    rates=(0.05,),
    watched=(
        "train/clipping_bias_norm",
        "train/clipping_bias_divisor",
        "loss/clip_fraction_token",
        "train/grad_norm",
        "policy/ess",
        "policy/staleness_mean",
    ),
)
