"""What each algorithm minimises: worked numbers for losses, gradients, corrections and regularisers."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, tensor

from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.errors import ConfigError
from turngym.trainers.algorithms import build
from turngym.trainers.algorithms.epo import released_references
from turngym.trainers.algorithms.s_ppo import correct_gradients
from turngym.trainers.core.algorithm import Algorithm, LossInputs, LossOutput, Term
from turngym.trainers.core.columns import lay_out_column
from turngym.trainers.core.turn_table import TurnTable, turn_table
from turngym.trainers.functional import NORMALISATIONS, loss_weights

torch.set_num_threads(1)


def double(rows: object) -> Tensor:
    return tensor(rows, dtype=torch.float64)


def close(found: Tensor, expected: object, atol: float = 1e-6) -> None:
    torch.testing.assert_close(found.detach(), double(expected), atol=atol, rtol=0)


def table_of(lengths: Sequence[Sequence[int]]) -> TurnTable:
    """A table of trajectories of one group, from the number of tokens of each turn."""
    return turn_table(
        [
            Trajectory(
                EpisodeSpec(e, 0),
                turns=[Turn("", "", "", completion_ids=(1,) * n, logprobs=(0.0,) * n) for n in turns],
                terminated=True,
            )
            for e, turns in enumerate(lengths)
        ]
    )


def inputs_of(lengths: Sequence[Sequence[int]], log_ratio: object, advantages: object, **more: Any) -> LossInputs:
    """All tokens in one row; old log-probabilities are 0, so the log-ratios are the leaf of the gradients."""
    table = table_of(lengths)
    logprobs = double([log_ratio]).requires_grad_()
    return LossInputs(
        logprobs=logprobs,
        old_logprobs=torch.zeros_like(logprobs),
        advantages=double([advantages]),
        action_mask=torch.ones(logprobs.shape, dtype=torch.bool),
        turn_ids=table.token_turn[None],
        weights={name: loss_weights(table, name)[None] for name in NORMALISATIONS},
        **more,
    )


def total(inputs: LossInputs, term: Term) -> Tensor:
    return (inputs.weights[term.over] * term.values).sum()


def objective(inputs: LossInputs, output: LossOutput) -> Tensor:
    return torch.stack([total(inputs, term) for term in output.terms.values()]).sum()


def policy_loss(algorithm: Algorithm[Any], inputs: LossInputs) -> Tensor:
    return total(inputs, algorithm.loss(inputs).terms["policy"])


def gradient(value: Tensor, inputs: LossInputs) -> Tensor:
    return torch.autograd.grad(value, inputs.logprobs, retain_graph=True)[0][0]


def with_critic(log_ratio: Sequence[float]) -> dict[str, Tensor]:
    zeros = torch.zeros(1, len(log_ratio), dtype=torch.float64)
    return {"values": zeros, "old_values": zeros, "returns": zeros}


# The clipped base


def test_metrics_of_the_clipped_loss_by_hand() -> None:
    # Section 1.6: ratios 1.5, .5, 4, 1.1 with advantages 1, -1, -1, 2, clip .2, dual clip 3.
    log_ratio = double([1.5, 0.5, 4, 1.1]).log().tolist()
    inputs = inputs_of([[2, 2]], log_ratio, [1, -1, -1, 2])
    grpo = build("grpo", {"grpo": {"normalisation": "token", "dual_clip": 3.0, "kl_coef": 0.0}})
    output = grpo.loss(inputs)
    metrics = {name: float(total(inputs, term)) for name, term in output.metrics.items()}
    assert float(policy_loss(grpo, inputs).detach()) == pytest.approx(0.1)
    assert metrics["clip_fraction"] == 0.5
    assert metrics["clip_fraction_lower"] == 0.25
    assert metrics["approx_kl"] == pytest.approx(-0.298481, abs=1e-6)
    assert metrics["ratio_mean"] == pytest.approx((1.5 + 0.5 + 4 + 1.1) / 4)


def test_entropy_and_divergence_enter_with_their_coefficients() -> None:
    # Entropy 2 rewarded by .1: -.2. Reference .5 lower: k1 = .5, times .3: .15.
    inputs = inputs_of(
        [[1]], [0.0], [0.0], entropy=double([[2.0]]).requires_grad_(), reference_logprobs=double([[-0.5]])
    )
    output = build("grpo", {"grpo": {"entropy_coef": 0.1, "kl_coef": 0.3, "kl_estimator": "k1+"}}).loss(inputs)
    assert float(output.terms["entropy_bonus"].values.detach()) == pytest.approx(-0.2)
    assert float(output.terms["kl_penalty"].values.detach()) == pytest.approx(0.15)
    assert float(output.metrics["entropy"].values) == 2
    assert float(output.metrics["kl_reference"].values) == 0.5
    assert not output.metrics["kl_reference"].values.requires_grad


@pytest.mark.parametrize(
    ("name", "config", "column"),
    [("grpo", {"kl_coef": 0.1}, "reference_logprobs"), ("ppo", {}, "values"), ("epo", {}, "entropy")],
)
def test_a_missing_column_is_named(name: str, config: dict[str, float], column: str) -> None:
    columns = with_critic([0.0]) if name == "epo" else {}
    with pytest.raises(ConfigError, match=f"the loss needs the column '{column}', got none"):
        build(name, {name: config}).loss(inputs_of([[1]], [0.0], [1.0], **columns))


# Turn-PPO, section 2.5


def turn_loss(lengths: Sequence[Sequence[int]], log_ratio: Sequence[float], advantages: Sequence[float]) -> Tensor:
    inputs = inputs_of(lengths, log_ratio, advantages, **with_critic(log_ratio))
    return policy_loss(build("turn_ppo", {"turn_ppo": {"kl_coef": 0.0}}), inputs)


def test_each_turn_enters_once_over_the_number_of_tokens() -> None:
    # Turns of 1 and 3 tokens, A 1 and 3, ratio 1: -(1 + 3) / 4.
    close(turn_loss([[1, 3]], [0.0] * 4, [1, 3, 3, 3]), -1.0)


def test_the_ratio_of_a_turn_is_the_product_of_its_tokens() -> None:
    # exp(.4) = 1.491825, clipped at 1.2, over 2 tokens: -.6. A geometric mean, 1.221403, would be clipped too; with a
    # smaller step the two differ: exp(.1) = 1.105171 against exp(.05) = 1.051271.
    close(turn_loss([[2]], [0.2, 0.2], [1, 1]), -0.6)
    close(turn_loss([[2]], [0.05, 0.05], [1, 1]), -1.105171 / 2)
    close(turn_loss([[1]], [double(0.5).log().item()], [-1]), 0.8)  # .5 is held at .8


def test_turn_ppo_averages_over_trajectories() -> None:
    # Surrogates 2 over 1 token and 4 over 4 tokens: -(2 + 1) / 2.
    close(turn_loss([[1], [4]], [0.0] * 5, [2, 4, 4, 4, 4]), -1.5)


def test_turn_ppo_averages_the_critic_over_turns() -> None:
    # V [.2, .4], returns [.35, 1]: (.0225 + .36) / 2 / 2 = .095625, whatever the lengths of the turns.
    nan = float("nan")
    inputs = inputs_of(
        [[1, 3]],
        [0.0] * 4,
        [0.0] * 4,
        values=double([[0.2, 0.4, 9, 9]]),
        old_values=double([[0.2, 0.4, 9, 9]]),
        returns=double([[0.35, 1.0, nan, nan]]),
    )
    output = build("turn_ppo", {"turn_ppo": {"kl_coef": 0.0}}).loss(inputs)
    close(total(inputs, output.terms["value"]), 0.095625)
    close(total(inputs, output.metrics["value_loss"]), 0.095625)
    flat = build("ppo").loss(inputs)  # the negative oracle: over tokens it would be (.0225 + .36) / 2 / 4
    close(total(inputs, flat.terms["value"]), 0.0478125)


def test_trajectories_without_tokens_do_not_enter_the_mean() -> None:
    close(turn_loss([[0, 0], [1]], [0.0], [3.0]), -3.0)


# ST-PPO, section 3.4: every token has its own parameter, so gradients are coefficient vectors.

TOY = [[2, 3]]
TOY_LOG_RATIO = [0.1, 0.3, -0.6, 0.0, -0.3]
TOY_ADVANTAGES = [1.0, 2.0, -1.0, -2.0, 1.0]


def toy(name: str, **config: object) -> tuple[Algorithm[Any], LossInputs, LossOutput]:
    inputs = inputs_of(TOY, TOY_LOG_RATIO, TOY_ADVANTAGES, **with_critic(TOY_LOG_RATIO))
    algorithm = build(name, {name: config, "ppo": {"normalisation": "trajectory"}})
    return algorithm, inputs, algorithm.loss(inputs)


@pytest.mark.parametrize(
    ("name", "config", "surrogate", "policy", "bias", "norm"),
    [
        (
            "s_ppo",
            {},
            0.289198,
            [0.221034, 0, 0, -0.4, 0.148164],
            [0, 0.539944, -0.109762, 0, 0],
            0.550987,
        ),
        (
            "st_ppo",
            {"gradient": "token"},
            0.388164,
            [0, 0, 0, 0, 0.148164],
            [0.244281, 0.488561, -0.148164, -0.296327, 0],
            0.638848,
        ),
    ],
)
def test_the_clipped_part_is_the_gradient_that_clipping_takes_away(
    name: str, config: dict[str, str], surrogate: float, policy: list[float], bias: list[float], norm: float
) -> None:
    algorithm, inputs, output = toy(name, **config)
    loss = total(inputs, output.terms["policy"])
    close(-loss, surrogate)
    close(-gradient(loss, inputs), policy)
    probe = gradient(total(inputs, output.probes["clipping_bias"]), inputs)
    close(-probe, bias)
    assert float(probe.norm()) == pytest.approx(norm, abs=1e-6)
    # Both norms are below 1, so by default the gradient stays; divided by the raw norm it grows.
    metrics = {"loss/clip_fraction": 0.4}
    kept = algorithm.transform_gradients([double(policy)], {"clipping_bias": [probe]}, metrics)
    close(kept.values[0], policy)
    assert kept.metrics == {"clipping_bias_norm": pytest.approx(norm, abs=1e-6), "clipping_bias_divisor": 1.0}
    raw, _, _ = toy(name, **config, normaliser="raw")
    grown = raw.transform_gradients([double(policy)], {"clipping_bias": [probe]}, metrics)
    assert grown.metrics["clipping_bias_divisor"] == pytest.approx(norm, abs=1e-6)
    close(grown.values[0], [value / norm for value in policy], 1e-5)


def test_the_geometric_mean_differentiated_exactly() -> None:
    # (w_k / n_k) * sum of A over the unclipped tokens / 5. Turn 1: none. Turn 2: .740818 / 3 * 1 / 5 = .049388.
    _, inputs, output = toy("turn_is")
    close(-gradient(total(inputs, output.terms["policy"]), inputs), [0, 0, 0.049388, 0.049388, 0.049388])
    _, inputs, output = toy("turn_is", gradient="token")
    close(-gradient(total(inputs, output.terms["policy"]), inputs), [0, 0, 0, 0, 0.148164])


def test_st_ppo_is_the_two_modifiers_together() -> None:
    _, inputs, output = toy("st_ppo")
    both = build("ppo+turn_is+s_ppo", {"ppo": {"normalisation": "trajectory"}}).loss(inputs)
    assert output.terms.keys() == both.terms.keys()
    for name in ("terms", "probes", "metrics"):
        for key, term in getattr(output, name).items():
            assert torch.equal(term.values, getattr(both, name)[key].values)
            assert term.over == getattr(both, name)[key].over


def test_a_long_clipped_part_shrinks_the_gradient_and_no_clipping_leaves_it() -> None:
    gradients, bias = [double([6.0]), double([8.0])], [double([3.0]), double([4.0])]  # norm 5 over both parameters

    def corrected(fraction: float, normaliser: str = "at_least_one", trigger: float = 0.0) -> list[float]:
        changed = correct_gradients(gradients, bias, clip_fraction=fraction, normaliser=normaliser, trigger=trigger)
        assert changed.metrics["clipping_bias_norm"] == pytest.approx(5)
        return [float(part) for part in changed.values]

    assert corrected(0.1) == pytest.approx([1.2, 1.6])
    assert corrected(0.1, trigger=0.2) == [6, 8]
    assert corrected(0.0, "raw") == [6, 8]
    tiny = correct_gradients(gradients, [double([0.5])], clip_fraction=0.1, normaliser="at_least_one", trigger=0.0)
    assert [float(part) for part in tiny.values] == [6, 8]
    raw = correct_gradients(gradients, [double([0.5])], clip_fraction=0.1, normaliser="raw", trigger=0.0)
    assert [float(part) for part in raw.values] == pytest.approx([12, 16])


def test_without_clipping_the_probe_is_zero() -> None:
    inputs = inputs_of(TOY, [0.0] * 5, TOY_ADVANTAGES, **with_critic(TOY_LOG_RATIO))
    assert not build("s_ppo").loss(inputs).probes["clipping_bias"].values.any()


# REINFORCE


def test_plain_reinforce_is_advantage_times_log_probability() -> None:
    inputs = inputs_of([[2]], [-0.5, -2.0], [2.0, -1.0])
    plain = build("reinforce", {"reinforce": {"objective": "plain"}})
    close(policy_loss(plain, inputs), (1.0 - 2.0) / 2)
    close(gradient(policy_loss(plain, inputs), inputs), [-1.0, 0.5])
    assert not plain.loss(inputs).metrics["clip_fraction"].values.any()


def test_plain_reinforce_has_no_ratio_to_change() -> None:
    with pytest.raises(ConfigError, match="reinforce with objective='plain' has no importance ratio"):
        build("reinforce+turn_is", {"reinforce": {"objective": "plain"}})
    build("reinforce+turn_is")


# EPO, section 6.3


@pytest.mark.parametrize("name", ["grpo+epo", "grpo+turn_is+epo", "grpo+epo+s_ppo"])
def test_epo_takes_the_place_of_the_base_methods_entropy_bonus(name: str) -> None:
    """The entropy's whole weight is EPO's coefficient, .001, and not that plus the base's, ten times as large."""
    algorithm = build(name, {"grpo": {"entropy_coef": 0.01, "kl_coef": 0.0}, "epo": {"coefficient": 0.001}})
    inputs = inputs_of([[2]], [0.0, 0.0], [1.0, 1.0], entropy=double([[0.5, 1.5]]).requires_grad_())
    output = algorithm.loss(inputs)
    assert "entropy_bonus" not in output.terms and output.metrics["entropy"].values.sum() == 2.0
    assert inputs.entropy is not None
    whole = torch.stack([total(inputs, term) for term in output.terms.values()]).sum()
    close(torch.autograd.grad(whole, inputs.entropy)[0].flatten(), [-0.0005, -0.0005])


ENTROPIES = [0.2, 0.9, 2.0]
EPO = {"kappa_low": 0.5, "kappa_high": 1.5, "alpha": 0.1, "coefficient": 0.001}


def epo(iteration: int, history: Sequence[float] = (1.0, 0.8, 0.6), **config: object) -> Algorithm[Any]:
    algorithm = build("grpo+epo", {"grpo": {"kl_coef": 0.0}, "epo": {**EPO, **config}})
    for entropy in history:
        algorithm.observe({"loss/entropy_nested": entropy, "loss/policy": 3.0})
    algorithm.begin_iteration(iteration, 100)
    return algorithm


def added(algorithm: Algorithm[Any], lengths: Sequence[Sequence[int]] = ((3,),), entropies: Any = None) -> Tensor:
    found = ENTROPIES if entropies is None else entropies
    inputs = inputs_of(lengths, [0.0] * len(found), [1.0] * len(found), entropy=double([found]))
    return total(inputs, algorithm.loss(inputs).terms["epo"])


@pytest.mark.parametrize(
    ("form", "iteration", "expected"),
    [
        # -.001 * (1.033333 - beta * .033333) with beta(25) = 1.223130 and beta(50) = 1.049787; indicator .066667.
        ("hinge", 25, -0.000992563),
        ("hinge", 50, -0.000998340),
        ("indicator", 25, -0.000951791),
        ("indicator", 50, -0.000963348),
    ],
)
def test_epo_by_hand(form: str, iteration: int, expected: float) -> None:
    close(added(epo(iteration, form=form)), expected, 1e-9)


def test_an_empty_history_smooths_nothing() -> None:
    close(added(epo(0, history=())), -0.001 * 1.033333, 1e-9)


def test_epo_weighs_turns_the_same() -> None:
    close(added(epo(0, history=()), [[1, 3]], [1.0, 0.0, 0.0, 0.0]), -0.0005, 1e-12)


def test_only_the_hinge_pulls_the_entropy_back() -> None:
    entropies = double([ENTROPIES]).requires_grad_()
    inputs = inputs_of([[3]], [0.0] * 3, [1.0] * 3, entropy=entropies)
    for form, expected in (("hinge", [1 + 0.2, 1, 1 - 0.2]), ("indicator", [1.0, 1.0, 1.0])):
        loss = total(inputs, epo(0, form=form).loss(inputs).terms["epo"])
        (slope,) = torch.autograd.grad(loss, entropies)
        close(slope[0] * -3000, expected)  # beta(0) * alpha = .2


def test_the_history_survives_a_checkpoint() -> None:
    algorithm = epo(25)
    state = json.loads(json.dumps(algorithm.state()))
    resumed = epo(25, history=())
    assert float(added(resumed)) != float(added(algorithm))
    resumed.load_state(state)
    assert float(added(resumed)) == float(added(algorithm))
    algorithm.observe({"loss/entropy_nested": 9.0})
    assert len(state["history"]) == 3 == len(resumed.state()["history"])


def test_an_iteration_without_an_update_is_no_history() -> None:
    algorithm = epo(0)
    algorithm.observe({"rollout/reward": 1.0})
    assert algorithm.state()["history"] == [1.0, 0.8, 0.6]
    assert algorithm.state()["turn_history"] == []


def released(iteration: int, **config: object) -> Algorithm[Any]:
    return epo(iteration, history=(), form="released", released_max_turns=2, **config)


def released_inputs(
    algorithm: Algorithm[Any], lengths: Sequence[Sequence[int]], entropies: Sequence[float]
) -> LossInputs:
    credit = algorithm.credit(table_of(lengths))
    index = torch.arange(len(entropies))[None]
    columns = {name: lay_out_column(column, index) for name, column in credit.columns.items()}
    found = inputs_of(lengths, [0.0] * len(entropies), [1.0] * len(entropies), entropy=double([entropies]))
    return replace(found, columns=columns)


def test_the_released_form_compares_with_the_same_turn_of_earlier_iterations() -> None:
    # Past entropies: first turns 1.0, second turns 0.2. Ranges [.5, 1.5] and [.1, .3]: tokens .9 in, 2.0 and .9 out.
    algorithm = released(0)
    algorithm.observe({"loss/entropy_turn_0": 1.0, "loss/entropy_turn_1": 0.2, "loss/entropy_nested": 0.6})
    inputs = released_inputs(algorithm, [[2, 1]], [0.9, 2.0, 0.9])
    output = algorithm.loss(inputs)
    assert output.metrics["entropy_penalty"].values.tolist() == [[0, 1, 1]]
    close(total(inputs, output.terms["epo"]), -0.001 * (3.8 / 3 - 0.1 * 2 / 3), 1e-12)
    by_turn = released(0, released_level="turn")
    by_turn.load_state(algorithm.state())
    inputs = released_inputs(by_turn, [[2, 1]], [0.9, 2.0, 0.25])  # turn means 1.45 and .25: both inside
    assert by_turn.loss(inputs).metrics["entropy_penalty"].values.tolist() == [[0, 0, 0]]


def test_the_released_form_logs_the_entropy_of_each_turn_position() -> None:
    # Tokens at position 0: 1, 3 (first episode) and 5; at position 1: 7. Means 3 and 7, whatever the cut.
    algorithm = released(0)
    inputs = released_inputs(algorithm, [[2, 1], [1]], [1.0, 3.0, 7.0, 5.0])
    metrics = {name: float(total(inputs, term)) for name, term in algorithm.loss(inputs).metrics.items()}
    assert (metrics["entropy_turn_0"], metrics["entropy_turn_1"]) == pytest.approx((3.0, 7.0))
    algorithm.observe(metrics)
    assert algorithm.state()["turn_history"] == [pytest.approx([3.0, 7.0])]


def test_the_released_form_spares_short_batches_and_unknown_positions() -> None:
    algorithm = released(0)
    algorithm.observe({"entropy_turn_0": 1.0})
    inputs = released_inputs(algorithm, [[1]], [9.0])  # reaches position 0, the half of a limit of 2 is 1
    assert not algorithm.loss(inputs).metrics["entropy_penalty"].values.any()
    inputs = released_inputs(algorithm, [[1, 1]], [9.0, 9.0])  # nothing is known about position 1
    assert algorithm.loss(inputs).metrics["entropy_penalty"].values.tolist() == [[1, 0]]


def test_the_released_references_shift_shorter_iterations() -> None:
    assert released_references([]) == []
    assert released_references([[3.0], [1.0, 5.0]]) == [0.5, 4.0]
