"""Oracles of MiniWoB++ tasks that are solved by pointing and dragging."""

from __future__ import annotations

import math
import re

from turngym.envs.web.driver.page import Node
from turngym.envs.web.miniwob.oracles.base import Oracle, View, click, solves
from turngym.envs.web.miniwob.oracles.click import COLORS

SOLVERS: dict[str, Oracle] = {}
_QUERY_HEIGHT = 50
_TOP, _BOTTOM, _LEFT, _RIGHT = 56.0, 170.0, 6.0, 138.0


def _at(x: float, y: float) -> str:
    return f"click {x:.1f},{y:.1f}"


def _then_submit(view: View, action: str, turns: int = 1) -> str:
    return click(view.one("button", "Submit")) if len(view.actions) >= turns else action


def _dots(view: View) -> list[Node]:
    return view.every(tag="circle")


@solves(SOLVERS, "circle-center")
def circle_center(view: View) -> str:
    """Click the middle."""
    x, y = _dots(view)[0].center
    return _then_submit(view, _at(x, y))


@solves(SOLVERS, "find-midpoint")
def find_midpoint(view: View) -> str:
    """Click half-way between the dots."""
    (x, y), (to_x, to_y) = (dot.center for dot in _dots(view)[:2])
    return _then_submit(view, _at((x + to_x) / 2, (y + to_y) / 2))


@solves(SOLVERS, "bisect-angle")
def bisect_angle(view: View) -> str:
    """Click a point as far from both sides."""
    corner, one, other = (dot.center for dot in sorted(_dots(view)[:3], key=lambda dot: dot.color != (0, 0, 255)))
    wanted = _turned(corner, one, other) / 2
    left, top, _, _ = view.one(tag="svg").at

    def miss(click: tuple[int, int]) -> float:
        """Return how far the line is off if the page draws its end there, which it does a little beside the click."""
        end = click[0] + left, click[1] + top - _QUERY_HEIGHT
        return abs(_turned(corner, one, end) - wanted) if math.dist(corner, end) > 15 else math.inf

    clicks = [(x, y) for x in range(int(_LEFT), int(_RIGHT)) for y in range(int(_TOP), int(_BOTTOM))]
    return _then_submit(view, _at(*min(clicks, key=miss)))


def _turned(corner: tuple[float, float], start: tuple[float, float], end: tuple[float, float]) -> float:
    """Return the angle from one side to the other, from -pi to pi."""
    angle = math.atan2(end[1] - corner[1], end[0] - corner[0]) - math.atan2(start[1] - corner[1], start[0] - corner[0])
    return math.remainder(angle, math.tau)


@solves(SOLVERS, "right-angle")
def right_angle(view: View) -> str:
    """Click a point off the blue dot, square to the line."""
    corner, other = (dot.center for dot in sorted(_dots(view)[:2], key=lambda dot: dot.color != (0, 0, 255)))
    x, y = _unit(corner, other)
    for length in (90, 60, 45, 30):
        for across in ((-y, x), (y, -x)):
            point = corner[0] + length * across[0], corner[1] + length * across[1]
            if _LEFT < point[0] < _RIGHT and _TOP < point[1] < _BOTTOM:
                return _then_submit(view, _at(*point))
    return _then_submit(view, _at(corner[0] + 15 * -y, corner[1] + 15 * x))


def _unit(start: tuple[float, float], end: tuple[float, float]) -> tuple[float, float]:
    x, y = end[0] - start[0], end[1] - start[1]
    size = math.hypot(x, y)
    return x / size, y / size


@solves(SOLVERS, "grid-coordinate")
def grid_coordinate(view: View) -> str:
    """Count the dots from the middle one."""
    across, up = (int(part) for part in view.match(r"\((-?\d+),\s*(-?\d+)\)"))
    columns = sorted({dot.center[0] for dot in _dots(view)})
    rows = sorted({dot.center[1] for dot in _dots(view)}, reverse=True)
    wanted = columns[across + len(columns) // 2], rows[up + len(rows) // 2]
    return click(next(dot for dot in _dots(view) if dot.center == wanted))


def figures(view: View) -> list[Node]:
    """Return the figures of a drawing."""
    return [node for node in view.nodes if node.id and node.tag in ("circle", "rect", "polygon", "text")]


def fits(node: Node, words: list[str]) -> bool:
    """Return whether a figure is what the words describe: size, colour, kind."""
    return all(_fits(node, word) for word in words)


def _fits(node: Node, word: str) -> bool:
    if word in ("item", "items"):
        return True
    if word in ("large", "small"):
        size = node.facts.get("size", node.at[3])
        return bool((size >= 15) == (word == "large"))
    if word in COLORS and len(word) > 1:
        return node.color == COLORS[word]
    single = word.removesuffix("s") if len(word) > 1 else word
    kinds = {"circle": "circle", "rectangle": "rect", "triangle": "polygon"}
    if single in kinds:
        return node.tag == kinds[single]
    if single == "shape":
        return node.tag != "text"
    if single in ("letter", "digit", "number"):
        return node.tag == "text" and node.text.isdigit() == (single != "letter")
    return node.text in (word, single)


@solves(SOLVERS, "click-shape")
def click_shape(view: View) -> str:
    """Click a figure that fits."""
    (words,) = view.match(r"Click on an? (.*)")
    found = [node for node in figures(view) if fits(node, words.split())]
    return _at(*found[0].center)


@solves(SOLVERS, "count-shape")
def count_shape(view: View) -> str:
    """Count the figures that fit."""
    (words,) = view.match(r"How many (.*)s are there")
    return click(view.one("button", str(sum(fits(node, words.split()) for node in figures(view)))))


_AWAY = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}


@solves(SOLVERS, "drag-circle", "drag-single-shape")
def drag_figure(view: View) -> str:
    """Drag the figure well away in the direction named."""
    (word,) = view.match(r"Drag the \w+ (\w+)")
    figure = figures(view)[0]
    x, y = figure.center
    away = _AWAY[word]
    return _then_submit(view, f"drag {x:g},{y:g} to {x + 35 * away[0]:g},{y + 35 * away[1]:g}")


@solves(SOLVERS, "drag-box")
def drag_box(view: View) -> str:
    """Drag the small box onto the large one."""
    small, (x, y) = view.exactly("s"), view.exactly("L").center
    left, top, width, height = small.at
    grip_x = left + (2 if small.center[0] < x else width - 2)  # the corner away from the large one is not covered
    grip_y = top + (2 if small.center[1] < y else height - 2)
    by_x, by_y = x - small.center[0], y - small.center[1]
    return _then_submit(view, f"drag {grip_x:g},{grip_y:g} to {grip_x + by_x:g},{grip_y + by_y:g}")


@solves(SOLVERS, "drag-shapes", "drag-shapes-2")
def drag_shapes(view: View) -> str:
    """Drag one figure a turn to where it belongs."""
    boxes = [node for node in view.every(tag="rect") if node.at[2] > 40]
    shapes = [node for node in figures(view) if node not in boxes]
    if found := re.search(r"Drag all (\w+) into the black box", view.goal):
        wanted = [(node, boxes[0]) for node in shapes if fits(node, [found[1]])]
    else:
        (word,) = view.match(r"Drag all (\w+)(?: shapes)? into the left box")
        boxes.sort(key=lambda box: box.at[0])
        wanted = [(node, boxes[0] if fits(node, [word]) else boxes[1]) for node in shapes]
    for node, box in wanted:
        if not _is_inside(node, box):
            x, y = node.center
            place = sum(_is_inside(other, box) for other in shapes)
            to_x = box.at[0] + 14 + 20 * (place % 3)
            to_y = box.at[1] + 14 + 18 * (place // 3 % 2)
            return f"drag {x:g},{y:g} to {to_x:g},{to_y:g}"
    return click(view.one("button", "Submit"))


def _is_inside(node: Node, box: Node) -> bool:
    (x, y), (left, top, width, height) = node.center, box.at
    return left < x < left + width and top < y < top + height


@solves(SOLVERS, "draw-line")
def draw_line(view: View) -> str:
    """Drag straight through the dot."""
    x, y = _dots(view)[0].center
    if "vertical" in view.goal:
        return _then_submit(view, f"drag {x:g},{y - 30:g} to {x:g},{y + 30:g}")
    return _then_submit(view, f"drag {x - 25:g},{y:g} to {x + 25:g},{y:g}")


@solves(SOLVERS, "highlight-text", "highlight-text-2")
def highlight_text(view: View) -> str:
    """Drag from the first letter to the last."""
    number = re.search(r"(\d+)(?:st|nd|rd|th) paragraph", view.goal)
    texts = [node for node in view.nodes if node.tag in ("p", "div") and node.text]
    left, top, width, height = texts[int(number[1]) - 1 if number else 0].at
    return _then_submit(view, f"drag {left + 0.5:g},{top + 3:g} to {left + width - 0.5:g},{top + height - 2:g}")


@solves(SOLVERS, "resize-textarea")
def resize_textarea(view: View) -> str:
    """Drag the corner outwards or inwards."""
    which, how = view.match(r"the (width|height) is (larger|smaller)")
    left, top, width, height = view.one("textbox").at
    x, y = left + width - 3, top + height - 3
    by = 20 if how == "larger" else -20
    to_x, to_y = (x + by, y) if which == "width" else (x, y + by)
    return _then_submit(view, f"drag {x:g},{y:g} to {to_x:g},{to_y:g}")


@solves(SOLVERS, "drag-sort-numbers")
def drag_sort(view: View) -> str:
    """Put one number in its place a turn, from the top."""
    items = [node for node in view.every(tag="div") if re.fullmatch(r"-?\d+", node.text)]
    items.sort(key=lambda node: node.at[1])
    order = sorted(items, key=lambda node: int(node.text))
    for place, node in enumerate(order):
        if items[place] is not node:
            return f"drag {node.id} to {node.center[0]:g},{items[place].at[1] - 1:g}"
    return click(view.one("button", "Submit"))


_ROWS = {"top": 0, "center": 1, "bottom": 2}
_COLUMNS = {"left": 0, "center": 1, "right": 2}


@solves(SOLVERS, "drag-items-grid")
def drag_grid(view: View) -> str:
    """Drag the item onto the place named."""
    name, where = view.match(r"Drag (\w+) (.*)\.")
    item = view.exactly(name)
    items = sorted(view.every(tag="div"), key=lambda node: (node.at[1], node.at[0]))[:9]
    now = items.index(item)
    place = _grid_place(where, now)
    left, top, width, height = items[place].at
    is_ahead = place > now and place % 3 > now % 3  # the list makes room on the side where the item comes in
    return f"drag {item.id} to {left + width * (0.85 if is_ahead else 0.15):g},{top + height / 2:g}"


def _grid_place(where: str, now: int) -> int:
    if found := re.search(r"to the (top|center|bottom) (left|center|right)", where):
        return _ROWS[found[1]] * 3 + _COLUMNS[found[2]]
    if "center" in where:
        return 4
    return now + {"up": -3, "down": 3, "left": -1, "right": 1}[re.findall(r"up|down|left|right", where)[0]]


@solves(SOLVERS, "drag-items")
def drag_items(view: View) -> str:
    """Drag the item past those in between."""
    name, where = view.match(r"Drag (\w+) (.*)\.")
    items = sorted((node for node in view.every(tag="div") if node.text), key=lambda node: node.at[1])
    item = view.exactly(name)
    now = items.index(item)
    if found := re.search(r"(\d+)(?:st|nd|rd|th) position", where):
        place = int(found[1]) - 1
    elif "one position" in where:
        place = now + (1 if "down" in where else -1)
    else:
        place = len(items) - 1 if "bottom" in where else 0
    _, top, _, height = items[place].at
    return f"drag {item.id} to {item.center[0]:g},{top + height + 1 if place > now else top - 1:g}"
