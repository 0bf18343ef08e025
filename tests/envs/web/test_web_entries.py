"""Fields with a format of their own, dialogs, frames, shadow roots and closed details, in a page of ours."""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from turngym.envs.web.driver.actions import read
from turngym.envs.web.driver.chromium import PROGRAMS
from turngym.envs.web.driver.entries import FORMS, rewritten
from turngym.envs.web.driver.hands import act
from turngym.envs.web.driver.page import Node, read_nodes
from turngym.envs.web.driver.tab import Tab
from turngym.envs.web.driver.thread import BrowserThread
from turngym.envs.web.driver.tree import Branch, Tree

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


def test_texts_are_rewritten_as_the_field_takes_them() -> None:
    for kind, text, entry in REWRITTEN:
        assert rewritten(kind, text) == entry
        assert entry is None or rewritten(kind, entry) == entry


def test_hostile_texts_are_no_entries() -> None:
    for kind in FORMS:
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
        (node,) = [each for each in nodes if name in each.names or name in (each.text, each.label)]
        action = read(f"{verb} {node.id} {rest}".strip())
        assert action is not None
        return self._thread.run(act(self.tab, action, nodes))

    def branches(self, nodes: Sequence[Node]) -> tuple[Branch, ...]:
        return self._thread.run(Tree(()).read(self.tab, nodes))

    def act(self, text: str) -> None:
        action = read(text)
        assert action is not None and self._thread.run(act(self.tab, action, ())) == ""

    def wait(self, milliseconds: int) -> None:
        self._thread.run(self.tab.tool("advance", milliseconds))

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


NESTED = """<!doctype html><title>t</title><body style="margin:0"><p id=said>quiet</p>
<button onclick="say(confirm('Delete all?'))">Delete</button><button onclick="say(prompt('Name?'))">Rename</button>
<details><summary>More</summary><button onclick="say('secret')">Secret</button></details>
<div id=open-host><i>slotted</i></div><div id=closed-host></div>
<iframe style="margin:30px;border:5px solid" title=inner srcdoc="<body style='margin:0'><p>within</p>
<button onclick='setTimeout(() => parent.say(document.querySelector(&quot;input&quot;).value), 10)'>Inner</button>
<input id=entry>
<div style='height:300px'></div><button onclick='parent.say(&quot;low&quot;)'>Low</button>"></iframe>
<script>
window.say = text => { document.getElementById("said").textContent = "said " + text; };
for (const mode of ["open", "closed"]) {
  const root = document.getElementById(mode + "-host").attachShadow({ mode });
  root.innerHTML = "<b>in " + mode + "</b><slot></slot><button>Shadow " + mode + "</button>";
  root.querySelector("button").addEventListener("click", () => say(mode));
}
</script>"""


@pytest.mark.integration
@pytest.mark.parametrize("shown", [NESTED], indirect=True, ids=["nested"])
def test_frames_and_shadow_roots_are_shown_and_used_and_closed_details_are_not(shown: Shown) -> None:
    texts = {node.text for node in shown.nodes()}
    assert {"within", "Inner", "in open", "in closed", "slotted", "Shadow open", "Shadow closed", "More"} <= texts
    assert "Secret" not in texts
    for name, said in (("Shadow open", "said open"), ("Shadow closed", "said closed"), ("Low", "said low")):
        assert shown.do("click", name) == "" and said in {node.text for node in shown.nodes()}
    assert shown.do("fill", "entry", "two words") == ""
    assert [node.value for node in shown.nodes() if node.facts.get("focused")] == ["two words"]
    assert shown.do("click", "Inner") == ""
    shown.wait(20)
    assert "said two words" in {node.text for node in shown.nodes()}
    assert shown.do("click", "More") == "" and "Secret" in {node.text for node in shown.nodes()}
    assert shown.do("click", "Secret") == "" and "said secret" in {node.text for node in shown.nodes()}


@pytest.mark.integration
@pytest.mark.parametrize("shown", [NESTED], indirect=True, ids=["nested"])
def test_the_tree_has_frames_and_shadow_roots_under_the_same_numbers(shown: Shown) -> None:
    nodes = shown.nodes()
    wanted = {node.text: node.id for node in nodes if node.tag == "button"}
    named = {branch.name: branch.id for branch in shown.branches(nodes) if branch.role == "button"}
    assert named == wanted and {"Inner", "Low", "Shadow open", "Shadow closed"} <= named.keys()


@pytest.mark.integration
@pytest.mark.parametrize("shown", [NESTED], indirect=True, ids=["nested"])
def test_dialogs_are_accepted_where_the_agent_says_so_and_dismissed_otherwise(shown: Shown) -> None:
    assert shown.do("click", "Delete") == "" and shown.tab.asked == "Delete all?"
    assert "said false" in {node.text for node in shown.nodes()}
    shown.act("accept")
    assert shown.do("click", "Delete") == "" and "said true" in {node.text for node in shown.nodes()}
    shown.act("accept Ann")
    assert shown.do("click", "Rename") == "" and "said Ann" in {node.text for node in shown.nodes()}
    assert dict(shown.tab.events) == {"dialog": 1, "accepted": 2}
