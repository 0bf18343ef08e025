"""An agent program without packages for tasks of a file: ``python task_agent.py WAY TASK [WORKDIR]``."""

import json
import os
import sys
import urllib.request
from pathlib import Path


def post(url: str, body: object) -> dict[str, object]:
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as response:
        found: dict[str, object] = json.loads(response.read())
        return found


def main(way: str, task: str, folder: str) -> None:
    asked = {"messages": [{"role": "user", "content": task}]}
    post(f"{os.environ['OPENAI_BASE_URL']}/chat/completions", asked)
    if way == "post":
        post(os.environ["TURNGYM_ENV_URL"], {"action": "go 7"})
    elif way == "stdout":
        print("The file says", (Path(folder) / "in" / "number.txt").read_text())
        print("not this 8", file=sys.stderr)
    elif way == "reward":
        post(os.environ["TURNGYM_REWARD_URL"], {"value": 0.25, "turn": 0})
        post(os.environ["TURNGYM_REWARD_URL"], {"value": 0.5, "finish": True})
    elif way == "crash":
        print(7)
        raise SystemExit(3)


if __name__ == "__main__":
    main(*sys.argv[1:4])
