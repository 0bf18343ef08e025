"""Oracles of MiniWoB++ tasks on widgets of their own: sliders, spinners, calendars, proposals, result pages."""

from __future__ import annotations

import re
from datetime import date

from turngym.envs.web.driver.page import Node
from turngym.envs.web.miniwob.oracles.base import Oracle, View, click, fill, solves
from turngym.envs.web.miniwob.oracles.form import ORDINAL

SOLVERS: dict[str, Oracle] = {}


@solves(SOLVERS, "use-spinner")
def use_spinner(view: View) -> str:
    """Press the arrows beside the field as often as needed."""
    (wanted,) = view.match(r"Select (-?\d+) with")
    field = view.one("spinbutton")
    missing = int(wanted) - int(field.value)
    if not missing:
        return click(view.one("button", "Submit"))
    left, top, width, height = field.at
    x, y = left + width + 9, top + height * (0.2 if missing > 0 else 0.8)
    return f"click {x:g},{y:g}"


@solves(SOLVERS, "use-slider", "use-slider-2", "form-sequence")
def use_sliders(view: View) -> str:
    """Drag each handle near its place, then move it by keys; after that boxes and button."""
    if found := re.search(r"\[([-\d, ]+)\]", view.goal):
        wanted = [int(part) for part in found[1].split(",")]
    else:
        wanted = [int(view.match(r"Select (-?\d+) with")[0])]
    tracks, handles = view.every(name="ui-slider"), view.every(name="ui-slider-handle")
    shown = [node for node in view.nodes if re.fullmatch(r"-?\d+", node.text) and node.tag == "div"]
    for track, handle, value, goal in zip(tracks, handles, shown, wanted, strict=False):
        missing = goal - int(value.text)
        if missing:
            return _move_handle(view, track, handle, missing)
    if box := re.search(rf"{ORDINAL} checkbox", view.goal):
        node = view.every("checkbox")[int(box[1]) - 1]
        if not node.is_checked:
            return click(node)
    return click(view.one("button", "Submit"))


def _move_handle(view: View, track: Node, handle: Node, missing: int) -> str:
    if "[" in view.goal:  # 20 steps from end to end
        return f"drag {handle.id} to {handle.center[0] + missing * track.at[2] / 20:g},{handle.center[1]:g}"
    if not handle.facts.get("focused"):
        return f"focus {handle.id}"
    if abs(missing) > 10:  # a fifth of the track
        return f"press {'PageUp' if missing > 0 else 'PageDown'}"
    return f"press {'ArrowRight' if missing > 0 else 'ArrowLeft'}"


@solves(SOLVERS, "number-checkboxes")
def number_checkboxes(view: View) -> str:
    """Check the boxes of the digit, row by row."""
    pattern = _DIGITS[int(view.quoted[0])]
    for box, wanted in zip(view.every("checkbox"), pattern, strict=True):
        if box.is_checked != (wanted == "1"):
            return click(box)
    return click(view.one("button", "Submit"))


_DIGITS = (
    "0110100110011001100110010110", "0010011000100010001000100010", "0110100110010010010010001111",
    "0110100100010110000110010110", "1000101010101111001000100010", "1111100010001110000110010110",
    "0110100110001110100110010110", "1111100100010010001001000100", "0110100110010110100110010110",
    "0110100110010111000110010110",
)  # fmt: skip
"""The digits 0 to 9 in boxes, 7 rows of 4."""


@solves(SOLVERS, "choose-date", "choose-date-easy", "choose-date-medium", "choose-date-nodelay")
def choose_date(view: View) -> str:
    """Open the calendar, turn to the month, click the day."""
    month, day, year = view.match(r"Select (\d+)/(\d+)/(\d+)")
    field = view.one("textbox")
    if field.value == f"{month}/{day}/{year}":
        return click(view.one("button", "Submit"))
    return pick_day(view, field, date(int(year), int(month), int(day)))


_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


def pick_day(view: View, field: Node, day: date) -> str:
    """Open a calendar at its field, turn its pages, click the day."""
    shown = view.every(name="ui-datepicker-month")
    if not shown:
        return click(field)
    year = int(view.one(name="ui-datepicker-year").text)
    ahead = (day.year - year) * 12 + day.month - 1 - _MONTHS.index(shown[0].text)
    if ahead:
        return click(view.one(name="ui-datepicker-next" if ahead > 0 else "ui-datepicker-prev"))
    return click(next(node for node in view.every("link") if node.text == str(day.day)))


@solves(SOLVERS, "use-autocomplete", "use-autocomplete-nodelay")
def use_autocomplete(view: View) -> str:
    """Type the beginning, click the proposal with the end."""
    start, *end = view.quoted
    field = view.fields()[0]
    if field.value.startswith(start) and field.value.endswith(end[0] if end else "") and _was_chosen(view):
        return click(view.one("button", "Submit"))
    found = [
        node
        for node in view.nodes
        if node.id
        and not node.is_field
        and node.role != "button"
        and node.text.startswith(start)
        and node.text.endswith(end[0] if end else "")
    ]
    return click(found[0]) if found else fill(field, start)


def _was_chosen(view: View) -> bool:
    return any(action.startswith("click") for action in view.actions)


@solves(SOLVERS, "search-engine")
def search_engine(view: View) -> str:
    """Search, turn to the page, click the result."""
    (number,) = view.match(ORDINAL)
    place = int(number) - 1
    name = view.quoted[0]
    field = view.fields()[0]
    if field.value != name:
        return fill(field, name)
    results = [node for node in view.every("link") if "search-title" in " ".join(node.names) or node.facts.get("bold")]
    pages = [node for node in view.every("link") if re.fullmatch(r"\d+|<|>", node.text)]
    if not pages:
        return click(view.one("button", "Search"))
    results = [node for node in view.every("link") if node not in pages]
    turned = sum(action == "click next" for action in view.actions)
    turned = len([action for action in view.actions if action.startswith("click")]) - 1
    if turned < place // 3:
        return click(next(node for node in pages if node.text == ">"))
    return click(results[place % 3])
