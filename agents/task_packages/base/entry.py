"""Lists the tasks of a package, or plays one: ``python entry.py SCRIPT list|play TASKS FILE|TASK [NAME=VALUE ...]``.

SCRIPT is a file with two functions. ``tasks(name, options)`` yields id and text of each task. ``play(name, task,
options, model)`` plays one with a model (``base_url``, ``api_key``, ``name``, and ``folder`` for files) and returns the
score; what it raises is a fault of the episode. SystemExit with a sentence says that no episode can be scored.

It imports nothing but the standard library, since another interpreter runs it.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import sys
import urllib.request
from typing import Any

MISSING = 3
"""Exit status where the package is not installed."""
MARK = "turngym: "
"""Beginning of the line that says what is wrong; packages print much else."""
_LONGEST = 20_000
_SOLVED = 1.0


def post(url: str, body: object) -> None:
    """Post JSON to the gateway with the key of the episode."""
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "Content-Type": "application/json"}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, json.dumps(body).encode(), headers)) as response:
        response.read()


def loaded(script: str) -> Any:
    """Import a script by its path."""
    spec = importlib.util.spec_from_file_location("turngym_tasks", script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def option(text: str) -> tuple[str, Any]:
    """Return name and value of an option, whose value is JSON or else text.

    >>> option("limit=3"), option("split=train")
    (('limit', 3), ('split', 'train'))
    """
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def write_list(module: Any, name: str, file: str, options: dict[str, Any]) -> None:
    """Write the tasks, one JSON object a line."""
    count = 0
    with open(file, "w", encoding="utf8", errors="backslashreplace") as lines:
        for id, text in module.tasks(name, options):
            lines.write(json.dumps({"id": id, "instruction": text[:_LONGEST] or id}) + "\n")
            count += 1
    if not count:
        raise SystemExit(f"{name} has no tasks.")


def play(module: Any, name: str, task: str, options: dict[str, Any]) -> None:
    """Play a task, and report the score to the gateway, or the fault."""
    model = {
        "base_url": os.environ["OPENAI_BASE_URL"],
        "api_key": os.environ["OPENAI_API_KEY"],
        "name": "turngym",
        "folder": os.environ["TURNGYM_WORKDIR"],
    }
    reward_url = os.environ["TURNGYM_REWARD_URL"]
    finish_url = reward_url[: -len("reward")] + "finish"
    try:
        score = float(module.play(name, task, options, model))
        if not math.isfinite(score):
            raise ValueError(f"the score of {task} is {score}, and a reward is a finite number.")
        post(reward_url, {"value": score})
        post(finish_url, {"success": int(score >= _SOLVED), "score": score})
    except (Exception, SystemExit) as error:  # code of others: anything may be raised
        detail = sentence(error)
        print(detail, file=sys.stderr)
        post(finish_url, {"status": "fault", "detail": detail})
        if isinstance(error, SystemExit):
            raise SystemExit(2) from error
    post(os.environ["TURNGYM_ENV_URL"], {"action": "played"})


def sentence(error: BaseException) -> str:
    """Return an error on one line; SystemExit holds a sentence already."""
    text = str(error) if isinstance(error, SystemExit) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:800]


def main(script: str, verb: str, name: str, place: str, *options: str) -> None:
    """List or play."""
    sys.path[0] = os.getcwd()  # as for ``python -m``: the tasks' own modules, and not the scripts next to this one
    module, settings = loaded(script), dict(map(option, options))
    if verb == "play":
        play(module, name, place, settings)
        return
    try:
        write_list(module, name, place, settings)
    except ModuleNotFoundError as error:
        print(f"{MARK}{sentence(error)}", file=sys.stderr)
        raise SystemExit(MISSING if error.name == module.PACKAGE else 2) from error
    except (Exception, SystemExit) as error:  # code of others: anything may be raised
        print(f"{MARK}{sentence(error)}", file=sys.stderr)
        raise SystemExit(2) from error


if __name__ == "__main__":
    main(*sys.argv[1:])
