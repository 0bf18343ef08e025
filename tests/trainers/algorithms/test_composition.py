"""Modifiers on every base method: a turn-level ratio, the clipping-bias correction, and EPO's regulariser on any."""

import algorithm_batches as properties
import pytest
import test_algorithm_properties as held
import torch

from turngym.errors import ConfigError
from turngym.trainers.algorithms import ALGORITHMS, build
from turngym.trainers.algorithms.base.clipped import PolicyMethod
from turngym.trainers.algorithms.base.modifier import Modifier
from turngym.trainers.core.algorithm import Need

BASES = sorted(name for name in ALGORITHMS if not issubclass(ALGORITHMS[name], Modifier))
CRITICS = [name for name in BASES if Need.VALUES in build(name).needs]
OWN_RATIO = {
    "gmpo": "has its own turn-level ratio",
    "archer": "ratio",
    **dict.fromkeys(("gkd", "iw_opd", "opd", "opmd", "sdft"), "ratio"),
}
"""Methods whose ratio is the method itself, or that have none with their default settings: another one is refused."""
WITHOUT_CLIP = {"archer", "gkd", "iw_opd", "nft", "opd", "opmd", "sdft", "sdpo"}
WITH_CLIP = [name for name in BASES if name not in WITHOUT_CLIP]
MODIFIERS = ("turn_is", "s_ppo", "st_ppo", "epo", "mmd", "tis", "icepop", "mis")
OWN_WEIGHTS = dict.fromkeys(("a3po", "opd", "gkd", "sdft", "sdpo"), ("tis", "icepop"))
"""Methods with weights of the trainer over the sampler, or without advantages that weights could scale -> the modifiers
that they refuse."""


def works(name: str) -> bool:
    base, _, modifier = name.partition("+")
    return not (base in OWN_RATIO and modifier in ("turn_is", "st_ppo")) and modifier not in OWN_WEIGHTS.get(base, ())


def base_of(pair: str) -> str:
    return pair.partition("+")[0]


LOSSES = {properties.loss_code(base): base for base in reversed(BASES)}
"""One base for each code that computes a loss; the others differ in their credit, or in settings of that code."""
ALIKE = {"st_ppo": "s_ppo", "icepop": "tis", "mis": "tis"}
"""Modifiers with the code of another one: a few bases show that they work, and every base that the other one does."""
FEW = ("dr_grpo", "turn_ppo")
"""Bases with every modifier; each other one has every third, so that each modifier changes many of them."""
PAIRS = [
    pair
    for number, base in enumerate(sorted(LOSSES.values()))
    for place, modifier in enumerate(MODIFIERS)
    if works(pair := f"{base}+{modifier}") and (base in FEW or (modifier not in ALIKE and (number + place) % 3 == 0))
]


@pytest.mark.parametrize("pair", PAIRS)
def test_a_composition_keeps_the_properties_of_a_loss(pair: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(properties.VARIANTS, pair, (pair, {}))
    held.test_padding_and_the_cut_into_rows_change_nothing(pair)
    held.test_micro_batches_sum_to_the_batch(pair)
    if base_of(pair) not in properties.TAUGHT:
        held.test_zero_advantage_gives_zero_policy_gradient(pair)
    held.test_the_loss_reads_only_what_it_declares_and_logs_what_all_log(pair)


@pytest.mark.parametrize("base", BASES)
def test_a_composition_credits_as_its_base_does(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = properties.batch_of(build(base)).credit.advantages
    for pair in filter(works, (f"{base}+{modifier}" for modifier in MODIFIERS)):
        monkeypatch.setitem(properties.VARIANTS, pair, (pair, {}))
        composed = properties.batch_of(properties.made(pair))
        assert torch.equal(expected, composed.credit.advantages), pair


@pytest.mark.parametrize("base", [name for name in BASES if name not in OWN_RATIO])
def test_a_turn_level_ratio_is_the_geometric_mean_of_the_methods_own_token_ratios(base: str) -> None:
    algorithm, plain = build(f"{base}+turn_is"), build(base, {base: {"ratio": "token"}})
    batch = properties.batch_of(algorithm)
    plain.credit(batch.table)
    inputs = batch.inputs(batch.by_episode())
    assert isinstance(algorithm, PolicyMethod) and isinstance(plain, PolicyMethod)
    found = algorithm.surrogate(inputs).ratio.detach()
    tokens = plain.surrogate(inputs).ratio.detach().log()
    differ = False
    for turn in inputs.turn_ids[inputs.turn_ids >= 0].unique():
        here = inputs.turn_ids == turn
        differ |= len(tokens[here].unique()) > 1
        torch.testing.assert_close(found[here], tokens[here].mean().exp().expand(int(here.sum())))
    assert differ, "turns of one token alone would show nothing"


@pytest.mark.parametrize("base", sorted(OWN_RATIO))
def test_a_method_that_is_its_ratio_refuses_another_one(base: str) -> None:
    for modifier in ("turn_is", "st_ppo"):
        with pytest.raises(ConfigError, match=OWN_RATIO[base]):
            build(f"{base}+{modifier}")


@pytest.mark.parametrize("base", ["a3po", "grpo+tis", "grpo+icepop", "ppo+tis+epo"])
@pytest.mark.parametrize("modifier", ["tis", "icepop"])
def test_weights_against_the_sampler_are_given_once(base: str, modifier: str) -> None:
    with pytest.raises(ConfigError, match=r"already|twice"):
        build(f"{base}+{modifier}")
    build(f"{base}+mis")


@pytest.mark.parametrize("base", WITH_CLIP)
def test_the_clipping_bias_is_the_gradient_that_clipping_took_away(base: str) -> None:
    """Without any clipping the gradient of the policy loss is that of the clipped one plus the bias."""
    own = properties.VARIANTS[base][1].get(base, {})
    algorithm = build(f"{base}+s_ppo", {base: {**own, "clip_low": 0.05, "clip_high": 0.05}})
    batch = properties.batch_of(algorithm)
    inputs = batch.inputs(batch.by_episode())
    found = properties.everything(algorithm, batch, [inputs])
    bias = found["gradient of probes/clipping_bias by logprobs"]
    assert isinstance(algorithm, PolicyMethod)
    policy = algorithm.surrogate(inputs).policy
    clipped = torch.zeros_like(bias, dtype=torch.bool)
    clipped[batch_order(batch, inputs.turn_ids)] = policy.clipped[inputs.action_mask]
    assert clipped.any()
    assert bias[clipped & (batch.credit.advantages != 0)].abs().sum() > 0
    if algorithm.innermost.config.ratio == "token":  # type: ignore[attr-defined]
        assert not bias[~clipped].any(), "a token that is not clipped has lost nothing"


def batch_order(batch: properties.Batch, turn_ids: torch.Tensor) -> torch.Tensor:
    """Where the sampled tokens of rows, read row by row, stand in the table."""
    order = [
        torch.nonzero(batch.table.token_turn == turn).flatten()
        for row in turn_ids
        for turn in row[row >= 0].unique_consecutive()
    ]
    return torch.cat(order)


@pytest.mark.parametrize("base", CRITICS)
def test_the_correction_divides_the_gradients_of_any_critic_method(base: str) -> None:
    gradients, probe = [torch.tensor([3.0, 4.0])], [torch.tensor([0.0, 2.0])]
    algorithm = build(f"{base}+s_ppo")
    (found,), metrics = algorithm.transform_gradients(gradients, {"clipping_bias": probe}, {"loss/clip_fraction": 0.5})
    assert found.tolist() == [1.5, 2.0]
    assert metrics == {"clipping_bias_norm": 2.0, "clipping_bias_divisor": 2.0}
    (same,), metrics = algorithm.transform_gradients(gradients, {"clipping_bias": probe}, {"loss/clip_fraction": 0.0})
    assert same.tolist() == [3.0, 4.0]
    assert metrics == {"clipping_bias_norm": 2.0, "clipping_bias_divisor": 1.0}


@pytest.mark.parametrize("base", BASES)
def test_epo_adds_its_regulariser_to_any_method(base: str) -> None:
    algorithm = build(f"{base}+epo", {"epo": {"coefficient": 0.5}})
    algorithm.observe({"loss/entropy_nested": 0.1})
    batch = properties.batch_of(algorithm)
    inputs = batch.inputs(batch.by_episode())
    output, plain = algorithm.loss(inputs), algorithm.base.loss(inputs)  # type: ignore[attr-defined]
    assert output.terms.keys() - plain.terms.keys() == {"epo"}
    for name, term in plain.terms.items():
        assert torch.equal(term.values, output.terms[name].values)
    assert output.terms["epo"].values.detach().any()
