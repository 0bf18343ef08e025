"""BrowserGym's side of ``miniwob_vs_browsergym.py``: plays given episodes in its own environment and prints the times.

It runs under BrowserGym's Python, so it imports nothing of turngym. BrowserGym starts its browsers without the options
that a browser of the system needs; they are put in where Playwright launches one. A click is one of its own actions,
in pixels of its screenshot, which shows the page enlarged.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    """Read the work from standard input, a JSON object; write one line of JSON when ready, and one when done."""
    work = json.loads(sys.stdin.readline())
    os.environ["MINIWOB_URL"] = work["pages"]
    sync_api = importlib.import_module("playwright.sync_api")
    launch = sync_api.BrowserType.launch

    def with_options(self: Any, **options: Any) -> Any:
        flags = [*(options.pop("args", None) or []), *work["flags"]]
        return launch(self, **{**options, "executable_path": work["browser"], "headless": True, "args": flags})

    sync_api.BrowserType.launch = with_options
    importlib.import_module("browsergym.miniwob")
    gymnasium = importlib.import_module("gymnasium")
    actions = importlib.import_module("browsergym.core.action.highlevel").HighLevelActionSet("coord")
    print("ready", flush=True)
    sys.stdin.readline()
    found: dict[str, Any] = {"resets": [], "steps": [], "goals": [], "memory_mib": 0.0, "began": time.monotonic()}
    for task, seed, clicks in work["episodes"]:
        env = gymnasium.make(
            f"browsergym/miniwob.{task}",
            headless=True,
            slow_mo=0,
            pre_observation_delay=0.0,
            action_mapping=actions.to_python_code,
            disable_env_checker=True,
        )
        began = time.perf_counter()
        page, _ = env.reset(seed=seed)
        found["resets"].append(time.perf_counter() - began)
        found["goals"].append(page["goal"])
        scale = env.unwrapped.page._bgym_scale_factor
        for x, y in clicks:
            began = time.perf_counter()
            page, _, terminated, truncated, _ = env.step(f"mouse_click({x * scale}, {y * scale})")
            found["steps"].append(time.perf_counter() - began)
            if page["last_action_error"]:
                raise RuntimeError(f"BrowserGym could not click: {page['last_action_error']}")
            if terminated or truncated:
                break
        found["memory_mib"] = max(found["memory_mib"], memory_mib())
        env.close()
    found["seconds"] = time.monotonic() - found.pop("began")
    print(json.dumps(found), flush=True)


def memory_mib() -> float:
    """Return the memory (PSS) of this process and all it has started."""
    family, total = [os.getpid()], 0
    for process in family:
        try:
            for task in os.listdir(f"/proc/{process}/task"):
                family += map(int, Path(f"/proc/{process}/task/{task}/children").read_text().split())
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        except OSError:  # it has ended meanwhile
            continue
    return total / 1024


if __name__ == "__main__":
    main()
