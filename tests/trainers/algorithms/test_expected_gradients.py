"""The expected gradient of every method, by enumeration, against the gradient of what it maximises.

``benchmarks/studies/checks/bias.py`` has all figures and writes them onto the pages; the cheap ones are repeated here.
"""

import json
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
import torch
from torch import Tensor

from turngym.benchmarks.studies.checks.bias import arm_of, expectation, figure, measured
from turngym.benchmarks.studies.checks.expected_gradients.gradients import (
    Arm,
    Figure,
    Objective,
    expected_gradient,
    one_group,
)
from turngym.benchmarks.studies.checks.expected_gradients.methods import CASES
from turngym.benchmarks.studies.checks.expected_gradients.pages import RESULT, pages
from turngym.benchmarks.studies.checks.expected_gradients.parts import PARTS
from turngym.benchmarks.studies.checks.expected_gradients.world import IDS, SAMPLED, Rules, episodes
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.rloo import RLOO, RLOOConfig
from turngym.trainers.core.algorithm import Credit, Need
from turngym.trainers.core.turn_table import TurnTable

torch.set_num_threads(1)

RECORDED: dict[str, Any] = json.loads(RESULT.read_text("utf8"))
AGAIN = "run: python benchmarks/studies/checks/bias.py"


def test_every_method_has_a_class() -> None:
    missing = sorted(set(ALGORITHMS) - set(CASES))
    assert not missing, (
        f"{', '.join(missing)}: say in CASES of benchmarks/studies/checks/expected_gradients/methods.py whether the "
        f"expected gradient is that of the objective, and if it is not for which reasons. Then {AGAIN}"
    )
    assert set(CASES) == set(RECORDED["methods"]), AGAIN


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_reasons_of_a_method_explain_all_of_its_bias(name: str) -> None:
    """Without its reasons its expected gradient is that of its objective times a constant, in the smallest batches."""
    case, explained = CASES[name], expectation(name, CASES[name].steps)
    assert RECORDED["methods"][name]["class"] == case.expected, AGAIN
    assert explained.is_exact, f"{name} has a bias that no reason names: {explained}"
    if not case.steps:
        assert explained.is_equal == (case.expected == "unbiased")


def assert_class_in_large_batches(name: str) -> None:
    large = figure(name, "large_batch")
    assert large._asdict() == pytest.approx(RECORDED["methods"][name]["defaults"]["large_batch"], rel=1e-4, abs=1e-8), (
        AGAIN
    )
    assert large.is_exact == (CASES[name].expected != "biased")


COMPARING = {name for name in CASES if Need.GROUPS in arm_of(name).made().needs}


@pytest.mark.parametrize("name", sorted(set(CASES) - COMPARING))
def test_a_method_without_groups_has_its_class_in_large_batches(name: str) -> None:
    assert_class_in_large_batches(name)


@pytest.mark.integration
@pytest.mark.parametrize("name", sorted(COMPARING))
def test_a_method_with_groups_has_its_class_in_large_batches(name: str) -> None:
    assert_class_in_large_batches(name)


@pytest.mark.parametrize("rules", [Rules(), Rules(is_binary=True), Rules(is_single=True), Rules(True, True)])
def test_the_probabilities_of_all_episodes_sum_to_one(rules: Rules) -> None:
    assert sum(each.probability(rules.policy) for each in episodes(rules)) == 1


def test_the_gradient_of_the_objective_is_that_of_exact_fractions() -> None:
    """The expected return is linear in the probability of one action, so a difference gives its slope exactly."""

    def expected_return(take: Fraction) -> Fraction:
        policy = {**SAMPLED, "hall 1": {"take": take, "wait": 1 - take}}
        return sum(
            (each.probability(policy) * Fraction(each.trajectory.reward_sum) for each in episodes(Rules())), Fraction(0)
        )

    assert expected_return(Fraction(1, 2)) == Fraction(41, 64)
    slope = expected_return(Fraction(1)) - expected_return(Fraction(0))
    found = Objective().gradient(Rules())[IDS["take"], IDS["hall 1"]]
    assert float(found) == pytest.approx(float(slope / 4), abs=1e-12)  # p (1 - p) = 1/4


def own_turns(advantages: Tensor, table: TurnTable) -> Tensor:
    """Only what a turn earned itself, less a constant."""
    return table.to_tokens(table.reward - 0.5)


def of_the_other_episode(advantages: Tensor, table: TurnTable) -> Tensor:
    return -advantages.flip(0) if len(advantages) else advantages


def less_what_the_actions_lead_to(advantages: Tensor, table: TurnTable) -> Tensor:
    """A baseline that depends on how many turns the episode will have."""
    return advantages - 0.3 * table.to_tokens(table.turns_per_episode[table.episode].to(advantages.dtype))


def on_first_tokens_alone(advantages: Tensor, table: TurnTable) -> Tensor:
    return torch.where(table.first_tokens(), advantages, 0.0)


def as_it_is(advantages: Tensor, table: TurnTable) -> Tensor:
    return advantages


def centred_by_a_constant(advantages: Tensor, table: TurnTable) -> Tensor:
    return advantages - 0.7


@pytest.mark.parametrize(
    ("change", "is_unbiased"),
    [
        (as_it_is, True),
        (centred_by_a_constant, True),
        (own_turns, False),
        (of_the_other_episode, False),
        (less_what_the_actions_lead_to, False),
        (on_first_tokens_alone, False),
    ],
)
def test_a_credit_that_is_broken_on_purpose_is_found_biased(
    change: Callable[[Tensor, TurnTable], Tensor], is_unbiased: bool
) -> None:
    class Changed(RLOO):
        def credit(self, table: TurnTable) -> Credit:
            return Credit(change(super().credit(table).advantages, table))

    method = Changed(RLOOConfig(normalisation="trajectory_sum", reward_kl_coef=0.0))
    found = Figure.of(expected_gradient(method, Arm("rloo"), one_group(Rules())), Objective().gradient(Rules()))
    assert found.is_equal == is_unbiased
    assert found.is_exact == is_unbiased


def test_pages_say_what_was_measured() -> None:
    for path, text in pages().items():
        assert path.read_text("utf8") == text, f"{path.name}: python benchmarks/studies/checks/bias.py --pages"


def test_every_part_was_measured() -> None:
    assert {table: [row["part"] for row in rows] for table, rows in RECORDED["parts"].items()} == {
        table: [part.name for part in rows] for table, rows in PARTS.items()
    }, AGAIN


@pytest.mark.integration
@pytest.mark.parametrize("name", ["grpo", "hgpo", "rae", "turn_ppo"])
def test_the_figures_come_out_again(name: str) -> None:
    assert json.loads(json.dumps(measured(name))) == RECORDED["methods"][name], AGAIN
