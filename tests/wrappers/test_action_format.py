"""Finding actions in completions, and the wrapper that does it for an environment."""

import gymnasium
import pytest
from hypothesis import given
from hypothesis import strategies as st

import turngym  # noqa: F401  (registers the environments)
from turngym.envs.parsing.thinking import MARKS, Thinking
from turngym.errors import UnknownName
from turngym.wrappers import WRAPPERS
from turngym.wrappers.actions.action_format import FORMATS, action_format, parse_boxed, parse_json, parse_tag

ACTIONS = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="{}<>"), min_size=1
)


@pytest.mark.parametrize("name", sorted(FORMATS))
@given(action=ACTIONS)
def test_what_is_written_is_what_is_parsed(name: str, action: str) -> None:
    assert FORMATS[name].parse(FORMATS[name].write(action)) == action.strip()


@pytest.mark.parametrize("name", ["tag", "boxed", "json"])
@given(action=ACTIONS, reasoning=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<{\\\r")))
def test_reasoning_before_the_action_is_free(name: str, action: str, reasoning: str) -> None:
    completion = f"{reasoning}\n{FORMATS[name].write(action)}"
    assert FORMATS[name].parse(completion) == action.strip()


@pytest.mark.parametrize("name", sorted(FORMATS))
@given(completion=st.text())
def test_no_completion_raises(name: str, completion: str) -> None:
    action = FORMATS[name].action_of(completion)
    assert isinstance(action, str)
    if FORMATS[name].parse(completion) is None:
        assert FORMATS[name].instruction in action


def test_the_last_action_counts() -> None:
    assert parse_tag("<action>up</action> no: <action>down</action>") == "down"
    assert parse_boxed(r"\boxed{up} no: \boxed{down}") == "down"
    assert parse_json('{"action": "up"}\n{"action": "down"}\nthat is it') == "down"


@pytest.mark.parametrize("text", ["", "up", "<action>up", "up</action>", r"\boxed{up", '{"action": true}', "[1]"])
def test_unfinished_marks_hold_no_action(text: str) -> None:
    assert parse_tag(text) is None
    assert parse_boxed(text) is None
    assert parse_json(text) is None


ACTIONS_IN_JSON: list[tuple[str, str | None]] = [
    ('{"action": 3}', "3"),
    ('{"action": -0.5}', "-0.5"),
    ('I go up:\n```json\n{\n  "why": "a {wall}",\n  "action": "up"\n}\n```', "up"),
    ('{\n"plan": [\n{"action": "down"}\n],\n"action": "up"\n}', "up"),
    ('{\n"action": "up"\n}\n{\n"action": "down"', "up"),
    ('  {"action": "up"}\r\n', "up"),
    ('{"action": "a\u2028b"}', "a\u2028b"),
    ('Action: {"action": "up"}', "up"),
    ('{"action": "up"}.', "up"),
    ('{"action": 3.0}', "3"),
    ('{"action": 1e999}', None),
    ('{"action": NaN}', None),
    ('{"action": "up"} or {"action": "down"}', None),
    ('{"action": ["up"]}', None),
    ('{"action": null}', None),
]


def test_actions_in_json() -> None:
    for text, action in ACTIONS_IN_JSON:
        assert parse_json(text) == action


def test_an_action_inside_of_thinking_is_none() -> None:
    for begin, end in MARKS:
        for name in sorted(FORMATS):
            format = FORMATS[name]
            up, down = format.write("up"), format.write("down")
            assert format.read(f"{begin}\n{up}\n") is None
            assert format.read(f"{begin}\n{up}\n{end}\n") is None
            assert format.read(f"{begin}\n{up}\n{end}\n{down}") == "down"
            assert format.instruction in format.action_of(f"{begin}\n{up}")
            begun = Thinking(begun=begin)
            assert format.read(f"{up}\n", begun) is None
            assert format.read(f"{up}\n{end}\n{down}", begun) == "down"
            assert format.read(begun.closed(up), begun) == "up"


A_MARK_OF_THINKING_INSIDE_OF_AN_ACTION_B: list[tuple[str, str, str | None]] = [
    ("tag", '<action>print("<think>")</action>', 'print("<think>")'),
    ("tag", '<action>type "<think>a</think>" into 3</action>', 'type "<think>a</think>" into 3'),
    ("tag", '<action>s.split("</think>")[-1]</action>', 's.split("</think>")[-1]'),
    ("tag", "The tag <thought> is odd. <action>up</action>", "up"),
    ("tag", "I write [THINK] here. <action>up</action>", "up"),
    ("tag", "Okay. <think> maybe <action>up</action>", None),
    ("tag", "Okay:\n<think>\nmaybe <action>up</action>", None),
    ("tag", "\u200b<think> maybe <action>up</action>", None),
    ("tag", "Use `<think>` marks. <action>up</action>", "up"),
    ("tag", "<think>plan</think><action>say </think></action>", "say </think>"),
    ("tag", "<think>a</think>\n<think>b <action>left</action>", None),
    ("tag", "Use <action>. <think>or <action>left</action></think> <action>up</action>", "up"),
    ("tag", "Use <action>. <think>or <action>left</action></think>", None),
    ("tag", "or [THINK] <action>left</action> </think> done", None),
    ("tag", "<thinking>maybe <action>down</action>", None),
    ("tag", "<reasoning>maybe <action>down</action>", None),
    ("boxed", "\\boxed{say <think>a</think>}", "say <think>a</think>"),
    ("json", '{"action": "<think>a</think>"}', "<think>a</think>"),
    ("json", '{"action": "a</think>b"}', "a</think>b"),
    ("plain", "if a <think> b", "if a <think> b"),
    ("own", '<python>print("<think>1</think>")</python>', '<python>print("<think>1</think>")</python>'),
    ("own", '<code>"</think>"</code>', '<code>"</think>"</code>'),
    ("own", '{"tool": "search", "query": "<think>a</think>"}', '{"tool": "search", "query": "<think>a</think>"}'),
    ("own", "so \\boxed{<think>a</think>}", "so \\boxed{<think>a</think>}"),
    ("own", "<think>or <python>1</python></think><python>2</python>", "<python>2</python>"),
    ("own", "<think>or <python>1</python>", None),
]


def test_a_mark_of_thinking_inside_of_an_action_belongs_to_it() -> None:
    for name, text, action in A_MARK_OF_THINKING_INSIDE_OF_AN_ACTION_B:
        assert {**FORMATS, "own": action_format("auto", finds_action=True)}[name].read(text) == action


def test_an_unknown_format_gets_the_nearest_name() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'boxed'"):
        action_format("boxd")


def test_the_wrapper_passes_the_action_on() -> None:
    env = WRAPPERS["parse_action"](gymnasium.make("turngym/TowerOfHanoi-v0"), format="tag")
    _, info = env.reset(seed=0)
    *_, after = env.step(f"I think. <action>{info['legal_actions'][0]}</action>")
    assert after["action_is_valid"]
    observation, *_, after = env.step("I do not know.")
    assert not after["action_is_valid"]
    assert "Unknown action" in observation
