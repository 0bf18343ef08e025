"""Levels that follow success, and tasks that are neither solved always nor never."""

import math
from collections import Counter as Tally
from collections.abc import Sequence
from typing import Any

import gymnasium
import pytest
import toy_envs

from turngym.envs.vector import make_vec
from turngym.errors import ConfigError, UnknownName
from turngym.wrappers import Wrapping, wrap
from turngym.wrappers.sampling.curriculum import Curriculum, next_level
from turngym.wrappers.sampling.task_sampler import TaskSampler

LEVELS = [{"goal": 1}, {"goal": 2}, {"goal": 3}]


def climbing(*inside: str, **options: Any) -> Any:
    settings = {"levels": LEVELS, "window": 2, "raise_at": 1.0, **options}
    return wrap(gymnasium.make("toy/Counter-v0", max_turns=3), *inside, Wrapping("curriculum", settings))


def episode(env: Any, action: str, seed: int | None = None, options: dict[str, Any] | None = None) -> int:
    """Play the same action to the end and return the level that was played."""
    env.reset(seed=seed, options=options)
    level, is_over = env.get_wrapper_attr("level"), False
    while not is_over:
        _, _, terminated, truncated, _ = env.step(action)
        is_over = terminated or truncated
    return int(level)


@pytest.mark.parametrize(
    ("level", "results", "expected"),
    [
        (0, [1, 1, 1], 0),  # too few
        (0, [1, 1, 1, 0], 1),
        (0, [0, 1, 1, 0], 0),
        (1, [0, 1, 0, 0], 0),
        (0, [0, 0, 0, 0], 0),  # nothing lower
        (2, [1, 1, 1, 1], 2),  # nothing higher
        (1, [0, 0, 0, 0, 1, 1, 1, 1], 2),  # only the latest count
    ],
)
def test_the_rule_for_the_next_level(level: int, results: Sequence[int], expected: int) -> None:
    assert next_level(level, results, 3, window=4, raise_at=0.75, lower_at=0.25) == expected
    if expected >= level:
        assert next_level(level, results, 3, window=4, raise_at=0.75, lower_at=None) == expected


def test_levels_rise_with_success_and_fall_without() -> None:
    env = climbing(lower_at=0.0)
    played = [episode(env, "up", seed) for seed in range(6)]
    assert played == [0, 0, 1, 1, 2, 2]
    assert [episode(env, "down", seed) for seed in range(5)] == [2, 2, 1, 1, 0]
    assert env.settings["goal"] == 1 and env.num_levels == 3


def test_an_interrupted_episode_is_not_counted() -> None:
    env = climbing()
    for _ in range(5):
        env.reset(seed=0)
        env.step("down")
    assert env.level_reached == 0 and env.lasting["results"] == []


def test_the_caller_can_choose_a_level_which_is_not_counted() -> None:
    env = climbing()
    assert [episode(env, "up", options={"level": 2}) for _ in range(3)] == [2, 2, 2]
    assert env.level_reached == 0
    assert episode(env, "up", options={"level": 0}) == 0 and env.lasting["results"] == [1]
    for level in (3, -1, "1", True):
        with pytest.raises(ConfigError, match=r"whole number in \[0, 2\]"):
            env.reset(options={"level": level})


def test_instructions_id_and_limits_are_those_of_the_level() -> None:
    levels: list[Any] = ["turngym/Sokoban-v0", {"id": "turngym/SokobanHard-v0", "max_turns": 50}]
    env: Any = Curriculum(gymnasium.make("turngym/Sokoban-v0"), levels=levels)
    env.reset(seed=0, options={"level": 1})
    assert env.env_id == "turngym/SokobanHard-v0" and env.max_turns == 50
    assert env.settings["boxes"] == 2 and env.origin[0] == "turngym/Sokoban-v0"


def test_wrappers_inside_stay_when_the_level_changes() -> None:
    """They are put around whatever level comes, with what they remember."""
    env = climbing("normalize_reward", "history")
    for seed in range(4):
        episode(env, "up", seed)
    assert env.level_reached == 2 and env.get_wrapper_attr("statistics")["size"] == 1 + 1 + 2 + 2
    env.reset(seed=0)
    assert "Turn 1:" in env.step("up")[0]


def test_the_stream_of_random_numbers_goes_on_over_levels() -> None:
    env, plain = climbing(), gymnasium.make("toy/Counter-v0", goal=1, max_turns=3)
    env.reset(seed=4)
    plain.reset(seed=4)
    for level in (2, 0, 1):
        env.reset(options={"level": level})
        plain.reset()
        assert env.instance_hash == plain.get_wrapper_attr("instance_hash")


def test_a_snapshot_brings_level_and_results_back() -> None:
    env, other = climbing(), climbing()
    for seed in range(3):
        episode(env, "up", seed)
    env.reset(seed=9)
    env.step("down")
    other.restore(env.snapshot())
    assert (other.level, other.level_reached) == (1, 1) and other.snapshot() == env.snapshot()
    for each in (env, other):
        assert [each.step("up")[3], each.step("up")[3]] == [False, True]
        each.reset()
    assert other.snapshot() == env.snapshot()


def test_a_refused_snapshot_leaves_the_level() -> None:
    env, other = climbing(), climbing()
    env.reset(options={"level": 2})
    other.reset(seed=1)
    before = other.snapshot()
    with pytest.raises(ConfigError):
        other.restore(env.snapshot().replace(b'"turn": 0', b'"turn": -1'))
    assert other.level == 0 and other.snapshot() == before


@pytest.mark.parametrize(
    "options",
    [
        {"window": 0},
        {"raise_at": 0},
        {"lower_at": 1.0},
        {"start": 3},
        {"levels": [{"gaol": 2}]},
    ],
)
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        climbing(**options)


def test_levels_must_be_registered_and_have_equal_spaces() -> None:
    sokoban = gymnasium.make("turngym/Sokoban-v0")
    with pytest.raises(ConfigError, match="equal spaces"):
        Curriculum(sokoban, levels=[{}, {"image": True}])
    with pytest.raises(UnknownName, match="for a level"):
        Curriculum(sokoban, levels=["this:turngym/Sokoban-v0"])  # would import a module
    with pytest.raises(ConfigError, match=r"gymnasium\.make"):
        Curriculum(toy_envs.Counter(), levels=LEVELS)


# TaskSampler and success_filter


def test_tasks_outside_of_the_interval_are_not_drawn() -> None:
    sampler = TaskSampler(["easy", "fair", "hard", "new"], 0.25, 0.75, window=4, min_episodes=4, explore=0.0)
    for solved in ((1, 1, 0), (1, 1, 0), (1, 0, 0), (1, 0, 0)):
        for task, each in zip(("easy", "fair", "hard"), solved, strict=True):
            sampler.record(task, bool(each))
    assert dict(sampler.rates()) | {"new": None} == {"easy": 1.0, "fair": 0.5, "hard": 0.0, "new": None}
    assert math.isnan(sampler.rate("new")) and sampler.eligible() == ["fair", "new"]
    drawn = Tally(sampler.sample() for _ in range(2000))
    assert set(drawn) == {"fair", "new"} and abs(drawn["fair"] - 1000) < 5 * math.sqrt(500)


def test_only_the_latest_episodes_count_so_that_tasks_come_back() -> None:
    sampler = TaskSampler([1, 2], 0.25, 0.75, window=2, min_episodes=2, explore=0.0)
    for solved in (False, False):
        sampler.record(1, solved)
    assert sampler.eligible() == [2]
    sampler.record(1, True)
    assert sampler.eligible() == [1, 2] and sampler.rate(1) == 0.5
    sampler.record(3, True)  # none of its tasks
    assert set(sampler.memory["results"]) == {"1"}


def test_exploration_draws_from_all_and_so_does_a_sampler_without_eligible_tasks() -> None:
    sampler = TaskSampler([1, 2], min_episodes=1, explore=0.5)
    sampler.record(1, True)
    drawn = Tally(sampler.sample() for _ in range(2000))
    assert abs(drawn[1] - 500) < 5 * math.sqrt(375)  # a quarter: half of the draws explore, half of those hit it
    sampler.record(2, False)
    assert not sampler.eligible() and {sampler.sample() for _ in range(30)} == {1, 2}


def test_draws_depend_on_seed_and_memory_alone() -> None:
    def draws(sampler: TaskSampler) -> list[Any]:
        return [sampler.sample() for _ in range(20)]

    first, again, other = (TaskSampler(range(50), seed=seed) for seed in (1, 1, 2))
    one = draws(first)
    assert one == draws(again) != draws(other)
    resumed = TaskSampler(range(50), seed=77)
    resumed.memory = {**first.memory}
    assert draws(resumed) == draws(first)
    again.reseed(1)
    assert draws(again) == one


@pytest.mark.parametrize(
    "options", [{"low": 0.9, "high": 0.1}, {"high": 1.5}, {"window": 1}, {"min_episodes": 0}, {"explore": 2}]
)
def test_options_of_a_sampler_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        TaskSampler([1, 2], **options)
    with pytest.raises(ConfigError, match="all different"):
        TaskSampler(["1", 1])


def filtered(**options: Any) -> Any:
    return wrap(gymnasium.make("turngym/FrozenLake-v0"), Wrapping("success_filter", options))


def test_a_reset_without_a_seed_plays_a_task_that_is_drawn() -> None:
    env, plain = filtered(num_seeds=4, first_seed=10), gymnasium.make("turngym/FrozenLake-v0")
    env.reset(seed=3)
    assert env.task is None  # none of those that are drawn from
    seen: set[Any] = set()
    for _ in range(20):
        observation, _ = env.reset()
        assert env.task in range(10, 14) and observation == plain.reset(seed=env.task)[0]
        seen.add(env.task)
    assert len(seen) == 4


def test_what_came_out_decides_what_is_drawn() -> None:
    env = filtered(num_seeds=3, min_episodes=1, explore=0.0, low=0.1, high=0.9)
    env.reset(seed=1)
    assert env.task == 1
    is_over = False
    while not is_over:
        _, _, terminated, truncated, info = env.step(env.expert_action())
        is_over = terminated or truncated
    assert info["success"] == 1 and env.rates[1] == 1.0
    drawn = {env.reset() and env.task for _ in range(30)}
    assert drawn == {0, 2}


def test_what_is_known_of_the_tasks_is_in_the_snapshot() -> None:
    env, other = filtered(num_seeds=50), filtered(num_seeds=50)
    env.reset(seed=1)
    env.sampler.record(1, True)
    env.reset()
    other.restore(env.snapshot())
    assert other.rates[1] == 1.0 and other.task == env.task
    assert [(env.reset(), env.task)[1] for _ in range(5)] == [(other.reset(), other.task)[1] for _ in range(5)]


def test_slots_with_different_seeds_draw_different_tasks() -> None:
    """Autoreset resets without a seed; the same draws in every slot would waste a vector."""
    vector = make_vec("toy/Counter-v0", 4, wrappers=[Wrapping("success_filter")], goal=1, autoreset_mode="SameStep")
    vector.reset(seed=[100, 101, 102, 103])
    vector.step(["up"] * 4)
    tasks = vector.get_attr("task")
    assert len(set(tasks)) > 1 and all(task in range(100) for task in tasks)
    vector.reset(seed=[7, 7, 7, 7])  # a group starts from one task, whatever was drawn
    assert vector.get_attr("task") == (7, 7, 7, 7)


class Named(toy_envs.Counter):
    """A counter with a data set of three instances."""

    def tasks(self) -> tuple[str, ...]:
        return ("0", "1", "2")


def test_the_tasks_of_a_data_set_are_drawn_by_name() -> None:
    env: Any = wrap(Named(goal=9), "success_filter")
    env.reset(seed=5)
    assert env.task is None
    drawn: set[Any] = {(env.task, env.unwrapped.count) for _ in range(20) if env.reset()}
    assert drawn == {("0", 0), ("1", 1), ("2", 2)}
    env.reset(options={"task": "2"})
    assert env.task == "2"
