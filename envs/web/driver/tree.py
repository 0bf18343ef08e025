"""The accessibility tree of a page as Chromium has it, its elements under the numbers that actions name.

``numbers_of`` and ``read_tree`` are pure, so recorded answers test them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from turngym.envs.web.driver.page import MOST_LINES, Node
from turngym.envs.web.driver.tab import Tab

_HIDDEN_ELEMENT = -1
_ELEMENT, _FRAGMENT = 1, 11
_PASSED = frozenset({"", "none", "generic", "RootWebArea", "InlineTextBox", "LineBreak", "MenuListPopup"})
_WORDS = ("disabled", "focused", "expanded", "selected", "required")


@dataclass(frozen=True, slots=True)
class Branch:
    """One line of the tree.

    Args:
        depth: How many lines it stands under.
        id: Number of the element, 0 if none can be named there.
        role: Role in Chromium's terms.
        name: Name.
        value: Value.
        words: Further properties.
    """

    depth: int
    id: int
    role: str
    name: str = ""
    value: str = ""
    words: tuple[str, ...] = ()


class Tree:
    """Reads the tree of a tab's page; remembers which of Chromium's own numbers stand for which elements.

    Args:
        hidden: Ids of elements that are not shown, as for ``observe``.
    """

    def __init__(self, hidden: Sequence[str]) -> None:
        self.hidden = list(hidden)
        self._numbers: dict[int, int] = {}

    def forget(self) -> None:
        """Start again: another page was loaded, or the elements were numbered again."""
        self._numbers = {}

    async def read(self, tab: Tab, shown: Iterable[Node]) -> tuple[Branch, ...]:
        """Return the tree as it is now.

        Args:
            tab: The page.
            shown: Latest result of ``observe`` for it.
        """
        heard = {node.id: bool(node.facts.get("heard")) for node in shown if node.id}
        nodes = await _read_nodes(tab)
        keys = {node["backendDOMNodeId"] for node in nodes if "backendDOMNodeId" in node}
        if keys - self._numbers.keys() or heard.keys() - {*self._numbers.values()}:
            document, order = await asyncio.gather(
                tab.send("DOMSnapshot.captureSnapshot", computedStyles=[]), tab.tool("order", self.hidden)
            )
            self._numbers = dict.fromkeys(keys, 0) | numbers_of(document, order)
        return read_tree(nodes, self._numbers, {number for number, is_heard in heard.items() if is_heard})


async def _read_nodes(tab: Tab) -> list[dict[str, Any]]:
    """Return the nodes of the page, those of its frames below the elements that show them."""
    nodes: list[dict[str, Any]] = (await tab.send("Accessibility.getFullAXTree"))["nodes"]
    if not any(_text(node, "role") == "Iframe" for node in nodes):
        return nodes
    frames = [(await tab.send("Page.getFrameTree"))["frameTree"]]
    for frame in frames:
        frames += frame.get("childFrames", ())
    for name in (frame["frame"]["id"] for frame in frames[1:]):
        owner = (await tab.send("DOM.getFrameOwner", frameId=name))["backendNodeId"]
        inner = (await tab.send("Accessibility.getFullAXTree", frameId=name))["nodes"]
        above = next((node for node in nodes if node.get("backendDOMNodeId") == owner), None)
        if above is not None and inner:
            above["childIds"] = [f"{name} {inner[0]['nodeId']}"]
            nodes += [_renamed(node, name) for node in inner]
    return nodes


def _renamed(node: dict[str, Any], frame: str) -> dict[str, Any]:
    """Return a node of a frame under ids that no other frame has."""
    below = [f"{frame} {child}" for child in node.get("childIds", ())]
    return {**node, "nodeId": f"{frame} {node['nodeId']}", "childIds": below}


def numbers_of(snapshot: Mapping[str, Any], order: Sequence[Sequence[int] | None]) -> dict[int, int]:
    """Return Chromium's own number of each element -> ours.

    Args:
        snapshot: Result of ``DOMSnapshot.captureSnapshot``.
        order: Our numbers of the page's elements in the order of the document, 0 for those without; then those of its
            frames, None for one that cannot be read.
    """
    found: dict[int, int] = {}
    places: list[int] = [0]
    for place, numbers in enumerate(order):
        if numbers is None or places[place] < 0:
            continue
        nodes = snapshot["documents"][places[place]]["nodes"]
        elements = _elements(nodes)
        found |= dict(zip((nodes["backendNodeId"][each] for each in elements), numbers, strict=True))
        inner = nodes.get("contentDocumentIndex", {"index": (), "value": ()})
        pages = dict(zip(inner["index"], inner["value"], strict=True))
        places += [pages.get(each, -1) for each in elements if _name(snapshot, nodes, each) in ("IFRAME", "FRAME")]
    return found


def _name(snapshot: Mapping[str, Any], nodes: Mapping[str, Any], place: int) -> str:
    return str(snapshot["strings"][nodes["nodeName"][place]]) if "nodeName" in nodes else ""


def _elements(nodes: Mapping[str, Any]) -> list[int]:
    """Return the places of the elements of a document."""
    inner = set(nodes["pseudoType"]["index"])
    for place, (kind, parent) in enumerate(zip(nodes["nodeType"], nodes["parentIndex"], strict=True)):
        if kind == _FRAGMENT or parent in inner:  # the inside of a field or a template is not part of the page
            inner.add(place)
    return [place for place, kind in enumerate(nodes["nodeType"]) if kind == _ELEMENT and place not in inner]


def read_tree(
    nodes: Sequence[Mapping[str, Any]], numbers: Mapping[int, int], heard: Collection[int] = ()
) -> tuple[Branch, ...]:
    """Return the lines of a tree; what says nothing and takes nothing is left out, and text has its element's number.

    Args:
        nodes: Result of ``Accessibility.getFullAXTree``.
        numbers: Chromium's own number of an element -> ours.
        heard: Our numbers of elements that listen to the mouse.
    """
    if not nodes:
        return ()
    return tuple(_Reader({node["nodeId"]: node for node in nodes}, numbers, heard).branches(nodes[0], 0, "", 0))


@dataclass(frozen=True, slots=True)
class _Reader:
    nodes: Mapping[str, Mapping[str, Any]]
    numbers: Mapping[int, int]
    heard: Collection[int]

    def branches(self, node: Mapping[str, Any], depth: int, above: str, owner: int) -> Iterator[Branch]:
        """Yield a node and all below it; ``above`` is the name, ``owner`` the number that text there goes by."""
        number = self.numbers.get(node.get("backendDOMNodeId", 0), 0)
        if number == _HIDDEN_ELEMENT:
            return
        role, name = _text(node, "role"), " ".join(_text(node, "name").split())
        if role == "StaticText":
            if name and name not in above:
                yield Branch(depth, owner, role, name)
            return
        words = tuple(_words(node))
        if not node.get("ignored") and role not in _PASSED:
            value = _text(node, "value")
            yield Branch(depth, number, role, name, value, words)
            depth, above, owner = depth + 1, f"{name} {value}", 0
        elif number and (number in self.heard or _can_focus(node)):
            yield Branch(depth, number, "generic", "", "", (*words, *(["clickable"] if number in self.heard else [])))
            depth, above, owner = depth + 1, "", 0
        else:
            owner = number or owner
        for child in node.get("childIds", ()):
            if child in self.nodes:
                yield from self.branches(self.nodes[child], depth, above, owner)


def _can_focus(node: Mapping[str, Any]) -> bool:
    return any(each["name"] == "focusable" and each["value"].get("value") for each in node.get("properties", ()))


def _text(node: Mapping[str, Any], part: str) -> str:
    return str(node.get(part, {}).get("value", ""))


def _words(node: Mapping[str, Any]) -> Iterator[str]:
    for each in node.get("properties", ()):
        name, value = each["name"], each["value"].get("value")
        if name in ("checked", "pressed") and value in ("true", "mixed"):
            yield name if value == "true" else f"half {name}"
        elif name in _WORDS and value is True:
            yield str(name)
        elif name == "expanded" and value is False:
            yield "collapsed"


def tree_text(branches: Sequence[Branch], renumbered: Mapping[int, int] | None = None) -> str:
    """Return the text of a tree: a line for each branch, two blanks in for each that it stands under.

    Args:
        branches: The tree.
        renumbered: Other numbers for the elements.

    >>> print(tree_text([Branch(0, 0, "list"), Branch(1, 4, "checkbox", "yes", words=("checked",))]))
    list
      [4] checkbox "yes" checked
    """
    lines = []
    for branch in branches[:MOST_LINES]:
        number = (renumbered or {}).get(branch.id, branch.id)
        parts = ([f"[{number}]"] if branch.id else []) + [branch.role]
        parts += [f'"{branch.name}"'] if branch.name else []
        parts += [f'value "{branch.value}"'] if branch.value else []
        lines.append("  " * branch.depth + " ".join([*parts, *branch.words]))
    if len(branches) > MOST_LINES:
        lines.append(f"({len(branches) - MOST_LINES} more lines)")
    return "\n".join(lines)


def normalised_tree(branches: Sequence[Branch]) -> str:
    """Return the text of a tree with its elements numbered from the top, however the page came to be so."""
    numbers = {number: place for place, number in enumerate(dict.fromkeys(each.id for each in branches if each.id), 1)}
    return tree_text(branches, numbers)
