"""Oracles of MiniWoB++ tasks that are solved by clicking and choosing."""

from __future__ import annotations

import re

from turngym.envs.web.driver.page import Node
from turngym.envs.web.miniwob.oracles.base import Oracle, View, click, solves

SOLVERS: dict[str, Oracle] = {}


@solves(SOLVERS, "click-test", "click-test-2", "click-test-transfer")
def click_test(view: View) -> str:
    """Click the only button, or the one with the name in capitals."""
    named = re.search(r"button (\w+)\.", view.goal)
    return click(view.one("button", named[1] if named else None))


@solves(SOLVERS, "click-button", "unicode-test", "click-link", "focus-text")
def click_named(view: View) -> str:
    """Click what is quoted, upper and lower case told apart."""
    if not view.quoted:
        return click(view.fields()[0])
    return click(view.exactly(view.quoted[0]))


@solves(SOLVERS, "click-button-sequence", "button-delay")
def click_sequence(view: View) -> str:
    """Click ONE, wait as long as asked for, click TWO."""
    if not view.actions:
        return click(view.one("button", "ONE"))
    seconds = re.search(r"wait (\d+) seconds", view.goal)
    if seconds and len(view.actions) < int(seconds[1]):  # a turn takes a second
        return "wait"
    return click(view.one("button", "TWO"))


@solves(SOLVERS, "click-dialog", "click-dialog-2")
def click_dialog(view: View) -> str:
    """Click the button of the dialog."""
    return click(view.one("button", "Close" if view.quoted[0] == "x" else view.quoted[0]))


@solves(SOLVERS, "click-option", "click-checkboxes", "click-checkboxes-large", "click-checkboxes-transfer")
def click_boxes(view: View) -> str:
    """Check the boxes named and press the button."""
    (names,) = view.match(r"Select (.*) and click Submit")
    wanted = set() if names == "nothing" else set(names.split(", "))
    for box, text in view.with_text():
        if (text in wanted) != box.is_checked and (text in wanted or box.role == "checkbox"):
            return click(box)
    return click(view.one("button", "Submit"))


@solves(SOLVERS, "choose-list", "click-scroll-list")
def choose(view: View) -> str:
    """Choose the options named and press the button."""
    (names,) = view.match(r"Select (.*) from the (?:scroll )?list and click Submit")
    box = view.one(tag="select")
    wanted = names.split(", ") if names not in box.options else [names]
    if sorted(box.facts["selected"]) == sorted(wanted):
        return click(view.one("button", "Submit"))
    return f"select {box.id} {' | '.join(wanted)}"


@solves(SOLVERS, "click-tab")
def click_tab(view: View) -> str:
    """Click the tab named."""
    (name,) = view.match(r"Click on (Tab #\d+)")
    return click(view.one(label=name))


@solves(SOLVERS, "click-tab-2", "click-tab-2-easy", "click-tab-2-medium", "click-tab-2-hard")
def find_in_tabs(view: View) -> str:
    """Open one tab after the other until the link shows."""
    links = [node for node in view.every(tag="span") if node.text == view.quoted[0] and node.facts.get("underlined")]
    if links:
        return click(links[0])
    tabs = view.every("presentation")
    return click(tabs[(len(view.actions) + 1) % len(tabs)])


@solves(SOLVERS, "click-collapsible", "click-collapsible-nodelay")
def expand_one(view: View) -> str:
    """Open the section, press the button."""
    return click(view.one("button", "Submit") if view.actions else view.one("tab"))


@solves(SOLVERS, "click-collapsible-2", "click-collapsible-2-nodelay")
def find_in_sections(view: View) -> str:
    """Open one section after the other until the link shows."""
    links = [node for node in view.every(tag="span") if node.text == view.quoted[0] and node.facts.get("underlined")]
    if links:
        return click(links[0])
    sections = [node for node in view.every("tab") if node.text.startswith("Section")]
    return click(sections[len(view.actions) % len(sections)])


@solves(SOLVERS, "click-color")
def click_color(view: View) -> str:
    """Click the box of the colour named."""
    (name,) = view.match(r"Click on the (\w+) colored box")
    return click(next(node for node in view.every(tag="div") if node.color == COLORS[name]))


COLORS = {
    "black": (0, 0, 0), "blue": (0, 0, 255), "aqua": (0, 255, 255), "cyan": (0, 255, 255), "lime": (0, 255, 0),
    "fuchsia": (255, 0, 255), "magenta": (255, 0, 255), "gray": (128, 128, 128), "grey": (128, 128, 128),
    "green": (0, 128, 0), "maroon": (128, 0, 0), "navy": (0, 0, 128), "olive": (128, 128, 0), "orange": (255, 165, 0),
    "pink": (255, 192, 203), "purple": (128, 0, 128), "red": (255, 0, 0), "silver": (192, 192, 192),
    "teal": (0, 128, 128), "white": (255, 255, 255), "yellow": (255, 255, 0), "gold": (255, 215, 0),
    "brown": (165, 42, 42),
}  # fmt: skip
"""The names of colours in CSS that the tasks use."""


@solves(SOLVERS, "click-shades")
def click_shades(view: View) -> str:
    """Click every box whose largest part is the colour named."""
    (name,) = view.match(r"shades of (\w+)")
    part = ("red", "green", "blue").index(name)
    for node in view.every(tag="span"):
        color = node.color
        if (
            color
            and color[part] == max(color)
            and color.count(max(color)) == 1
            and f"click {node.id}" not in view.actions
        ):
            return click(node)
    return click(view.one("button", "Submit"))


@solves(SOLVERS, "click-widget")
def click_widget(view: View) -> str:
    """Click the first widget of the kind named."""
    kind = view.quoted[0]
    for node in view.nodes:
        what = node.tag if node.tag in ("textarea", "button") else node.facts.get("type", "")
        if node.id and what == kind:
            return click(node)
    return click(view.one(kind))


@solves(SOLVERS, "click-menu")
def click_menu(view: View) -> str:
    """Go through the menu, an entry a turn."""
    (path,) = view.match(r"Select (.*)")
    names = path.split(">")
    place = min(len(view.actions), len(names) - 1)
    node = view.every("menuitem", names[place])[-1]
    return click(node) if place == len(names) - 1 else f"hover {node.id}"


@solves(SOLVERS, "navigate-tree")
def navigate_tree(view: View) -> str:
    """Open every closed folder until the name shows."""
    found = view.every(tag="span", label=view.quoted[0])
    if found:
        return click(found[0])
    folders = [
        node for node in view.every(tag="span") if f"click {node.id}" not in view.actions and "folder" in node.names
    ]
    return click(folders[0])


@solves(SOLVERS, "phone-book")
def phone_book(view: View) -> str:
    """Turn the pages until the person shows."""
    (name, what) = view.match(r"Find (\w+) in the contact book and click on their (phone number|email|address)")
    if view.has(tag="h2", label=name):
        names = [node.text for node in view.nodes]
        place = names.index({"phone number": "Phone:", "email": "Email:", "address": "Address:"}[what])
        return click(view.nodes[place + 1])
    return click(view.one("link", ">"))


@solves(SOLVERS, "buy-ticket")
def buy_ticket(view: View) -> str:
    """Compare the tickets by price or duration."""
    (word,) = view.match(r"with the (.*?)\.?$")
    offers: list[tuple[int, int, Node]] = []
    for place, node in enumerate(view.nodes):
        if node.role == "button" and "$" in node.text:
            hours, minutes = (int(part) for part in re.findall(r"\d+", view.nodes[place - 1].text))
            offers.append((int(node.text.split("$")[1]), hours * 60 + minutes, node))
    offers.sort(key=lambda offer: offer[0] if "cost" in word else offer[1])
    return click(offers[-1 if "most" in word or "longest" in word else 0][2])


@solves(SOLVERS, "odd-or-even")
def odd_or_even(view: View) -> str:
    """Mark one number a turn."""
    numbers = [place for place, node in enumerate(view.nodes) if re.fullmatch(r"-?\d+", node.text)]
    if len(view.actions) == len(numbers):
        return click(view.one("button", "Submit"))
    place = numbers[len(view.actions)]
    return click(view.nodes[place + 1 if int(view.nodes[place].text) % 2 == 0 else place - 1])


@solves(SOLVERS, "generate-number")
def generate_number(view: View) -> str:
    """Draw numbers until one fits."""
    shown = view.nodes[0].text
    if re.fullmatch(r"-?\d+", shown) and _fits(int(shown), view.goal):
        return click(view.one("button", "Submit"))
    return click(view.one("button", "Generate"))


def _fits(number: int, goal: str) -> bool:
    if found := re.search(r"less than (-?\d+)", goal):
        return number < int(found[1])
    if found := re.search(r"greater than (-?\d+)", goal):
        return number > int(found[1])
    return number % 2 == (1 if "odd" in goal else 0)


@solves(SOLVERS, "ascending-numbers")
def ascending(view: View) -> str:
    """Click the numbers in order; after the first, boxes hide them, in their order."""
    return click(view.every(tag="rect")[0] if view.actions else view.exactly("1"))


@solves(SOLVERS, "identify-shape")
def identify_shape(view: View) -> str:
    """Name the figure."""
    return click(view.one("button", _shape_name(next(node for node in view.nodes if node.tag != "svg" and node.id))))


def _shape_name(node: Node) -> str:
    """Return what a drawn figure is called."""
    if node.tag == "text":
        return "Number" if node.text.isdigit() else "Letter"
    return {"rect": "Rectangle", "circle": "Circle", "polygon": "Triangle"}[node.tag]
