"""Service desks: solvable instances, exact snapshots, a policy that states everything, three notations."""

import itertools
import json
from typing import Any

import pytest
from expert_play import solve

from turngym.envs.service.acts import vocabulary, write
from turngym.envs.service.caller import CallerState
from turngym.envs.service.conduct import TEXTS
from turngym.envs.service.domain import Act, document, read_policy
from turngym.envs.service.env import DOMAINS, Service
from turngym.envs.service.script import UNKNOWN
from turngym.envs.tools.tool_schema import write_call
from turngym.errors import ConfigError

HARD: dict[str, Any] = {"wishes": 3, "acts": "hidden", "customers": 12, "max_turns": 80}


@pytest.mark.parametrize("options", [{}, HARD, {"strict_tools": True, "wishes": 1}, {"domain": "clinic"}])
def test_expert_solves_every_script(options: dict[str, Any]) -> None:
    env = Service(**options)
    for seed in range(25):
        shown, info = solve(env, seed)
        assert info["success"] == 1 and info["progress"] == 1.0, "\n".join(shown)
        assert not env.session.violations


def test_at_most_a_fifth_of_the_instances_ask_for_no_change() -> None:
    env = Service()
    count = 200
    still = 0
    for seed in range(count):
        env.reset(seed=seed)
        still += not env.session.script.changes
    assert 0 < still <= count // 5


def test_scripts_hold_every_kind_of_outcome_and_of_memory() -> None:
    env, kinds, modes, events = Service(wishes=3), set[str](), set[str](), set[str]()
    for seed in range(100):
        shown, _ = solve(env, seed)
        script = env.session.script
        kinds |= {node.kind for course in script.nodes for node in course}
        modes |= set(script.caller.modes.values())
        events |= {
            part.partition("(")[0] for text in shown if " | " in text for part in text.rpartition(" | ")[2].split(", ")
        }
    assert kinds == {"do", "refuse", "withdraw", "inform", "transfer"}
    assert modes == {"known", "unknown", "wrong", "private"}
    assert {"request", "another", "instead", "claim", "decline", "accept", "why", "unknown", "yes", "thanks"} <= events


def test_snapshots_continue_equally_from_every_turn() -> None:
    env, twin = Service(), Service()
    for seed in range(3):
        actions, snapshots, seen = list[str](), list[bytes](), list[Any]()
        _, info = env.reset(seed=seed)
        while info["success"] < 0:
            snapshots.append(env.snapshot())
            actions.append(env.expert_action() if len(actions) != 2 else "tell refund=1")
            *result, info = env.step(actions[-1])
            seen.append((*result, info))
        for turn, snapshot in enumerate(snapshots):
            twin.restore(snapshot)
            assert twin.snapshot() == snapshot
            for action, expected in zip(actions[turn:], seen[turn:], strict=True):
                assert twin.step(action) == expected


@pytest.mark.parametrize(
    "damage", [{"number": -1}, {"variant": True}, {"acts": ["bye"] * 100}, {"acts": ["fly"]}, {"acts": 3}]
)
def test_damaged_snapshots_are_refused(damage: dict[str, Any]) -> None:
    env = Service()
    env.reset(seed=0)
    env.step("ask holder")
    saved = env.snapshot()
    content = json.loads(saved)
    content["state"] |= damage
    with pytest.raises(ConfigError, match="damaged"):
        env.restore(json.dumps(content).encode())
    assert env.snapshot() == saved


@pytest.mark.parametrize("domain", DOMAINS.values(), ids=list(DOMAINS))
def test_the_policy_document_states_every_parameter(domain: Any) -> None:
    env = Service(domain=domain.name)
    for seed in range(50):
        env.reset(seed=seed)
        policy = env.session.script.policy
        stated = read_policy(domain, TEXTS, document(domain, TEXTS, policy))
        assert stated == {key: value for key, value in policy.items() if key not in ("today", "wording")}


def test_other_policies_lead_to_other_outcomes_of_one_wish() -> None:
    """No two instances share all numbers: the same words of a caller are granted here and refused there."""
    env, outcomes = Service(wishes=1), dict[str, set[str]]()
    for seed in range(100):
        env.reset(seed=seed)
        node = env.session.script.nodes[0][0]
        outcomes.setdefault(node.wish["kind"], set()).add(node.kind)
    assert all(len(outcomes[kind]) > 1 for kind in ("return", "exchange", "cancel"))


def test_reward_is_the_change_of_the_progress_where_dense_and_only_the_end_where_sparse() -> None:
    for reward in ("sparse", "dense"):
        env = Service(reward=reward)
        _, info = env.reset(seed=3)
        rewards, progress = [], [info["progress"]]
        while info["success"] < 0:
            _, gained, _, _, info = env.step(env.expert_action())
            rewards.append(gained)
            progress.append(info["progress"])
        assert sum(rewards) == pytest.approx(1.0)
        if reward == "sparse":
            assert rewards[:-1] == [0.0] * (len(rewards) - 1)
        else:
            assert rewards == [after - before for before, after in itertools.pairwise(progress)]


def test_strict_tools_refuse_what_the_policy_forbids() -> None:
    env = Service(strict_tools=True)
    env.reset(seed=0)
    order = next(iter(env.session.script.rows["orders"]))
    assert env.step(f'call get_order {{"order": {order}}}')[0] == "get_order -> not done: rule identity"
    assert not env.session.violations and not env.session.view.known.where("orders")


def test_acts_can_be_hidden() -> None:
    shown, hidden = Service(), Service(acts="hidden")
    texts = [env.reset(seed=5)[0].rpartition("\n")[2] for env in (shown, hidden)]
    assert texts[0] == f"{texts[1]} | {texts[0].rpartition(' | ')[2]}" and "request(" not in texts[1]


# Notation.

WORDS = vocabulary(DOMAINS["shop"])


@pytest.mark.parametrize(
    ("text", "act"),
    [
        ("ask zip", Act("ask", "zip")),
        (" ask zip | And where do you live?", Act("ask", "zip")),
        ("bye | inform(holder=yes)\nask more", Act("bye")),
        ("tell refund=1290", Act("tell", "refund", {"value": 1290})),
        ("tell status=delivered | Caller: yes()", Act("tell", "status", {"value": "delivered"})),
        ('call get_order {"order": 7} | {"order": 8}', Act("call", "get_order", {"order": 7})),
        (
            'propose change_address {"order": 7, "address": "1 A | B, {C}"}',
            Act("propose", "change_address", {"order": 7, "address": "1 A | B, {C}"}),
        ),
    ],
)
def test_acts_are_read_from_text_and_from_native_calls(text: str, act: Act) -> None:
    assert WORDS.read(text) == act
    assert WORDS.read(write(act)) == act


@pytest.mark.parametrize(
    ("name", "arguments", "act"),
    [
        ("ask", {"slot": "zip"}, Act("ask", "zip")),
        ("tell", {"key": "refund", "value": 1290}, Act("tell", "refund", {"value": 1290})),
        ("bye", {}, Act("bye")),
        ("get_order", {"order": 7}, Act("call", "get_order", {"order": 7})),
        (
            "propose",
            {"tool": "exchange_line", "arguments": {"line": 1, "product": 2}},
            Act("propose", "exchange_line", {"line": 1, "product": 2}),
        ),
    ],
)
def test_native_calls_are_the_same_acts(name: str, arguments: dict[str, Any], act: Act) -> None:
    assert WORDS.read(write_call(name, arguments)) == act


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ask",
        "ask shoe size",
        "ask zip please",
        "tell refund",
        "tell pin=3",
        "bye now",
        "call get_order",
        "call get_order 7",
        'call get_order {"order": "7"}',
        'call get_order {"order": 7, "order_id": 8}',
        'call get_order {"order": 7} {"order": 8}',
        'call drop_tables {"order": 7}',
        'propose get_order {"order": 7}',
        '{"order": 7}',
        "I will now say bye",
        '<tool_call>{"name": "get_order", "arguments": {"order": "7"}}</tool_call>',
        '<tool_call>{"name": "propose", "arguments": {"tool": "get_order", "arguments": {}}}</tool_call>',
        "call get_order " + '{"a":' * 500,
        'call change_address {"order": 7, "address": "' + "x" * 5000 + '"}',
    ],
)
def test_other_texts_are_answered_and_change_nothing(text: str) -> None:
    env = Service()
    _, before = env.reset(seed=0)
    observation, _, _, _, info = env.step(text)
    assert observation.startswith("That is no action: ") and not info["action_is_valid"]
    assert info["anchor"] == before["anchor"] and info["progress"] == before["progress"]


# The caller.


def test_a_caller_is_a_function_of_the_record_and_the_acts() -> None:
    env = Service()
    for seed in range(20):
        env.reset(seed=seed)
        acts = [
            Act("ask", "holder"),
            Act("ask", "zip"),
            Act("refuse", "window"),
            Act("ask", "more"),
            Act("ask", "order"),
        ]
        one, other = (CallerState(DOMAINS["shop"], env.session.script) for _ in range(2))
        assert [one.reply(act) for act in acts] == [other.reply(act) for act in acts]


def test_useless_acts_make_the_caller_hang_up() -> None:
    env = Service()
    env.reset(seed=0)
    for _ in range(env.session.script.caller.patience):
        observation, _, terminated, _, info = env.step("ask more")
    assert terminated and info["success"] == 0 and observation.endswith("leave()")


def test_an_order_that_the_caller_does_not_know_is_found_by_its_item() -> None:
    env = Service(wishes=1)
    for seed in range(100):
        env.reset(seed=seed)
        caller = env.session.script.caller
        if caller.modes["order 0"] == UNKNOWN and caller.is_holder and caller.chains[0][0]["kind"] != "other":
            shown, info = solve(env, seed)
            assert info["success"] == 1 and any(text.startswith("call list_orders") for text in shown)
            return
    pytest.fail("no caller of 100 lacks the order number")
