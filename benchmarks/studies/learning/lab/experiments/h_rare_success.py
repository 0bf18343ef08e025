"""(h) Branching where the policy is uncertain, and replay of successes, where success is rare.

A lock that opens after 4 or 6 right actions in a row out of 4 each; a wrong one sets it back to the beginning. There
are 4 locks, which come up again and again, as replay into failed groups needs. ARPO begins with half of a group's
episodes and adds the other half as branches, so its groups are as large as those of the others.
"""

from __future__ import annotations

from typing import Any

from lab.experiment import Arm, Contrast, Experiment
from lab.runs import Method, Setting
from lab.task import Play
from lab.worlds import Combination

_PLAY = Play(groups=4, group_size=8)
_GRPO = {"kl_coef": 0.0, "normalisation": "token"}
_RARE = ("5 actions", "6 actions")
_REPLAYED = {"credit/replayed_episodes": 0.05}


def _replay(**settings: Any) -> Arm:
    return Arm(Method("grpo+replay", {"grpo": _GRPO, "replay": settings}), acts=_REPLAYED)


EXPERIMENT = Experiment(
    name="h",
    claim="ARPO and replay of successes beat GRPO where success is rare.",
    about=__doc__,
    source="ARPO (arXiv 2507.19849), ARPO for graphical interfaces (arXiv 2505.16282)",
    varied="right actions in a row that success needs",
    levels={
        f"{length} actions": Setting(Combination(length=length, locks=4, actions=4, limit=2 * length), 40_000, _PLAY)
        for length in (4, 5, 6)
    },
    arms={
        "grpo": Arm(Method("grpo", {"grpo": _GRPO})),
        "replay, failed groups": _replay(mode="failed_groups"),
        "replay, own groups": _replay(),
        "arpo": Arm(
            Method("arpo", {"arpo": {"episodes_per_group": 8}}), acts={"credit/branches_at_rises": 1}, group_size=4
        ),
    },
    contrasts=tuple(Contrast(arm, "grpo", _RARE) for arm in ("replay, failed groups", "replay, own groups", "arpo")),
    reasons={
        "grpo.kl_coef": "0, as in ARPO",
        "grpo.normalisation": "over tokens, as in ARPO",
        "replay.mode": "failed groups is the paper's, own groups is ours",
        "arpo.episodes_per_group": "8, the size of the other arms' groups; the paper goes from 8 to 16 as well by half",
    },
    watched=(
        "credit/replayed_episodes",
        "credit/branches_at_rises",
        "credit/groups_with_equal_returns",
        "policy/staleness_mean",
    ),
)
