"""Apps: solvable instances whose solution can be looked up, exact snapshots, documentation of every function."""

import itertools
import json
from collections import Counter
from typing import Any

import pytest
from expert_play import solve

from turngym.envs.apps.dialect import CALL, DIALECTS, SUBMIT, Act, dialect
from turngym.envs.apps.effects import PAGE
from turngym.envs.apps.env import Apps
from turngym.envs.apps.functions import APPS, FUNCTIONS, PARAMETERS
from turngym.envs.apps.task import PARTS, Tasks
from turngym.envs.tools.tool_schema import write_call
from turngym.errors import ConfigError

COMPUTED = {("pay_request", "cents"), ("notes_create", "text")}
"""Function and parameter of arguments that are calculated from what is read."""


@pytest.mark.parametrize(("level", "count"), [(1, 60), (2, 12), (3, 8)])
def test_expert_solves_every_request(level: int, count: int) -> None:
    env, kinds = Apps(level=level), Counter[str]()
    for seed in range(count):
        shown, info = solve(env, seed)
        assert info["success"] == 1 and info["progress"] == 1.0, "\n".join(shown)
        kinds.update(env.task.kinds)
    assert kinds.total() == level * count and (level > 1 or kinds.keys() == PARTS.keys())


def test_guests_of_a_new_event_are_told_from_other_new_events() -> None:
    env, played = Apps(level=2, docs="given"), 0
    numbers = (number for number in range(2000) if set(env._tasks._kinds(number)) == {"invite_group", "birthdays"})
    for number in itertools.islice(numbers, 4):
        env.reset(seed=0)
        env._enter(env._tasks.task(number))
        info: dict[str, Any] = {"success": -1}
        while info["success"] < 0:
            info = env.step(env.expert_action())[4]
        played += info["success"]
    assert played == 4


def test_everything_that_the_expert_writes_has_been_shown_to_it() -> None:
    """The request and the observations hold every id and every text, sums as decimal numbers, days without the year."""
    env = Apps(level=3)
    for seed in range(8):
        known, info = env.reset(seed=seed)
        while info["success"] < 0:
            action = env.expert_action()
            act = dialect(env.task.dialect).read(action)
            assert isinstance(act, Act)
            for name, value in act.arguments.items():
                forms = [str(value).removeprefix("Birthday of "), json.dumps(value, ensure_ascii=False).strip('"')]
                forms += [f"{value / 100:.2f}"] if name == "cents" else [value[5:]] if name == "day" else []
                is_known = any(form and form in known for form in forms)
                assert is_known or name == "page" or (act.name, name) in COMPUTED, (action, name)
            observation, _, _, _, info = env.step(action)
            known += f"\n{observation}"


def test_instances_of_different_numbers_have_different_contents() -> None:
    tasks = Tasks(level=1, has_dialects=False)
    found = [tasks.task(number) for number in range(80)]
    assert len({each.request for each in found}) > 77
    assert len({json.dumps(each.rows) for each in found}) == len({tasks.text(k) for k in range(80)}) == 80


def test_above_the_first_level_two_contacts_have_the_first_name_of_a_person() -> None:
    env = Apps(level=2)
    for seed in range(10):
        env.reset(seed=seed)
        contacts = list(env.task.rows["contacts"].values())
        firsts = Counter(str(each["name"]).split()[0] for each in contacts)
        roles = [str(each["role"]) for each in contacts if each["role"] and f"the {each['role']}" in env.task.request]
        named = [str(each["name"]).split()[0] for each in contacts if each["role"] in roles and each["role"]]
        assert all(firsts[name] == 2 for name in named)


def test_snapshots_continue_equally_from_every_turn() -> None:
    env, twin = Apps(level=3, reward="dense"), Apps(level=3, reward="dense")
    for seed in range(2):
        actions, snapshots, seen = list[str](), list[bytes](), list[Any]()
        _, info = env.reset(seed=seed)
        while info["success"] < 0:
            snapshots.append(env.snapshot())
            actions.append(env.expert_action() if len(actions) != 5 else "nonsense")
            *result, info = env.step(actions[-1])
            seen.append((*result, info))
        for turn, snapshot in list(enumerate(snapshots))[::4]:
            twin.restore(snapshot)
            assert twin.snapshot() == snapshot and twin.expert_action() == (actions[turn] if turn != 5 else actions[6])
            for action, expected in zip(actions[turn:], seen[turn:], strict=True):
                assert twin.step(action) == expected


@pytest.mark.parametrize(
    "damage",
    [{"number": -1}, {"number": True}, {"acts": ["submit"]}, {"acts": ["fly"]}, {"acts": ["docs"] * 9}, {"acts": 3}],
)
def test_damaged_snapshots_are_refused(damage: dict[str, Any]) -> None:
    env = Apps()
    env.reset(seed=0)
    env.step("docs mail")
    saved = env.snapshot()
    content = json.loads(saved)
    content["state"] |= damage
    with pytest.raises(ConfigError, match="damaged"):
        env.restore(json.dumps(content).encode())
    assert env.snapshot() == saved


def test_dense_rewards_are_the_changes_of_the_progress() -> None:
    env = Apps(reward="dense")
    for seed in range(5):
        _, info = env.reset(seed=seed)
        progress, total = info["progress"], 0.0
        while info["success"] < 0:
            _, reward, _, _, info = env.step(env.expert_action())
            assert reward == info["progress"] - progress
            progress, total = info["progress"], total + reward
        assert total == pytest.approx(1.0)


def test_changes_may_be_made_in_another_order() -> None:
    """Wherever nothing is made that later calls name, the calls of a plan can be made from the last to the first."""
    env, played = Apps(level=1), 0
    for seed in range(40):
        _, info = env.reset(seed=seed)
        looks = [each for each in env.task.plan if each.kind == CALL and FUNCTIONS[each.name].is_look]
        changes = [each for each in env.task.plan if each.kind == CALL and not FUNCTIONS[each.name].is_look]
        if {each.name for each in changes} & {"music_create_playlist", "calendar_create", "notes_append"}:
            continue
        for act in (*looks, *reversed(changes), Act(SUBMIT)):
            info = env.step(dialect(0).write(act))[4]
        played += 1
        assert info["success"] == 1
    assert played > 10


# Functions.


def test_there_are_sixty_functions_and_each_is_documented_in_every_dialect() -> None:
    assert len(FUNCTIONS) > 60
    for number in range(DIALECTS):
        names = dialect(number)
        pages = {app: names.page(app) for app in APPS}
        assert len(names.tools) == len(FUNCTIONS)
        for function in FUNCTIONS.values():
            tool = names.tools[names.names[function.name]]
            assert f"{tool.name}({', '.join(tool.parameters['properties'])}".split("?")[0] in pages[function.app]
            arguments = {each.removesuffix("?"): _example(each.removesuffix("?")) for each in function.parameters}
            keyed = arguments if function.app == "accounts" else {"key": "k", **arguments}
            act = Act(CALL, function.name, keyed)
            assert names.read(names.write(act)) == act


def _example(name: str) -> str | int:
    return 7 if PARAMETERS[name][0]["type"] == "integer" else "a {b} | c"


def test_dialects_differ_and_wrong_names_are_answered() -> None:
    texts = {"".join(dialect(number).docs.values()) for number in range(DIALECTS)}
    assert len(texts) > DIALECTS // 2
    env = Apps(level=3)
    env.reset(seed=0)
    observation, _, _, _, info = env.step('call mail_show_all {"key": "x"}')
    assert "there is no function 'mail_show_all'" in observation and not info["action_is_valid"]


@pytest.mark.parametrize(
    ("action", "answer"),
    [
        (
            'call notes_lst{"key": "x"}',
            "That is no action: there is no function 'notes_lst'. Did you mean 'notes_list'?",
        ),
        ("call zzz {}", "That is no action: there is no function 'zzz'. docs APP lists the functions of an app."),
        (
            'call accounts_list {"page": NaN}',
            "That is no action: the arguments of call accounts_list are no JSON object.",
        ),
        ('call mail_list {"key": "mail-1", "folder": "inbox"}', "Error: this is no key of mail"),
        ('call accounts_sign_in {"account": 999999}', "Error: there is no account 999999."),
        ('call accounts_list {"page": 99}', "Error: there is no page 99, the last one is 2."),
        ("docs bank", "That is no action: there is no app 'bank'."),
        ("docs", "accounts: Accounts"),
        ('call accounts_list {"page": 0}', "That is no action: accounts_list: page is out of its range"),
        ('call mail_list {"folder": "inbox"}', "That is no action: mail_list: key missing"),
        ("submit now", "That is no action: write docs"),
        ("I will submit", "That is no action: write docs"),
        ("call accounts_list {} {}", "That is no action: write call accounts_list"),
        ('call notes_create {"key": "x", "title": "' + "x" * 2000 + '", "text": ""}', "That is no action: texts"),
        (write_call("docs", {"app": "pay"}), "Payments"),
        (write_call("call", {"function": "accounts_list", "arguments": {}}), "7 found"),
        (write_call("accounts_list", {}), "7 found"),
        (write_call("fly", {}), "That is no action: There is no tool 'fly'"),
    ],
)
def test_actions_are_answered_and_looking_changes_nothing(action: str, answer: str) -> None:
    env = Apps(level=1)
    env.reset(seed=0)
    observation, reward, terminated, _, info = env.step(action)
    assert observation.startswith(answer), observation
    assert (reward, terminated, info["progress"]) == (0.0, False, 0.0)


def key_of(env: Apps, app: str) -> tuple[int, str]:
    """Sign in to the first account of an app."""
    account = next(number for number, row in env.task.rows["accounts"].items() if row["app"] == app)
    return account, env.step(f'call accounts_sign_in {{"account": {account}}}')[0].removeprefix("key ")


def test_lists_have_pages_and_rows_of_others_are_refused() -> None:
    env = Apps(level=2)
    env.reset(seed=1)
    account, key = key_of(env, "mail")
    mine = [number for number, row in env.task.rows["mails"].items() if row["account"] == account]
    others = [number for number, row in env.task.rows["mails"].items() if row["account"] != account]
    shown = env.step(f'call mail_search {{"key": "{key}", "query": "@"}}')[0].splitlines()
    assert shown[0].startswith(f"{len(mine)} found, page 1 of ") and len(shown) == 1 + PAGE
    assert env.step(f'call mail_show {{"key": "{key}", "mail": {others[0]}}}')[0].startswith(
        "Error: this account has no"
    )
    assert env.step(f'call mail_delete {{"key": "{key}", "mail": {others[0]}}}')[0].startswith("Error: ")
    assert (
        env.step(f'call notes_list {{"key": "{key}"}}')[0]
        == "Error: this is no key of notes, which accounts_sign_in returns."
    )
    assert env.verdict.unasked == 0


def test_what_is_taken_back_does_not_count_and_what_is_not_does() -> None:
    env = Apps(level=2)
    env.reset(seed=2)
    _, key = key_of(env, "notes")
    made = json.loads(env.step(f'call notes_create {{"key": "{key}", "title": "a", "text": "b"}}')[0])
    assert env.verdict.unasked == 1
    env.step(f'call notes_delete {{"key": "{key}", "note_id": {made["id"]}}}')
    assert env.verdict.unasked == 0
    again = json.loads(env.step(f'call notes_create {{"key": "{key}", "title": "a", "text": "b"}}')[0])
    assert again["id"] > made["id"] and env.verdict.unasked == 1


def test_payments_need_a_balance() -> None:
    env = Apps(level=1)
    env.reset(seed=2)
    _, key = key_of(env, "pay")
    balance = json.loads(env.step(f'call pay_show_balance {{"key": "{key}"}}')[0].splitlines()[1])["cents"]
    shown = env.step(f'call pay_send {{"key": "{key}", "handle": "@x", "cents": {balance + 1}, "note": ""}}')[0]
    assert shown == f"Error: the balance is {balance} cents." and env.verdict.unasked == 0
    env.step(f'call pay_send {{"key": "{key}", "handle": "@x", "cents": {balance}, "note": ""}}')
    assert env.verdict.unasked > 0


def test_removing_a_row_removes_its_parts() -> None:
    env = Apps(level=1)
    env.reset(seed=0)
    _, key = key_of(env, "music")
    playlist = next(number for number, row in env.task.rows["playlists"].items() if row["name"] == "quiet")
    parts = sum(each["playlist"] == playlist for each in env.task.rows["tracks"].values())
    env.step(f'call music_delete_playlist {{"key": "{key}", "playlist": {playlist}}}')
    assert env.verdict.unasked == 1 + parts > 1
    assert env.step(f'call music_list_songs {{"key": "{key}", "playlist": {playlist}}}')[0].startswith("Error: ")
