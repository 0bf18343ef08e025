"""Goals of the sites: each has a way that leads there, and the judge sees what is missing and what is too much."""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from turngym.envs.website.draw import Draw, NoGoal
from turngym.envs.website.env import WebSite
from turngym.envs.website.goal import New, Verdict, Wanted, judge, sets
from turngym.envs.website.sites import KINDS, SITES, Instance, goal_of, world_of
from turngym.envs.website.store import World, make_world
from turngym.seeding import stream

PAIRS = [(site, kind) for site, kinds in KINDS.items() for kind in kinds]
SCHEMA = {"note": ("text", "done"), "tag": ("note", "name")}


@pytest.fixture
def world() -> World:
    rows: dict[str, Any] = {"note": [(1, "milk", "no"), (2, "tea", "no")], "tag": [(1, 1, "food")]}
    return make_world("w", SCHEMA, rows)


def play(env: WebSite, seed: int) -> tuple[int, float, dict[str, Any], list[str]]:
    """Follow the expert, and demand that the progress never falls."""
    observation, info = env.reset(seed=seed)
    turns, reward, pages = 0, 0.0, [observation]
    assert info["progress"] == 0.0, env.goal
    while info["success"] < 0:
        before = info["progress"]
        observation, reward, _, _, info = env.step(env.expert_action())
        turns += 1
        pages.append(observation)
        assert info["action_is_valid"] and info["progress"] >= before
    return turns, reward, info, pages


def test_every_site_has_at_least_eight_kinds_of_goals() -> None:
    assert set(KINDS) == set(SITES) == {"issues", "mail", "shop"}
    assert all(len(kinds) >= 8 for kinds in KINDS.values())


@pytest.mark.parametrize(("site", "kind"), PAIRS)
def test_the_oracle_reaches_every_goal_in_5_to_30_turns_on_short_pages(site: str, kind: str) -> None:
    lengths = []
    for split in ("train", "dev", "test"):
        env = WebSite(site=site, kind=kind, split=split)
        for seed in range(4):
            turns, reward, info, pages = play(env, seed)
            assert (reward, info["success"], info["score"], info["progress"]) == (1.0, 1, 1.0, 1.0), (seed, env.goal)
            lengths.append(turns)
            assert max(map(len, pages)) < 900 and sum(map(len, pages)) / len(pages) < 700
    assert min(lengths) >= 5 and max(lengths) <= 30, lengths


def test_goals_ask_for_what_is_not_so_yet_in_words_of_their_own() -> None:
    """Nothing that is wanted holds at the beginning, and different goals read differently."""
    for site, kind in PAIRS:
        texts: Counter[str] = Counter()
        for world in range(40):
            held = world_of(site, world)
            for number in range(4):
                goal = goal_of(Instance(site, world, kind, number))
                if goal is None:
                    continue
                texts[f"{world} {goal.text}"] += 1
                assert len(goal.text) < 220 and goal.wants
                assert judge(goal.wants, [], held, SITES[site].schema) == Verdict((False,) * len(goal.wants), 0)
                for wanted in goal.wants:
                    row = next((row for row in held.tables[wanted.table] if row[0] == wanted.id), None)
                    cells = dict(zip(("id", *SITES[site].schema[wanted.table]), row, strict=True)) if row else {}
                    assert (row is not None) == bool(wanted.id)
                    assert not wanted.id or all(cells[name] != value for name, value in wanted.cells.items())
        assert len(texts) >= 15


def test_worlds_differ_and_are_made_the_same_again() -> None:
    for name, site in SITES.items():
        images = {world_of(name, number).image for number in range(30)}
        assert len(images) == 30
        assert all(site.build(stream("website", name, 3))[t] == list(world_of(name, 3).tables[t]) for t in site.schema)


def test_titles_that_things_are_searched_by_find_one_thing() -> None:
    for name, table, cell in (("issues", "issue", 1), ("mail", "mail", 4), ("shop", "product", 1)):
        for number in range(64):
            titles = [str(row[cell]).lower() for row in world_of(name, number).tables[table]]
            assert all(sum(title in other for other in titles) == 1 for title in titles)


def branches(env: WebSite, draw: random.Random) -> Iterator[dict[str, Any]]:
    """Play at random, and yield the info of every turn whose state the expert goes on from."""
    for seed in range(120):
        _, info = env.reset(seed=seed)
        for _ in range(draw.randint(1, 12)):
            *_, truncated, info = env.step(draw.choice(info["legal_actions"]))
            if info["success"] >= 0 or truncated:
                break
        else:
            yield info


def test_the_oracle_finds_its_way_from_wherever_harmless_wandering_leads() -> None:
    env, draw, tried = WebSite(max_turns=100), random.Random(2), 0
    for info in branches(env, draw):
        if env.store.changes():
            continue
        tried += 1
        while info["success"] < 0:
            *_, info = env.step(env.expert_action())
        assert info["success"] == 1
    assert tried > 60


def test_random_play_hardly_ever_succeeds() -> None:
    env, draw, solved = WebSite(), random.Random(1), 0
    for seed in range(150):
        _, info = env.reset(seed=seed)
        while info["success"] < 0:
            *_, info = env.step(draw.choice(info["legal_actions"]))
        solved += info["success"]
    assert solved <= 3


def test_a_change_must_have_the_value_that_is_wanted(world: World) -> None:
    wants = sets("note", 1, text="cream", done="yes")
    assert judge(wants, [("note", 1, (1, "cream", "no"))], world, SCHEMA) == Verdict((True, False), 0)
    assert judge(wants, [("note", 1, (1, "butter", "yes"))], world, SCHEMA) == Verdict((False, True), 0)
    assert judge(wants, [("note", 1, (1, "cream", "yes"))], world, SCHEMA).is_reached


def test_whatever_else_changes_keeps_the_goal_away_and_lowers_the_progress(world: World) -> None:
    wants = sets("note", 1, done="yes")
    reached: Any = ("note", 1, (1, "milk", "yes"))
    for other in (("note", 2, (2, "tea", "yes")), ("note", 2, ()), ("tag", 2, (2, 1, "new")), ("tag", 1, ())):
        verdict = judge(wants, [reached, other], world, SCHEMA)
        assert verdict == Verdict((True,), 1) and not verdict.is_reached and verdict.progress == 0.5
    also = judge(wants, [("note", 1, (1, "cream", "yes"))], world, SCHEMA)
    assert also == Verdict((True,), 1)
    assert judge(wants, [("note", 1, ())], world, SCHEMA) == Verdict((False,), 1)


def test_rows_that_must_go_are_seen_to_be_gone(world: World) -> None:
    wants = (Wanted("note", 2, {}),)
    assert judge(wants, [("note", 2, ())], world, SCHEMA).is_reached
    assert judge(wants, [("note", 2, (2, "tea", "yes"))], world, SCHEMA) == Verdict((False,), 1)


def test_new_rows_are_matched_once_each_and_may_name_each_other(world: World) -> None:
    wants = (
        Wanted("note", 0, {"text": "jam"}),
        Wanted("tag", 0, {"note": New("note"), "name": "food"}),
        Wanted("note", 0, {"text": "jam"}),
    )
    one: Any = ("note", 3, (3, "jam", "no"))
    tag: Any = ("tag", 2, (2, 3, "food"))
    assert judge(wants, [one, tag], world, SCHEMA) == Verdict((True, True, False), 0)
    assert judge(wants, [one, ("note", 4, (4, "jam", "no")), tag], world, SCHEMA).is_reached
    assert judge(wants, [one, ("tag", 2, (2, 1, "food"))], world, SCHEMA) == Verdict((True, False, False), 1)


def test_a_kind_that_a_world_has_not_is_drawn_again() -> None:
    empty = make_world("empty", SITES["issues"].schema, {})
    for kind, make in KINDS["issues"].items():
        with pytest.raises(NoGoal):
            make(Draw(empty, SITES["issues"].schema, stream("empty", kind)))
