"""Oracles of MiniWoB++ tasks that are solved by filling in forms."""

from __future__ import annotations

import re

from turngym.envs.web.driver.page import Node
from turngym.envs.web.miniwob.oracles.base import Oracle, View, click, fill, solves

SOLVERS: dict[str, Oracle] = {}
ORDINAL = r"(\d+)(?:st|nd|rd|th)"


def enter(view: View, wanted: list[tuple[Node, str]], button: str = "Submit") -> str:
    """Fill the first field that does not hold what it should; press the button once all do."""
    for node, text in wanted:
        if node.value != text:
            return fill(node, text)
    return click(view.one("button", button))


@solves(SOLVERS, "enter-text", "enter-text-2", "enter-text-dynamic")
def enter_text(view: View) -> str:
    """Fill in what is quoted, in the case asked for."""
    text = view.quoted[0]
    if "lower case" in view.goal:
        text = text.lower()
    elif "upper case" in view.goal:
        text = text.upper()
    return enter(view, [(view.fields()[0], text)])


@solves(SOLVERS, "enter-password")
def enter_password(view: View) -> str:
    """Fill the same into both fields."""
    return enter(view, [(node, view.quoted[0]) for node in view.fields()])


@solves(SOLVERS, "login-user", "login-user-popup")
def login(view: View) -> str:
    """Fill in name and password; send any dialog away."""
    if view.has("button", "Cancel"):
        return click(view.one("button", "Cancel"))
    fields = view.fields()
    button = view.every("button")[0].label
    return enter(view, list(zip(fields, view.quoted, strict=True)), button)


@solves(SOLVERS, "enter-date")
def enter_date(view: View) -> str:
    """Fill a date in, as the field wants it."""
    month, day, year = view.match(r"(\d+)/(\d+)/(\d+)")
    field = view.fields()[0]
    return enter(view, [(field, f"{year}-{month}-{day}" if field.role == "date" else f"{month}/{day}/{year}")])


@solves(SOLVERS, "enter-time")
def enter_time(view: View) -> str:
    """Fill a time in, as the field wants it."""
    hour, minute, half = view.match(r"(\d+):(\d+) (AM|PM)")
    return enter(view, [(view.fields()[0], f"{int(hour) % 12 + 12 * (half.upper() == 'PM'):02}:{minute}")])


@solves(SOLVERS, "focus-text-2")
def focus_text(view: View) -> str:
    """Click the field with the number named."""
    (number,) = view.match(ORDINAL)
    return click(view.fields()[int(number) - 1])


@solves(SOLVERS, "simple-arithmetic", "simple-algebra", "visual-addition")
def arithmetic(view: View) -> str:
    """Work it out."""
    return enter(view, [(view.fields()[0], str(_solution(view)))])


def _solution(view: View) -> int:
    if "blocks" in view.goal:
        return sum(1 for node in view.nodes if node.color)
    text = " ".join(node.text for node in view.nodes).replace("\u2212", "-").replace("×", "*")
    found = re.search(r"(-?\w+) ([-+x*]) (-?\w+) =\s*(-?\d+)?", text)
    assert found
    left, sign, right, result = found.groups()
    if result is None or "x" not in (left, right):
        one, other = int(left), int(right)
        return one + other if sign == "+" else one - other if sign == "-" else one * other
    if left == "x":
        return int(result) - int(right) if sign == "+" else int(result) + int(right)
    return int(result) - int(left) if sign == "+" else int(left) - int(result)


@solves(SOLVERS, "read-table")
def read_table(view: View) -> str:
    """Copy the cell beside the one named."""
    (label,) = view.match(r"value of (.*) into")
    return enter(view, [(view.fields()[0], _beside(view, label))])


@solves(SOLVERS, "read-table-2")
def read_table_2(view: View) -> str:
    """Copy the cells beside those that the form names."""
    labels = [node.text.rstrip(":") for node in view.every(tag="label")]
    return enter(view, [(node, _beside(view, label)) for node, label in zip(view.fields(), labels, strict=True)])


def _beside(view: View, label: str) -> str:
    cells = view.every(tag="td")
    return cells[[cell.text for cell in cells].index(label) + 1].text


@solves(SOLVERS, "find-word")
def find_word(view: View) -> str:
    """Count the words of the paragraph."""
    (number,) = view.match(ORDINAL)
    words = re.findall(r"[\w'-]+", view.one(tag="p").text)
    return enter(view, [(view.fields()[0], words[int(number) - 1])])


@solves(SOLVERS, "copy-paste", "copy-paste-2")
def copy_paste(view: View) -> str:
    """Fill in what the text area holds."""
    number = re.search(ORDINAL, view.goal)
    areas = view.every(tag="textarea")
    source = areas[int(number[1]) - 1 if number else 0]
    return enter(view, [(view.one(tag="input"), source.value)])


@solves(SOLVERS, "scroll-text")
def scroll_text(view: View) -> str:
    """Fill in the last word."""
    word = view.one(tag="textarea").value.split()[-1].rstrip(".,")
    return enter(view, [(view.one(tag="input"), word)])


@solves(SOLVERS, "scroll-text-2")
def scroll_to_end(view: View) -> str:
    """Scroll until nothing is left."""
    area = view.one(tag="textarea")
    done, span = area.facts["scroll"]
    if "bottom" in view.goal:
        return click(view.one("button", "Submit")) if done >= span - 1 else f"scroll {area.id} down"
    return click(view.one("button", "Submit")) if done <= 0 else f"scroll {area.id} up"


@solves(SOLVERS, "sign-agreement")
def sign_agreement(view: View) -> str:
    """Scroll, sign, press."""
    if "cancel button" in view.goal.lower():
        return click(view.one("button", "Cancel"))
    name, button = view.quoted
    area = view.one(tag="textarea")
    done, span = area.facts["scroll"]
    field = view.one(tag="input")
    if done < span - 1 and (field.facts.get("disabled") or not area.facts.get("focused")):
        return f"scroll {area.id} down"
    return enter(view, [(field, name)], button)


@solves(SOLVERS, "text-transform")
def text_transform(view: View) -> str:
    """Read the letters one by one."""
    return enter(view, [(view.fields()[0], "".join(node.text for node in view.every(tag="span")))])


@solves(SOLVERS, "multi-layouts", "multi-orderings")
def movie_search(view: View) -> str:
    """Fill each field with what its heading asks for."""
    genre, director, year = view.match(r"Search for (\S+) movies directed by (\S+) from year (\d+)")
    words = {"genre": genre, "director": director, "year": year, "date": year}
    headings = [node.text.lower() for node in view.nodes if node.text and not node.is_field]
    kinds = [next(kind for kind in words if kind in text) for text in headings if any(kind in text for kind in words)]
    wanted = [(node, words[kind]) for node, kind in zip(view.fields(), kinds, strict=True)]
    for node, text in wanted:
        if node.value != text:
            return fill(node, text)
    buttons = [node for node in view.nodes if node.text in ("Submit", "Search", "Go!", "Find Movie") and node.id]
    return click(buttons[-1] if buttons else view.nodes[-1])


@solves(SOLVERS, "guess-number")
def guess_number(view: View) -> str:
    """Halve what is left after each answer."""
    low, high = 0, 9
    told = " ".join(node.text for node in view.nodes)
    guesses = [int(text) for text in re.findall(r'fill \d+ "(\d+)"', " ".join(view.actions))]
    presses = sum(action.startswith("click") for action in view.actions)
    for place, guess in enumerate(guesses[:presses]):
        if place + 1 < len(guesses):
            low, high = (guess + 1, high) if guesses[place + 1] > guess else (low, guess - 1)
        elif re.search(r"higher", told):
            low = guess + 1
        else:
            high = guess - 1
    field = view.fields()[0]
    if len(guesses) > presses:
        return click(view.one("button", "Submit"))
    return fill(field, str((low + high) // 2))


@solves(SOLVERS, "form-sequence-2")
def form_sequence_2(view: View) -> str:
    """Check a radio button and fill a field, each by its number."""
    radio, number, field = view.match(rf'{ORDINAL} radio button and enter the number "(-?\d+)" into the {ORDINAL}')
    button = view.every("radio")[int(radio) - 1]
    if not button.is_checked:
        return click(button)
    return enter(view, [(view.fields()[int(field) - 1], number)])


@solves(SOLVERS, "form-sequence-3")
def form_sequence_3(view: View) -> str:
    """Choose an option, press the button named."""
    (option,) = view.match(r"Choose (.*) from the dropdown")
    box = view.one(tag="select")
    if list(box.facts["selected"]) != [option]:
        return f"select {box.id} {option}"
    return click(view.one("button", view.quoted[0]))
