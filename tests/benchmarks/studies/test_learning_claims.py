"""The learning benchmark's verdicts and tables, on figures made up here: no run is needed to check the arithmetic."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks" / "studies" / "learning"))

import claims
import curves
from run_queue import options_of_0_1_0


def test_a_claim_holds_only_if_the_whole_interval_is_on_its_side() -> None:
    assert claims.difference([0.8, 0.7, 0.75], [0.5, 0.41, 0.44])["verdict"] == "holds"
    assert claims.difference([0.5, 0.41, 0.44], [0.8, 0.7, 0.75])["verdict"] == "does not hold"
    assert claims.difference([0.8, 0.2, 0.5], [0.5, 0.5, 0.49])["verdict"] == "undecided"


def test_the_interval_is_student_s_with_two_degrees_of_freedom() -> None:
    found = claims.difference([0.1, 0.2, 0.3], [0.0, 0.0, 0.0])
    assert found["mean"] == pytest.approx(0.2)
    assert found["high"] - found["mean"] == pytest.approx(4.302653 * 0.1 / 3**0.5, abs=1e-4)


@pytest.mark.parametrize("experiment", sorted(claims.EXPERIMENTS))
def test_the_arms_of_an_experiment_are_options_that_train_takes_and_its_claims_name_arms(experiment: str) -> None:
    from turngym.benchmarks.cli.train import parse_train

    runs = claims.arms(experiment)
    assert len(runs) == len(claims.SEEDS) * len(claims.EXPERIMENTS[experiment])
    for options in runs.values():
        settings = parse_train(options)[0]
        assert settings.max_seconds == 480 and settings.max_environment_turns > 0
        first = next(iter(options_of_0_1_0(settings.algorithm).values()))
        assert first.items() <= settings.algorithm_options[settings.algorithm.partition("+")[0]].items()
    for better, worse in claims.CLAIMS[experiment]:
        assert {better, worse} <= set(claims.EXPERIMENTS[experiment])


def test_arms_that_two_experiments_share_are_the_same_runs() -> None:
    everything = [item for experiment in claims.EXPERIMENTS for item in claims.arms(experiment).items()]
    by_name = dict(everything)
    assert len(by_name) < len(everything)
    assert all(by_name[name] == options for name, options in everything)


def test_the_page_shows_every_claim_every_arm_and_the_steadiness_of_reused_batches() -> None:
    result = {
        "claims": {"x > y": claims.difference([0.8, 0.7, 0.75], [0.5, 0.41, 0.44])},
        "before": {"x": [0.1, 0.2, 0.3], "y": [0.1, 0.2, 0.3]},
        "success": {"x": [0.8, 0.7, 0.75], "y": [0.5, 0.41, 0.44]},
        "stability": {"claim-c-x-seed0": {"best_dev_success": 0.9, "largest_grad_norm": 12.0}},
    }
    page = claims.page({"c": result})
    assert "| (c) x > y | +30.0 [" in page and "| holds |" in page
    assert "| (c) y |  20.0 (10.0 to 30.0) |  45.0 (41.0 to 50.0) |" in page
    assert "| run of (c) | best dev success | largest grad norm |" in page and "| c-x-seed0 | 0.9 | 12 |" in page
    assert "run of" not in claims.page({"a": result})


@pytest.mark.parametrize("name", curves.names())
def test_the_curve_of_a_method_is_drawn_with_the_command_on_its_page(name: str) -> None:
    from turngym.benchmarks.cli.train import parse_train

    settings = parse_train(curves.options(name))[0]
    assert name in {*settings.algorithm.split("+"), settings.reward_model.partition(":")[0]}
    assert f"results/curves/{name}.png" in curves.pages()[name].read_text("utf8")


def test_a_page_without_a_curve_says_why() -> None:
    for name, reason in curves.NOT_HERE.items():
        (page,) = [path for folder in curves.PAGES if (path := folder / f"{name}.md").exists()]
        assert f"No curve: {reason}" in " ".join(page.read_text("utf8").split())
