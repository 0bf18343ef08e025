"""Text view of a page: visible elements with their numbers, one line each.

The elements come from ``data/page.js``; everything here is pure, so recorded pages test it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MOST_LINES = 400
_INPUTS = {
    "text": "textbox",
    "checkbox": "checkbox",
    "radio": "radio",
    "submit": "button",
    "button": "button",
    "reset": "button",
    "image": "button",
    "range": "slider",
    "number": "number",
    "password": "password",
}
_ROLES = {"a": "link", "button": "button", "textarea": "textbox", "img": "image", "canvas": "canvas", "text": "text"}
SHAPES = frozenset({"circle", "rect", "polygon", "ellipse", "line", "path", "polyline", "image", "canvas", "img"})
_CONTROLS = frozenset({"button", "input", "select", "textarea"})
_QUOTED = re.compile(r'"([^"]+)"')


@dataclass(frozen=True, slots=True)
class Node:
    """One visible element, or a run of text between elements.

    Args:
        id: Its number; 0 for a run of text.
        tag: Tag name, ``text`` for a run of text and for text in a drawing.
        at: Left, top, width and height in pixels.
        text: Its own text.
        value: Content of a field.
        facts: All else that the page told; see ``data/page.js``.
    """

    id: int
    tag: str
    at: tuple[float, float, float, float] = (0, 0, 0, 0)
    text: str = ""
    value: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def role(self) -> str:
        """Kind of the element."""
        if self.facts.get("role"):
            return str(self.facts["role"])
        if self.tag == "input":
            return _INPUTS.get(self.facts.get("type", "text"), str(self.facts.get("type", "text")))
        if self.tag == "select":
            return "listbox" if self.facts.get("multiple") or self.facts.get("rows") else "combobox"
        return "textbox" if self.facts.get("editable") else _ROLES.get(self.tag, self.tag)

    @property
    def center(self) -> tuple[float, float]:
        """Its middle."""
        left, top, width, height = self.at
        return left + width / 2, top + height / 2

    @property
    def label(self) -> str:
        """Its text, or what stands in for that."""
        caption = self.value if self.role == "button" and self.tag == "input" else ""
        return self.text or caption or str(self.facts.get("hint", ""))

    @property
    def is_field(self) -> bool:
        """True if text can be filled in."""
        typed = self.tag == "input" and self.role not in ("checkbox", "radio", "button", "file")
        return (typed or self.tag == "textarea" or bool(self.facts.get("editable"))) and not self.facts.get("disabled")

    @property
    def options(self) -> tuple[str, ...]:
        """The options of a list."""
        return tuple(self.facts.get("options", ()))

    @property
    def is_checked(self) -> bool:
        """True if a box or a radio button is checked."""
        return bool(self.facts.get("checked"))

    @property
    def color(self) -> tuple[int, ...]:
        """Its colour as red, green and blue from 0 to 255; empty if it has none."""
        numbers = re.findall(r"[\d.]+", str(self.facts.get("color", "")))
        return tuple(int(float(number)) for number in numbers[:3])

    @property
    def names(self) -> frozenset[str]:
        """Its id and the names of its classes in the page's source."""
        return frozenset([*str(self.facts.get("class", "")).split(), str(self.facts.get("name", ""))]) - {""}

    @property
    def is_shown(self) -> bool:
        """True if it has its own line: there is something to read or to act on."""
        facts = self.facts
        told = bool(self.label or self.value or facts.get("color") or facts.get("heard") or facts.get("scroll"))
        return told or self.tag in _CONTROLS or self.tag in SHAPES or bool(facts.get("editable"))


def read_nodes(raw: Iterable[Mapping[str, Any]]) -> tuple[Node, ...]:
    """Return the nodes that ``observe`` of ``data/page.js`` told, those without anything to show left out."""
    nodes = (_node(each) for each in raw)
    return tuple(node for node in nodes if node.is_shown)


def _node(raw: Mapping[str, Any]) -> Node:
    known = {"id", "tag", "at", "text", "value"}
    facts = {name: value for name, value in raw.items() if name not in known}
    return Node(
        raw["id"], raw["tag"], tuple(raw.get("at", (0, 0, 0, 0))), raw.get("text", ""), raw.get("value", ""), facts
    )


def line_of(node: Node, number: str) -> str:
    """Return the line that shows a node.

    >>> line_of(Node(3, "input", text="", value="Ann", facts={"type": "text"}), "3")
    '[3] textbox value "Ann"'
    """
    if not node.id:
        return f'"{node.text}"'
    parts = [f"[{number}] {node.role}"]
    if node.label:
        parts.append(f'"{node.label}"')
    if not node.label and not node.is_field and not node.options:  # icons are known by their names in the source
        parts.extend(f"#{name}" for name in [node.facts.get("name")] if name)
        parts.extend("." + kind for kind in str(node.facts.get("class", "")).split()[:3])
    if node.is_field:
        parts.append(f'value "{node.value}"')
    if node.options:
        parts.append("options " + " | ".join(node.options))
        parts.append(f'selected "{" | ".join(node.facts.get("selected", ()))}"')
    parts.extend(word for word in ("checked", "disabled", "focused", "bold", "underlined") if node.facts.get(word))
    if node.tag in SHAPES or node.facts.get("color"):
        left, top, width, height = node.at
        parts.append(f"at {left:g},{top:g} size {width:g}x{height:g}")
    if node.facts.get("color"):
        parts.append(color_name(str(node.facts["color"])))
    if node.facts.get("source"):
        parts.append(str(node.facts["source"]))
    if node.facts.get("scroll"):
        done, span = node.facts["scroll"]
        parts.append(f"scrolled {done:g} of {span:g}")
    return " ".join(parts)


def page_text(nodes: Sequence[Node]) -> str:
    """Return the text of a page: a line for each node."""
    lines = [line_of(node, str(node.id)) for node in nodes[:MOST_LINES]]
    if len(nodes) > MOST_LINES:
        lines.append(f"({len(nodes) - MOST_LINES} more elements)")
    return "\n".join(lines)


def normalised(nodes: Sequence[Node]) -> str:
    """Return the text of a page with its elements numbered from the top, however the page came to be so."""
    return "\n".join(line_of(node, str(number)) for number, node in enumerate(nodes, 1))


def color_name(color: str) -> str:
    """Return a CSS colour as ``#rrggbb``; any other form stays as it is.

    >>> color_name("rgb(255, 0, 128)")
    '#ff0080'
    """
    numbers = re.findall(r"[\d.]+", color)
    if not color.startswith("rgb") or len(numbers) < 3:
        return color
    return "#" + "".join(f"{min(255, int(float(number))):02x}" for number in numbers[:3])


def quoted(text: str) -> tuple[str, ...]:
    """Return the texts in double quotes.

    >>> quoted('Enter "Ann" into the field')
    ('Ann',)
    """
    return tuple(_QUOTED.findall(text))


def listed_actions(goal: str, nodes: Sequence[Node], most: int = 300) -> tuple[str, ...]:
    """Return actions that make sense on a page: clicks, options, and the goal's quoted words for its fields."""
    words = dict.fromkeys(quoted(goal)[:6])
    found: list[str] = []
    for node in nodes:
        if not node.id or node.facts.get("disabled"):
            continue
        if node.tag == "select":
            found.extend(f"select {node.id} {option}" for option in dict.fromkeys(node.options) if option.strip())
            continue
        found.append(f"click {node.id}")
        if node.is_field:
            found.extend(f'fill {node.id} "{word}"' for word in words)
    return tuple(found[:most])
