"""Suites: fixed tasks, a number that weighs every environment the same, and the suite of text games."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import gymnasium
import numpy as np
import pytest

from turngym.agents.episodes.evaluate import EvaluationResult
from turngym.agents.intervals import Estimate
from turngym.agents.players.expert import ExpertAgent
from turngym.agents.players.random import RandomAgent
from turngym.benchmarks.evaluation.evaluate import evaluate
from turngym.benchmarks.evaluation.run import Watcher
from turngym.benchmarks.statistics.estimates import equal_weight_mean
from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry, SuiteResult
from turngym.envs.core import TextEnv
from turngym.envs.instances import split_of
from turngym.envs.textgames import SPECS
from turngym.errors import ConfigError, UnknownName
from turngym.seeding import stream

CHANCY = {f"turngym/{name}-v0" for name in ("BernoulliBandit", "Blackjack", "ContextualBandit", "GaussianBandit")}


def instances(entry: SuiteEntry, seeds: tuple[int, ...]) -> list[str]:
    env = gymnasium.make(entry.env_id, **entry.env_kwargs).unwrapped
    assert isinstance(env, TextEnv)
    found = []
    for seed in seeds:
        env.reset(seed=seed)
        found.append(env.instance)
    return found


def estimate(value: float, stderr: float) -> Estimate:
    return Estimate(value, stderr, value - 2 * stderr, value + 2 * stderr, 10, 10, "")


@cache
def textgames_seeds() -> list[tuple[SuiteEntry, tuple[int, ...]]]:
    """Return the entries of the suite with the seeds of their episodes, found once."""
    return [(entry, entry.find_seeds()) for entry in SUITES["textgames"].entries]


def test_textgames_plays_every_instance_of_small_games_and_held_out_ones_of_the_others() -> None:
    small = 0
    for entry, seeds in textgames_seeds():
        found = instances(entry, seeds)
        assert len(seeds) == len(set(found)) == entry.episodes, "no instance twice"
        env = gymnasium.make(entry.env_id, **entry.env_kwargs).unwrapped
        assert isinstance(env, TextEnv)
        if env.finite_instances is None:
            assert {split_of(instance) for instance in found} == {"test"}
        else:
            assert entry.episodes == env.finite_instances
            small += 1
    assert small == 4


def test_textgames_holds_every_game_once_and_no_preset() -> None:
    """A preset is an id of the table with options of its own; the 24 game is counted as a game."""
    plain = {env_id for env_id, spec in SPECS.items() if not spec.kwargs} | {"turngym/Points24-v0"}
    played = [entry.env_id for entry in SUITES["textgames"].entries]
    assert played == sorted(played) and set(played) == plain


def test_the_seeds_of_a_shorter_run_are_the_first_of_the_whole_one() -> None:
    for entry, seeds in textgames_seeds():
        assert entry.find_seeds(7) == seeds[:7], "the seeds are fixed"
    assert entry.find_seeds(10_000) == seeds


def test_another_seed_of_an_entry_gives_other_tasks() -> None:
    first, second = (SuiteEntry("turngym/Sokoban-v0", episodes=5, seed=seed) for seed in (0, 1))
    assert not set(first.find_seeds()) & set(second.find_seeds())


def test_seeds_that_are_given_are_played_as_they_are() -> None:
    entry = SuiteEntry("turngym/GuessTheNumber-v0", seeds=(5, 3, 5))
    assert entry.find_seeds() == (5, 3, 5) and entry.find_seeds(2) == (5, 3)


def test_an_entry_with_too_few_instances_raises_unless_it_takes_fewer() -> None:
    options = {"high": 4}
    with pytest.raises(ConfigError, match="has 4 instances, fewer than the 10 asked for"):
        SuiteEntry("turngym/GuessTheNumber-v0", options, 10).find_seeds()
    assert len(SuiteEntry("turngym/GuessTheNumber-v0", options, 10, takes_fewer=True).find_seeds()) == 4


def test_the_expert_solves_textgames_and_the_random_agent_some_of_it() -> None:
    suite = SUITES["textgames"]
    expert = evaluate(suite, ExpertAgent(), episodes=6).result
    by_game = {result.env_id: result.success.value for result in expert.results}
    assert all(value == 1.0 for env_id, value in by_game.items() if env_id not in CHANCY)
    assert 0.9 < expert.mean.value <= 1.0
    played = evaluate(suite, RandomAgent(), episodes=6)
    random = played.result
    assert [list(found[:6]) for _, found in textgames_seeds()] == [list(found) for found in played.seeds]
    assert 0.05 < random.mean.value < 0.4
    assert random.mean.value == pytest.approx(np.mean([result.success.value for result in random.results]))
    assert [result.success.count for result in random.results] == [6] * len(suite.entries)
    assert [result.env_id for result in random.results] == [entry.env_id for entry in suite.entries]


def test_every_episode_is_reported_once() -> None:
    suite = SUITES["textgames"]
    seeds = [found[:3] for _, found in textgames_seeds()]
    seen: list[tuple[str, int]] = []

    class Noting(Watcher):
        def add(self, row: Mapping[str, Any]) -> None:
            seen.append((row["env"], row["seed"]))

    evaluate(suite, RandomAgent(), episodes=3, watcher=Noting())
    wanted = [(entry.env_id, seed) for entry, row in zip(suite.entries, seeds, strict=True) for seed in row]
    assert sorted(seen) == sorted(wanted)


def test_the_mean_weighs_environments_and_not_episodes() -> None:
    suite = Suite(
        "two", 1, "Two.", (SuiteEntry("turngym/GuessTheNumber-v0"), SuiteEntry("turngym/TowerOfHanoi-v0")), "score"
    )

    def result(score: float, episodes: int) -> EvaluationResult:
        number = Estimate(score, 0.0, score, score, episodes, episodes, "")
        nothing = estimate(0.0, 0.0)
        return EvaluationResult("", nothing, number, nothing, nothing, 0.0, 0, ())

    found = SuiteResult(suite, (result(1.0, 900), result(0.0, 100)))
    assert found.mean.value == 0.5 and found.mean.count == 1000


def test_the_standard_error_of_the_mean_is_that_of_simulated_suites() -> None:
    # Draw each environment's mean from its normal distribution many times: the spread of their average is the oracle.
    errors = [0.02, 0.05, 0.1, 0.0]
    draws = stream("suites").normal(size=(200_000, 4)) * errors
    assert equal_weight_mean([estimate(0.5, error) for error in errors]).stderr == pytest.approx(
        draws.mean(1).std(), rel=0.01
    )


def test_the_mean_of_one_environment_is_its_own_estimate() -> None:
    only = estimate(0.3, 0.1)
    assert equal_weight_mean([only]) is only
    with pytest.raises(ValueError, match="at least one estimate"):
        equal_weight_mean([])


def test_the_interval_of_a_mean_holds_1_96_standard_errors_on_both_sides() -> None:
    halves = [replace(estimate(value, 0.1), low=value - 0.196, high=value + 0.196) for value in (0.2, 0.6)]
    mean = equal_weight_mean(halves)
    assert mean.high - mean.value == pytest.approx(1.96 * 0.1 / math.sqrt(2), rel=1e-4)
    assert mean.value - mean.low == pytest.approx(mean.high - mean.value)


def test_a_label_names_what_differs_from_the_default() -> None:
    assert SuiteEntry("A-v0").label == SuiteEntry("A-v0", {"split": "test"}).label == "A-v0"
    assert SuiteEntry("A-v0", {"size": 3, "split": "dev"}).label == "A-v0 split=dev size=3"


@pytest.mark.parametrize("entries", [(), (SuiteEntry("A-v0"), SuiteEntry("A-v0", {"split": "test"}))])
def test_a_suite_without_entries_or_with_one_twice_is_refused(entries: tuple[SuiteEntry, ...]) -> None:
    with pytest.raises(ConfigError, match="needs entries that differ"):
        Suite("bad", 1, "Bad.", entries)


def test_a_suite_with_another_metric_and_an_entry_without_episodes_are_refused() -> None:
    with pytest.raises(ConfigError, match="success or score, got 'reward'"):
        Suite("bad", 1, "Bad.", (SuiteEntry("A-v0"),), "reward")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="episodes of A-v0 must be at least 1, got 0"):
        SuiteEntry("A-v0", episodes=0)


def test_an_unknown_suite_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"no suite named 'textgame'\. Did you mean 'textgames'"):
        SUITES["textgame"]
