"""Names, compositions and settings of algorithms, and the sentences that a user sees when they make no sense."""

import ast
import dataclasses
import inspect
import shlex
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from turngym.benchmarks.cli.train import parse_train
from turngym.errors import ConfigError, UnknownName
from turngym.trainers.algorithms import ALGORITHMS, PUBLISHED, build, check_group_size, parts
from turngym.trainers.algorithms.base.clipped import ClippedConfig
from turngym.trainers.algorithms.base.modifier import Modifier, logged
from turngym.trainers.algorithms.epo import EPO, EPOConfig
from turngym.trainers.algorithms.gigpo import GiGPO, GiGPOConfig
from turngym.trainers.algorithms.grpo import GRPOConfig
from turngym.trainers.algorithms.ppo import PPO, PPOConfig
from turngym.trainers.core.algorithm import Algorithm, Credit, LossInputs, LossOutput, Need
from turngym.trainers.core.turn_table import TurnTable


def test_importing_the_package_imports_no_torch() -> None:
    """Listing what exists, as a command line does, must not cost seconds."""
    code = "import sys, turngym.trainers.algorithms as a; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_promised_method_is_registered() -> None:
    promised = {"ppo", "turn_ppo", "turn_is", "s_ppo", "st_ppo", "grpo", "gigpo", "epo", "reinforce"}
    assert promised <= set(ALGORITHMS)


def test_parts_come_in_order_with_their_settings() -> None:
    assert parts("grpo+epo") == (("grpo", GRPOConfig), ("epo", EPOConfig))
    assert parts("epo") == (("ppo", PPOConfig), ("epo", EPOConfig))
    assert [name for name, _ in parts("epo+s_ppo")] == ["ppo", "epo", "s_ppo"]


def test_build_takes_settings_as_objects_or_as_mappings() -> None:
    algorithm = build("gigpo+epo", {"gigpo": GiGPOConfig(omega=0.5), "epo": {"alpha": 0.2}})
    assert isinstance(algorithm, EPO)
    assert isinstance(algorithm.base, GiGPO)
    assert algorithm.base.config.omega == 0.5
    assert algorithm.config.alpha == 0.2
    assert isinstance(build("ppo"), PPO)


def test_a_modifier_alone_stands_on_ppo() -> None:
    for name in ("epo", "turn_is", "s_ppo", "st_ppo"):
        algorithm = build(name)
        assert isinstance(algorithm, Modifier)
        assert isinstance(algorithm.innermost, PPO)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("gipgo", UnknownName, r"no algorithm named 'gipgo'. Did you mean 'gigpo'\?"),
        ("grpo+epoch", UnknownName, r"no algorithm named 'epoch'. Did you mean 'epo'\?"),
        (
            "grpo+ppo",
            ConfigError,
            r"'grpo\+ppo' has the method 'ppo' after a '\+', where only modifiers may stand: .*epo, ",
        ),
        ("epo+grpo", ConfigError, r"'epo\+grpo' has the method 'grpo' after a '\+'"),
        ("grpo+epo+epo", ConfigError, r"'grpo\+epo\+epo' names a part twice"),
        ("", UnknownName, r"no algorithm named ''. Known: "),
        ("MATPO", UnknownName, r"no algorithm named 'MATPO'. Write '--algorithm m_grpo --m_grpo.calls root'\."),
    ],
)
def test_a_wrong_name_is_answered_with_the_way_out(name: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build(name)


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"epo": {}}, "'grpo' has no part epo to configure. Parts: grpo."),
        ({"grpo": {"clip_lo": 0.1}}, r"GRPOConfig has no setting 'clip_lo'. Did you mean 'clip_low'\?"),
        ({"grpo": PPOConfig()}, "expected a GRPOConfig or a mapping of its fields, got PPOConfig"),
        ({"grpo": {"ddof": 0.5}}, r"ddof of GRPOConfig must be a whole number, got 0\.5"),
        ({"grpo": {"kl_coef": True}}, "kl_coef of GRPOConfig must be a number, got True"),
    ],
)
def test_settings_that_belong_nowhere_are_refused(configs: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        build("grpo", configs)


A_SETTING_OUTSIDE_OF_ITS_RANGE_IS_REFUSE: list[tuple[str, str, object, str]] = [
    ("grpo", "clip_low", 1.5, "clip_low must be from 0 to 1, got 1.5."),
    ("grpo", "clip_high", -0.1, "clip_high must be at least 0, got -0.1."),
    ("grpo", "clip_high", float("nan"), "clip_high must be at least 0, got nan."),
    ("grpo", "dual_clip", 1.0, "dual_clip must be greater than 1, got 1.0. Pass 0 to switch it off."),
    ("grpo", "ratio", "turn", "ratio must be one of token, turn_product, turn_geometric, "),
    ("grpo", "normalisation", "tokens", "normalisation must be one of token, turn, "),
    ("grpo", "kl_estimator", "k4", "kl_estimator must be one of k1, k2, "),
    ("grpo", "kl_coef", -1.0, "kl_coef must be at least 0"),
    ("grpo", "entropy_coef", -1.0, "entropy_coef must be at least 0"),
    ("grpo", "invalid_penalty", -1.0, "invalid_penalty must be at least 0"),
    ("grpo", "over", "episodes", "over must be one of trajectories, rows; got 'episodes'."),
    ("grpo", "singleton", "one", "singleton must be one of zero, raw"),
    ("grpo", "ddof", 2, "ddof must be from 0 to 1, got 2."),
    ("gigpo", "mode", "norm", "mode must be one of mean_norm, mean_std_norm"),
    ("gigpo", "gamma", 1.1, "gamma must be from 0 to 1, got 1.1."),
    ("ppo", "lam", -0.1, "lam must be from 0 to 1"),
    ("ppo", "value_clip", -0.1, "value_clip must be at least 0"),
    ("turn_ppo", "value_position", "turn_mean", "value_position must be one of turn_start, turn_end"),
    ("reinforce", "objective", "ppo", "objective must be one of clipped, plain"),
    ("turn_is", "gradient", "both", "gradient must be one of exact, token"),
    ("st_ppo", "gradient", "both", "gradient must be one of exact, token"),
    ("s_ppo", "normaliser", "max", "normaliser must be one of at_least_one, raw"),
    ("s_ppo", "trigger", 1.2, "trigger must be from 0 to 1"),
    ("epo", "form", "soft", "form must be one of hinge, indicator, released"),
    ("epo", "kappa_low", 3.0, "kappa_high must be at least kappa_low=3.0, got 2.0."),
    ("epo", "alpha", -1.0, "alpha must be at least 0"),
]


def test_a_setting_outside_of_its_range_is_refused() -> None:
    for name, setting, value, message in A_SETTING_OUTSIDE_OF_ITS_RANGE_IS_REFUSE:
        with pytest.raises(ConfigError) as caught:
            build(name, {name: {setting: value}})
        assert message in str(caught.value)


def test_an_estimator_whose_expected_gradient_is_zero_is_refused_in_the_loss() -> None:
    with pytest.raises(
        ConfigError, match=r"'k1' does nothing in a loss: the expectation of its gradient is 0\. Take k2"
    ):
        build("grpo", {"grpo": {"kl_coef": 0.1, "kl_estimator": "k1"}})
    build("grpo", {"grpo": {"kl_coef": 0.1, "kl_estimator": "k1+"}})
    build("grpo", {"grpo": {"kl_coef": 0.0, "kl_estimator": "k1"}})


@pytest.mark.parametrize("name", ["grpo", "gigpo", "grpo+epo", "gigpo+st_ppo"])
def test_a_group_of_one_is_a_configuration_error(name: str) -> None:
    base = name.partition("+")[0]
    with pytest.raises(ConfigError) as caught:
        check_group_size(build(name), 1)
    assert str(caught.value) == (
        f"{base} compares the episodes of a group, got group_size=1. Pass group_size=2 or more, "
        "or an algorithm without groups such as ppo."
    )
    check_group_size(build(name), 2)


def test_methods_without_groups_take_any_group_size_from_one() -> None:
    for name in ("ppo", "turn_ppo", "reinforce", "epo"):
        check_group_size(build(name), 1)
    with pytest.raises(ConfigError, match="group_size must be at least 1, got 0"):
        check_group_size(build("ppo"), 0)


class Foreign(Algorithm[None]):
    """A method of a third party that has neither a registered name nor a surrogate."""

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset({Need.GROUPS})

    @property
    def normalisations(self) -> frozenset[str]:
        return frozenset()

    def credit(self, table: TurnTable) -> Credit:
        return Credit(table.token_logprob)

    def loss(self, inputs: LossInputs) -> LossOutput:
        return LossOutput({})


def test_a_foreign_method_is_named_by_its_class() -> None:
    with pytest.raises(ConfigError, match="Foreign compares the episodes of a group"):
        check_group_size(Foreign(None), 1)
    with pytest.raises(ConfigError, match="EPO changes methods with a policy surrogate, got Foreign"):
        EPO(EPOConfig(), Foreign(None))


def test_needs_follow_the_settings() -> None:
    quiet = {"entropy_coef": 0.0, "kl_coef": 0.0}
    assert build("grpo", {"grpo": quiet}).needs == {Need.GROUPS}
    assert build("gigpo", {"gigpo": quiet}).needs == {Need.GROUPS, Need.ANCHORS}
    assert build("reinforce", {"reinforce": quiet}).needs == frozenset()
    assert build("turn_ppo", {"turn_ppo": quiet}).needs == {Need.VALUES}
    assert build("turn_ppo").needs == {Need.VALUES, Need.REFERENCE_LOGPROBS}
    assert build("ppo", {"ppo": {"kl_coef": 0.1, "entropy_coef": 0.1}}).needs == {
        Need.VALUES,
        Need.REFERENCE_LOGPROBS,
        Need.ENTROPY,
    }
    assert build("grpo+epo", {"grpo": quiet}).needs == {Need.GROUPS, Need.ENTROPY}


def test_a_ratio_can_be_changed_through_a_modifier_without_touching_the_original() -> None:
    inner = build("grpo+epo")
    assert isinstance(inner, EPO)
    before = inner.base.ratio_level  # type: ignore[attr-defined]
    outer = build("grpo+epo+turn_is")
    assert isinstance(outer, Modifier)
    assert outer.innermost.ratio_level.over == "turn"  # type: ignore[attr-defined]
    assert inner.base.ratio_level is before  # type: ignore[attr-defined]
    assert before.over == "token"


def test_every_setting_is_frozen_and_has_a_sentence() -> None:
    """The command line shows these sentences."""
    for name in sorted(ALGORITHMS):
        config = ALGORITHMS[name].Config
        assert config.__dataclass_params__.frozen
        described: set[str] = set()
        for parent in config.__mro__[:-1]:
            body = ast.parse(textwrap.dedent(inspect.getsource(parent))).body[0]
            assert isinstance(body, ast.ClassDef)
            for field, text in zip(body.body, body.body[1:], strict=False):
                if (
                    isinstance(field, ast.AnnAssign)
                    and isinstance(field.target, ast.Name)
                    and isinstance(text, ast.Expr)
                ):
                    if ast.unparse(field.annotation).startswith("ClassVar"):
                        continue
                    assert ast.unparse(text).strip("'\"").endswith("."), field.target.id
                    described.add(field.target.id)
        assert described == {field.name for field in dataclasses.fields(config)}


def test_defaults_are_those_of_the_sources() -> None:
    shared = ClippedConfig()
    assert (shared.clip_low, shared.clip_high, shared.dual_clip, shared.invalid_penalty) == (0.2, 0.2, 0.0, 0.0)
    assert (shared.kl_coef, shared.kl_estimator, shared.entropy_coef) == (0.0, "k3", 0.0)
    gigpo = GiGPOConfig()
    assert (gigpo.gamma, gigpo.omega, gigpo.ddof, gigpo.epsilon) == (0.95, 1.0, 1, 1e-6)
    assert (gigpo.kl_coef, gigpo.invalid_penalty) == (0.01, 0.1)
    assert (GRPOConfig().kl_coef, GRPOConfig().normalisation) == (0.04, "trajectory")
    epo = EPOConfig()
    assert (epo.coefficient, epo.kappa_low, epo.kappa_high, epo.decay) == (0.001, 0.0, 2.0, 3.0)


def test_metrics_are_found_whatever_the_trainer_puts_before_them() -> None:
    assert logged({"loss/clip_fraction": 0.1}, "clip_fraction") == 0.1
    assert logged({"clip_fraction": 0.1}, "clip_fraction") == 0.1
    assert logged({"loss/clip_fraction_lower": 0.1}, "clip_fraction") is None


def test_published_methods_that_are_settings_can_be_written_so() -> None:
    for written in PUBLISHED.values():
        config, _, _ = parse_train(shlex.split(written))
        assert build(config.algorithm, config.algorithm_options)
