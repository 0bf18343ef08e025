"""What stands between a method's expected gradient and that of its objective, for ``bias.py``.

A case has steps, each of which takes one named reason for a bias away, by a setting or by rules of the environment
under which it vanishes. After the last step nothing but a constant factor may be left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from turngym.benchmarks.studies.checks.expected_gradients.world import CONTINUATIONS

Class: TypeAlias = Literal["unbiased", "proportional", "vanishing", "biased"]
"""At a method's defaults its expected gradient is that of its objective; that times a constant; one or the other only
in the limit of a large batch; or neither."""


@dataclass(frozen=True)
class Step:
    """One reason for a bias, and what takes it away.

    Args:
        reason: The reason.
        settings: Settings of the method without it.
        rules: Rules of the environment without it: names of fields of ``Rules`` that become true.
        exact_critic: Whether the method is given the true values of states and actions.
    """

    reason: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    exact_critic: bool = False


@dataclass(frozen=True)
class Case:
    """How one method is compared with its objective.

    Args:
        expected: Its class.
        steps: Its reasons, one after another.
        discount: Setting that discounts the objective per turn; empty for none.
        weights: Part of the objective -> setting of a modifier that is its weight.
        base: For a modifier, the method that it goes around, which is unbiased with its settings in ``BASES``.
        settings: Settings that every figure is taken with.
        in_limit: Settings that figures of a large batch are taken with beside those.
        state: State that the method begins with.
        is_ordered: Whether the order of the episodes of a batch matters.
        collects: Whether the method's own ``collect`` gathers a batch.
        note: What its page says besides.
        objective: Parts of the objective that no setting gives.
    """

    expected: Class
    steps: tuple[Step, ...] = ()
    discount: str = ""
    weights: Mapping[str, str] = field(default_factory=dict)
    base: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    in_limit: Mapping[str, Any] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    is_ordered: bool = False
    collects: bool = False
    note: str = ""
    objective: Mapping[str, float] = field(default_factory=dict)


BASES: dict[str, dict[str, Any]] = {
    "rloo": {"normalisation": "trajectory_sum"},
    "ppo": {"normalisation": "trajectory_sum", "whiten": False},
}

_OF_GROUP = "division by the group's standard deviation, which depends on the actions"
_OF_BATCH = "whitening with the batch's mean and standard deviation, which depend on the actions"
_ANCHORS = "turns of one anchor are compared at any time, including later turns of the same episode"

LENGTH = Step(
    "averaging over numbers of tokens or turns, or lengths, that depend on the actions",
    {"normalisation": "trajectory_sum"},
)
SCALED = Step(_OF_GROUP, {"scale_by_std": False})
_CENTRED = Step(_OF_GROUP, {"mode": "mean_norm"})
_ALWAYS_SCALED = Step(_OF_GROUP, rules=("is_binary",))
WHITENED = Step(_OF_BATCH, {"whiten": False})
_ALWAYS_WHITENED = Step(_OF_BATCH, rules=("is_binary", "is_single"))
DIVERGENCE = Step(
    "k3 in the loss has the gradient of KL(reference, policy) and treats states as fixed", {"kl_coef": 0.0}
)
_STATES_GIVEN = Step("the KL term in the loss treats states as fixed", {"kl_coef": 0.0})
ENTROPY = Step("the entropy bonus treats states as fixed", {"entropy_coef": 0.0})
DISCOUNT = Step("turns are not weighted by the objective's discount", {"gamma": 1.0})
_DECAY = Step("lambda below 1 relies on the critic", {"lam": 1.0})
_BOOTSTRAP = Step("truncated episodes are bootstrapped from the critic", {"bootstrap_truncated": False})
PENALTY = Step("an invalid action is penalised in its own turn only", {"invalid_penalty": 0.0})
_TOKEN_RATIO = Step(
    "the turn ratio gives all its tokens the turn's mean advantage, later tokens included", {"gradient": "token"}
)

_CRITIC = (WHITENED, LENGTH)
OUTCOME = (_ALWAYS_SCALED, LENGTH)
_TO_TEACHER = {"reward": 0.0, "divergence": 1.0}
_OWN_STATES = Step("the KL to the teacher treats states as fixed", rules=("is_single",))
_CORRECTION = "For a sampler that differs from the trainer, see [samplers](README.md#expected-gradients)."
_FIRST = "At the first update of a batch all ratios are 1, and nothing is masked or weighted."

CASES: dict[str, Case] = {
    "a_lol": Case(
        "biased",
        (
            Step("likely episodes weigh more than under the reference", {"weight": "none"}),
            Step("episodes no better than their group are left out, and others weigh more", rules=("is_binary",)),
        ),
    ),
    "a3po": Case("biased", OUTCOME),
    "archer": Case(
        "biased",
        (Step("the critic is not exact", rules=("is_timed",), exact_critic=True), DISCOUNT, LENGTH),
        discount="gamma",
        collects=True,
    ),
    "arpo": Case(
        "biased",
        OUTCOME,
        note="Measured without branches; for their effect see the\n[reasons](README.md#expected-gradients).",
    ),
    "aspo": Case("unbiased", base="rloo", note=_FIRST),
    "bi_level_gae": Case("biased", (Step(DISCOUNT.reason, {"turn_gamma": 1.0}), *_CRITIC), discount="turn_gamma"),
    "bnpo": Case(
        "biased",
        (
            Step(
                "groups are weighted by their own success rates, and returns are cut to a range", rules=("is_binary",)
            ),
            LENGTH,
        ),
    ),
    "cispo": Case("biased", OUTCOME),
    "clip_cov": Case(
        "biased", (Step("tokens of high covariance are left out of the loss", {"share": 0.0}),), base="rloo"
    ),
    "dapo": Case(
        "biased",
        OUTCOME,
        note="Groups dropped by dynamic sampling contribute nothing: with one task, a constant factor.",
    ),
    "dgpo": Case(
        "biased",
        (
            Step(
                "division by the group's absolute deviation, and weights by its rate, which depend on the actions",
                rules=("is_binary",),
            ),
            LENGTH,
        ),
    ),
    "d3s": Case(
        "biased",
        (
            Step(
                "episodes and tokens are chosen by their advantages",
                {"episodes_start": 1.0, "tokens_start": 1.0},
            ),
        ),
        base="rloo",
    ),
    "dmpo": Case(
        "biased", (Step("likelihoods are drawn towards a distribution of returns", {"coef": 0.0}),), base="rloo"
    ),
    "dpo": Case(
        "biased",
        (
            Step(
                "returns are compared, and pairs in the right order weigh less",
                {"beta": 1e-13},
                rules=("is_binary", "is_single"),
            ),
        ),
    ),
    "dr_grpo": Case("proportional", note="The factor is (G - 1) / G over `constant`."),
    "dr_mas": Case("biased", (PENALTY, SCALED, LENGTH)),
    "dppo": Case("unbiased", base="rloo", note=_FIRST),
    "dro": Case("unbiased", base="rloo", note=_FIRST),
    "dvao": Case("biased", OUTCOME, note="Measured with one part."),
    "echo": Case(
        "unbiased",
        base="rloo",
        note="No prompt of this environment continues an earlier turn, so nothing is predicted. Where one does, the\n"
        "gradient of the log-likelihood of observations is added, which is none of the return.",
    ),
    "epo": Case(
        "biased", (Step(ENTROPY.reason, {"coefficient": 0.0}),), weights={"entropy": "coefficient"}, base="rloo"
    ),
    "g2rpo": Case("biased", (Step("ranks, not returns, are compared", rules=("is_binary",)), LENGTH)),
    "gbpo": Case(
        "biased",
        (
            Step("weights and targets follow mean, median and deviation of the group", rules=("is_binary",)),
            LENGTH,
        ),
    ),
    "gdpo": Case(
        "biased",
        (
            Step(
                "division by standard deviations of group and batch, which depend on the actions",
                rules=("is_binary", "is_single"),
            ),
            LENGTH,
        ),
    ),
    "gflownet": Case(
        "biased",
        (Step("parts of episodes are balanced by the learnt flow", {"objective": "trajectory"}),),
        objective={"entropy": 1.0},
    ),
    "gigpo": Case("biased", (DIVERGENCE, PENALTY, _CENTRED, LENGTH, Step(_ANCHORS, {"omega": 0.0}))),
    "gkd": Case(
        "biased",
        (Step("another divergence than KL(policy, teacher)", {"beta": 1.0}), LENGTH, _OWN_STATES),
        objective=_TO_TEACHER,
    ),
    "gmpo": Case("biased", OUTCOME),
    "gpg": Case(
        "vanishing",
        (Step("the scale of a batch depends on how many of its episodes are paid", rules=("is_binary",)), LENGTH),
    ),
    "grpo": Case("biased", (DIVERGENCE, SCALED, LENGTH)),
    "grpo_s": Case(
        "biased",
        (
            Step(
                "division by the group's standard deviation; returns count as right or wrong",
                rules=("is_binary",),
            ),
            LENGTH,
        ),
        note="Measured with equal entropies.",
    ),
    "gspo": Case("biased", OUTCOME),
    "hgpo": Case("biased", (DIVERGENCE, PENALTY, _CENTRED, LENGTH, Step(_ANCHORS, rules=("is_single",)))),
    "hierarchical_grpo": Case("vanishing", (LENGTH,)),
    "icepop": Case("unbiased", base="rloo", note=_CORRECTION),
    "igrpo": Case("biased", (DIVERGENCE, *OUTCOME), note="Measured on episodes without a draft."),
    "infopo": Case(
        "biased",
        OUTCOME,
        settings={"beta": 0.0},
        note="Measured without the information gain, which needs prompts of text.",
    ),
    "iw_opd": Case(
        "biased",
        (Step("weights depend on the actions", {"gamma": 0.0}), LENGTH, _OWN_STATES),
        objective=_TO_TEACHER,
    ),
    "kl_cov": Case("unbiased", base="rloo", note=_FIRST),
    "kto": Case(
        "biased",
        (
            Step(
                "returns count as desirable or not, and episodes that moved far weigh less",
                {"beta": 1e-13},
                rules=("is_binary",),
            ),
        ),
    ),
    "lite_ppo": Case("vanishing", (Step("division by the batch's standard deviation", rules=("is_binary",)), LENGTH)),
    "m_grpo": Case("biased", (SCALED, LENGTH)),
    "m2po": Case("unbiased", base="rloo", note=_CORRECTION),
    "mappo": Case("biased", (ENTROPY, DISCOUNT, _DECAY, _BOOTSTRAP, *_CRITIC), discount="gamma"),
    "maxrl": Case(
        "biased",
        (Step("division by the group's mean return, which depends on the actions", rules=("is_binary",)), LENGTH),
        note="The paper's objective is the log of the success rate.",
    ),
    "mis": Case("unbiased", base="rloo", note=_CORRECTION),
    "mmd": Case(
        "biased",
        (Step(_STATES_GIVEN.reason, {"magnet_coef": 0.0}),),
        weights={"divergence": "magnet_coef"},
        base="rloo",
    ),
    "nash_md": Case(
        "biased",
        (
            Step(
                "returns are only compared, and the KL term treats states as fixed",
                {"kl_coef": 0.0},
                rules=("is_binary",),
            ),
        ),
        collects=True,
        note="Measured against an opponent that always plays one episode.",
    ),
    "nft": Case(
        "biased",
        (Step("returns count as right or wrong, and groups are weighted by their rates", rules=("is_binary",)),),
    ),
    "offline": Case("unbiased", base="rloo", note="Measured on episodes of the policy itself, as in the first pass."),
    "opd": Case("biased", (LENGTH, _OWN_STATES), objective=_TO_TEACHER),
    "opd_advantage": Case(
        "biased",
        (Step(_OWN_STATES.reason, {"discount": 1.0}),),
        base="rloo",
        note="The teacher is the reference policy here, and 0.05 of the weight is the base method's own.",
        objective={"reward_divergence": 1.05},
    ),
    "opmd": Case("vanishing", (LENGTH,)),
    "opo": Case(
        "biased",
        (LENGTH, Step("the length-weighted baseline contains the episode's own return", rules=("is_single",))),
    ),
    "opsm": Case("unbiased", base="rloo", note=_FIRST),
    "otb": Case(
        "biased",
        (LENGTH, Step("the baseline contains the episode's own rewards and their weights", {"leave_one_out": True})),
    ),
    "pass_k": Case(
        "biased",
        (Step("only the best episode of a group counts", rules=("is_binary",)), LENGTH),
        note="The objective of the method is the best return of a group.",
    ),
    "pf_ppo": Case("biased", (Step("episodes are weighted by their own returns", {"power": 0.0}),), base="rloo"),
    "poad": Case("biased", (ENTROPY, DISCOUNT, _DECAY, *_CRITIC), discount="gamma"),
    "ppo": Case("vanishing", _CRITIC),
    "ppo_max": Case(
        "biased",
        (_DECAY, *_CRITIC),
        state={"moments": [1e15, 0.4, 1e15]},
        note="Measured with a deviation of 1, of many earlier returns.",
    ),
    "r2vpo": Case("unbiased", base="rloo", note=_FIRST),
    "rae": Case(
        "vanishing",
        (LENGTH,),
        in_limit={"decay": 1.0},
        state={"baselines": {"/player_0": 0.4}},
        is_ordered=True,
        note="In the limit the baseline is constant.",
    ),
    "rank_grpo": Case(
        "biased",
        (
            DIVERGENCE,
            _ALWAYS_SCALED,
            LENGTH,
            Step("turns of the same number are compared, which some episodes do not reach", rules=("is_single",)),
        ),
        discount="gamma",
    ),
    "rec": Case("unbiased", base="rloo", note=_FIRST),
    "reinforce": Case("biased", (DISCOUNT, LENGTH, _ALWAYS_WHITENED), discount="gamma"),
    "reinforce_pp": Case("vanishing", (LENGTH, replace(_ALWAYS_WHITENED, settings={"reward_kl_coef": 0.0}))),
    "reinforce_pp_baseline": Case("biased", (_STATES_GIVEN, LENGTH, _ALWAYS_WHITENED)),
    "remax": Case("vanishing", (LENGTH,), collects=True),
    "replay": Case(
        "unbiased",
        base="rloo",
        note="Measured without replayed episodes, which are selected by outcome and come from older policies.",
    ),
    "riskpo": Case(
        "biased",
        (Step("only the lower part of the distribution of returns counts", rules=("is_binary",)), LENGTH),
        in_limit={"bundle": 1},
        note=(
            "The objective of the method is a mean of the lower part of a bundle's scores. The large batch has bundles "
            "of one group: it lists every group in order, and bundles of neighbours, which share episodes, have a bias "
            "(.08) that bundles of independent groups do not have."
        ),
    ),
    "rloo": Case("vanishing", (LENGTH,)),
    "rto": Case("vanishing", _CRITIC, note="The teacher is the reference policy here: its token rewards are 0."),
    "s_ppo": Case("unbiased", base="ppo", note="The first update of a batch is never clipped."),
    "sdft": Case(
        "biased",
        (Step("another divergence than KL(policy, teacher)", {"beta": 1.0}), LENGTH, _OWN_STATES),
        objective=_TO_TEACHER,
    ),
    "sdpo": Case("biased", (LENGTH, _OWN_STATES), objective=_TO_TEACHER),
    "seed_grpo": Case(
        "biased",
        (Step("groups are weighted by the entropy of their own answers", {"alpha": 0.0}),),
        collects=True,
    ),
    "soft_ppo": Case("unbiased", base="rloo", note=_FIRST),
    "spo": Case("vanishing", (LENGTH, _ALWAYS_WHITENED), note="Measured with tasks that were not played before."),
    "st_ppo": Case("biased", (_TOKEN_RATIO,), base="ppo"),
    "stratified_grpo": Case(
        "biased",
        (SCALED, LENGTH, Step("episodes are compared with those of equal length", {"alpha": 0.0})),
    ),
    "t_ppo": Case("biased", (_DECAY, _BOOTSTRAP, *_CRITIC)),
    "tis": Case("unbiased", base="rloo", note=_CORRECTION),
    "topr": Case("unbiased", base="rloo", note=_FIRST),
    "trpa": Case(
        "biased",
        (
            Step(
                "levels are compared, and pairs in the right order weigh less",
                {"beta": 1e-13},
                rules=("is_binary", "is_single"),
            ),
        ),
    ),
    "turn_is": Case("biased", (_TOKEN_RATIO,), base="ppo"),
    "turn_ppo": Case("biased", (DIVERGENCE, DISCOUNT, _DECAY, *_CRITIC), discount="gamma"),
    "var_tb": Case("proportional", objective={"entropy": 1.0}, note="The factor is (G - 1) / G."),
    "vc_ppo": Case("biased", (_DECAY, *_CRITIC)),
    "vespo": Case("unbiased", base="rloo", note=_FIRST),
    "vine_ppo": Case(
        "biased",
        (DIVERGENCE, WHITENED, LENGTH),
        discount="gamma",
        settings={"num_rollouts": CONTINUATIONS},
        collects=True,
        note="Measured in the limit of many continuations per state.",
    ),
}
