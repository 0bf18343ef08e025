"""Oracles of web tasks on pages made by hand: what they do follows from the task and the page alone."""

from typing import Any

import pytest

from turngym.envs.web.driver.page import Node
from turngym.envs.web.miniwob.oracles import ORACLES, WITHOUT_ORACLE
from turngym.envs.web.miniwob.oracles.base import View
from turngym.envs.web.miniwob.tasks import RELOADED, REWOUND, TASKS
from turngym.errors import ConfigError


def act(task: str, goal: str, *nodes: Node, actions: tuple[str, ...] = ()) -> str:
    return ORACLES[task](View(goal, nodes, actions))


def button(number: int, text: str) -> Node:
    return Node(number, "button", text=text)


def box(number: int, **facts: Any) -> Node:
    return Node(number, "input", facts={"type": "checkbox", **facts})


def text(words: str) -> Node:
    return Node(0, "text", text=words)


def entry(number: int, value: str = "") -> Node:
    return Node(number, "input", value=value, facts={"type": "text"})


def test_the_tables_cover_every_task_once() -> None:
    assert len(TASKS) == len(set(TASKS)) == 130 and len(ORACLES) >= 100
    assert {*ORACLES, *WITHOUT_ORACLE} == set(TASKS) and not set(ORACLES) & set(WITHOUT_ORACLE)
    assert set(TASKS) == REWOUND | RELOADED and not REWOUND & RELOADED


def test_names_are_told_apart_by_their_case() -> None:
    assert act("click-button", 'Click on the "ok" button.', button(1, "OK"), button(2, "ok")) == "click 2"
    with pytest.raises(ConfigError, match="finds no 'ok'"):
        act("click-button", 'Click on the "ok" button.', button(1, "OK"))


@pytest.mark.parametrize(
    ("checked", "action"), [((False, False), "click 1"), ((True, True), "click 2"), ((True, False), "click 3")]
)
def test_boxes_are_checked_and_unchecked_before_the_button(checked: tuple[bool, bool], action: str) -> None:
    page = box(1, checked=checked[0]), text("a"), box(2, checked=checked[1]), text("b"), button(3, "Submit")
    assert act("click-checkboxes", "Select a and click Submit.", *page) == action


def test_a_form_is_filled_field_by_field_and_a_dialog_sent_away() -> None:
    goal = 'Enter the username "ann" and the password "x1" into the text fields and press login.'
    login = button(3, "Login")
    assert act("login-user", goal, entry(1), entry(2), login) == 'fill 1 "ann"'
    assert act("login-user", goal, entry(1, "ann"), entry(2), login) == 'fill 2 "x1"'
    assert act("login-user", goal, entry(1, "ann"), entry(2, "x1"), login) == "click 3"
    assert act("login-user-popup", goal, entry(1), entry(2), login, button(9, "Cancel")) == "click 9"


@pytest.mark.parametrize(
    ("shown", "result"),
    [
        ("3 + 4 =", 7),
        ("3 - 14 =", -11),
        ("3 x 4 =", 12),
        ("x + 2 = 5", 3),
        ("x - 2 = 5", 7),
        ("2 + x = 5", 3),
        ("2 - x = 5", -3),
    ],
)
def test_sums_and_equations_are_solved(shown: str, result: int) -> None:
    page = Node(1, "div", text=shown), entry(2), button(3, "Submit")
    assert act("simple-algebra", "Solve for x.", *page) == f'fill 2 "{result}"'


@pytest.mark.parametrize("secret", range(10))
def test_a_number_from_0_to_9_is_guessed_within_four_guesses(secret: int) -> None:
    actions: list[str] = []
    told, value = "Waiting for your guess...", ""
    for _ in range(8):
        page = Node(1, "div", text=told), entry(2, value), button(3, "Submit")
        actions.append(act("guess-number", "Guess the number.", *page, actions=tuple(actions)))
        if actions[-1].startswith("fill"):
            value = actions[-1].split('"')[1]
        elif int(value) == secret:
            return
        else:
            told = f"The number is {'higher' if int(value) < secret else 'lower'} than {value}."
    raise AssertionError(f"not found: {actions}")


def test_figures_are_counted_by_size_colour_and_kind() -> None:
    def shape(number: int, tag: str, size: float, color: str, letter: str = "") -> Node:
        facts = {"color": color, **({"size": size} if letter else {})}
        return Node(number, tag, (0, 0, size, size), letter, facts=facts)

    red, blue = "rgb(255, 0, 0)", "rgb(0, 0, 255)"
    page = (
        shape(1, "circle", 20, red),
        shape(2, "circle", 10, blue),
        shape(3, "text", 20, red, "a"),
        shape(4, "text", 10, red, "7"),
        shape(5, "polygon", 20, blue),
        *(button(10 + number, str(number)) for number in range(6)),
    )
    counts = {
        "circle": 2,
        "red item": 3,
        "large shape": 2,
        "letter": 1,
        "digit": 1,
        "small red digit": 1,
        "triangle": 1,
    }
    for words, count in counts.items():
        assert act("count-shape", f"How many {words}s are there?", *page) == f"click {10 + count}"


def test_a_calendar_is_turned_to_the_month_before_the_day_is_clicked() -> None:
    goal, field = "Select 02/09/2016 as the date and hit submit.", entry(1)
    turn = Node(2, "a", text="Next", facts={"class": "ui-datepicker-next"})
    year = Node(4, "span", text="2016", facts={"class": "ui-datepicker-year"})

    def month(name: str) -> Node:
        return Node(3, "span", text=name, facts={"class": "ui-datepicker-month"})

    assert act("choose-date", goal, field) == "click 1"
    assert act("choose-date", goal, field, turn, month("January"), year) == "click 2"
    assert act("choose-date", goal, field, turn, month("February"), year, Node(9, "a", text="9")) == "click 9"
    assert act("choose-date", goal, entry(1, "02/09/2016"), button(5, "Submit")) == "click 5"


def test_a_person_called_star_gets_an_answer_and_no_star() -> None:
    goal = 'Find the email by Star and reply to them with the text "Hi.".'
    icons = [Node(n, "span", facts={"class": kind, "name": name, "heard": True}) for n, kind, name in
             ((1, "", "close-email"), (2, "star", ""), (3, "email-reply", ""))]  # fmt: skip
    assert act("email-inbox", goal, *icons) == "click 3"
    written = (
        Node(7, "textarea", value="Hi.", facts={"name": "reply-text"}),
        Node(4, "span", facts={"name": "send-reply"}),
    )
    assert act("email-inbox", goal, *written) == "click 4"


def test_an_oracle_says_when_it_does_not_understand() -> None:
    with pytest.raises(ConfigError, match="does not understand the task 'Dance"):
        act("click-tab", "Dance.", button(1, "x"))
