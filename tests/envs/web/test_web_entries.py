"""Fields with a format of their own, dialogs, frames, shadow roots and closed details, in a page of ours."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from turngym.envs.web.driver.actions import read
from turngym.envs.web.driver.chromium import PROGRAMS
from turngym.envs.web.driver.entries import FORMS, rewritten
from turngym.envs.web.driver.hands import act
from turngym.envs.web.driver.page import Node, read_nodes
from turngym.envs.web.driver.tab import Tab
from turngym.envs.web.driver.thread import BrowserThread

REWRITTEN = [
    ("date", "12/21/2017", "2017-12-21"),
    ("date", "2017-12-21", "2017-12-21"),
    ("date", "1/2/2017", "2017-01-02"),
    ("date", "21.12.2017", "2017-12-21"),
    ("date", "tomorrow", None),
    ("time", "2:30 PM", "14:30"),
    ("time", "12:05 am", "00:05"),
    ("time", "14:30", "14:30"),
    ("time", "13:00 PM", None),
    ("time", "noon", None),
    ("datetime-local", "12/21/2017 2:30 PM", "2017-12-21T14:30"),
    ("datetime-local", "2017-12-21T14:30", "2017-12-21T14:30"),
    ("datetime-local", "2017-12-21", None),
    ("month", "12/2017", "2017-12"),
    ("month", "2017-12", "2017-12"),
    ("week", "2017W5", "2017-W05"),
    ("color", "#F08", "#ff0088"),
    ("color", "rgb(255, 0, 128)", "#ff0080"),
    ("color", "rgb(256, 0, 128)", None),
    ("color", "red", None),
    ("number", "1,250.5", "1250.5"),
    ("number", "many", None),
    ("range", "+7", "7"),
    ("date", "", ""),
    ("text", "12/21/2017", "12/21/2017"),
]


@pytest.mark.parametrize(("kind", "text", "entry"), REWRITTEN)
def test_texts_are_rewritten_as_the_field_takes_them(kind: str, text: str, entry: str | None) -> None:
    assert rewritten(kind, text) == entry
    assert entry is None or rewritten(kind, entry) == entry


@pytest.mark.parametrize("kind", FORMS)
def test_hostile_texts_are_no_entries(kind: str) -> None:
    for text in ("1" * 2000, "1/" * 900, "\u0661\u0662", "1e" * 900, "rgb(" * 400, " " * 1999 + "x"):
        assert rewritten(kind, text) in (None, text)


PAGE = """<!doctype html><title>t</title><body style="margin:0">
<input id=date type=date><input id=time type=time><input id=color type=color value="#010203">
<input id=number type=number><input id=range type=range min=0 max=10 step=2 value=4><input id=fixed value=old readonly>
<input id=file type=file>
"""


@pytest.fixture(scope="module")
def thread() -> Iterator[BrowserThread]:
    pytest.importorskip("playwright", reason="needs the optional package playwright")
    if not any(map(shutil.which, PROGRAMS)):
        pytest.skip("needs the browser Chromium: apt-get install chromium-headless-shell")
    running = BrowserThread(timeout_seconds=20.0)
    yield running
    running.stop()


class Shown:
    """A page in a tab, acted on by the names of its elements."""

    def __init__(self, thread: BrowserThread, file: Path) -> None:
        self._thread = thread
        self.tab: Tab = thread.run(thread.pool.open([file.parent.as_uri() + "/"]))
        thread.run(self.tab.goto(file.as_uri()))

    def nodes(self) -> tuple[Node, ...]:
        return read_nodes(self._thread.run(self.tab.tool("observe", []))["nodes"])

    def do(self, verb: str, name: str, rest: str = "") -> str:
        nodes = self.nodes()
        (node,) = [each for each in nodes if name in each.names]
        action = read(f"{verb} {node.id} {rest}".strip())
        assert action is not None
        return self._thread.run(act(self.tab, action, nodes))

    def held(self, name: str) -> str:
        told: str = self._thread.run(self.tab.ask(f"document.getElementById('{name}').value"))
        return told


@pytest.fixture
def shown(thread: BrowserThread, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shown]:
    file = tmp_path / "page.html"
    file.write_text(request.param, "utf8")
    made = Shown(thread, file)
    yield made
    thread.run(thread.pool.release(made.tab))


@pytest.mark.integration
@pytest.mark.parametrize("shown", [PAGE], indirect=True, ids=["fields"])
def test_fields_take_what_the_agent_writes_or_say_why_not(shown: Shown) -> None:
    for name, text, value in (
        ("date", "12/21/2017", "2017-12-21"),
        ("time", "2:30 PM", "14:30"),
        ("color", "#F08", "#ff0088"),
        ("number", "1,250", "1250"),
        ("range", "8", "8"),
    ):
        assert (shown.do("fill", name, text), shown.held(name)) == ("", value)
    for name, text, told in (
        ("date", "2/30/2017", "takes a date such as 2017-12-21"),
        ("date", "soon", "not 'soon'"),
        ("time", "25:00", "refuses '25:00'"),
        ("color", "red", "takes a colour"),
        ("number", "many", "takes a number"),
        ("range", "7", "takes a number, min 0, max 10, step 2, and refuses '7'"),
        ("range", "80", "refuses '80'"),
        ("fixed", "new", "takes no text"),
        ("file", "/etc/passwd", "is no text field"),
    ):
        before = shown.held(name)
        assert told in shown.do("fill", name, text) and shown.held(name) == before
