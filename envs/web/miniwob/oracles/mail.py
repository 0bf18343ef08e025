"""Oracles of MiniWoB++ tasks that look like applications: mail, social media, shops, travel, a terminal."""

from __future__ import annotations

import re
from datetime import date

from turngym.envs.web.driver.page import Node
from turngym.envs.web.miniwob.oracles.base import Oracle, View, click, fill, solves
from turngym.envs.web.miniwob.oracles.click import COLORS
from turngym.envs.web.miniwob.oracles.widget import pick_day

SOLVERS: dict[str, Oracle] = {}


@solves(
    SOLVERS,
    "email-inbox",
    "email-inbox-delete",
    "email-inbox-forward",
    "email-inbox-forward-nl",
    "email-inbox-important",
    "email-inbox-noscroll",
    "email-inbox-reply",
    "email-inbox-star-reply",
)
def mail(view: View) -> str:
    """Open the mail, then star, delete, answer or forward it."""
    name = _sender(view.goal)
    if view.has(name="send-reply"):
        return _write(view, "reply-text", view.quoted[0] if view.quoted else _after(view.goal), "send-reply")
    if view.has(name="send-forward"):
        return _write(view, "forward-sender", _receiver(view.goal), "send-forward")
    if not view.has(name="close-email"):
        return click(next(node for node in view.every(name="email-sender") if node.text == name))
    goal = view.goal.lower()
    if re.search(r"trash icon|delete (?:it|the|that)", goal):
        return click(view.one(name="trash"))
    if re.search(r"star icon|as important", goal):
        return click(view.one(name="star"))
    return click(view.one(name="email-reply" if re.search(r"reply to|respond", goal) else "email-forward"))


def _sender(goal: str) -> str:
    found = (
        re.search(r"([A-Z]\w+) sent (?:to )?you", goal)
        or re.search(r"(?:email by|by|from|message from|give|received from) ([A-Z]\w+)", goal)
        or re.search(r"([A-Z]\w+)'s? ", goal)
    )
    names = re.findall(r"\b[A-Z]\w+\b", goal)
    return found[1] if found else names[0]


def _receiver(goal: str) -> str:
    found = re.search(r"\bto ([A-Z]\w+)", goal)
    names = [name for name in re.findall(r"\b[A-Z]\w+\b", goal) if name != _sender(goal)]
    return found[1] if found else names[-1]


def _after(goal: str) -> str:
    return goal.split("text ")[-1]


def _write(view: View, field: str, text: str, button: str) -> str:
    node = view.one(name=field)
    return click(view.one(name=button)) if node.value == text else fill(node, text)


@solves(SOLVERS, "social-media")
def social_media(view: View) -> str:
    """Find the user's post, click its icon, or its menu first."""
    user, action = view.match(r'user (@\w+), click on the "(.*)" button')
    place = next(i for i, node in enumerate(view.nodes) if node.text == user)
    post = view.nodes[place:]
    if not any("more" in node.names for node in post[:12]):
        return f"hover {post[0].id}"  # the icons show under the mouse only
    icon = {"Reply": "reply", "Retweet": "retweet", "Like": "like"}.get(action)
    if icon:
        return click(next(node for node in post if icon in node.names))
    entries = [node for node in post if node.tag == "li" and node.text.startswith(action)]
    return click(entries[0] if entries else next(node for node in post if "more" in node.names))


@solves(SOLVERS, "social-media-all", "social-media-some")
def social_media_all(view: View) -> str:
    """Click the icon of as many of the user's posts as asked for."""
    action, number, user = view.match(r'Click the "(.*)" button on (all|\d+) posts? by (@\w+)')
    posts = [i for i, node in enumerate(view.nodes) if node.text == user]
    count = len(posts) if number == "all" else int(number)
    done = len(view.actions)
    if done >= count:
        return click(view.one("button", "Submit"))
    names = {"Reply": "reply", "Retweet": "retweet", "Like": "like", "Share": "share"}
    return click(next(node for node in view.nodes[posts[done] :] if names[action] in node.names))


@solves(SOLVERS, "order-food")
def order_food(view: View) -> str:
    """Add each dish named once, or one whose icon shows the kind as often as asked for."""
    dishes = _dishes(view)
    if found := re.search(r"Order one of each item: (.*)", view.goal):
        wanted = [dish for dish in dishes if dish[0] in [part.strip() for part in found[1].split(",")]]
    else:
        number, kind = view.match(r"Order (\d+) items? that (?:are|is|contains?|has|have) ([\w-]+)")
        wanted = [dish for dish in dishes if kind in dish[1]]
        if sum(count for _, _, count, _ in wanted) < int(number):
            return click(wanted[0][3])
        return click(view.one("button", "Order!"))
    for _, _, count, add in wanted:
        if not count:
            return click(add)
    return click(view.one("button", "Order!"))


def _dishes(view: View) -> list[tuple[str, list[str], int, Node]]:
    """Return name, kinds, how many are ordered, and the button that adds one, of every dish."""
    found = []
    for place, node in enumerate(view.nodes):
        if "item-name" in node.names:
            after = view.nodes[place + 1 :]
            add = next(i for i, each in enumerate(after) if "add" in each.names)
            kinds = [str(each.facts.get("hint", "")) for each in after[:add] if each.tag == "img"]
            counts = [int(each.text) for each in after[:add] if "quantity" in each.names and each.text]
            found.append((node.text, kinds, sum(counts), after[add]))
    return found


@solves(SOLVERS, "book-flight", "book-flight-nodelay")
def book_flight(view: View) -> str:
    """Fill in both airports from their proposals and the day, then compare what is offered."""
    best, start, end, month, day, year = view.match(
        r"Book the (\w+) one-way flight from: (.*) to: (.*) on (\d+)/(\d+)/(\d+)"
    )
    prices = [node for node in view.nodes if "flight-price" in node.names]
    if prices:
        return click(_best_flight(view, prices, best))
    fields = view.fields()
    for field, place in zip(fields, (start, end), strict=False):
        if place not in field.value or field.value == place:
            offered = [
                node for node in view.nodes if node.id and not node.is_field and "ui-menu-item-wrapper" in node.names
            ]
            offered = offered or [node for node in view.every("menuitem") + view.every(tag="li") if place in node.text]
            fitting = [node for node in offered if place in node.text]
            return click(fitting[0]) if fitting and field.value == place else fill(field, place)
    if fields[2].value != f"{month}/{day}/{year}":
        return pick_day(view, fields[2], date(int(year), int(month), int(day)))
    return click(view.one("button", "Search"))


def _best_flight(view: View, prices: list[Node], best: str) -> Node:
    if best == "cheapest":
        return min(prices, key=lambda node: int(re.sub(r"\D", "", node.text)))
    spans = [node for node in view.nodes if "time-duration" in node.names]
    minutes = [int(hours) * 60 + int(rest) for hours, rest in (re.findall(r"\d+", node.text) for node in spans)]
    return prices[minutes.index(min(minutes))]


@solves(SOLVERS, "terminal")
def terminal(view: View) -> str:
    """List the files, remove one with the ending, a key a turn."""
    typed = "".join(_typed(action) for action in view.actions)
    if not view.actions:
        return click(view.one(name="terminal"))
    lines = [node.text for node in view.every(name="output")]
    found = [line for line in lines if not line.startswith(("Welcome", "Last login"))]
    if not found:
        return _next_key(typed, "ls\n")
    return _next_key(typed, f"ls\nrm {_with_ending(found[0].split(), view.goal)}\n")


def _with_ending(files: list[str], goal: str) -> str:
    ending = re.search(r"extension (\.[\w.]+)", goal)
    return next(file for file in files if (file.endswith(ending[1]) if ending else "." not in file))


def _typed(action: str) -> str:
    kind, _, key = action.partition(" ")
    return {"Enter": "\n", "Space": " "}.get(key, key) if kind == "press" else ""


def _next_key(typed: str, wanted: str) -> str:
    key = wanted[len(typed)]
    return f"press { {chr(10): 'Enter', ' ': 'Space'}.get(key, key) }"


@solves(SOLVERS, "use-colorwheel")
def use_colorwheel(view: View) -> str:
    """Fill in the colour's number, which the wheel follows."""
    (name,) = view.match(r"Select (\w+) with")
    text = "".join(f"{part:02X}" for part in COLORS[name])
    field = view.fields()[0]
    return click(view.one("button", "Submit")) if field.value == text else fill(field, text)
