"""Generated households: solvable, varied, in their splits, with nothing hidden told."""

import random
from itertools import chain
from typing import Any

import numpy as np
import pytest
from household_games import write_problem

from turngym.envs.household.env import TURNS_A_SUBTASK, Household
from turngym.envs.household.furniture import FITS, LAMP, LAMP_PLACES, NEEDS, RECEPTACLES, ROOMS, THINGS
from turngym.envs.household.generator import Plan, ask, build, draw_plan
from turngym.envs.household.goals import is_reached
from turngym.envs.household.pddl import names_of, read_problem
from turngym.envs.household.rules import House
from turngym.envs.household.world import KINDS, LOOK, TWO, Goal
from turngym.envs.instances import split_of
from turngym.errors import ConfigError

HARD: dict[str, Any] = {"rooms": 3, "receptacles": 24, "distractors": 30, "subtasks": 2, "max_turns": 100}


def plans(count: int, kind: str = "", **sizes: int) -> list[Plan]:
    return [draw_plan(np.random.default_rng(seed), [kind] if kind else KINDS, **sizes) for seed in range(count)]


@pytest.mark.parametrize("expert", ["explorer", "planner"])
@pytest.mark.parametrize("split", ["train", "dev", "test"])
@pytest.mark.parametrize("options", [{}, HARD, {"receptacles": 4, "distractors": 0, "max_turns": 14}], ids=str)
def test_the_expert_does_every_task(options: dict[str, Any], split: str, expert: str) -> None:
    env = Household(split=split, expert=expert, **options)
    for seed in range(25):
        _, info = env.reset(seed=seed)
        assert split_of(env.instance) == split
        total = 0.0
        while info["success"] < 0:
            _, reward, _, _, info = env.step(env.expert_action())
            total += reward
            assert info["action_is_valid"]
        assert info["success"] == info["progress"] == info["score"] == total == 1
        if expert == "planner":
            assert env.turn < TURNS_A_SUBTASK * options.get("subtasks", 1)


def test_the_expert_finishes_from_wherever_random_play_has_led() -> None:
    env, draw = Household(max_turns=200, subtasks=2), random.Random(0)
    for seed in range(40):
        _, info = env.reset(seed=seed)
        for _ in range(30):
            if info["success"] < 0:
                *_, info = env.step(draw.choice(info["legal_actions"]))
        while info["success"] < 0:
            *_, info = env.step(env.expert_action())
        assert info["success"] == 1


def test_random_play_hardly_ever_succeeds() -> None:
    env, draw, won = Household(max_turns=50), random.Random(1), 0
    for seed in range(60):
        _, info = env.reset(seed=seed)
        while info["success"] < 0:
            *_, info = env.step(draw.choice(info["legal_actions"]))
            assert info["action_is_valid"]
        won += info["success"]
    assert won < 12


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_task_can_be_asked_for_by_name(kind: str) -> None:
    for plan in plans(20, kind):
        house = House(build(plan))
        assert [goal.kind for goal in plan.goals] == [kind]
        assert not is_reached(house, plan.goals[0])
        types = {kind for kind, _ in plan.receptacles}
        assert kind not in NEEDS or NEEDS[kind] in types
        assert sum(name.split()[0] == plan.goals[0].thing for name, _ in plan.things) >= (2 if kind == TWO else 1)


def test_sizes_are_kept_and_everything_lies_where_it_fits() -> None:
    for plan in plans(40, rooms=2, receptacles=15, distractors=8):
        assert sum(count for _, count in plan.receptacles) == 15
        assert len(plan.rooms) == len(set(plan.rooms)) == 2
        allowed = {kind for room in plan.rooms for kind in ROOMS[room]}
        assert {kind for kind, _ in plan.receptacles} <= allowed
        for thing, place in plan.things:
            kind, holder = thing.split()[0], place.split()[0]
            assert (holder in LAMP_PLACES) if kind == LAMP else (holder, kind) in FITS
            assert kind == LAMP or not any((holder, kind) == (goal.target, goal.thing) for goal in plan.goals)
        names = [name for name, _ in plan.things]
        assert len(set(names)) == len(names)


def test_several_tasks_are_about_different_things_and_light_comes_last() -> None:
    for plan in plans(60, rooms=3, receptacles=20, subtasks=3):
        assert len({goal.thing for goal in plan.goals}) == len(plan.goals) == 3
        assert [goal.kind for goal in plan.goals[:-1]].count(LOOK) == 0


def test_the_words_are_complete() -> None:
    assert {kind for types in ROOMS.values() for kind in types} == set(RECEPTACLES)
    assert {place for thing in THINGS.values() for place in thing.places} <= set(RECEPTACLES)
    assert not any(RECEPTACLES[place].is_openable for place in LAMP_PLACES)
    for kind in KINDS:
        for thing in THINGS:
            text = ask(Goal(kind, thing, LAMP if kind == LOOK else "desk"))
            assert "{" not in text and " a a" not in f" {text}" and "ss " not in text


def test_a_plan_is_text_and_json_and_its_problem_reads_back() -> None:
    for plan in plans(30, subtasks=1):
        world, problem = build(plan), write_problem(build(plan))
        again = read_problem(problem, world.task)
        assert Plan.from_json(plan.as_json()) == plan
        assert (again.things, again.inside, again.goals, again.fits) == (
            world.things,
            world.inside,
            world.goals,
            world.fits,
        )
        assert [each.name for each in again.receptacles] == [each.name for each in world.receptacles]
        assert House(again).commands() == House(world).commands()


def test_names_count_down_in_alphabetical_order() -> None:
    assert names_of(["mug_bar_1", "mug_bar_2"]) == {"mug_bar_1": "mug 2", "mug_bar_2": "mug 1"}


def test_what_was_not_seen_may_lie_elsewhere_and_what_was_seen_may_not() -> None:
    env, draw, moved = Household(), random.Random(0), 0
    for seed in range(30):
        _, info = env.reset(seed=seed)
        for _ in range(6):
            if info["success"] < 0:
                *_, info = env.step(draw.choice(info["legal_actions"]))
        before = env.house.state()
        anchor = info["anchor"]
        moved += env.resample_hidden()
        after = env.house.state()
        assert {k: v for k, v in before.items() if k not in ("contents", "around")} == {
            k: v for k, v in after.items() if k not in ("contents", "around")
        }
        assert all(before["contents"][number] == after["contents"][number] for number in before["seen"])
        assert sorted(chain(*before["contents"])) == sorted(chain(*after["contents"]))
        assert env.anchor() == anchor and env.legal_actions() == (info["legal_actions"] or env.legal_actions())
        assert info["success"] >= 0 or not all(is_reached(env.house, goal) for goal in env.house.world.goals)
    assert moved > 20


def test_the_first_observation_lists_the_room_and_the_task() -> None:
    env = Household()
    observation, info = env.reset(seed=3)
    first, blank, task = observation.split("\n")
    assert first.startswith("You are in the middle of a room.") and blank == "" and task == env.house.world.task
    assert all(each.name in first for each in env.house.world.receptacles)
    assert "go to" in env.instructions and "50 turns" in env.instructions
    observation, _, _, _, info = env.step("fly to the moon")
    assert observation == "Nothing happens." and not info["action_is_valid"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"kind": "cook"}, "got 'cook'"),
        ({"rooms": 5}, r"rooms .* in \[1, 4\], got 5"),
        ({"receptacles": 3}, r"receptacles .* in \[4, 30\], got 3"),
        ({"subtasks": 2, "max_turns": 20}, "at least 12 for each of the 2 subtasks, got 20"),
        ({"expert": "oracle"}, "got 'oracle'"),
    ],
)
def test_options_out_of_range_are_refused_by_name(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Household(**options)


def test_a_task_by_name_and_an_expert_without_an_episode_are_refused() -> None:
    env = Household()
    with pytest.raises(ConfigError, match="no named tasks"):
        env.reset(options={"task": "x"})
    with pytest.raises(ConfigError, match="reset"):
        env.expert_action()
