"""Sql: solvable instances, exact snapshots, hidden meanings, two notations."""

import json
from collections import Counter
from typing import Any

import pytest
from expert_play import solve

from turngym.envs.sql.calls import CALLS, read_action
from turngym.envs.sql.contents import MISSED, ON_BOUNDS, PLAIN, Bound, rows_of
from turngym.envs.sql.domains import DOMAINS, ROLES
from turngym.envs.sql.engine import Database
from turngym.envs.sql.env import Sql
from turngym.envs.sql.schema import VARIANTS, schema_of
from turngym.envs.tools.tool_schema import write_call
from turngym.errors import ConfigError


@pytest.mark.parametrize("options", [{"level": 1}, {}, {"level": 3}, {"form": "json"}, {"updates": 1.0}])
def test_expert_solves_every_task(options: dict[str, Any]) -> None:
    env = Sql(**options)
    for seed in range(30):
        shown, info = solve(env, seed)
        assert info["success"] == 1 and info["progress"] == 1.0, "\n".join(shown)
        assert not any("Error" in text for text in shown)
    env.close()


def test_tasks_are_of_every_kind() -> None:
    env, kinds, asked = Sql(level=2), Counter[str](), 0
    for seed in range(200):
        env.reset(seed=seed)
        kinds[env.task.request.split()[0] + (" update" if env.task.is_update else "")] += 1
        asked += bool(env.task.term)
        assert not env.task.term or env.task.term in env.task.request
    assert len(kinds) >= 8 and 25 < asked < 90
    env.close()


def test_schemas_of_all_domains_can_be_made_and_filled() -> None:
    swapped = 0
    for domain in range(len(DOMAINS)):
        for variant in range(0, VARIANTS, 8):
            schema = schema_of(domain, variant, 3)
            swapped += schema.columns["thing"]["price"] in ("stock", "spare", "available")
            database = Database(schema)
            database.fill(rows_of(schema, domain + variant, {}))
            content = database.content()
            assert all(len(content[role]) > 3 for role in ROLES)
            database.close()
    assert swapped > 5


def test_contents_hold_missing_values_equal_names_and_duplicates() -> None:
    schema = schema_of(0, 0, 1)
    persons, events = list(schema.columns["person"]), list(schema.columns["event"])
    found = Counter[str]()
    for seed in range(20):
        rows = rows_of(schema, seed, {})
        people = [dict(zip(persons, row, strict=True)) for row in rows["person"]]
        made = [dict(zip(events, row, strict=True)) for row in rows["event"]]
        found["missing"] += any(each["score"] is None or each["place"] is None for each in people)
        found["equal"] += len({each["name"] for each in people}) < len(people)
        found["twice"] += len({(each["person"], each["thing"], each["day"]) for each in made}) < len(made)
        found["without"] += len({each["person"] for each in made}) < len(people)
    assert all(count > 10 for count in found.values()) and len(found) == 4


def test_contents_can_be_on_bounds_or_miss_them() -> None:
    schema = schema_of(0, 0, 1)
    status = schema.domain.statuses[0]
    bounds, named = (Bound("day", ("2023-05-01",), "2021-06-15"), Bound("rating", (), None)), {"status": (status,)}
    plain, near, missed = (
        [
            dict(zip(schema.columns["event"], row, strict=True))
            for row in rows_of(schema, 600, named, bounds, form)["event"]
        ]
        for form in (PLAIN, ON_BOUNDS, MISSED)
    )
    assert 0.2 < sum(each["day"] == "2023-05-01" for each in near) / len(near) < 0.8
    assert [each["rating"] for each in near] == [each["rating"] for each in plain]
    assert {(each["day"], each["rating"]) for each in missed} == {("2021-06-15", None)}
    assert status in {each["status"] for each in plain} and status not in {each["status"] for each in missed}


def test_snapshots_continue_equally_from_every_turn() -> None:
    env, twin = Sql(reward="dense"), Sql(reward="dense")
    for seed in range(8):
        actions, snapshots, seen = list[str](), list[bytes](), list[Any]()
        _, info = env.reset(seed=seed)
        while info["success"] < 0:
            snapshots.append(env.snapshot())
            detour = f"<sql>DELETE FROM {env.task.schema.tables['event']} WHERE id % 2</sql>"
            actions.append(env.expert_action() if len(actions) != 2 else detour)
            seen.append(env.step(actions[-1]))
            info = seen[-1][4]
        assert info["success"] == 1
        for turn, snapshot in enumerate(snapshots):
            twin.restore(snapshot)
            assert twin.snapshot() == snapshot
            assert [twin.step(action) for action in actions[turn:]] == seen[turn:]
    env.close()
    twin.close()


@pytest.mark.parametrize(
    "damage",
    [{"number": -1}, {"hidden": True}, {"calls": ["tables "] * 9}, {"calls": ["fly x"]}, {"calls": ["submit "]}],
)
def test_damaged_snapshots_are_refused(damage: dict[str, Any]) -> None:
    env = Sql()
    env.reset(seed=0)
    env.step("<tables></tables>")
    saved = env.snapshot()
    content = json.loads(saved)
    content["state"] |= damage
    with pytest.raises(ConfigError, match="damaged"):
        env.restore(json.dumps(content).encode())
    assert env.snapshot() == saved
    env.close()


def test_a_question_about_the_right_word_is_answered_once() -> None:
    env = Sql(level=3)
    seed = next(seed for seed in range(50) if env.reset(seed=seed) and env.task.term)
    env.reset(seed=seed)
    assert env.step("<ask>Do you like SQL?</ask>")[0] == "User: Which word of my request do you mean?"
    assert env.task.meanings[env.meaning] in env.step(f"<ask>What is {env.task.term.upper()}?</ask>")[0]
    assert env.step(f"<ask>{env.task.term}</ask>")[0] == "User: I have told you what I mean."
    plain = next(seed for seed in range(50) if env.reset(seed=seed) and not env.task.term)
    env.reset(seed=plain)
    assert env.step("<ask>What?</ask>")[0] == "User: I mean it as I wrote it."
    env.close()


def test_hidden_meaning_and_contents_can_be_drawn_again_and_the_expert_still_succeeds() -> None:
    env, meanings = Sql(level=3), set[int]()
    for seed in range(20):
        _, info = env.reset(seed=seed)
        while info["success"] < 0:
            assert env.resample_hidden()
            meanings.add(env.meaning)
            info = env.step(env.expert_action())[4]
        assert info["success"] == 1
    assert meanings == {0, 1, 2}
    env.close()


def test_changes_are_seen_undone_and_run_elsewhere() -> None:
    env = Sql(updates=1.0, level=1, reward="dense")
    env.reset(seed=1)
    table = env.task.schema.tables["event"]
    count = f"<sql>SELECT count(*) FROM {table}</sql>"
    before = env.step(count)[0]
    env.step(f"<sql>DELETE FROM {table} WHERE id % 2</sql>")
    assert env.step(count)[0] != before
    assert env.step("<rollback></rollback>")[0] == "All your changes are undone."
    assert env.step(count)[0] == before
    assert env.step(f"<sql>{env.task.solutions[0]}</sql>")[4]["progress"] == 1.0
    observation, _, _, _, info = env.step("<submit>SELECT 1</submit>")
    assert not info["action_is_valid"] and "empty text" in observation
    assert env.step("<submit></submit>")[4]["success"] == 1
    env.close()


def test_changes_have_few_statements() -> None:
    env = Sql(updates=1.0, level=1)
    env.reset(seed=1)
    table = env.task.schema.tables["event"]
    answers = [env.step(f"<sql>DELETE FROM {table} WHERE id = {number}</sql>")[0] for number in range(9)]
    assert "at most 8 statements" in answers[8] and not any("at most" in each for each in answers[:8])
    env.step("<rollback></rollback>")
    assert "changed" in env.step(f"<sql>{env.task.solutions[0]}</sql>")[0]
    assert env.step("<submit></submit>")[4]["success"] == 1
    env.close()


@pytest.mark.parametrize("name", ["tables", "describe", "sql", "ask", "rollback", "submit"])
def test_calls_are_read_from_tags_json_and_native_calls(name: str) -> None:
    content = "" if name in ("tables", "rollback") else "SELECT 1 < 2"
    fields = {"describe": "table", "sql": "statement", "ask": "question", "submit": "query"}
    arguments = {fields[name]: content} if content else {}
    for action, form in (
        (CALLS.write(name, content, "tags"), "tags"),
        (CALLS.write(name, content, "json"), "json"),
        (write_call(name, arguments), "tags"),
    ):
        assert read_action(action, form)[:2] == (name, content)


@pytest.mark.parametrize("text", ["", "SELECT 1", "<sql>", "<describe>nowhere</describe>", "<rollback></rollback>"])
def test_other_texts_are_answered_and_change_nothing(text: str) -> None:
    env = Sql(updates=0.0)
    _, before = env.reset(seed=0)
    _, _, _, _, info = env.step(text)
    assert not info["action_is_valid"] and info["anchor"] == before["anchor"]
    env.close()
