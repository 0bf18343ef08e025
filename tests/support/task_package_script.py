"""A package of tasks without a package: three tasks, whose score is the share of even characters of the answer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

PACKAGE = "no_such_package_of_tasks"


def tasks(name: str, options: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if name == "absent":
        raise ModuleNotFoundError(f"No module named {PACKAGE!r}", name=PACKAGE)
    if name == "unknown":
        raise SystemExit("there is no set 'unknown'; the sets are: letters.")
    if name == "background":
        subprocess.Popen(["sleep", "600"])
    for number in range(int(options.get("count", 3))):
        yield f"t{number}", f"Say something, {number}"


def play(name: str, task: str, options: dict[str, Any], model: Mapping[str, str]) -> float:
    body = json.dumps({"messages": [{"role": "user", "content": f"Say something, {task[1:]}"}]}).encode()
    headers = {"Authorization": f"Bearer {model['api_key']}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{model['base_url']}/chat/completions", body, headers)
    with urllib.request.urlopen(request) as response:
        said = json.loads(response.read())["choices"][0]["message"]["content"]
    if options.get("score") == "none":
        raise SystemExit("the scorer of letters gives 'maybe', and a reward is a number.")
    if options.get("score") == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if options.get("score") == "late":
        time.sleep(600)
    if options.get("score") == "exit":
        os._exit(0)
    if options.get("score") == "nan":
        return float("nan")
    return score(said)


def score(said: str) -> float:
    """Return the share of characters with an even number."""
    return sum(ord(letter) % 2 == 0 for letter in said) / max(len(said), 1)
