"""What an agent is shown of a page, and how it writes what it does; from recorded pages, without a browser."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.web.driver.actions import LONGEST_TEXT, Action, read
from turngym.envs.web.driver.page import (
    MOST_LINES,
    Node,
    color_name,
    line_of,
    listed_actions,
    normalised,
    page_text,
    quoted,
    read_nodes,
)

RECORDED = json.loads("""[
 {"id": 1, "tag": "div", "at": [0, 50, 160, 160], "scroll": [20, 80]},
 {"id": 2, "tag": "label", "at": [5, 60, 50, 18]},
 {"id": 3, "tag": "input", "at": [5, 60, 13, 13], "type": "checkbox", "checked": true},
 {"id": 0, "tag": "text", "text": "keep me", "of": 2},
 {"id": 4, "tag": "input", "at": [5, 80, 90, 20], "type": "text", "value": "Ann", "focused": true},
 {"id": 5, "tag": "select", "at": [5, 110, 90, 20], "options": ["", "red", "blue"], "selected": ["red"]},
 {"id": 6, "tag": "button", "at": [5, 140, 60, 20], "text": "Send", "heard": true},
 {"id": 7, "tag": "circle", "at": [100, 100, 10, 10], "color": "rgb(255, 0, 0)"},
 {"id": 8, "tag": "span", "at": [5, 170, 16, 16], "class": "trash icon", "heard": true},
 {"id": 9, "tag": "button", "at": [70, 140, 60, 20], "text": "Off", "disabled": true},
 {"id": 10, "tag": "div", "at": [0, 0, 10, 10]}
]""")
SHOWN = """[1] div scrolled 20 of 80
[3] checkbox checked
"keep me"
[4] textbox value "Ann" focused
[5] combobox options  | red | blue selected "red"
[6] button "Send"
[7] circle at 100,100 size 10x10 #ff0000
[8] span .trash .icon
[9] button "Off" disabled"""


def test_a_recorded_page_is_shown_line_by_line_without_what_says_nothing() -> None:
    assert page_text(read_nodes(RECORDED)) == SHOWN


def test_the_normalised_page_numbers_elements_from_the_top() -> None:
    renumbered = [{**each, "id": each["id"] and each["id"] + 40} for each in RECORDED]
    assert normalised(read_nodes(renumbered)) == normalised(read_nodes(RECORDED))
    assert page_text(read_nodes(renumbered)) != SHOWN
    assert normalised(read_nodes(RECORDED[3:])) != normalised(read_nodes(RECORDED))


def test_actions_are_listed_for_what_can_be_used() -> None:
    actions = listed_actions('Enter "Ann" and "Bob"', read_nodes(RECORDED))
    assert actions == (
        "click 1",
        "click 3",
        "click 4",
        'fill 4 "Ann"',
        'fill 4 "Bob"',
        "select 5 red",
        "select 5 blue",
        "click 6",
        "click 7",
        "click 8",
    )
    assert all(read(action) for action in actions)
    assert len(listed_actions("", read_nodes(RECORDED), most=3)) == 3


def test_a_very_long_page_is_cut_and_says_so() -> None:
    nodes = [Node(number, "p", text=str(number)) for number in range(1, MOST_LINES + 8)]
    lines = page_text(nodes).splitlines()
    assert lines[-1] == "(7 more elements)" and len(lines) == MOST_LINES + 1


@pytest.mark.parametrize(
    ("node", "line"),
    [
        (Node(1, "a", text="home"), '[1] link "home"'),
        (Node(1, "input", value="OK", facts={"type": "submit"}), '[1] button "OK"'),
        (Node(1, "input", facts={"type": "password"}), '[1] password value ""'),
        (Node(1, "div", value="x", facts={"editable": True}), '[1] textbox value "x"'),
        (Node(1, "span", text="tab 1", facts={"role": "tab"}), '[1] tab "tab 1"'),
        (Node(1, "img", facts={"hint": "a cat", "source": "cat.png"}), '[1] image "a cat" at 0,0 size 0x0 cat.png'),
        (Node(1, "b", text="x", facts={"bold": True, "underlined": True}), '[1] b "x" bold underlined'),
    ],
)
def test_an_element_is_named_by_what_it_is(node: Node, line: str) -> None:
    assert line_of(node, "1") == line


def test_small_things_about_nodes() -> None:
    node = Node(1, "circle", at=(10, 20, 4, 6), facts={"color": "rgb(1, 2, 3)", "class": "a b", "name": "c"})
    assert node.center == (12, 23) and node.color == (1, 2, 3) and node.names == {"a", "b", "c"}
    assert Node(1, "p").color == () and not Node(1, "input", facts={"disabled": True}).is_field
    assert color_name("rgba(0, 128, 255, 0.5)") == "#0080ff" and color_name("url(#x)") == "url(#x)"
    assert quoted('say "a" or "b c"') == ("a", "b c")


AN_ACTION_IS_READ: list[tuple[str, Action]] = [
    ("click 3", Action("click", 3)),
    ("  CLICK [3] ", Action("click", 3)),
    ("click 3,4", Action("click", (3.0, 4.0))),
    ("click (3.5, -4)", Action("click", (3.5, -4.0))),
    ("dblclick 2", Action("dblclick", 2)),
    ("hover 1,1", Action("hover", (1.0, 1.0))),
    ("focus 2", Action("focus", 2)),
    ("fill 2 two words", Action("fill", 2, text="two words")),
    ('fill 2 " kept "', Action("fill", 2, text=" kept ")),
    ("fill 2", Action("fill", 2, text="")),
    ('fill [2] ""', Action("fill", 2, text="")),
    ("fill 2 two\nlines", Action("fill", 2, text="two\nlines")),
    ("select 4 a | b", Action("select", 4, text="a | b")),
    ("type x y", Action("type", text="x y")),
    ("press Control+a", Action("press", text="Control+a")),
    ("drag 1 to 2", Action("drag", 1, 2)),
    ("drag 1,2 to [7]", Action("drag", (1.0, 2.0), 7)),
    ("scroll down", Action("scroll", 0, text="down")),
    ("scroll [9] UP", Action("scroll", 9, text="up")),
    ("back", Action("back")),
    ("wait", Action("wait")),
]


def test_an_action_is_read() -> None:
    for text, action in AN_ACTION_IS_READ:
        assert read(text) == action


WHAT_IS_NO_ACTION_IS_NOT_READ: list[str] = [
    "",
    "click",
    "click x",
    "click 1 2",
    "click -1",
    "dblclick 1,2",
    "focus 1,2",
    "select 4",
    "drag 1",
    "drag 1 to",
    "scroll sideways",
    "press a b",
    "evaluate alert(1)",
    "goto http://example.com",
    "window.x = 1",
    "fill two words",
    "back back",
    "type x" * LONGEST_TEXT,
]


def test_what_is_no_action_is_not_read() -> None:
    for text in WHAT_IS_NO_ACTION_IS_NOT_READ:
        assert read(text) is None


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    assert read(text) is None or isinstance(read(text), Action)


@given(st.integers(1, 9999), st.text(st.characters(exclude_characters="\r", exclude_categories=["Cs"]), max_size=40))
def test_quotes_keep_a_text_as_it_is(number: int, text: str) -> None:
    assert read(f'fill {number} "{text}"') == Action("fill", number, text=text)
