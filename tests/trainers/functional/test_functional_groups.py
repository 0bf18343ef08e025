"""Group statistics, loss weights, turn ratios and entropy penalties against loops, vectors and worked numbers."""

import statistics
from typing import Any

import pytest
import torch
from oracle import all_cases, cases, close, double
from torch import tensor

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.errors import ConfigError
from turngym.trainers import functional as F
from turngym.trainers.core.algorithm import Normalisation
from turngym.trainers.core.turn_table import TurnTable, turn_table


def table_of(episodes: list[tuple[int, list[int]]]) -> TurnTable:
    """A table from (group, tokens of each turn) for each episode."""
    return turn_table(
        [
            Trajectory(
                EpisodeSpec(e, 0, group),
                turns=[Turn("", "", "", completion_ids=(1,) * n, logprobs=(-1.0,) * n) for n in lengths],
                terminated=True,
            )
            for e, (group, lengths) in enumerate(episodes)
        ]
    )


# groups


@pytest.mark.parametrize("case", cases("verl_grpo"))
def test_group_advantages_equal_verl(case: dict[str, Any]) -> None:
    names = sorted(set(case["index"]))
    found = F.group_advantages(
        double(case["token_level_rewards"]).sum(-1),
        tensor([names.index(name) for name in case["index"]]),
        scale_by_std=case["settings"]["norm_adv_by_std_in_grpo"],
        epsilon=case["settings"]["epsilon"],
        singleton="raw",
    )
    mask = double(case["response_mask"])
    close(found[:, None] * mask, case["advantages"])


@pytest.mark.parametrize(
    ("scores", "scale", "expected"),
    [
        # Section 7. Mean .5, sample deviation sqrt(4 * .25 / 3) = .577350; .5 / (.577350 + 1e-6) = .866024.
        ([1, 0, 0, 1], True, [0.866024, -0.866024, -0.866024, 0.866024]),
        ([1, 0, 0, 1], False, [0.5, -0.5, -0.5, 0.5]),
        # Mean 2/3, deviation sqrt((2/9 + 4/9) / 2) = .577350.
        ([1, 1, 0], True, [0.577349, 0.577349, -1.154699]),
    ],
)
def test_group_advantages_by_hand(scores: list[float], scale: bool, expected: list[float]) -> None:
    close(F.group_advantages(double(scores), torch.zeros(len(scores)).long(), scale_by_std=scale), expected, 1e-6)


def test_group_statistics_equal_the_loop() -> None:
    for seed in range(5):
        for ddof in [0, 1]:
            generator = torch.Generator().manual_seed(seed)
            scores = torch.randn(30, generator=generator, dtype=torch.float64)
            groups = torch.randint(0, 9, (30,), generator=generator)
            found = F.group_statistics(scores, groups, 10, ddof=ddof)
            deviation = statistics.stdev if ddof else statistics.pstdev
            for group in range(10):
                members = scores[groups == group].tolist()
                assert int(found.size[group]) == len(members)
                assert float(found.mean[group]) == pytest.approx(statistics.fmean(members) if members else 0, abs=1e-12)
                spread = deviation(members) if len(members) > 1 else 0
                assert float(found.std[group]) == pytest.approx(spread, abs=1e-12)


def test_equal_scores_give_exactly_zero_whatever_their_rounding() -> None:
    """The rounded mean of three times 0.1 is not 0.1; divided by epsilon the difference would be a signal."""
    for size in [2, 3, 7]:
        for value in [0.1, 0.3, 1e9 + 0.1, -1 / 3]:
            scores = torch.full((size,), value, dtype=torch.float64)
            assert F.group_advantages(scores, torch.zeros(size).long(), scale_by_std=True).tolist() == [0.0] * size


def test_a_singleton_gets_zero_or_its_raw_score() -> None:
    scores, groups = double([3.0, 1.0, 0.0]), tensor([0, 1, 1])
    assert F.group_advantages(scores, groups, scale_by_std=False)[0] == 0
    # verl: mean 0 and deviation 1, so R / (1 + 1e-6)
    assert float(F.group_advantages(scores, groups, scale_by_std=True, singleton="raw")[0]) == pytest.approx(
        3 / (1 + 1e-6)
    )
    assert F.group_advantages(scores[:0], groups[:0], scale_by_std=True).tolist() == []


def test_an_item_outside_of_equal_statistics_is_not_divided_by_nothing() -> None:
    """Two equal trajectories, one with an invalid second turn: the released formula would give -0.1 / 1e-6."""
    scores, counted = double([1.0, 0.9, 1.0]), tensor([True, False, True])
    close(F.group_advantages(scores, torch.zeros(3).long(), counted, scale_by_std=True), [0, -0.1, 0])


# weights

EPISODES = [(0, [2, 0, 3]), (0, [1]), (1, [0, 0]), (1, [4, 4]), (2, [0])]


def slow_weights(name: str) -> list[float]:
    """The definitions, read literally: a mean of means is a product of one over each count."""
    lengths = [[n for n in turns if n] for _, turns in EPISODES]
    groups = {g: sum(sum(turns) for h, turns in EPISODES if h == g) for g, _ in EPISODES}
    tokens, turns = sum(map(sum, lengths)), sum(map(len, lengths))
    episodes = sum(1 for kept in lengths if kept)
    weights: list[float] = []
    for (group, _), kept in zip(EPISODES, lengths, strict=True):
        for n in kept:
            each = {
                "token": 1 / tokens,
                "turn": 1 / turns / n,
                "trajectory": 1 / episodes / sum(kept),
                "trajectory_sum": 1 / episodes,
                "turn_sum": 1 / turns,
                "nested": 1 / episodes / len(kept) / n,
                "group": 1 / sum(1 for size in groups.values() if size) / max(groups[group], 1),
            }[name]
            weights += [each] * n
    return weights


@pytest.mark.parametrize("name", F.NORMALISATIONS)
def test_loss_weights_equal_the_definitions(name: str) -> None:
    found = F.loss_weights(table_of(EPISODES), name)
    close(found, slow_weights(name), 1e-15)
    sums = {"trajectory_sum": 14 / 3, "turn_sum": 14 / 5}
    assert float(found.sum()) == pytest.approx(sums.get(name, 1))


def test_every_normalisation_of_the_interface_has_weights() -> None:
    from typing import get_args

    assert set(F.NORMALISATIONS) == set(get_args(Normalisation))


def test_the_nested_mean_weighs_turns_the_same_and_the_flat_mean_does_not() -> None:
    # Section 6.3: entropies [1] and [0, 0, 0] in one trajectory: nested (1 + 0) / 2, flat 1/4.
    table, entropy = table_of([(0, [1, 3])]), double([1, 0, 0, 0])
    assert float((F.loss_weights(table, "nested") * entropy).sum()) == 0.5
    assert float((F.loss_weights(table, "token") * entropy).sum()) == 0.25


@pytest.mark.parametrize("name", F.NORMALISATIONS)
def test_a_table_without_tokens_has_no_weights(name: str) -> None:
    assert F.loss_weights(table_of([(0, [0, 0])]), name).tolist() == []
    assert F.loss_weights(table_of([]), name).tolist() == []


def test_an_unknown_normalisation_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"no normalisation named 'tokens'. Did you mean 'token'\?"):
        F.loss_weights(table_of([]), "tokens")


# ratios

TURN_IDS = tensor([[-1, 5, 5, -1, 5, 2], [9, 9, -1, -1, -1, -1]])


def test_turn_sums_means_and_lengths_equal_the_loop() -> None:
    values = torch.randn(TURN_IDS.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    total, mean, length = torch.zeros_like(values), torch.zeros_like(values), torch.zeros_like(values)
    for turn in (2, 5, 9):
        here = TURN_IDS.eq(turn)
        total[here], mean[here], length[here] = values[here].sum(), values[here].mean(), here.sum().double()
    torch.testing.assert_close(F.turn_sum(values, TURN_IDS), total)
    torch.testing.assert_close(F.turn_mean(values, TURN_IDS), mean)
    torch.testing.assert_close(F.turn_lengths(TURN_IDS, torch.float64), length)


def test_a_batch_without_turns_has_a_ratio_of_one_everywhere() -> None:
    nothing, log_ratio = torch.full((2, 3), -1), torch.zeros(2, 3)
    for ratio in (F.token_ratio, F.turn_product_ratio, F.turn_geometric_ratio, F.turn_geometric_ratio_by_token):
        assert ratio(log_ratio, nothing).tolist() == [[1.0] * 3] * 2


def test_ratio_levels_by_hand() -> None:
    # Section 3.4: turn 1 [.1, .3], turn 2 [-.6, 0, -.3]. Geometric exp(.2), exp(-.3); products exp(.4), exp(-.9).
    log_ratio, turns = double([[0.1, 0.3, -0.6, 0, -0.3]]), tensor([[0, 0, 1, 1, 1]])
    close(F.token_ratio(log_ratio, turns), [[1.105171, 1.349859, 0.548812, 1, 0.740818]], 1e-6)
    for geometric in (F.turn_geometric_ratio, F.turn_geometric_ratio_by_token):
        close(geometric(log_ratio, turns), [[1.221403] * 2 + [0.740818] * 3], 1e-6)
    close(F.turn_product_ratio(log_ratio, turns), [[1.491825] * 2 + [0.406570] * 3], 1e-6)


def test_ratios_of_one_token_turns_are_those_of_tokens() -> None:
    log_ratio, turns = double([[0.4, -0.2]]), tensor([[3, 1]])
    for ratio in (F.turn_product_ratio, F.turn_geometric_ratio, F.turn_geometric_ratio_by_token):
        torch.testing.assert_close(ratio(log_ratio, turns), F.token_ratio(log_ratio, turns))


def test_a_huge_log_ratio_stays_finite_and_the_sum_is_what_is_clamped() -> None:
    # 30 - 25 = 5: clamping the tokens first would give 20 - 20 = 0.
    log_ratio, turns = double([[30.0, -25.0, 900.0]]), tensor([[0, 0, 1]])
    close(F.turn_product_ratio(log_ratio, turns).log(), [[5.0, 5.0, 20.0]])
    close(F.token_ratio(log_ratio, turns).log(), [[20.0, -20.0, 20.0]])


def test_log_ratios_ignore_whatever_stands_in_padding() -> None:
    logprobs = double([[-1.0, float("-inf")]]).requires_grad_()
    found = F.log_ratios(logprobs, double([[-1.5, float("nan")]]), tensor([[True, False]]))
    found.sum().backward()
    assert found.tolist() == [[0.5, 0.0]]
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == [[1.0, 0.0]]


# entropy


def test_entropy_penalties_by_hand() -> None:
    # Section 6.3: history mean .8, range [.4, 1.2]: .4 - .2, inside, 2 - 1.2.
    entropy = double([0.2, 0.9, 2.0])
    hinge = F.hinge_penalty(entropy, 0.8, low=0.5, high=1.5)
    close(hinge, [0.2, 0, 0.8], 1e-12)
    close(0.1 * hinge.mean(), 0.033333, 1e-6)
    indicator = F.indicator_penalty(entropy, 0.8, low=0.5, high=1.5)
    close(0.1 * indicator.mean(), 0.066667, 1e-6)


def test_the_indicator_has_strict_ends_and_the_hinge_a_gradient() -> None:
    ends = double([0.4, 1.2]).requires_grad_()
    assert F.indicator_penalty(ends, 0.8, low=0.5, high=1.5).tolist() == [0, 0]
    outside = double([0.1, 3.0]).requires_grad_()
    (gradient,) = torch.autograd.grad(F.hinge_penalty(outside, 0.8, low=0.5, high=1.5).sum(), outside)
    assert gradient.tolist() == [-1, 1]


def test_entropy_schedules_by_hand() -> None:
    # Section 6.3: 1 + exp(-3 k / 50).
    found = [F.smoothing_weight(k, 100, decay=3.0) for k in (0, 25, 50, 100)]
    assert found == pytest.approx([2.0, 1.223130, 1.049787, 1.002479], abs=1e-6)
    released = [F.released_smoothing_weight(e) for e in (0, 37.5, 74, 75, 112.5, 150)]
    assert released == pytest.approx([1.0, 0.873576, 0.827799, 0.8, 0.178504, 0.039830], abs=1e-6)
    assert F.smoothing_weight(0, 1, decay=3.0) == 2  # one iteration has no middle to divide by


def test_entropy_smoothing_equals_the_released_code() -> None:
    """In its mode "seq" that code averages a row over padding too; the padded mean is therefore taken here by hand."""
    for case in all_cases("epo_entropy_smooth"):
        settings, mask, entropy = case["settings"], tensor(case["response_mask"]).bool(), double(case["entropy"])
        reference = double(case["entropy_history"])[case["rollout_step"]][:, None]
        judged = entropy if settings["mask_mode"] == "token" else entropy.mean(-1, keepdim=True).expand_as(entropy)
        outside = F.indicator_penalty(judged, reference, low=settings["min_ratio"], high=settings["max_ratio"])
        penalty = settings["out_range_penalty"] * outside
        close(penalty, case["penalty_mask"])
        close(1 - outside.mean(), case["in_range_ratio"])
        mode, weight = settings["loss_agg_mode"], F.released_smoothing_weight(settings["epoch"], settings["max_epochs"])
        assert weight == pytest.approx(case["epoch_weight"])
        entropy_loss, penalty_loss = F.aggregate(entropy, mask, mode), F.aggregate(penalty, mask, mode)
        close(entropy_loss, case["entropy_loss"])
        close(penalty_loss, case["penalty_loss_unweighted"])
        smoothing = settings["entropy_smooth_coeff"]
        added = -(entropy_loss - smoothing * weight * penalty_loss) * settings["entropy_coeff"]
        close(added, case["total_added_to_policy_loss_epoch_weighted"])
        unweighted = -(entropy_loss - smoothing * penalty_loss) * settings["entropy_coeff"]
        close(unweighted, case["total_added_to_policy_loss_unweighted"])


def test_rows_of_tokens_are_laid_out_and_taken_back() -> None:
    layout = F.TokenRows.of(tensor([0, 0, 2]), 3)
    padded = layout.pad(double([1, 2, 3]))
    assert padded.tolist() == [[1, 2], [0, 0], [3, 0]]
    assert layout.unpad(padded).tolist() == [1, 2, 3]
    assert F.TokenRows.of(tensor([], dtype=torch.long), 0).pad(double([])).shape == (0, 0)
