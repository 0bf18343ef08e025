"""The viewer's server: one person on this machine, reading only. And the page that needs no server."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from view_runs import HOSTILE, evaluation, hostile_record, recording, written

from turngym.__main__ import main
from turngym.benchmarks.pages.viewer.data import Viewer
from turngym.benchmarks.pages.viewer.file import write_page
from turngym.benchmarks.pages.viewer.runs import open_run
from turngym.benchmarks.pages.viewer.server import ViewerServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ViewerServer]:
    viewer = Viewer(open_run(evaluation(tmp_path_factory.mktemp("view") / "run")))
    viewer.search()
    with ViewerServer(viewer) as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def asked(server: ViewerServer, path: str, method: str = "GET", **headers: str) -> tuple[int, str, Any]:
    """Return status, content and headers of an answer; the path is sent as it is."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=600)
    try:
        connection.putrequest(method, path, skip_host=True)
        for name, value in {"Host": f"127.0.0.1:{server.port}", **headers}.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), answer.headers
    finally:
        connection.close()


def test_the_page_and_its_questions_are_answered(server: ViewerServer) -> None:
    server.viewer.runs[0].wait_for()
    status, page, headers = asked(server, f"/{server.token}/")
    assert status == 200 and page.startswith("<!doctype html>") and "connect-src" in page
    assert headers["Referrer-Policy"] == "no-referrer" and headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    status, content, headers = asked(server, f"/{server.token}/rows?from=2&count=3")
    found = json.loads(content)
    assert [row["n"] for row in found["rows"]] == [2, 3, 4] and found["found"] == 6 and found["complete"]
    assert headers["Content-Type"] == "application/json"
    episode = json.loads(asked(server, f"/{server.token}/episode?n=5")[1])
    assert episode["row"]["task"] == "2" and episode["sides"][0]["turns"]
    again = json.loads(asked(server, f"/{server.token}/replayed?n=5&side=0")[1])
    assert again["instructions"] and again["note"] == ""


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", "", "0.0.0.0", None])
def test_another_host_name_is_refused(server: ViewerServer, host: str | None) -> None:
    """So no page of a stranger can read it by letting its own name point to this machine."""
    headers = {"Host": f"evil.example:{server.port}" if host is None else host}
    status, content, _ = asked(server, f"/{server.token}/rows", **headers)
    assert status == 403 and "rows" not in content


@pytest.mark.parametrize("path", ["/", "/{0}", "/{0}x/", "/wrong/", "/{0}%2F", "/W/rows", "/%C3%A9/", "*", "x"])
def test_without_the_token_nothing_is_told(server: ViewerServer, path: str) -> None:
    status, content, _ = asked(server, path.format(server.token))
    assert status in (400, 403) and "<" not in content and server.token not in content


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("../../etc/passwd", 404),
        ("..%2f..%2fetc%2fpasswd", 404),
        ("/etc/passwd", 404),
        ("rows/../episode?n=0", 404),
        ("episode?n=6", 404),
        ("episode?n=-1", 400),
        ("episode?n=1e3", 400),
        ("episode?n=" + "9" * 400, 400),
        ("episode?n=../0", 400),
        ("episode?n=%C2%B2", 400),
        ("rows?from=x", 400),
        ("rows?" + "&".join(f"a{k}=1" for k in range(50)), 400),
        ("replayed?n=0&side=1", 404),
        ("replayed?n=99&side=0", 404),
        ("unknown", 404),
    ],
)
def test_only_numbers_of_episodes_can_be_asked_for(server: ViewerServer, path: str, expected: int) -> None:
    server.viewer.runs[0].wait_for()
    assert asked(server, f"/{server.token}/{path}")[0] == expected


@pytest.mark.parametrize("line", [b"GET /\xff\xfe/ HTTP/1.1", b"GET", b"\x16\x03\x01", b"GET /a b c HTTP/1.1"])
def test_a_broken_request_is_refused_and_the_server_goes_on(server: ViewerServer, line: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=600) as connection:
        connection.sendall(line + b"\r\nHost: 127.0.0.1:" + str(server.port).encode() + b"\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(100_000)
    assert b"200" not in answer and b'id="viewer"' not in answer
    assert asked(server, f"/{server.token}/")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_there_is_no_way_to_change_anything(server: ViewerServer, method: str) -> None:
    assert asked(server, f"/{server.token}/rows", method)[0] == 501


def test_the_server_is_not_to_be_reached_from_elsewhere(server: ViewerServer) -> None:
    assert server.server_address[0] == "127.0.0.1" and len(server.token) >= 32
    with ViewerServer(server.viewer) as other:
        assert other.token != server.token


def test_hostile_texts_reach_the_page_as_json_alone(tmp_path: Path) -> None:
    path = written(tmp_path / f"<script>{'x' * 20}.jsonl", hostile_record(), hostile_record(8))
    viewer = Viewer(open_run(path))
    assert write_page(viewer, tmp_path / "page.html") == (2, 2)
    content = (tmp_path / "page.html").read_text("utf8")
    assert (
        content.count("<script>") == 2 and 'onerror=\\"' in content and "<img" not in content and "<b>" not in content
    )
    elements = re.findall(r'<script type="application/json" id="([\w-]+)">(.*?)</script>', content)
    held = {name: json.loads(text) for name, text in elements}
    assert held.keys() == {"about", "all-rows", "episode-0", "episode-1"}
    assert held["episode-1"]["sides"][0]["turns"][0]["seen"] == HOSTILE
    assert "connect-src" not in content and not list(tmp_path.glob(".*.tmp"))


def test_a_written_page_holds_what_was_asked_for(tmp_path: Path) -> None:
    run = str(evaluation(tmp_path / "run"))
    out = str(tmp_path / "page.html")
    assert main(["view", run, "-o", out, "--task", "1"]) == 0
    rows = _held(out, "all-rows")
    assert [row["task"] for row in rows] == ["1", "1"]
    assert main(["view", run, "-o", out]) == 2  # it exists
    assert main(["view", run, "-o", out, "--force", "--episodes", "4"]) == 0
    assert len(_held(out, "all-rows")) == 4 and _held(out, "about")["left_out"] == 2
    assert main(["view", run, "-o", out, "--force", "--failed"]) == 0
    assert all(row["success"] == 0 for row in _held(out, "all-rows"))
    assert main(["view", run, run, "-o", out, "--force", "--episodes", "0"]) == 0
    assert _held(out, "about")["diff"] is True and _held(out, "episode-0")["differs"] is None


def test_a_page_is_written_without_holding_it_in_memory(tmp_path: Path) -> None:
    """Sixty episodes of half a megabyte each: thirty in the page, a few in memory."""
    lines = [
        {"env": "e", "seed": k, "turns": [{"observation": str(k % 10) * 500_000, "action": "a"}]} for k in range(60)
    ]
    viewer = Viewer(open_run(written(tmp_path / "run.jsonl", *lines)))
    del lines
    tracemalloc.start()
    try:
        assert write_page(viewer, tmp_path / "page.html") == (60, 60)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (tmp_path / "page.html").stat().st_size > 30_000_000 and most < 12_000_000


def test_a_written_page_has_the_pictures_that_an_agent_saw(tmp_path: Path) -> None:
    run = recording(tmp_path / "run", "turngym/Sokoban-v0", image=True, max_turns=3)
    assert main(["view", str(run), "-o", str(tmp_path / "page.html")]) == 0
    assert all(image.startswith("data:image/png") for image in _held(tmp_path / "page.html", "replayed-0-0")["images"])


def _held(page: str | Path, name: str) -> Any:
    found = re.search(f'<script type="application/json" id="{name}">(.*?)</script>', Path(page).read_text("utf8"))
    assert found is not None
    return json.loads(found[1])


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["{run}", "--episodes", "-1"], "--episodes must be 0 or more"),
        (["{run}", "--port", "70000"], "--port must be in"),
        (["{run}", "--task", "a b"], "--task takes one word"),
        (["{run}/missing"], "there is nothing at"),
        (["{run}", "{run}/missing"], "there is nothing at"),
    ],
)
def test_wrong_usage_is_told(tmp_path: Path, words: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = written(tmp_path / "run" / "a.jsonl", {"actions": ["up"]}).parent
    assert main(["view", *(word.format(run=run) for word in words)]) == 2
    assert reason in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="interrupts are sent by signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_it_is_interrupted(tmp_path: Path, number: int) -> None:
    run = written(tmp_path / "run.jsonl", {"env": "e", "seed": 1, "actions": ["up"]})
    command = [sys.executable, "-m", "turngym", "view", str(run)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/([\w-]+)/", address)
    assert found, address
    connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=600)
    connection.request("GET", f"/{found[2]}/episode?n=0")
    assert json.loads(connection.getresponse().read())["row"]["seed"] == "1"
    connection.close()
    process.send_signal(number)
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0 and output == "" and "Traceback" not in errors
