"""The suite ``turngym-core``, killed twice and resumed, against the same evaluation in one piece.

    python benchmarks/studies/checks/killed_and_resumed.py [--episodes N]

Two agents: random play, and a model behind a server that answers late, cuts connections, refuses and talks nonsense
(that of the tests). Kills are SIGKILL after a fifth and after a half of the episodes. What a clock told is left
out of the comparison; every other byte of results, episodes and transcripts has to be equal. Writes
``benchmarks/results/killed_and_resumed.json``; ends with 1 if anything differs or an episode is missing.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from turngym.benchmarks.machine import machine
from turngym.benchmarks.suites import SUITES
from turngym.storage.files import write_json

ROOT = Path(__file__).parents[3]
SUITE = "turngym-core"
CLOCKS = ("started", "latency")
KILLS = (0.2, 0.5)


def without_clocks(value: Any) -> Any:
    """Return a JSON value without what a clock told."""
    if isinstance(value, dict):
        return {key: without_clocks(item) for key, item in value.items() if key not in CLOCKS}
    return [without_clocks(item) for item in value] if isinstance(value, list) else value


def rows(folder: Path) -> list[Any]:
    """Return the finished episodes of an evaluation that may be going on."""
    file = folder / "episodes.jsonl"
    return [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]] if file.exists() else []


def outcome(folder: Path) -> tuple[Any, Any, bytes]:
    """Return what has to be equal."""
    results = json.loads((folder / "results.json").read_text("utf8"))
    return without_clocks(results), without_clocks(rows(folder)), (folder / "transcripts.jsonl").read_bytes()


def start(words: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
    """Start an evaluation, or go on with one."""
    command = [sys.executable, "-m", "turngym", "eval", SUITE, *words, "--out", str(folder), "--resume"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[bytes]) -> None:
    """Wait for the end of an evaluation."""
    _, errors = process.communicate()
    if process.returncode:
        raise SystemExit(errors.decode())


def kill_after(words: Sequence[str], folder: Path, episodes: int) -> int:
    """Run until so many episodes are finished, then kill; returns how many were."""
    process = start(words, folder)
    while len(rows(folder)) < episodes:
        if process.poll() is not None:
            finish(process)
            raise SystemExit(f"the evaluation ended before {episodes} episodes: too quick to be killed")
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return len(rows(folder))


def compare(words: Sequence[str], episodes: int, folder: Path) -> dict[str, Any]:
    """Run in one piece and in three, and compare."""
    whole, broken = folder / "whole", folder / "broken"
    began = time.monotonic()
    finish(start(words, whole))
    seconds = time.monotonic() - began
    kills = [kill_after(words, broken, int(share * episodes)) for share in KILLS]
    finish(start(words, broken))
    found = rows(broken)
    usage = json.loads((whole / "results.json").read_text("utf8")).get("usage", {})
    return {
        "seconds_in_one_piece": round(seconds, 1),
        "killed_after_episodes": kills,
        "episodes": len(found),
        "expected_episodes": episodes,
        "distinct_episodes": len({(row["env"], row["seed"], row.get("repeat", 0)) for row in found}),
        "status": dict(Counter(row["status"] for row in found)),
        "usage": {key: value for key, value in usage.items() if key not in CLOCKS},
        "is_equal": outcome(whole) == outcome(broken),
    }


def main() -> int:
    """Compare with both agents."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, help="episodes of each environment; the suite's own unless given")
    parser.add_argument("--server-episodes", type=int, default=10, help="the same with the server")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from chat_servers import chaotic, chat_server

    suite = SUITES[SUITE]
    per_environment = options.episodes or suite.entries[0].episodes
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch, chat_server(chaotic) as server:
        few = ["--episodes", str(options.server_episodes), "--server", "wait=0.001", "--server", "retries=2"]
        arms = {
            "random": (["--agent", "random", "--episodes", str(per_environment)], per_environment),
            "chaotic server": (["--agent", f"openai:m@{server.url}", *few], options.server_episodes),
        }
        for name, (words, each) in arms.items():
            found[name] = compare(words, each * len(suite.entries), Path(scratch, name))
            print(f"{name}: {json.dumps(found[name])}", flush=True)
    is_good = all(
        arm["is_equal"] and arm["episodes"] == arm["distinct_episodes"] == arm["expected_episodes"]
        for arm in found.values()
    )
    content = {
        "command": "python benchmarks/studies/checks/killed_and_resumed.py",
        "suite": SUITE,
        "machine": machine("turngym"),
        "arms": found,
    }
    write_json(ROOT / "benchmarks" / "results" / "killed_and_resumed.json", content)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
