"""Pages as text and as HTML, tables and their changes, the application that serves them."""

import asyncio
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from asgi import raw_request

from turngym.envs.website.page import PageMaker, box, button, field, html_of, link, select, text_of
from turngym.envs.website.server import Slot, application
from turngym.envs.website.site import address, parted, steps_to, without_note
from turngym.envs.website.sites import SITES, world_of
from turngym.envs.website.store import Store, make_world

HOSTILE = "<script>alert(1)</script>\"'&amp; onload=x"


class Reader(HTMLParser):
    """Takes down tags, attributes and texts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def hostile_page() -> Any:
    maker = PageMaker(HOSTILE, {HOSTILE: "/x"})
    form = maker.form("/x")
    maker.row(HOSTILE, link(HOSTILE, f"/x?{HOSTILE}"), field("text", HOSTILE, form))
    maker.row(select("list", HOSTILE, (HOSTILE, "b"), form), box(HOSTILE, True, form), button(HOSTILE, form))
    return maker.done()


def test_everything_on_a_page_is_escaped_in_html() -> None:
    reader = Reader()
    reader.feed(html_of(hostile_page(), "/base"))
    assert "script" not in reader.tags and not any(name.startswith("on") for name, _ in reader.attributes)
    assert sum(HOSTILE in text for text in reader.texts) == 8
    assert ("value", HOSTILE) in reader.attributes and ("name", HOSTILE) in reader.attributes


def test_the_text_of_a_page_numbers_what_can_be_acted_on() -> None:
    lines = text_of(hostile_page()).splitlines()
    assert [re.findall(r"\[(\d+)\]", line) for line in lines] == [[], ["1"], ["2", "3"], ["4", "5", "6"]]
    assert lines[3].endswith(f"[6] ({HOSTILE})") and f"[5] {HOSTILE} = yes" in lines[3]


def test_a_form_sends_fields_lists_and_checked_boxes_only() -> None:
    maker = PageMaker("p", {})
    one, other = maker.form("/one"), maker.form("/other")
    maker.row(field("a", "1", one), box("b", False, one), box("c", True, one), field("a", "2", other))
    page = maker.done()
    assert page.values_of(one) == {"a": "1", "c": "yes"} and page.values_of(other) == {"a": "2"}
    assert page.holding({1: "9", 2: "yes"}).values_of(one) == {"a": "9", "b": "yes", "c": "yes"}
    assert page.values_of(one) == {"a": "1", "c": "yes"}


def test_queries_survive_being_written_and_read() -> None:
    values = {"q": "a&b=c d+e%20 ü🙂", "empty": ""}
    assert parted(address("/x", values)) == ("/x", values)
    assert without_note("/x?note=saved&page=2") == "/x?page=2" and without_note("/x?q=notes") == "/x?q=notes"
    assert parted("/x?" + "&".join("abcdefghijklmnopqrstuvwxyz")) == ("/x", {})
    assert steps_to("/x") == ("/x",)


def test_changes_tell_what_differs_and_bring_it_back() -> None:
    world = make_world("w", {"note": ("text",), "tag": ("name",)}, {"note": [(1, "a"), (2, "b")], "tag": [(1, "t")]})
    store, other = Store(), Store()
    for each in (store, other):
        each.reset(world)
    store.database.executescript(
        "DELETE FROM note WHERE id = 1; UPDATE note SET text = 'c' WHERE id = 2; INSERT INTO tag VALUES (5, 'u');"
    )
    changes = store.changes()
    assert changes == [("note", 1, ()), ("note", 2, (2, "c")), ("tag", 5, (5, "u"))]
    other.apply(changes)
    assert other.changes() == changes and other.rows("tag") == store.rows("tag")
    store.reset(world)
    assert store.changes() == [] and other.changes() == changes
    with pytest.raises(ValueError):
        store.apply([("nothing", 1, ())])


def test_a_reset_after_another_site_shows_nothing_of_that() -> None:
    store = Store()
    for name in ("issues", "mail", "shop", "issues", "mail"):
        for number in range(3):
            world = world_of(name, number)
            store.reset(world)
            assert all(tuple(store.rows(table)) == rows for table, rows in world.tables.items())


@pytest.fixture
def slots() -> dict[str, Slot]:
    made = {}
    for token in ("one", "other"):
        store = Store()
        store.reset(world_of("issues", 0))
        made[token] = Slot(SITES["issues"], store)
    return made


def ask(slots: dict[str, Slot], method: str, path: str, body: bytes = b"", query: bytes = b"") -> tuple[int, bytes]:
    pytest.importorskip("starlette", reason="needs the optional package starlette")
    return asyncio.run(raw_request(application(slots), method, path, body, query=query.decode()))


def test_the_server_answers_its_slots_and_nobody_else(slots: dict[str, Slot]) -> None:
    status, page = ask(slots, "GET", "/one/issues", query=b"search=zzz")
    assert status == 200 and b"no issues" in page and b'action="/one/issues"' in page
    assert ask(slots, "GET", "/third/issues")[0] == 404 and ask(slots, "GET", "/")[0] == 404
    assert ask(slots, "DELETE", "/one/issues")[0] == 405
    status, _ = ask(slots, "POST", "/one/labels", b"name=%F0%9F%99%82+x")
    assert status == 303 and slots["one"].target == "/labels?note=created" and slots["one"].posts == 1
    assert slots["one"].store.changes() == [("label", 6, (6, "🙂 x"))] and slots["other"].store.changes() == []


def test_the_server_refuses_what_is_too_much_and_stands_what_is_odd(slots: dict[str, Slot]) -> None:
    assert ask(slots, "POST", "/one/labels", b"name=" + b"x" * 100_000)[0] == 413
    for body in (b"\xff\x00=%ff", b"&" * 5000, b"name"):
        assert ask(slots, "POST", "/one/labels", body)[0] == 303
    assert slots["one"].store.changes() == []
