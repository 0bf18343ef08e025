"""Carrying out an agent's action on a tab."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from turngym.envs.web.driver.actions import DIRECTIONS, Action, Place, Point
from turngym.envs.web.driver.entries import FORMS, rewritten
from turngym.envs.web.driver.page import Node
from turngym.envs.web.driver.tab import Tab

_SCROLLED = 100
_NOT_TYPED = FORMS.keys() - {"number"}


async def act(tab: Tab, action: Action, nodes: Sequence[Node]) -> str:
    """Do what an action says.

    Args:
        tab: The page.
        action: The action.
        nodes: Elements shown to the agent; only these can be named.

    Returns:
        Why it could not be done, empty if it was.

    Raises:
        BrowserFault: The page broke.
    """
    known = {node.id: node for node in nodes if node.id}
    for place in (action.place, action.end):
        if isinstance(place, int) and place and place not in known:
            return f"there is no element {place} on the page"
    node = known.get(action.place) if isinstance(action.place, int) else None
    if action.kind in ("click", "dblclick", "hover", "drag"):
        return await _point(tab, action, node)
    if action.kind in ("fill", "select", "focus"):
        return await _field(tab, action, node) if node else "name an element by its number, 1 or above"
    if action.kind == "type":
        await tab.insert(action.text)
    elif action.kind == "press":
        if not await tab.press(action.text):
            return f"there is no key {action.text[:40]!r}"
        await tab.tool("frame")  # keys scroll, too
    elif action.kind == "scroll":
        across, down = DIRECTIONS[action.text]
        await tab.tool("scroll", action.place, across * _SCROLLED, down * _SCROLLED)
        await tab.tool("frame")  # the page is notified of a scroll with the next frame
    elif action.kind == "accept":
        tab.answer = action.text
    elif action.kind == "back":
        return "" if await tab.back() else "there is no page to go back to"
    return ""


async def _point(tab: Tab, action: Action, node: Node | None) -> str:
    if node is not None and action.kind in ("click", "dblclick") and node.tag == "select":
        await tab.tool("focus", node.id)  # a click would open a list that is no part of the page
        return ""
    start = await _where(tab, action.place)
    if start is None:
        return f"element {action.place} cannot be reached"
    if action.kind == "hover":
        await tab.mouse("mouseMoved", *start)
    elif action.kind == "drag":
        end = await _where(tab, action.end)
        if end is None:
            return f"element {action.end} cannot be reached"
        if isinstance(action.place, int):
            start = await _where(tab, action.place) or start  # showing the end may have scrolled the start
        await tab.drag(start, end)
    else:
        await tab.click(*start, clicks=2 if action.kind == "dblclick" else 1)
    return ""


async def _where(tab: Tab, place: Place) -> Point | None:
    """Return the point to use, once it is in view; None if it cannot be."""
    if not isinstance(place, int):
        return place
    found = await tab.tool("place", place) if place else None
    if found == "moved":
        await tab.tool("frame")
        found = await tab.tool("place", place, True)
    return None if found is None else (found[0], found[1])


async def _field(tab: Tab, action: Action, node: Node) -> str:
    if action.kind == "select":
        wanted = [part.strip() for part in action.text.split("|")]
        if await tab.tool("select", node.id, [" ".join(part.split()) for part in wanted]):
            return ""
        return f"element {node.id} has no option {action.text[:80]!r}"
    if action.kind == "focus":
        return "" if await tab.tool("focus", node.id) else f"element {node.id} takes no focus"
    return await _fill(tab, node, action.text)


async def _fill(tab: Tab, node: Node, text: str) -> str:
    """Replace what a field holds; a field with its own format gets the text in that, or keeps what it holds."""
    if not node.is_field:
        return f"element {node.id} is no text field"
    kind = str(node.facts.get("type", ""))
    entry = rewritten(kind, text)
    if entry is None:
        return f"element {node.id} takes {FORMS[kind][1]}, not {text[:40]!r}"
    if kind in _NOT_TYPED:
        told = await tab.tool("put", node.id, entry)
        if told is True:
            return ""
        limits = "".join(f", {name} {value}" for name, value in (told or {}).items() if value)
        return f"element {node.id} takes {FORMS[kind][1]}{limits}, and refuses {text[:40]!r}"
    if not await tab.tool("clear", node.id):
        return f"element {node.id} takes no text"
    if not entry:
        await tab.press("Delete")
        return ""
    await asyncio.gather(tab.insert(entry), _last_key(tab))
    return ""


async def _last_key(tab: Tab) -> None:
    """Let go of a key, for pages that look at a field then."""
    await tab.send("Input.dispatchKeyEvent", type="keyUp", key="Unidentified")
