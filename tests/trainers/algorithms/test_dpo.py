"""DPO, KTO and their relatives: losses and gradients of worked episodes, and which episodes are compared."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
from test_group_methods import close, episode

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.dpo import DPOConfig, preferences
from turngym.trainers.core.algorithm import Credit
from turngym.trainers.core.turn_table import TurnTable, turn_table
from turngym.trainers.core.weights import loss_weights

PAIR = ((-12.0, -13.0, 8), (-10.0, -9.5, 6))
"""Log-likelihood of the better and the worse episode, that under the reference, and their tokens."""
DRIFTS = (0.6, 0.9)
"""KL from the reference at the tokens of each."""


def said(logprob: float, tokens: int, reward: float, group: int = 0) -> Trajectory:
    """An episode of two turns, which have half of the tokens each, and an empty turn after them."""
    half = tokens // 2
    turns = [
        Turn("", "", "a", completion_ids=(1,) * half, logprobs=(logprob / tokens,) * half, reward=each)
        for each in (0.0, reward)
    ]
    return Trajectory(EpisodeSpec(0, 0, group), turns=[*turns, Turn("", "", "nothing")], terminated=True)


def pair_table(reference: bool = True) -> TurnTable:
    table = turn_table([said(u, n, r) for (u, _, n), r in zip(PAIR, (1.0, 0.0), strict=True)])
    gaps = torch.cat([torch.full((n,), v / n, dtype=torch.float64) for _, v, n in PAIR])
    drifts = torch.cat([torch.full((n,), k / n) for (_, _, n), k in zip(PAIR, DRIFTS, strict=True)])
    table = replace(table, token_divergence=drifts.double())
    return replace(table, token_reference_logprob=gaps.to(table.token_logprob)) if reference else table


def gradient_close(
    table: TurnTable, credit: Credit, normalisation: str, loss: torch.Tensor, free: torch.Tensor
) -> None:
    """The gradient of the policy loss, sum of weight x advantage x log-probability, is that of another loss."""
    (expected,) = torch.autograd.grad(loss, free, retain_graph=True)
    close(-loss_weights(table, normalisation) * credit.advantages.double(), expected.tolist(), 1e-6)


def credit_of(table: TurnTable, **options: Any) -> Credit:
    return build("dpo", {"dpo": options}).credit(table)


def log_of(logit: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.logsigmoid(logit)


MEANS = {"normalisation": "trajectory"}


@pytest.mark.parametrize(
    ("options", "loss"),
    [
        ({}, 0.620957),
        ({"label_smoothing": 0.1}, 0.635957),
        ({"loss": "robust", "label_smoothing": 0.1}, 0.602207),
        ({"loss": "sppo"}, 36.25),
        ({"loss": "apo_zero"}, 0.962523),
        ({"loss": "apo_down"}, 0.987549),
        ({"loss": "nca"}, 1.350825),
        ({"loss": "bco"}, 1.312856),
        ({"loss": "hinge"}, 0.85),
        ({"loss": "tdpo1"}, 0.634946),
        ({"loss": "tdpo2"}, 0.627924),
        ({"loss": "tdpo2", "drift_weight": 2.0, **MEANS}, 0.690235),
        ({"loss": "ipo"}, 12.25),
        ({"loss": "ipo", **MEANS}, 22.960069),
        (MEANS, 0.682785),
        ({"beta": 2.0, "margin": 0.5, "reference": False, **MEANS}, 0.779949),
    ],
)
def test_losses_and_gradients_of_a_pair_are_those_of_the_papers(options: Mapping[str, Any], loss: float) -> None:
    """The gradient of the policy loss, sum of weight x advantage x log-probability, is that of the loss of the pair."""
    table, config = pair_table(), DPOConfig(**options)
    credit = credit_of(table, **options)
    assert credit.metrics["dpo_loss"] == pytest.approx(loss, abs=1e-5)
    free = table.token_logprob.double().requires_grad_()
    units = free if not config.reference else free - table.token_reference_logprob.double()  # type: ignore[union-attr]
    sums = table.token_sum(units)
    if config.normalisation == "trajectory":
        sums = sums / torch.tensor([8.0, 6.0])
    free_drift = table.token_divergence.clone().requires_grad_()  # type: ignore[union-attr]
    drifts = table.token_sum(free_drift)
    if config.normalisation == "trajectory":
        drifts = drifts / torch.tensor([8.0, 6.0])
    lag = drifts[1] - drifts[0]
    if config.loss == "tdpo2":
        lag = config.drift_weight * (drifts[1] - drifts[0].detach())
    up, down = config.beta * sums[0], config.beta * sums[1]
    logit, smoothing, target = up - down - config.margin, config.label_smoothing, 1 / (2 * config.beta)
    whole = {
        "sigmoid": -(1 - smoothing) * log_of(logit) - smoothing * log_of(-logit),
        "robust": -((1 - smoothing) * log_of(logit) - smoothing * log_of(-logit)) / (1 - 2 * smoothing),
        "hinge": (1 - logit).clamp_min(0),
        "ipo": (sums[0] - sums[1] - target) ** 2,
        "sppo": (sums[0] - target) ** 2 + (sums[1] + target) ** 2,
        "apo_zero": 1 - up.sigmoid() + down.sigmoid(),
        "apo_down": up.sigmoid() + 1 - (up - down).sigmoid(),
        "nca": -log_of(up) - 0.5 * log_of(-up) - 0.5 * log_of(-down),
        "bco": -log_of(up) - log_of(-down),
        "tdpo1": -log_of(logit - config.beta * lag),
        "tdpo2": -log_of(logit - config.beta * lag),
    }[config.loss]
    assert float(whole.detach()) == pytest.approx(loss, abs=1e-5)
    gradient_close(table, credit, config.normalisation, whole, free)
    if "drift_slope" in credit.columns:
        slopes = credit.columns["drift_slope"]
        assert isinstance(slopes, torch.Tensor)
        (expected,) = torch.autograd.grad(whole, free_drift)
        close(loss_weights(table, config.normalisation) * slopes, expected.tolist(), 1e-9)


@pytest.mark.parametrize(
    ("scores", "labels", "loss"),
    [((0.2, 0.5, -0.1), (1.0, 0.5, 0.0), 0.501909), ((0.1, -0.05, 0.02), (1.0, 0.0, 0.5), 0.703438)],
)
def test_lipo_weighs_pairs_by_what_their_order_gains(
    scores: tuple[float, ...], labels: tuple[float, ...], loss: float
) -> None:
    played = [said(-1, 2, 3 * label - 1, group) for group in (0, 1) for label in labels] + [said(-1, 2, 0, 2)]
    table, beta = turn_table(played), 0.1
    told = torch.tensor([*scores, *scores, 0.0], dtype=torch.float64) / beta
    table = replace(table, token_reference_logprob=table.token_logprob - told.repeat_interleave(2) / 2)
    credit = credit_of(table, weights="lambda")
    assert credit.metrics["dpo_loss"] == pytest.approx(loss, abs=1e-5), "the mean over two groups"
    free = torch.tensor(scores, dtype=torch.float64, requires_grad=True)
    order = sorted(range(3), key=lambda k: -scores[k])
    discounts = [1 / math.log(2 + order.index(k)) for k in range(3)]
    pairs = [(i, j) for i in range(3) for j in range(3) if labels[i] > labels[j]]
    sums = [
        (2 ** labels[i] - 2 ** labels[j]) * abs(discounts[i] - discounts[j]) * torch.exp(free[j] - free[i]).log1p()
        for i, j in pairs
    ]
    (expected,) = torch.autograd.grad(torch.stack(sums).sum(), free)
    close(credit.advantages[:6:2], (-beta * 7 / 2 * expected).tolist(), 1e-6)


def test_rso_weighs_pairs_by_how_often_rejection_sampling_accepts_both() -> None:
    """With returns 1, 0, -1 and temperature .5 it accepts 1, .1353 and .0183 of them."""
    played = [said(-1, 2, reward, group) for group in (0, 1) for reward in (1.0, 0.0, -1.0)]
    table = turn_table(played)
    table = replace(table, token_reference_logprob=table.token_logprob.clone())
    accepted = [1.0, math.exp(-2), math.exp(-4)]
    pairs = {(i, j): accepted[i] * accepted[j] for i in range(3) for j in range(i + 1, 3)}
    credit = credit_of(table, loss="hinge", weights="acceptance", beta=0.05)
    assert credit.metrics["dpo_loss"] == pytest.approx(1), "the mean over accepted pairs, all of them without margin"
    pulls = [sum(weight * ((i == k) - (j == k)) for (i, j), weight in pairs.items()) for k in range(3)]
    close(credit.advantages[:6:2], [6 * 0.05 * pull / (2 * sum(pairs.values())) for pull in pulls], 1e-6)


def test_lipo_teaches_where_all_are_equally_likely_and_whatever_their_order() -> None:
    played = [said(-1, 2, reward) for reward in (1.0, 0.0, 0.0)]
    table = turn_table(played)
    table = replace(table, token_reference_logprob=table.token_logprob.clone())
    advantages = credit_of(table, weights="lambda").advantages[::2]
    assert float(advantages[0]) > 0.05
    close(advantages[1:], [-float(advantages[0]) / 2] * 2, 1e-9)


def test_the_first_update_of_inpo_is_that_of_ipo() -> None:
    """INPO: (h - 1 / (2 eta))^2, h = ln(w/l) - (tau/eta) ln(ref_w/ref_l) - (1 - tau/eta) ln(w_t/l_t), at w = w_t."""
    eta, tau, (better, worse) = 0.5, 0.1, PAIR
    free = torch.tensor([better[0], worse[0]], dtype=torch.float64, requires_grad=True)
    before = (1 - tau / eta) * (better[0] - worse[0]) + tau / eta * (better[1] - worse[1])
    (expected,) = torch.autograd.grad((free[0] - free[1] - before - 1 / (2 * eta)) ** 2, free)
    found = preferences(torch.tensor([1.0, -0.5]), torch.tensor([[False, True], [False, False]]), DPOConfig(loss="ipo"))
    close(tau / eta * found.slopes, expected.tolist(), 1e-6)


def test_pairs_are_those_of_a_group_with_different_returns_and_their_mean_is_over_the_batch() -> None:
    table = turn_table(
        [said(-1, 2, reward, group) for group, reward in ((0, 2.0), (0, 1.0), (0, 0.0), (1, 1.0), (1, 1.0))]
    )
    table = replace(table, token_reference_logprob=table.token_logprob.clone())
    every, extremes = credit_of(table), credit_of(table, pairs="extremes")
    assert (every.metrics["dpo_pairs"], extremes.metrics["dpo_pairs"]) == (3, 1)
    pull = 5 * 0.1 * 0.5
    close(every.advantages[::2], [2 * pull / 3, 0, -2 * pull / 3, 0, 0], 1e-6)
    close(extremes.advantages[::2], [pull, 0, -pull, 0, 0], 1e-6)
    assert every.metrics["dpo_loss"] == pytest.approx(math.log(2), abs=1e-6)
    assert every.metrics["dpo_accuracy"] == 0


def test_masked_turns_and_silent_episodes_are_left_out() -> None:
    silent = Trajectory(EpisodeSpec(0, 0, 0), turns=[Turn("", "", "", reward=5.0)], terminated=True)
    table = turn_table([said(-4, 4, 1.0), said(-8, 4, 0.0), silent])
    table = replace(table, token_reference_logprob=torch.zeros_like(table.token_logprob))
    assert credit_of(table).metrics["dpo_pairs"] == 1
    masked = torch.zeros(table.num_turns, dtype=torch.bool)
    masked[3] = True  # the first turn of the second episode: its likelihood is -4, as that of the first
    assert credit_of(replace(table, masked=masked)).metrics["dpo_loss"] == pytest.approx(math.log(2), abs=1e-6)


def test_an_episode_out_of_the_loss_hides_no_pair_and_no_group_hides_those_of_another() -> None:
    played = [said(-1, 2, 1.0), said(-1, 2, 0.5), said(-1, 2, 0.0), said(-1, 2, 1e10, 1), said(-1, 2, 0.0, 1)]
    table = turn_table(played)
    masked = torch.zeros(table.num_turns, dtype=torch.bool)
    masked[:3] = True
    for pairs, count in (("all", 4), ("extremes", 2)):
        assert credit_of(table, reference=False, pairs=pairs).metrics["dpo_pairs"] == count
        found = credit_of(replace(table, masked=masked), reference=False, pairs=pairs)
        assert found.metrics["dpo_pairs"] == 2, "those of the two that are left, and of the other group"


def test_sums_of_the_same_rewards_are_equal_whatever_their_rounding() -> None:
    played = [episode([0.1, 0.2]), episode([0.3]), episode([0.2, 0.1])]
    assert credit_of(turn_table(played), reference=False).metrics["dpo_pairs"] == 0


def test_without_a_pair_nothing_is_taught() -> None:
    found = preferences(torch.zeros(2), torch.zeros(2, 2, dtype=torch.bool), DPOConfig())
    assert (found.slopes.tolist(), float(found.loss), found.accuracy, found.pairs) == ([0, 0], 0, 0, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "kto"}, "loss must be one of"),
        ({"normalisation": "token"}, "normalisation must be one of"),
        ({"label_smoothing": 0.6}, "label_smoothing must be"),
        ({"beta": 0.0}, "beta must be"),
        ({"reference": "no"}, "reference must be True or False"),
        ({"loss": "hinge", "label_smoothing": 0.1}, "label_smoothing is for the losses 'sigmoid' and 'robust'"),
        ({"loss": "robust", "label_smoothing": 0.5}, "label_smoothing must be below 0.5"),
        ({"loss": "ipo", "margin": 0.1}, "margin is for the losses 'sigmoid' and 'hinge'"),
        ({"weights": "acceptance", "acceptance": 0.0}, "acceptance must be"),
        ({"loss": "tdpo2", "drift_weight": -1.0}, "drift_weight must be"),
        ({"loss": "sppo", "reference": False}, "'sppo' measures distances from a reference"),
    ],
)
def test_settings_without_a_meaning_are_refused(options: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build("dpo", {"dpo": options})


def test_it_asks_for_a_reference_only_where_it_reads_one() -> None:
    with pytest.raises(ConfigError, match="no 'token_reference_logprob'"):
        credit_of(pair_table(reference=False))
    assert credit_of(pair_table(reference=False), reference=False).metrics["dpo_pairs"] == 1


@pytest.mark.parametrize("normalisation", ["trajectory_sum", "trajectory"])
def test_kto_values_each_episode_from_the_mean_distance_to_the_reference(normalisation: str) -> None:
    table, weights = pair_table(), {"beta": 0.5, "desirable": 0.7, "undesirable": 1.0}
    algorithm = build("kto", {"kto": {"normalisation": normalisation, **weights}})
    credit = algorithm.credit(table)
    free = table.token_logprob.double().requires_grad_()
    found = table.token_sum(free - table.token_reference_logprob.double())  # type: ignore[union-attr]
    if normalisation == "trajectory":
        found = found / torch.tensor([8.0, 6.0])
    anchor = found.mean().detach().clamp_min(0)
    loss = 0.7 * (1 - (0.5 * (found[0] - anchor)).sigmoid()) + 1 - (0.5 * (anchor - found[1])).sigmoid()
    gradient_close(table, credit, normalisation, loss / 2, free)
    assert credit.metrics["kto_loss"] == pytest.approx(float(loss.detach()) / 2, abs=1e-6)
    assert credit.metrics["kto_anchor"] == pytest.approx(float(anchor), abs=1e-6)
    assert credit.metrics["kto_desirable"] == 0.5


def test_kto_counts_from_zero_where_the_reference_is_likelier_and_charges_invalid_actions() -> None:
    table = turn_table([said(-4, 4, 1.0), said(-8, 4, 0.5)])
    table = replace(table, token_reference_logprob=torch.zeros_like(table.token_logprob))
    table.is_valid[0] = False
    credit = build("kto", {"kto": {"beta": 1e-6, "invalid_penalty": 0.5}}).credit(table)
    assert credit.metrics["kto_anchor"] == 0
    close(credit.advantages, [2.5e-7 - 0.5] * 2 + [2.5e-7] * 2 + [-2.5e-7] * 4, 1e-9)
    masked = torch.ones(table.num_turns, dtype=torch.bool)
    nothing = build("kto").credit(replace(table, masked=masked))
    assert nothing.metrics["kto_loss"] == nothing.metrics["kto_desirable"] == float(nothing.advantages.sum()) == 0


def a_lol_loss(weight: str, returns: list[float], sums: torch.Tensor, ratio: torch.Tensor) -> torch.Tensor:
    """Mean of the advantage times the clamped ratio times minus the log-likelihood, episodes drawn by advantage."""
    better = (torch.tensor(returns, dtype=torch.float64) - sum(returns) / len(returns)).clamp_min(0)
    drawn = better / better.sum()
    return -(drawn * better * (ratio if weight != "none" else 1.0) * sums).sum()


@pytest.mark.parametrize("weight", ["episode", "token", "none"])
def test_a_lol_imitates_what_is_better_than_its_group(weight: str) -> None:
    """In one group the mean return is the expected one; a token's ratio is constant over an episode here."""
    returns = [1.0, 0.5, 0.0, -0.5]
    table = turn_table([said(-4.0 - k, 4, reward) for k, reward in enumerate(returns)])
    gaps = torch.tensor([0.3, -0.4, 2.0, 0.0], dtype=torch.float64)
    reference = table.token_logprob - gaps.repeat_interleave(4) / 4
    table = replace(table, token_reference_logprob=reference)
    free = table.token_logprob.double().requires_grad_()
    ratio = (gaps / (4 if weight == "token" else 1)).exp().clamp(0.8, 1.2)
    credit = build("a_lol", {"a_lol": {"weight": weight, "clip": 0.2}}).credit(table)
    loss = a_lol_loss(weight, returns, table.token_sum(free), ratio)
    gradient_close(table, credit, "trajectory_sum", loss, free)
    assert credit.metrics["a_lol_better"] == 0.5


def test_a_lol_teaches_nothing_where_all_are_equal_and_charges_invalid_actions() -> None:
    table = turn_table([said(-4.0, 4, 1.0), said(-8.0, 4, 1.0)])
    table = replace(table, token_reference_logprob=table.token_logprob.clone())
    table.is_valid[0] = False
    credit = build("a_lol", {"a_lol": {"invalid_penalty": 0.5}}).credit(table)
    close(credit.advantages, [-0.5] * 2 + [0.0] * 6, 1e-9)


def test_nash_md_compares_with_all_opponents_of_the_group() -> None:
    returns, theirs, groups = [1.0, 0.0, 0.1 + 0.2], [1.0, 0.0, 0.3], [0, 0, 1]
    played = [said(-4.0, 2, reward, group) for reward, group in zip(returns, groups, strict=True)]
    opponents = [
        replace(each, turns=[replace(each.turns[0], reward=r)]) for each, r in zip(played, theirs, strict=True)
    ]
    for number, each in enumerate([*played, *opponents]):
        each.spec = replace(each.spec, episode=number % 3)
    method = build("nash_md", {"nash_md": {"mixture": 0.25, "invalid_penalty": 0.5}})
    asked: list[float | None] = []

    def rollout(mixture: float | None = None) -> list[Trajectory]:
        asked.append(mixture)
        return played if mixture is None else [opponents[2], opponents[0], opponents[1]]

    found = method.collect(rollout)
    assert asked == [None, 0.25]
    table = turn_table(found)
    table.is_valid[0] = False
    credit = method.credit(table)
    close(credit.advantages, [0.25 - 0.5, 0.25, -0.25, -0.25, 0.0, 0.0], 1e-9)
    assert credit.metrics["nash_preferred"] == pytest.approx(0.5)
    assert credit.metrics["mixture_return"] == pytest.approx(1.3 / 3)


def test_nash_md_leaves_out_groups_without_an_opponent() -> None:
    played = [said(-4.0, 2, 1.0, 0), said(-4.0, 2, 1.0, 1)]
    for number, each in enumerate(played):
        each.spec = replace(each.spec, episode=number)
    broken = replace(played[1], fault="exception: boom")
    method = build("nash_md")
    found = method.collect(lambda mixture=None: played if mixture is None else [replace(played[0], turns=[]), broken])
    credit = method.credit(turn_table(found))
    close(credit.advantages, [0.5, 0.5, 0.0, 0.0], 1e-9)
    assert credit.metrics["episodes_without_opponent"] == 1


def test_infopo_adds_the_gain_of_feedback_where_outcomes_are_alike() -> None:
    """Gains of the first of three turns, the last of which has none, are normalised over the group's turns."""
    turns = [
        [Turn("", "", "a", completion_ids=(1, 1), logprobs=(-0.5, -0.2), reward=0.0) for _ in range(3)]
        for _ in range(2)
    ]
    played = [Trajectory(EpisodeSpec(k, 0, 0), turns=each, terminated=True) for k, each in enumerate(turns)]
    table = turn_table(played)
    gaps = [0.0, 0.0, 0.5, 0.1, 0.2, 0.2, 9.0, 9.0, 0.7, 0.1, float("nan"), float("nan")]
    table = replace(table, token_other_logprob=table.token_logprob - torch.tensor(gaps, dtype=torch.float64))
    gains = [0.3, 0.2, 0.4]  # of the turns before those with 0.5, 0.1 and so on
    mean, std = sum(gains) / 3, torch.tensor(gains).std().item()
    credit = build("infopo", {"infopo": {"beta": 2.0, "epsilon": 0.0}}).credit(table)
    first = [2.0 * 0.5 * (gain - mean) / std for gain in gains]
    close(credit.advantages, [first[0]] * 2 + [first[1]] * 2 + [0.0] * 2 + [first[2]] * 2 + [0.0] * 4, 1e-5)
    assert credit.metrics["information_gain"] == pytest.approx(0.3)
    assert credit.metrics["information_known"] == pytest.approx(0.5)
    table.reward[2] = math.sqrt(0.5)  # a deviation of one half
    credit = build("infopo", {"infopo": {"ddof": 1, "temperature": 0.5}}).credit(table)
    assert credit.metrics["information_gate"] == pytest.approx(0.268941, abs=1e-6)


def test_igrpo_shows_the_best_draft_of_a_group_and_trains_on_what_follows() -> None:
    drafts = [said(-4.0, 2, reward, group) for group, reward in ((0, 0.5), (0, 1.0), (0, 1.0), (1, 9.0))]
    drafts[1].turns[0].observation, drafts[1].turns[0].completion = "north is a wall", "go east"
    drafts[3] = replace(drafts[3], fault="exception: boom")
    shown: list[list[str]] = []

    def rollout(notes: list[str] | None = None) -> list[Trajectory]:
        if notes is None:
            return drafts
        shown.append(notes)
        return [said(-4.0, 2, float(number), each.spec.group) for number, each in enumerate(drafts)]

    method = build("igrpo", {"igrpo": {"longest": 23, "words": "Before, for {return}:", "kl_coef": 0.0}})
    found = method.collect(rollout)
    (notes,) = shown
    assert notes == ["Before, for 1:\nnorth is a wall\ngo east"] * 3 + [""]
    credit = method.credit(turn_table(found))
    close(credit.advantages[::2], [-1.0, 0.0, 1.0, 0.0], 1e-5)
    assert credit.metrics["draft_return"] == 1.0


def test_the_ratio_of_an_episode_is_the_geometric_mean_over_all_its_turns() -> None:
    turns = [
        Turn("", "", "a", completion_ids=(1, 1), logprobs=(-1.0, -0.5)),
        Turn("", "", "a", completion_ids=(1,), logprobs=(-2.0,), reward=1.0),
    ]
    table = turn_table([Trajectory(EpisodeSpec(0, 0, 0), turns=turns, terminated=True)])
    method = build("gspo", {"gspo": {"level": "episode"}})
    found = method.update_columns(table, torch.tensor([-0.6, -0.55, -2.4], dtype=torch.float64))["episode_log_ratio"]
    assert isinstance(found, torch.Tensor)
    close(found.exp(), [0.983472] * 3, 1e-6)
    with pytest.raises(ConfigError, match="has a ratio of its own"):
        build("gspo+turn_is", {"gspo": {"level": "episode"}})
