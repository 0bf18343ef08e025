"""(k) Splitting a budget of turns between demonstrations and reinforcement.

An expert of the maze walks to the goal and makes a random move now and then; its turns cost as much as those of the
policy. The policy first imitates its successful episodes, in 20 updates over all of them, and then goes on with GRPO
for the turns that are left. The reward is at the goal alone.
"""

from __future__ import annotations

from lab.experiment import Arm, Contrast, Experiment
from lab.runs import Method, Setting
from lab.task import Play
from lab.worlds import Maze

_WORLD = Maze(size=8, limit=30)
_SHARES = (0, 25, 50, 75, 100)
_METHOD = Method("grpo", {"grpo": {"kl_coef": 0.0, "normalisation": "token"}})
_IMPERFECT = ("50 % slips", "80 % slips")


def _name(share: int) -> str:
    return f"{share} % imitated"


def _arm(share: int) -> Arm:
    acts = {"imitation/turns": 1.0} if share else {"train/grad_norm": 1e-4}
    return Arm(_METHOD, acts=acts, own={"imitation": share / 100})


_MIXED = tuple(_name(share) for share in (25, 50, 75))

EXPERIMENT = Experiment(
    name="k",
    claim="Of one budget of turns, imitation of an imperfect expert and then reinforcement beat either alone.",
    about=__doc__,
    source="the supervised start of most agents trained by reinforcement; no single paper",
    varied="random moves of the expert",
    levels={
        f"{slips} % slips": Setting(_WORLD, 8_000, Play(groups=2, group_size=8), slips=slips / 100)
        for slips in (0, 50, 80)
    },
    arms={_name(share): _arm(share) for share in _SHARES},
    contrasts=(
        Contrast("50 % imitated", "0 % imitated", _IMPERFECT),
        Contrast("50 % imitated", "100 % imitated", _IMPERFECT),
        *(
            Contrast(mixed, alone, _IMPERFECT, primary=False)
            for mixed in _MIXED
            if mixed != "50 % imitated"
            for alone in ("0 % imitated", "100 % imitated")
        ),
    ),
    reasons={
        "grpo.kl_coef": "0: the first policy is none to stay close to",
        "grpo.normalisation": "over tokens, as in (a)",
    },
    watched=("imitation/turns", "credit/groups_with_equal_returns"),
)
