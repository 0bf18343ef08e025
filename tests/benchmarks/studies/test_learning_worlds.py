"""The benchmark of the worlds: its options are ones that train takes, its tables add up. Nothing is run."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks" / "studies" / "learning"))

import verdicts
import warmups
import worlds

from turngym.agents.models.loading import load_vocabulary
from turngym.benchmarks.cli.train import parse_train
from turngym.envs.webshop.catalogue import procedural
from turngym.trainers.algorithms import build


@pytest.mark.parametrize("name", sorted(worlds.WORLDS))
def test_all_arms_of_a_world_begin_with_the_same_warm_ups_and_have_the_same_turns(name: str) -> None:
    runs, world = worlds.arms(name), worlds.WORLDS[name]
    assert len(runs) == len(verdicts.SEEDS) * len(world.arms)
    models = set()
    for options in runs.values():
        config = parse_train(options)[0]
        assert (config.max_environment_turns, config.max_seconds, config.control) == (world.turns, world.seconds, False)
        build(config.algorithm, config.algorithm_options)
        assert not Path(config.model).is_absolute(), "results name no machine's folders"
        models.add((config.seed, worlds.ROOT / config.model))
    assert models == {(seed, worlds.folder_of(f"world-{name}-warmup-seed{seed}")) for seed in verdicts.SEEDS}
    for seed, options in zip(verdicts.SEEDS, worlds.warmups(name).values(), strict=True):
        config = parse_train(options)[0]
        assert (config.seed, config.model) == (seed, "embedded")


def test_a_run_of_the_second_worlds_ends_by_its_turns_and_has_todays_settings_of_its_method() -> None:
    for name, world in worlds.SECOND.items():
        config = parse_train(worlds.arms(name)[worlds.run_name(name, "gigpo", 0)])[0]
        assert (config.max_seconds, world.as_in_0_1_0) == (7200, False)
        assert config.algorithm_options == parse_train(["--preset", "quickstart"])[0].algorithm_options
        assert config.rollout.prompt.mode == "conversation"  # a page alone does not tell what was done before it


def test_the_larger_shop_has_at_least_200_requests_in_its_test_split() -> None:
    config = parse_train(worlds.arms("webshop-200")[worlds.run_name("webshop-200", "gigpo", 0)])[0]
    shop = procedural(config.env_options["products"], 0)
    assert len({goal.text for product in shop.targets["test"] for goal in shop.goals(product)}) >= 200


def test_step_rewards_are_all_that_the_arms_of_a_comparison_differ_in() -> None:
    runs = worlds.arms("searchqa")
    for first, second in worlds.WORLDS["searchqa"].claims:
        configs = [parse_train(runs[worlds.run_name("searchqa", arm, 0)])[0] for arm in (first, second)]
        paid = [dict(config.env_options).pop("step_reward", 0.0) for config in configs]
        assert paid == [0.6, 0.0]
        rest = [{**config.as_json(), "env_options": None} for config in configs]
        assert rest[0] == rest[1]
        assert {**configs[1].env_options, "step_reward": 0.6} == configs[0].env_options


def test_a_world_improves_only_if_the_whole_interval_lies_above_0() -> None:
    change = verdicts.CHANGE
    assert verdicts.difference([0.8, 0.7, 0.75], [0.5, 0.41, 0.44], change)["verdict"] == "improves"
    assert verdicts.difference([0.5, 0.41, 0.44], [0.8, 0.7, 0.75], change)["verdict"] == "does not improve"
    assert verdicts.difference([0.8, 0.2, 0.5], [0.5, 0.5, 0.49], change)["verdict"] == "undecided"


def test_the_page_shows_every_arm_before_and_after_and_every_comparison() -> None:
    before, after = [0.2, 0.25, 0.3], [0.5, 0.56, 0.6]
    greedy = {f"{stage}-greedy": {"success": {"value": value}} for stage, value in (("warmup", 0.125), ("final", 0.75))}
    result: dict[str, Any] = {
        "runs": {worlds.run_name("webshop", "gigpo", seed): {"evaluations": greedy} for seed in worlds.SEEDS},
        "before": {"gigpo": before},
        "after": {"gigpo": after},
        "change": {"gigpo": verdicts.difference(after, before, verdicts.CHANGE)},
        "claims": {"gigpo > ppo": verdicts.difference(after, before)},
    }
    page = worlds.page({"webshop": result})
    assert "| webshop: gigpo |  25.0 (20.0 to 30.0) |  55.3 (50.0 to 60.0) | +30.3 [" in page
    assert "| improves |  12.5 (12.5 to 12.5) |  75.0 (75.0 to 75.0) |" in page
    assert "| webshop: gigpo > ppo | +30.3 [" in page and "| holds |" in page


@pytest.mark.integration
def test_a_warm_up_learns_its_lessons_first_with_words_of_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warmups, "RUNS", tmp_path)
    small = (
        *("--preset", "quickstart", "--warmup.demonstrations", "8", "--warmup.epochs", "1"),
        *("--embedded.hidden-size", "16", "--embedded.layers", "1", "--evaluation.curve-episodes", "4"),
    )
    lake = (*small, "--env", "turngym/FrozenLake-v0", "--seed", "3")
    lesson = ("--env", "turngym/HouseholdEasy-v0", "--warmup.epochs", "2")
    warmups.warm_up("alone", lake, 0.5)
    warmups.warm_up("after", lake, 0.5, [lesson])
    alone, after = (warmups.found(name) for name in ("alone", "after"))
    assert (alone["lessons"], after["lessons"]) == ([], [list(lesson)])
    assert len(alone["dev_success"]) == len(after["dev_success"]) == 1
    words = [load_vocabulary(str(warmups.folder_of(name))).tokenizer.get_vocab() for name in ("alone", "after")]
    assert ["Ġdrawer" in each for each in words] == [False, True]
