"""Methods that compare the episodes of a group: the worked numbers of their sources, and what sets them apart."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, tensor

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.columns import as_columns
from turngym.errors import ConfigError
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS, build
from turngym.trainers.algorithms.gdpo import read_weights, reward_parts, turn_parts
from turngym.trainers.algorithms.hgpo import history_keys
from turngym.trainers.algorithms.stratified_grpo import strata
from turngym.trainers.core.algorithm import Credit, LossInputs
from turngym.trainers.core.columns import lay_out_column
from turngym.trainers.core.turn_table import TurnTable, turn_table

torch.set_num_threads(1)


def close(found: Tensor, expected: object, atol: float = 1e-5) -> None:
    torch.testing.assert_close(found.detach().double(), torch.tensor(expected, dtype=torch.float64), atol=atol, rtol=0)


def episode(
    rewards: Sequence[float],
    anchors: Sequence[str] = (),
    tokens: Sequence[int] = (),
    group: int = 0,
    parts: Sequence[dict[str, float]] = (),
    invalid: Sequence[int] = (),
    **known: Any,
) -> Trajectory:
    turns = [
        Turn(
            "",
            anchor,
            "",
            completion_ids=(1,) * n,
            logprobs=(-1.0,) * n,
            reward=reward,
            columns=as_columns(parts[k]) if parts else {},
            action_is_valid=k not in invalid,
        )
        for k, (reward, anchor, n) in enumerate(
            zip(rewards, anchors or map(str, range(len(rewards))), tokens or [1] * len(rewards), strict=True)
        )
    ]
    return Trajectory(EpisodeSpec(0, 0, group), turns=turns, terminated=True, **known)


def of(name: str, table: TurnTable, **config: Any) -> Tensor:
    off = {"reward_kl_coef": 0.0} if hasattr(ALGORITHMS[name].Config, "reward_kl_coef") else {}
    return build(name, {name: {**off, **config}}).credit(table).advantages


# Section 7: one group with returns 1, 0, 0, 1, and one with 1, 1, 0


@pytest.mark.parametrize(
    ("name", "returns", "expected"),
    [
        ("dr_grpo", [1, 0, 0, 1], [0.5, -0.5, -0.5, 0.5]),
        # The others of the first return 0, 0, 1: baseline 1/3.
        ("rloo", [1, 0, 0, 1], [0.666667, -0.666667, -0.666667, 0.666667]),
        ("rloo", [1, 1, 0], [0.5, 0.5, -1]),
        # Mean 2/3, sample deviation .577350.
        *((name, [1, 1, 0], [0.577349, 0.577349, -1.154699]) for name in ("dapo", "gspo", "cispo", "gmpo", "a3po")),
    ],
)
def test_credit_by_hand(name: str, returns: list[float], expected: list[float]) -> None:
    close(of(name, turn_table([episode([r]) for r in returns])), expected, 2e-6)


def test_opo_weighs_episodes_by_their_tokens() -> None:
    # Lengths 2, 2, 6 with returns 1, 1, 0: baseline 4/10.
    table = turn_table([episode([1], tokens=[2]), episode([0, 1], tokens=[1, 1]), episode([0], tokens=[6])])
    close(of("opo", table), [0.6] * 4 + [-0.4] * 6, 1e-12)


def test_an_invalid_action_costs_its_own_turn_only() -> None:
    table = turn_table([episode([0, 1], invalid=[1]), episode([0, 0])])
    for name, expected in {"rloo": [1, 0.9, -1, -1], "opo": [0.5, 0.4, -0.5, -0.5]}.items():
        close(of(name, table, invalid_penalty=0.1), expected, 1e-12)


@pytest.mark.parametrize("name", ["reinforce_pp", "reinforce_pp_baseline"])
def test_whitening_over_tokens_by_hand(name: str) -> None:
    # Responses of 2 and 3 tokens, returns 1 and 0: mean .4 and variance .3 over tokens, for centred returns too.
    table = turn_table([episode([1], tokens=[2]), episode([0], tokens=[3])])
    close(of(name, table), [1.095445] * 2 + [-0.730297] * 3, 1e-6)


def test_reinforce_pp_discounts_tokens_and_not_observations() -> None:
    # Turns of 2 and 1 tokens with rewards 0 and 1, gamma .5: returns .25, .5, 1.
    table = turn_table([episode([0, 1], tokens=[2, 1])])
    torch.testing.assert_close(of("reinforce_pp", table, gamma=0.5), F.whiten(tensor([0.25, 0.5, 1.0]).double()))


def test_reinforce_pp_baseline_leaves_shrunk_groups_out_of_its_statistics() -> None:
    alone, others = episode([50], group=9), [episode([1], tokens=[2]), episode([0], tokens=[3])]
    close(of("reinforce_pp_baseline", turn_table([alone, *others])), [0] + [1.095445] * 2 + [-0.730297] * 3, 1e-6)


# HGPO, section 5: K = 2, three episodes over the states a, b, c, d, x


def hgpo_table() -> TurnTable:
    """Discounted by .95 the returns are [.9025, .95, 1], [0, 0, 0] and [.45125, .475, .5]."""
    return turn_table([episode([0, 0, 1], "abc"), episode([0, 0, 0], "abd"), episode([0, 0, 0.5], "xbc")])


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (1, [0.999997, 1.089895, 0.999996, -0.999997, -1.089895, 0, 0, 0, -0.999996]),
        (0, [0.999998, 1.074913, 0.999996, -0.999998, -1.074913, 0, 0, 0, -0.999996]),
    ],
)
def test_hgpo_by_hand(offset: int, expected: list[float]) -> None:
    close(of("hgpo", hgpo_table(), history=2, weight_offset=offset), expected, 3e-6)


def test_hgpo_keys_are_windows_of_anchors_inside_a_group() -> None:
    table = turn_table([episode([0, 0, 0], "aab"), episode([0, 0], "ab"), episode([0, 0], "ab", group=1)])
    one, two, three = history_keys(table, 3)
    assert one[0] == one[1] == one[3] != one[5]  # another group is never compared
    assert two[2] == two[4] != two[1]  # "ab" in two places; "aa"
    assert two[[0, 3, 5]].tolist() == [-1, -1, -1]
    assert (three >= 0).tolist() == [False, False, True, False, False, False, False]


def test_hgpo_without_history_is_the_step_part_of_gigpo() -> None:
    found = of("hgpo", hgpo_table(), history=0, mode="mean_norm", epsilon=0.0)
    whole = of("gigpo", hgpo_table(), mode="mean_norm") - of("gigpo", hgpo_table(), mode="mean_norm", omega=0.0)
    torch.testing.assert_close(found, whole)


# Stratified GRPO


def test_stratified_grpo_by_hand() -> None:
    # R = [1, 0, 1, 1, 0]: two episodes without a search and three with two. Population deviations, alpha .5.
    shapes = [1, 1, 3, 3, 3]
    table = turn_table([episode([0] * (n - 1) + [r]) for n, r in zip(shapes, [1, 0, 1, 1, 0], strict=True)])
    found = of("stratified_grpo", table)[table.first_tokens() & (table.turn == 0)[table.token_turn]]
    close(found, [0.908246, -1.112370, 0.761800, 0.761800, -1.319476], 2e-6)
    within = of("stratified_grpo", table, alpha=1.0)[table.turn == 0]
    close(within, [0.999998, -0.999998, 0.707105, 0.707105, -1.414211], 2e-6)


def test_strata_are_of_one_group_and_one_shape() -> None:
    table = turn_table(
        [episode([0, 0]), episode([0, 0], invalid=[0]), episode([0]), episode([0, 0], group=4), episode([0, 0])]
    )
    by_turns, by_valid = strata(table, "turns"), strata(table, "valid_turns")
    assert by_turns[0] == by_turns[1] == by_turns[4]
    assert len({int(key) for key in by_turns[[0, 2, 3]]}) == 3
    assert by_valid[1] == by_valid[2] != by_valid[0] == by_valid[4]


# GDPO

CHECK_GDPO = [{"r1": r1, "r2": r2} for r1, r2 in ((1.0, 1.0), (0.0, 1.0), (1.0, 1.0), (0.0, 0.0))]


def gdpo_table() -> TurnTable:
    return turn_table([episode([sum(parts.values())], parts=[parts]) for parts in CHECK_GDPO])


def test_gdpo_by_hand() -> None:
    close(of("gdpo", gdpo_table()), [0.769095, -0.206078, 0.769095, -1.332111], 2e-6)
    # On the sum of the parts GRPO would give [.783349, -.261116, .783349, -1.305581].
    close(of("grpo", gdpo_table()), [0.783349, -0.261116, 0.783349, -1.305581], 2e-6)


def test_gdpo_weighs_parts_and_can_count_trajectories() -> None:
    only_first = of("gdpo", gdpo_table(), weights="r2=0")
    close(only_first, [0.866025, -0.866025, 0.866025, -0.866025])
    by_trajectory = of("gdpo", gdpo_table(), whiten_over="trajectory")
    parts = [
        F.group_advantages(turn_parts(gdpo_table())[n], torch.zeros(4).long(), scale_by_std=True) for n in ("r1", "r2")
    ]
    total = parts[0] + parts[1]
    torch.testing.assert_close(by_trajectory, (total - total.mean()) / (total.std() + 1e-4))


def test_gdpo_falls_back_to_the_reward_and_counts_invalid_actions_as_a_part() -> None:
    table = turn_table([episode([1, 0], invalid=[0, 1]), episode([0, 0])])
    parts = reward_parts(table)
    assert {name: part.tolist() for name, part in parts.items()} == {"reward": [1, 0], "valid_actions": [-2, 0]}
    # Both parts are +-.707106 with opposite signs; the second weighs .1.
    assert of("gdpo", table, whiten_over="trajectory")[0] > 0
    assert of("gdpo", table, weights="valid_actions=2")[0] < 0
    assert list(reward_parts(turn_table([episode([1])]))) == ["reward"]


@pytest.mark.parametrize("text", ["progress", "progress=", "=1", "a=1,b"])
def test_weights_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"weights are written as in progress=0\.5,cost=2; got"):
        read_weights(text)
    with pytest.raises(ConfigError, match=r"gdpo has a weight for 'r3', a part of no reward. Did you mean 'r\d'\?"):
        of("gdpo", gdpo_table(), weights="r3=1")


# Dr. GRPO's constant, and A-3PO's proximal policy: losses


def inputs(
    log_ratio: object, advantages: object, turns: object, old: float = -1.0, credit: Credit | None = None
) -> LossInputs:
    """One micro-batch; with a credit its first tokens, in table order."""
    shift = torch.tensor(log_ratio, dtype=torch.float64)
    index = torch.arange(shift.numel()).reshape(shift.shape)
    return LossInputs(
        logprobs=(shift + old).requires_grad_(),
        old_logprobs=torch.full_like(shift, old),
        advantages=torch.tensor(advantages, dtype=torch.float64),
        action_mask=torch.tensor(turns) >= 0,
        turn_ids=torch.tensor(turns),
        weights={},
        entropy=torch.ones_like(shift),
        reference_logprobs=torch.full_like(shift, old - 0.5),
        columns={name: lay_out_column(each, index) for name, each in (credit.columns if credit else {}).items()},
    )


def test_dr_grpo_divides_every_term_by_its_constant() -> None:
    settings = {"normalisation": "trajectory_sum", "kl_coef": 0.1, "entropy_coef": 0.1}
    given = inputs([[0.1, -0.3]], [[1.0, 1.0]], [[0, 0]])
    plain = build("grpo", {"grpo": settings}).loss(given)
    scaled = build("dr_grpo", {"dr_grpo": {**settings, "constant": 4.0}}).loss(given)
    assert plain.terms.keys() == scaled.terms.keys() == {"policy", "entropy_bonus", "kl_penalty"}
    for name, term in plain.terms.items():
        torch.testing.assert_close(scaled.terms[name].values, term.values / 4)
    with pytest.raises(ConfigError, match="constant must be at least 1"):
        build("dr_grpo", {"dr_grpo": {"constant": 0}})


@pytest.mark.parametrize(
    ("staleness", "ratio", "weight"),
    [(4, 1.105171, 1.349859), (1, 1.491825, 1.0), (0, 1.491825, 1.0)],
)
def test_a3po_by_hand(staleness: int, ratio: float, weight: float) -> None:
    # lp -.6 against -1: at 4 iterations a = 3/4 and lp_prox = -.7, so the ratio is exp(.1) and the weight exp(.3).
    algorithm = build("a3po", {"a3po": {"clip_high": 9.0}})
    table = turn_table([episode([1]), episode([0])])
    credit = algorithm.credit(replace(table, staleness=torch.tensor([staleness, 0])))
    given = inputs([[0.4]], [[1.0]], [[0]], credit=credit)
    found = algorithm.surrogate(given)  # type: ignore[attr-defined]
    close(found.ratio, [[ratio]], 1e-6)
    close(found.policy.loss, [[-ratio * weight]], 1e-5)
    close(algorithm.loss(given).metrics["behaviour_weight"].values, [[weight]], 1e-6)
    (gradient,) = torch.autograd.grad(found.policy.loss.sum(), given.logprobs)
    close(gradient, [[-ratio * weight]], 1e-5)  # through the ratio alone: the proximal policy is a constant


def test_a3po_bounds_the_weight_of_stale_samples() -> None:
    algorithm = build("a3po", {"a3po": {"clip_high": 9.0, "weight_cap": 1.2}})
    table = replace(turn_table([episode([1]), episode([0])]), staleness=torch.tensor([4, 0]))
    found = algorithm.surrogate(inputs([[0.4]], [[1.0]], [[0]], credit=algorithm.credit(table)))  # type: ignore[attr-defined]
    close(found.policy.loss, [[-1.105171 * 1.2]], 1e-5)


def test_a3po_with_fresh_samples_is_grpo() -> None:
    a3po = build("a3po")
    credit = a3po.credit(turn_table([episode([1, 0]), episode([0])]))
    given = inputs([[0.4, -0.9]], [[1.0, -1.0]], [[0, 1]], credit=credit)
    fresh, plain = a3po.loss(given).terms["policy"], build("grpo").loss(given).terms["policy"]
    assert torch.equal(fresh.values, plain.values)
