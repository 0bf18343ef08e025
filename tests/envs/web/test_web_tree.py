"""The accessibility tree as text, from recorded answers of Chromium."""

from typing import Any

import pytest

from turngym.envs.web.driver.tree import Branch, normalised_tree, numbers_of, read_tree, tree_text


def ax(node: str, role: str, name: str = "", *, key: int = 0, kids: str = "", **more: Any) -> dict[str, Any]:
    properties = more.pop("properties", {})
    return {
        "nodeId": node,
        "role": {"value": role},
        "name": {"value": name},
        "childIds": kids.split(),
        "properties": [{"name": each, "value": {"value": value}} for each, value in properties.items()],
        **({"backendDOMNodeId": key} if key else {}),
        **more,
    }


PAGE = [
    ax("1", "RootWebArea", "Page", key=1, kids="2 3"),
    ax("2", "generic", ignored=True, key=20, kids="4 5 6"),
    ax("3", "generic", key=30, kids="7"),
    ax("4", "button", "Send", key=40, kids="8", properties={"focused": True, "disabled": False}),
    ax("5", "checkbox", "I agree", key=50, properties={"checked": "true"}),
    ax("6", "textbox", key=60, kids="9", value={"value": "Ann"}),
    ax("7", "StaticText", "below", key=70),
    ax("8", "StaticText", "Send", key=80),
    ax("9", "StaticText", "Ann", key=90),
]
NUMBERS = {20: 1, 30: 2, 40: 3, 50: 4, 60: 5, 70: 0, 80: 0, 90: 0}


def test_a_line_for_all_that_says_something_and_none_for_the_rest() -> None:
    assert tree_text(read_tree(PAGE, NUMBERS)).splitlines() == [
        '[3] button "Send" focused',
        '[4] checkbox "I agree" checked',
        '[5] textbox value "Ann"',
        '[2] StaticText "below"',  # text goes by the number of the element that holds it
    ]


def test_an_element_without_a_name_that_listens_to_the_mouse_has_a_line() -> None:
    lines = tree_text(read_tree(PAGE, NUMBERS, {1})).splitlines()
    assert lines[:2] == ["[1] generic clickable", '  [3] button "Send" focused']
    assert lines[-1] == '[2] StaticText "below"'


def test_what_is_hidden_is_left_out_with_all_below_it() -> None:
    assert tree_text(read_tree(PAGE, NUMBERS | {20: -1})) == '[2] StaticText "below"'
    assert read_tree(PAGE, NUMBERS | {1: -1}) == () == read_tree([], {})


def test_states_are_words() -> None:
    properties = {"expanded": False, "selected": True, "pressed": "mixed", "checked": "false", "focusable": True}
    (branch,) = read_tree([ax("1", "tab", "One", key=5, properties=properties)], {5: 7})
    assert branch == Branch(0, 7, "tab", "One", words=("collapsed", "selected", "half pressed"))
    (branch,) = read_tree([ax("1", "generic", key=5, properties={"focusable": True})], {5: 7})
    assert branch == Branch(0, 7, "generic")


def test_the_same_page_numbered_otherwise_has_the_same_canonical_text() -> None:
    one = read_tree(PAGE, NUMBERS)
    other = read_tree(PAGE, {key: number and number + 40 for key, number in NUMBERS.items()})
    assert tree_text(one) != tree_text(other)
    assert normalised_tree(one) == normalised_tree(other)
    assert normalised_tree(one).splitlines()[-1] == '[4] StaticText "below"'


def test_a_long_tree_is_cut_and_says_so() -> None:
    text = tree_text([Branch(0, number, "link", str(number)) for number in range(1, 500)])
    assert text.splitlines()[-1] == "(99 more lines)" and text.count("\n") == 400


def document(*nodes: tuple[int, int, int], pseudo: tuple[int, ...] = ()) -> dict[str, Any]:
    """Return a snapshot of nodes given as type, parent and key."""
    kinds, parents, keys = (list(each) for each in zip(*nodes, strict=True))
    table = {"nodeType": kinds, "parentIndex": parents, "backendNodeId": keys, "pseudoType": {"index": list(pseudo)}}
    return {"documents": [{"nodes": table}]}


def test_elements_are_matched_in_the_order_of_the_document() -> None:
    """The document, an element with a text and a field whose inside is a tree of its own, and what a style adds."""
    snapshot = document(
        (9, -1, 1), (1, 0, 2), (3, 1, 3), (1, 1, 4), (11, 3, 5), (1, 4, 6), (1, 1, 7), (1, 1, 8), pseudo=(6,)
    )
    assert numbers_of(snapshot, [[0, 12, -1]]) == {2: 0, 4: 12, 8: -1}
    with pytest.raises(ValueError, match="zip"):
        numbers_of(snapshot, [[0, 12]])
