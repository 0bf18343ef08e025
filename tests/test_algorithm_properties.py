"""What holds for every registered algorithm and for compositions, on random batches with awkward shapes in them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.trainers.algorithm import Algorithm, Credit, LossInputs, LossOutput, Need, Term
from turngym.trainers.algorithms import ALGORITHMS, build
from turngym.trainers.functional import NORMALISATIONS, loss_weights
from turngym.trainers.modifier import Modifier
from turngym.trainers.turn_table import TurnTable, turn_table

torch.set_num_threads(1)

VARIANTS: dict[str, tuple[str, dict[str, dict[str, object]]]] = {
    **{name: (name, {}) for name in ALGORITHMS},
    "dr_grpo": ("dr_grpo", {"dr_grpo": {"constant": 1.0}}),
    **{
        name: (name, {})
        for name in (
            "grpo+epo",
            "gigpo+s_ppo",
            "grpo+st_ppo",
            "turn_ppo+epo+s_ppo",
            "reinforce+turn_is",
            "ppo+epo+turn_is",
        )
    },
    "grpo nested, with divergence and entropy": (
        "grpo",
        {"grpo": {"normalisation": "nested", "kl_coef": 0.1, "entropy_coef": 0.01, "scale_by_std": False}},
    ),
    "gigpo over rows, by group": ("gigpo", {"gigpo": {"over": "rows", "normalisation": "group", "kl_coef": 0.1}}),
    "ppo per row, by trajectory": ("ppo", {"ppo": {"per_row": True, "normalisation": "trajectory_sum"}}),
    "ppo discounted": ("ppo", {"ppo": {"gamma": 0.9, "lam": 0.8, "whiten": False, "normalisation": "turn"}}),
    "turn_ppo at turn ends": ("turn_ppo", {"turn_ppo": {"value_position": "turn_end", "dual_clip": 0.0}}),
    "reinforce plain": ("reinforce", {"reinforce": {"objective": "plain", "ddof": 1}}),
    "epo released": (
        "ppo+epo",
        {"epo": {"form": "released", "released_max_turns": 4, "kappa_low": 0.9, "kappa_high": 1.1}},
    ),
    "turn_is token": ("gigpo+turn_is", {"turn_is": {"gradient": "token"}}),
    "gspo token": ("gspo", {"gspo": {"ratio": "turn_geometric_by_token"}}),
    "cispo by turn": ("cispo", {"cispo": {"ratio": "turn_geometric_by_token", "normalisation": "nested"}}),
    "hgpo with base": ("hgpo", {"hgpo": {"base_group": True, "mode": "mean_norm", "weight_offset": 0}}),
    "gdpo by trajectory": ("gdpo", {"gdpo": {"whiten_over": "trajectory", "weights": "valid_actions=2"}}),
    "dapo overlong": ("dapo", {"dapo": {"overlong_limit": 3, "overlong_buffer": 2}}),
    "a3po by turn": ("a3po", {"a3po": {"ratio": "turn_geometric", "weight_cap": 0.0}}),
    "poad by tokens": ("poad", {"poad": {"discount_tokens": True, "whiten": False}}),
    "vc_ppo adaptive": ("vc_ppo", {"vc_ppo": {"alpha": 0.05, "pretrain_iterations": 0}}),
    "t_ppo ended": ("t_ppo", {"t_ppo": {"bootstrap_truncated": False}}),
    "vine_ppo discounted": ("vine_ppo", {"vine_ppo": {"gamma": 0.9, "whiten": False}}),
    "archer clipped": ("archer", {"archer": {"objective": "clipped", "expectile": 0.9, "critic_iterations": 0}}),
    "arpo+epo": ("arpo+epo", {}),
}
PLAIN = {"reinforce plain", "archer"}
PRETRAINED = {"archer", "vc_ppo"}
CRITIC_AT_SOME_TOKENS = ("turn_ppo", "t_ppo")
COLLECTING = {"dapo", "remax", "arpo", "vine_ppo"}
EVERY = pytest.mark.parametrize("variant", sorted(VARIANTS))
COMPARING = sorted(
    variant for variant, (name, configs) in VARIANTS.items() if Need.GROUPS in build(name, configs).needs
)
GROUPED = pytest.mark.parametrize("variant", COMPARING)


def made(variant: str) -> Algorithm[Any]:
    """The algorithm, with some history for methods that keep one."""
    name, configs = VARIANTS[variant]
    algorithm = build(name, configs)
    algorithm.begin_iteration(3, 10)
    algorithm.observe({"entropy_nested": 0.5, "entropy_turn_0": 0.5, "entropy_turn_1": 0.6, "entropy_turn_2": 0.4})
    return algorithm


def episodes(seed: int = 0, **fixed: Any) -> list[Trajectory]:
    """Three groups of four: one to four turns, zero to three tokens, few anchors, invalid actions, both ends."""
    generator = torch.Generator().manual_seed(seed)

    def draw(high: int) -> int:
        return int(torch.randint(0, high, (1,), generator=generator))

    def turn(number: int) -> Turn:
        tokens = fixed.get("tokens", draw(4))
        return Turn(
            "",
            f"state {draw(2)}" if number else "start",
            "",
            completion_ids=(1,) * tokens,
            logprobs=(-1.0,) * tokens,
            reward=fixed.get("reward", float(torch.randn(1, generator=generator, dtype=torch.float64))),
            action_is_valid=bool(fixed.get("valid", draw(4) > 0)),
            joint=f"everybody knows state {number % 2}",
            staleness=2 * (number % 2),
            sampled_value=number / 4,
        )

    return [
        Trajectory(
            EpisodeSpec(e, 0, group=fixed.get("group", e // 4)),
            turns=[turn(k) for k in range(fixed.get("turns", 1 + draw(4)))],
            terminated=(end := fixed.get("end", draw(2))) == 0,
            truncated=end == 1,
            final_joint="everybody knows the end",
            greedy_return=0.25,
        )
        for e in range(fixed.get("count", 12))
    ]


def valued(table: TurnTable, seed: int = 1) -> TurnTable:
    """The table with a critic's columns; the value of a turn with tokens is that of its first one."""
    generator = torch.Generator().manual_seed(seed)
    token = torch.randn(len(table.token_turn), generator=generator, dtype=torch.float64)
    turn = torch.randn(table.num_turns, generator=generator, dtype=torch.float64)
    first = table.first_tokens()
    turn[table.token_turn[first]] = token[first]
    return table.with_values(turn, token, torch.randn(table.num_episodes, generator=generator, dtype=torch.float64))


@dataclass
class Batch:
    """Columns over sampled tokens, some of them leaves of the gradients."""

    table: TurnTable
    credit: Credit
    leaves: dict[str, Tensor]
    old_logprobs: Tensor

    def inputs(self, rows: Sequence[Sequence[int]], width: int = 0, junk: float = 0.0) -> LossInputs:
        """Lay turns out in rows with a token of observation before each, at least ``width`` wide, junk elsewhere."""
        cells = [[cell for turn in row for cell in (-1, *self._tokens(turn))] for row in rows]
        width = max([width, *map(len, cells)])
        index = torch.tensor([row + [-1] * (width - len(row)) for row in cells], dtype=torch.long).reshape(-1, width)

        def spread(flat: Tensor, fill: float) -> Tensor:
            padded = torch.cat([flat, torch.full((1,), fill, dtype=flat.dtype)])
            return padded[index]  # -1 reads the fill

        returns = self.credit.returns
        return LossInputs(
            logprobs=spread(self.leaves["logprobs"], junk),
            old_logprobs=spread(self.old_logprobs, junk),
            advantages=spread(self.credit.advantages, 0.0),
            action_mask=index >= 0,
            turn_ids=spread(self.table.token_turn, -1),
            weights={name: spread(loss_weights(self.table, name), 0.0) for name in NORMALISATIONS},
            entropy=spread(self.leaves["entropy"], junk),
            reference_logprobs=spread(self.old_logprobs + 0.3, junk),
            values=spread(self.leaves["values"], junk),
            old_values=None if self.table.token_value is None else spread(self.table.token_value, junk),
            returns=None if returns is None else spread(returns, float("nan")),
        )

    def _tokens(self, turn: int) -> list[int]:
        return torch.nonzero(self.table.token_turn == turn).flatten().tolist()

    def by_turn(self) -> list[list[int]]:
        return [[turn] for turn in range(self.table.num_turns)]

    def by_episode(self) -> list[list[int]]:
        return [torch.nonzero(self.table.episode == e).flatten().tolist() for e in range(self.table.num_episodes)]


def batch_of(algorithm: Algorithm[Any], trajectories: Sequence[Trajectory], on_policy: bool = False) -> Batch:
    table = valued(turn_table(trajectories))
    credit = algorithm.advantages(table)
    generator = torch.Generator().manual_seed(7)
    count = len(table.token_turn)
    old = -torch.rand(count, generator=generator, dtype=torch.float64) - 0.5
    shift = torch.zeros_like(old) if on_policy else torch.randn(count, generator=generator, dtype=torch.float64) * 0.4
    assert table.token_value is not None
    leaves = {
        "logprobs": old + shift,
        "entropy": torch.rand(count, generator=generator, dtype=torch.float64),
        "values": table.token_value + shift,
    }
    return Batch(table, credit, {name: leaf.requires_grad_() for name, leaf in leaves.items()}, old)


def reduced(inputs: LossInputs, terms: Mapping[str, Term]) -> dict[str, Tensor]:
    return {name: (inputs.weights[term.over] * term.values).sum() for name, term in terms.items()}


def everything(algorithm: Algorithm[Any], batch: Batch, parts: Sequence[LossInputs]) -> dict[str, Tensor]:
    """Summed terms, metrics and probes over micro-batches, and the gradients of the loss and of each probe."""
    found: dict[str, Tensor] = {}
    for inputs in parts:
        output = algorithm.loss(inputs)
        for kind in ("terms", "metrics", "probes"):
            for name, value in reduced(inputs, getattr(output, kind)).items():
                found[f"{kind}/{name}"] = found.get(f"{kind}/{name}", torch.zeros(())) + value
    losses = {name: value for name, value in found.items() if name.startswith("probes/")}
    losses["loss"] = torch.stack([value for name, value in found.items() if name.startswith("terms/")]).sum()
    for key, loss in losses.items():
        for leaf, tensor in batch.leaves.items():
            gradient = None
            if loss.requires_grad:
                (gradient,) = torch.autograd.grad(loss, tensor, retain_graph=True, allow_unused=True)
            found[f"gradient of {key} by {leaf}"] = torch.zeros_like(tensor) if gradient is None else gradient
    return {name: value.detach() for name, value in found.items()}


def assert_same(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, value in found.items():
        assert torch.allclose(value, expected[name], atol=1e-9, rtol=1e-9), name


def policy_gradient(algorithm: Algorithm[Any], batch: Batch) -> Tensor:
    inputs = batch.inputs(batch.by_episode())
    loss = reduced(inputs, algorithm.loss(inputs).terms)["policy"]
    return torch.autograd.grad(loss, batch.leaves["logprobs"])[0]


# The loss


@EVERY
def test_padding_and_the_cut_into_rows_change_nothing(variant: str) -> None:
    """Wider padding full of nan and infinity, and one row an episode instead of one row a turn."""
    algorithm = made(variant)
    batch = batch_of(algorithm, episodes())
    expected = everything(algorithm, batch, [batch.inputs(batch.by_turn())])
    for junk in (float("nan"), float("inf"), 1e30):
        wide = batch.inputs(batch.by_episode(), width=40, junk=junk)
        assert_same(everything(algorithm, batch, [wide]), expected)


@EVERY
@pytest.mark.parametrize("size", [1, 3, 7])
def test_micro_batches_sum_to_the_batch(variant: str, size: int) -> None:
    algorithm = made(variant)
    batch = batch_of(algorithm, episodes())
    rows = batch.by_turn()
    expected = everything(algorithm, batch, [batch.inputs(rows)])
    mixed = rows[::2] + rows[1::2]
    parts = [batch.inputs(mixed[start : start + size]) for start in range(0, len(mixed), size)]
    assert_same(everything(algorithm, batch, parts), expected)


@EVERY
def test_tokens_that_the_policy_did_not_sample_get_no_gradient(variant: str) -> None:
    algorithm = made(variant)
    batch = batch_of(algorithm, episodes())
    inputs = batch.inputs(batch.by_episode(), width=20, junk=0.7)
    leaves = {name: getattr(inputs, name).detach().requires_grad_() for name in ("logprobs", "entropy", "values")}
    inputs = replace(inputs, **leaves)
    torch.stack(list(reduced(inputs, algorithm.loss(inputs).terms).values())).sum().backward()
    assert leaves["logprobs"].grad is not None
    assert bool(leaves["logprobs"].grad[inputs.action_mask].any())
    for leaf in leaves.values():
        assert leaf.grad is None or not leaf.grad[~inputs.action_mask].any()


@EVERY
def test_zero_advantage_gives_zero_policy_gradient(variant: str) -> None:
    algorithm = made(variant)
    batch = batch_of(algorithm, episodes())
    batch.credit = replace(batch.credit, advantages=torch.zeros_like(batch.credit.advantages))
    assert not policy_gradient(algorithm, batch).any()


@EVERY
def test_at_ratio_one_it_is_the_plain_policy_gradient(variant: str) -> None:
    """Summed over a turn for all; token by token unless a turn's ratio shares one gradient among its tokens."""
    algorithm = made(variant)
    batch = batch_of(algorithm, episodes(), on_policy=True)
    normalisation = algorithm.normalisation  # type: ignore[attr-defined]
    plain = -batch.credit.advantages * loss_weights(batch.table, normalisation)
    found = policy_gradient(algorithm, batch)
    zeros = torch.zeros(batch.table.num_turns, dtype=torch.float64)
    turn = batch.table.token_turn
    torch.testing.assert_close(zeros.index_add(0, turn, found), zeros.index_add(0, turn, plain))
    if not isinstance(algorithm, Modifier):
        torch.testing.assert_close(found, plain)


@EVERY
def test_the_loss_reads_only_what_it_declares_and_logs_what_all_log(variant: str) -> None:
    algorithm = made(variant)
    batch = batch_of(algorithm, episodes())
    inputs = batch.inputs(batch.by_turn())
    assert algorithm.normalisations <= set(NORMALISATIONS)
    declared = {name: inputs.weights[name] for name in algorithm.normalisations}
    columns: dict[str, Any] = {}
    if Need.ENTROPY not in algorithm.needs:
        columns["entropy"] = None
    if Need.REFERENCE_LOGPROBS not in algorithm.needs:
        columns["reference_logprobs"] = None
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


@EVERY
def test_clip_fractions_lie_between_zero_and_one(variant: str) -> None:
    algorithm = made(variant)
    batch = batch_of(algorithm, episodes())
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
    assert [gradient.tolist() for gradient in found] == [[3 / divisor, 4 / divisor], [0, 0]]


# The credit


@pytest.mark.parametrize("variant", sorted(VARIANTS.keys() - {"rae"}))  # its baselines move from episode to episode
def test_permuting_the_episodes_permutes_the_advantages(variant: str) -> None:
    algorithm, trajectories = made(variant), episodes()
    order = torch.randperm(len(trajectories), generator=torch.Generator().manual_seed(3)).tolist()
    table = valued(turn_table(trajectories))
    credit = algorithm.advantages(table)
    assert table.turn_value is not None
    assert table.token_value is not None
    assert table.final_value is not None
    turns = torch.cat([torch.nonzero(table.episode == e).flatten() for e in order])
    tokens = torch.cat([torch.nonzero(table.token_turn == turn).flatten() for turn in turns])
    shuffled = turn_table([trajectories[e] for e in order])
    shuffled = shuffled.with_values(table.turn_value[turns], table.token_value[tokens], table.final_value[order])
    found = algorithm.advantages(shuffled)
    torch.testing.assert_close(found.advantages, credit.advantages[tokens])
    assert (found.returns is None) == (credit.returns is None)
    if found.returns is not None and credit.returns is not None:
        torch.testing.assert_close(found.returns, credit.returns[tokens], equal_nan=True)
    for name, value in credit.metrics.items():
        assert found.metrics[name] == pytest.approx(value)


@EVERY
@pytest.mark.parametrize(
    "shape",
    [
        {"turns": 1},
        {"tokens": 1},
        {"tokens": 0},
        {"end": 1},
        {"end": 0, "reward": 0.0},
        {"count": 1, "turns": 1, "tokens": 1},
        {"count": 0},
        {"group": 5},
    ],
    ids=str,
)
def test_credit_is_finite_and_covers_the_tokens_of_every_shape_of_batch(variant: str, shape: dict[str, Any]) -> None:
    algorithm = made(variant)
    table = valued(turn_table(episodes(4, **shape)))
    credit = algorithm.advantages(table)
    assert credit.advantages.shape == table.token_turn.shape
    assert bool(torch.isfinite(credit.advantages).all())
    assert all(value == value for value in credit.metrics.values())
    assert (credit.returns is not None) == (Need.VALUES in algorithm.needs)
    if credit.returns is not None:
        assert credit.returns.shape == table.token_turn.shape
        partly = VARIANTS[variant][0].startswith(CRITIC_AT_SOME_TOKENS)
        assert bool(credit.returns.isnan().any()) <= partly


@EVERY
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
    algorithm, table = made(variant), valued(turn_table(episodes()))
    columns = {name: value.clone() for name, value in vars(table).items() if isinstance(value, Tensor)}
    first = algorithm.advantages(table)
    algorithm.advantages(valued(turn_table(episodes(9))))
    second = algorithm.advantages(table)
    assert torch.equal(first.advantages, second.advantages)
    for name, value in columns.items():
        assert torch.equal(value, getattr(table, name)), name


@GROUPED
def test_a_group_that_shrank_to_one_teaches_nothing(variant: str) -> None:
    algorithm = made(variant)
    kept = [trajectory for trajectory in episodes() if trajectory.spec.group > 0 or trajectory.spec.episode == 0]
    table = turn_table(kept)
    credit = algorithm.advantages(table)
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
    assert algorithm.advantages(turn_table(twins)).advantages.tolist() == [0.0] * 6


@EVERY
def test_the_state_survives_json(variant: str) -> None:
    algorithm = made(variant)
    state = json.loads(json.dumps(algorithm.state()))
    name, configs = VARIANTS[variant]
    resumed = build(name, configs)
    resumed.begin_iteration(3, 10)
    resumed.load_state(state)
    assert resumed.state() == algorithm.state()
    batch = batch_of(algorithm, episodes())
    batch_of(resumed, episodes())
    inputs = batch.inputs(batch.by_turn())
    assert_same(everything(resumed, batch, [inputs]), everything(algorithm, batch, [inputs]))


@EVERY
def test_single_precision_gives_single_precision_gradients(variant: str) -> None:
    """The trainer converts every column to the network's precision."""
    algorithm = made(variant)
    batch = batch_of(algorithm, episodes())
    inputs = batch.inputs(batch.by_turn())
    single = {
        name: value.detach().float()
        for name, value in vars(inputs).items()
        if isinstance(value, Tensor) and value.is_floating_point()
    }
    single["logprobs"].requires_grad_()
    weights = {name: weight.float() for name, weight in inputs.weights.items()}
    output = algorithm.loss(replace(inputs, weights=weights, **single))
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
