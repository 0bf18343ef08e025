"""Laws of every registered algorithm and of compositions, on random batches with awkward shapes in them.

Laws of the credit are tested with every variant, laws of the loss with one variant for each way of computing it.
"""

import json
from dataclasses import replace
from typing import Any, cast

import pytest
import torch
from algorithm_batches import (
    COLLECTING,
    CRITIC_AT_SOME_TOKENS,
    EVERY,
    GROUPED,
    LOSSES,
    PLAIN,
    PRETRAINED,
    TAUGHT,
    VARIANTS,
    assert_same,
    batch_of,
    episodes,
    everything,
    made,
    policy_gradient,
    reduced,
    table_of,
    valued,
)
from torch import Tensor

from turngym.agents.trajectory import EpisodeSpec
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.base.modifier import Modifier
from turngym.trainers.core.algorithm import LossOutput, Need, Term
from turngym.trainers.core.turn_table import turn_table
from turngym.trainers.functional import NORMALISATIONS, loss_weights


@LOSSES
def test_padding_and_the_cut_into_rows_change_nothing(variant: str) -> None:
    """Wider padding full of nan and infinity, and one row an episode instead of one row a turn."""
    algorithm = made(variant)
    batch = batch_of(algorithm)
    expected = everything(algorithm, batch, [batch.inputs(batch.by_turn())])
    for junk in (float("nan"), float("inf"), 1e30):
        wide = batch.inputs(batch.by_episode(), width=40, junk=junk)
        assert_same(everything(algorithm, batch, [wide]), expected)


@LOSSES
def test_micro_batches_sum_to_the_batch(variant: str) -> None:
    algorithm = made(variant)
    batch = batch_of(algorithm)
    rows = batch.by_turn()
    expected = everything(algorithm, batch, [batch.inputs(rows)])
    mixed = rows[::2] + rows[1::2]
    for size in (1, 7):
        parts = [batch.inputs(mixed[start : start + size]) for start in range(0, len(mixed), size)]
        assert_same(everything(algorithm, batch, parts), expected)


LEAVES = ("logprobs", "entropy", "values", "divergence")


@LOSSES
def test_tokens_that_the_policy_did_not_sample_get_no_gradient(variant: str) -> None:
    algorithm = made(variant)
    batch = batch_of(algorithm)
    inputs = batch.inputs(batch.by_episode(), width=20, junk=0.7)
    leaves = {name: getattr(inputs, name).detach().requires_grad_() for name in LEAVES}
    inputs = replace(inputs, **leaves)
    torch.stack(list(reduced(inputs, algorithm.loss(inputs).terms).values())).sum().backward()
    policy = leaves["logprobs" if algorithm.divergence is None else "divergence"].grad
    assert policy is not None
    assert bool(policy[inputs.action_mask].any())
    for leaf in leaves.values():
        assert leaf.grad is None or not leaf.grad[~inputs.action_mask].any()


@LOSSES
def test_zero_advantage_gives_zero_policy_gradient(variant: str) -> None:
    if variant in TAUGHT:
        pytest.skip("its signal is the teacher's, at the policy as it is now")
    algorithm = made(variant)
    batch = batch_of(algorithm)
    batch.credit = replace(batch.credit, advantages=torch.zeros_like(batch.credit.advantages))
    assert not policy_gradient(algorithm, batch).any()


@EVERY
def test_at_ratio_one_it_is_the_plain_policy_gradient(variant: str) -> None:
    """Summed over a turn for all; token by token unless a turn's ratio shares one gradient among its tokens."""
    if variant in TAUGHT - {"opd"}:
        pytest.skip("its policy loss has another weight")
    algorithm = made(variant)
    batch = batch_of(algorithm, on_policy=True)
    normalisation = algorithm.normalisation  # type: ignore[attr-defined]
    plain = -batch.credit.advantages * loss_weights(batch.table, normalisation, batch.credit.masked)
    for name, column in batch.credit.columns.items():
        if name.endswith(("_weight", "_kept")):
            assert isinstance(column, torch.Tensor)
            plain = plain * column
    found = policy_gradient(algorithm, batch)
    zeros = torch.zeros(batch.table.num_turns, dtype=torch.float64)
    turn = batch.table.token_turn
    torch.testing.assert_close(zeros.index_add(0, turn, found), zeros.index_add(0, turn, plain))
    if not isinstance(algorithm, Modifier):
        torch.testing.assert_close(found, plain)


@EVERY
def test_the_loss_reads_only_what_it_declares_and_logs_what_all_log(variant: str) -> None:
    algorithm = made(variant)
    batch = batch_of(algorithm)
    inputs = batch.inputs(batch.by_turn())
    assert algorithm.normalisations <= set(NORMALISATIONS)
    declared = {name: inputs.weights[name] for name in algorithm.normalisations}
    columns: dict[str, Any] = {}
    if Need.ENTROPY not in algorithm.needs:
        columns["entropy"] = None
    if Need.REFERENCE_LOGPROBS not in algorithm.needs:
        columns["reference_logprobs"] = None
    if algorithm.divergence is None:
        columns["divergence"] = None
    if Need.VALUES not in algorithm.needs:
        columns |= {"values": None, "old_values": None, "returns": None}
    output = algorithm.loss(replace(inputs, weights=declared, **columns))
    assert {term.over for term in all_terms(output)} <= algorithm.normalisations
    assert {"clip_fraction", "clip_fraction_lower", "approx_kl", "ratio_mean"} <= output.metrics.keys()
    assert ("value_loss" in output.metrics) == (Need.VALUES in algorithm.needs)
    assert not any(term.values.requires_grad for term in output.metrics.values())
    assert not output.terms.keys() & output.metrics.keys()


def all_terms(output: LossOutput) -> list[Term]:
    return [term for kind in (output.terms, output.metrics, output.probes) for term in kind.values()]


@LOSSES
def test_clip_fractions_lie_between_zero_and_one(variant: str) -> None:
    algorithm = made(variant)
    batch = batch_of(algorithm)
    inputs = batch.inputs(batch.by_turn())
    metrics = reduced(inputs, algorithm.loss(inputs).metrics)
    assert 0 <= float(metrics["clip_fraction_lower"]) <= 1
    assert 0 <= float(metrics["clip_fraction"]) <= 1 + 1e-12
    assert variant in PLAIN or float(metrics["clip_fraction"]) > 0


@EVERY
def test_gradients_pass_through_unchanged_unless_the_method_corrects_them(variant: str) -> None:
    algorithm = made(variant)
    gradients = [torch.tensor([3.0, 4.0]), torch.zeros(2)]
    probe = [torch.tensor([0.0, 2.0]), torch.zeros(2)]
    found = algorithm.transform_gradients(gradients, {"clipping_bias": probe}, {"clip_fraction": 0.5})
    name, _ = VARIANTS[variant]
    divisor = 2 if {"s_ppo", "st_ppo"} & set(name.split("+")) else 1
    assert [gradient.tolist() for gradient in found.values] == [[3 / divisor, 4 / divisor], [0, 0]]


# The credit


@pytest.mark.parametrize("variant", sorted(VARIANTS.keys() - {"rae"}))  # its baselines move from episode to episode
def test_permuting_the_episodes_permutes_the_advantages(variant: str) -> None:
    algorithm, trajectories = made(variant), episodes()
    order = torch.randperm(len(trajectories), generator=torch.Generator().manual_seed(3)).tolist()
    table = table_of()
    credit = algorithm.credit(table)
    assert table.turn_value is not None
    assert table.token_value is not None
    assert table.final_value is not None
    turns = torch.cat([torch.nonzero(table.episode == e).flatten() for e in order])
    tokens = torch.cat([torch.nonzero(table.token_turn == turn).flatten() for turn in turns])
    shuffled = turn_table([trajectories[e] for e in order])
    shuffled = shuffled.with_values(table.turn_value[turns], table.token_value[tokens], table.final_value[order])
    assert table.token_reference_logprob is not None
    assert table.token_trainer_logprob is not None
    assert table.token_teacher_logprob is not None
    assert table.token_squares is not None
    assert table.token_divergence is not None
    assert table.token_other_logprob is not None
    shuffled = replace(
        shuffled,
        token_reference_logprob=table.token_reference_logprob[tokens],
        token_trainer_logprob=table.token_trainer_logprob[tokens],
        token_teacher_logprob=table.token_teacher_logprob[tokens],
        token_squares=table.token_squares[tokens],
        token_divergence=table.token_divergence[tokens],
        token_other_logprob=table.token_other_logprob[tokens],
    )
    found = algorithm.credit(shuffled)
    torch.testing.assert_close(found.advantages, credit.advantages[tokens])
    assert (found.returns is None) == (credit.returns is None)
    if found.returns is not None and credit.returns is not None:
        torch.testing.assert_close(found.returns, credit.returns[tokens], equal_nan=True)
    for name, value in credit.metrics.items():
        assert found.metrics[name] == pytest.approx(value)


SHAPES: tuple[dict[str, Any], ...] = (
    {"turns": 1},
    {"tokens": 1},
    {"tokens": 0},
    {"end": 1},
    {"end": 0, "reward": 0.0},
    {"count": 1, "turns": 1, "tokens": 1},
    {"count": 0},
    {"group": 5},
)


@EVERY
def test_credit_is_finite_and_covers_the_tokens_of_every_shape_of_batch(variant: str) -> None:
    for shape in SHAPES:
        algorithm = made(variant)
        table = table_of(("seed", 4), *shape.items())
        credit = algorithm.credit(table)
        assert credit.advantages.shape == table.token_turn.shape, shape
        assert bool(torch.isfinite(credit.advantages).all()), shape
        assert all(value == value for value in credit.metrics.values()), shape
        assert (credit.returns is not None) == (Need.VALUES in algorithm.needs)
        if credit.returns is not None:
            assert credit.returns.shape == table.token_turn.shape, shape
            partly = VARIANTS[variant][0].startswith(CRITIC_AT_SOME_TOKENS)
            assert bool(credit.returns.isnan().any()) <= partly, shape


@pytest.mark.parametrize("variant", ["gbpo", "m_grpo", "mappo", "ppo_max", "riskpo"])
def test_a_return_whose_square_overflows_leaves_credit_and_state_finite(variant: str) -> None:
    algorithm, table = made(variant), table_of()
    credit = algorithm.credit(replace(table, reward=table.reward.index_fill(0, torch.tensor([0]), 1e200)))
    assert bool(torch.isfinite(credit.advantages).all())
    algorithm.update_state([], credit)
    json.dumps(algorithm.state(), allow_nan=False)
    assert bool(algorithm.credit(table).advantages.any())


@LOSSES
def test_a_batch_without_tokens_has_a_differentiable_zero_loss(variant: str) -> None:
    algorithm = made(variant)
    batch = batch_of(algorithm, episodes(tokens=0))
    inputs = replace(batch.inputs([[0], [1]], width=3), logprobs=torch.zeros(2, 3, requires_grad=True))
    loss = torch.stack(list(reduced(inputs, algorithm.loss(inputs).terms).values())).sum()
    (gradient,) = torch.autograd.grad(loss, inputs.logprobs)
    assert float(loss.detach()) == 0
    assert not gradient.any()


@EVERY
def test_credit_is_pure(variant: str) -> None:
    algorithm, table = made(variant), table_of()
    columns = {name: value.clone() for name, value in vars(table).items() if isinstance(value, Tensor)}
    first = algorithm.credit(table)
    algorithm.credit(table_of(("seed", 9)))
    second = algorithm.credit(table)
    assert torch.equal(first.advantages, second.advantages)
    for name, value in columns.items():
        torch.testing.assert_close(getattr(table, name), value, atol=0, rtol=0, equal_nan=True)


@GROUPED
def test_a_group_that_shrank_to_one_teaches_nothing(variant: str) -> None:
    algorithm = made(variant)
    kept = [trajectory for trajectory in episodes() if trajectory.spec.group > 0 or trajectory.spec.episode == 0]
    table = valued(turn_table(kept))
    credit = algorithm.credit(table)
    alone = table.to_tokens(table.group) == 0
    assert alone.any()
    assert not credit.advantages[alone].any()
    assert bool(credit.advantages[~alone].any())
    assert credit.metrics["groups_shrunk_to_one"] == 1


@GROUPED
def test_equal_episodes_of_a_group_teach_nothing(variant: str) -> None:
    algorithm = made(variant)
    twin = episodes(count=1, turns=1, tokens=2, reward=0.1, valid=True)[0]
    twins = [replace(twin, spec=EpisodeSpec(e, 0)) for e in range(3)]
    assert algorithm.credit(valued(turn_table(twins))).advantages.tolist() == [0.0] * 6


@EVERY
def test_the_state_survives_json(variant: str) -> None:
    algorithm = made(variant)
    state = json.loads(json.dumps(algorithm.state()))
    name, configs = VARIANTS[variant]
    resumed = build(name, configs)
    resumed.begin_iteration(3, 10)
    resumed.load_state(state)
    assert resumed.state() == algorithm.state()
    batch = batch_of(algorithm)
    batch_of(resumed)
    inputs = batch.inputs(batch.by_turn())
    assert_same(everything(resumed, batch, [inputs]), everything(algorithm, batch, [inputs]))


@LOSSES
def test_single_precision_gives_single_precision_gradients(variant: str) -> None:
    """The trainer converts every column to the network's precision."""
    algorithm = made(variant)
    batch = batch_of(algorithm)
    inputs = batch.inputs(batch.by_turn())
    single = {
        name: value.detach().float()
        for name, value in vars(inputs).items()
        if isinstance(value, Tensor) and value.is_floating_point()
    }
    single["logprobs"].requires_grad_()
    weights = {name: weight.float() for name, weight in inputs.weights.items()}
    output = algorithm.loss(replace(inputs, weights=weights, **cast("dict[str, Any]", single)))
    assert {term.values.dtype for term in all_terms(output)} == {torch.float32}


@EVERY
def test_optional_parts_do_nothing_by_default(variant: str) -> None:
    algorithm, trajectories = made(variant), episodes(count=2)
    name = VARIANTS[variant][0].partition("+")[0]
    if name not in COLLECTING:  # these play more; see their own tests
        assert algorithm.collect(lambda: trajectories) is trajectories
    own = {"mappo": {"joint_critic"}, "archer": {"turn_critic", "turn_critic_slow"}}
    assert set(algorithm.modules()) == own.get(name, set())
    assert algorithm.trains_policy(0) == (variant not in PRETRAINED)
