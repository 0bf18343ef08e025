"""Journey: an own environment with two tools and a picture, as a plug-in, played by a model with native tool calls."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from chat_servers import Body, Reply, chat_server
from journey import works

NAME, PICTURES = "lock_picker/LockPicker-v0", "lock_picker/LockPickerPicture-v0"


def player(body: Body) -> Reply:
    """Call a tool natively, with a mistake in the first turn, as a server answers that speaks the protocol."""
    probed = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    known = [tuple(map(int, each)) for each in re.findall(r"(\d+) (\d+): (\d+)", probed[-1] if probed else "")]
    cells = [(row, column) for row in range(16) for column in range(16)]
    left = [cell for cell in cells if all(abs(cell[0] - r) + abs(cell[1] - c) == steps for r, c, steps in known)]
    name = "dig" if len(left) == 1 else "probe"
    row, column = left[0]
    arguments = {"row": row, "column": column} if probed else {"row": "first"}
    call = {"id": f"call{len(probed)}", "type": "function"}
    function = {"name": name, "arguments": json.dumps(arguments)}
    message = {"role": "assistant", "content": None, "tool_calls": [{**call, "function": function}]}
    return Reply(raw=json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).encode())


@pytest.mark.integration
def test_an_environment_with_tools_and_a_picture_is_written_checked_and_evaluated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = works(tmp_path, "new-env", "LockPicker", "--tools", "--picture").lines
    assert any(line.strip() == f"turngym check {NAME}" for line in printed)
    package, site = tmp_path / "turngym-lock-picker", tmp_path / "site"
    install = ["-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", str(site), str(package)]
    subprocess.run([sys.executable, *install], check=True, timeout=600)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH", "")])))
    monkeypatch.setenv("TURNGYM_API_KEY", "key")
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-n", "0", str(package)], check=True, timeout=600)
    assert " passes: " in works(tmp_path, "check", PICTURES, "--episodes", "1", "--in-process").out
    assert "solved after" in works(tmp_path, "play", NAME, "--agent", "expert", "--seed", "1").out
    made = f"import gymnasium, turngym; print(gymnasium.make({PICTURES!r}).reset(seed=1)[0]['image'].shape)"
    assert subprocess.check_output([sys.executable, "-c", made], text=True) == "(96, 96, 3)\n"
    suite = works(tmp_path, "eval", "lock_picker", "--agent", "expert", "--json").result  # as its README.md says
    assert [each["success"]["value"] for each in suite["environments"].values()] == [1, 1]
    with chat_server(player) as server:
        agent = f"openai:m@{server.url}"
        found = works(tmp_path, "eval", PICTURES, "--agent", agent, "--episodes", "3", "--json").result
        requests = [body for body in server.requests if "tools" in body]
    (result,) = found["environments"].values()
    assert result["success"]["value"] == 1 and result["faults"]["value"] == 0
    assert [each["function"]["name"] for each in requests[0]["tools"]] == ["probe", "dig"]
    last = requests[-1]["messages"]
    assert "<tool_call>" not in last[0]["content"] and last[-2]["role"] == "tool"
    assert last[-1]["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
    assert any(
        "row must be integer" in str(message["content"]) or "missing" in str(message["content"]) for message in last
    )
