"""How soon `turngym view` shows the first episode of a large run in a real browser, and what its server needs.

A run of 500 MB is made of real episodes, repeated under other numbers and seeds. The clock starts with the command and
stops when the first turn stands in the page; the browser runs already, the file is not in the cache of the system.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from turngym.agents.players import make_agent
from turngym.benchmarks.evaluation.plan import Plan
from turngym.benchmarks.evaluation.run import EvaluationRun
from turngym.benchmarks.machine import machine
from turngym.benchmarks.suites import Suite, SuiteEntry

TARGET = Path(__file__).parents[2] / "results" / "viewer.json"
BROWSER = "chromium-headless-shell"
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
REAL_EPISODES = 100
LIMIT_SECONDS = 3.0


def real_run(path: Path) -> Path:
    """Evaluate an agent and return the folder."""
    entries = tuple(
        SuiteEntry(env_id, {"split": "test"})
        for env_id in ("turngym/Sokoban-v0", "turngym/GuessTheNumber-v0", "turngym/Minesweeper-v0")
    )
    seeds = tuple(tuple(range(1000, 1000 + REAL_EPISODES // len(entries))) for _ in entries)
    plan = Plan(Suite("viewer", 1, "Games.", entries), seeds)
    EvaluationRun(plan, make_agent("random"), "random", out=path).run()
    return path


def enlarge(source: Path, target: Path, size: int) -> dict[str, int]:
    """Repeat the episodes of a folder until their files have ``size`` bytes; return bytes and episodes.

    Args:
        source: The folder of an evaluation.
        target: A new folder.
        size: Bytes of both files together.
    """
    target.mkdir()
    shutil.copy(source / "config.json", target)
    pairs = [
        [json.loads(line) for line in lines]
        for lines in zip(*(_lines(source / f"{name}.jsonl") for name in ("episodes", "transcripts")), strict=True)
    ]
    written = count = 0
    with (target / "episodes.jsonl").open("wb") as rows, (target / "transcripts.jsonl").open("wb") as told:
        while written < size:
            for row, transcript in pairs:
                own = {"task": count, "seed": count + 10_000}
                for file, record in ((rows, row), (told, transcript)):
                    line = json.dumps({**record, **own}, ensure_ascii=False, sort_keys=True).encode() + b"\n"
                    written += file.write(line)
                count += 1
        for file in (rows, told):
            file.flush()
            os.fsync(file.fileno())
    return {"bytes": written, "episodes": count}


def _lines(path: Path) -> list[str]:
    return path.read_text("utf8").removesuffix("\n").split("\n")


def forget(folder: Path) -> None:
    """Ask the system to drop the files of a folder from its cache."""
    if hasattr(os, "posix_fadvise"):
        for path in folder.iterdir():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def memory_of(process: int) -> dict[str, float]:
    """Return the memory of a process in MiB, now and at most."""
    found = {}
    for line in Path(f"/proc/{process}/status").read_text("utf8").splitlines():
        name, _, value = line.partition(":")
        if name in ("VmRSS", "VmHWM"):
            found[{"VmRSS": "memory_mib", "VmHWM": "most_memory_mib"}[name]] = round(int(value.split()[0]) / 1024, 1)
    return found


def open_once(browser: Any, folder: Path, episodes: int) -> dict[str, float]:
    """Return the seconds until the first turn is shown, until all episodes are listed, and for the last episode."""
    forget(folder)
    start = time.perf_counter()
    command = [sys.executable, "-m", "turngym", "view", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        listening = time.perf_counter() - start
        page = browser.new_page()
        page.goto(address, wait_until="commit")
        page.wait_for_selector(".turn", timeout=120_000)
        first = time.perf_counter() - start
        text = f"{episodes:,} episodes"
        page.locator("#found", has_text=text).filter(has_not_text="so far").wait_for(timeout=300_000)
        listed = time.perf_counter() - start
        asked = time.perf_counter()
        page.evaluate("n => { location.hash = '#' + n; location.reload(); }", episodes - 1)
        page.wait_for_selector(f'#episode[data-n="{episodes - 1}"][aria-busy="false"] .turn', timeout=120_000)
        last = time.perf_counter() - asked
        memory = memory_of(server.pid)
        page.close()
        server.send_signal(signal.SIGINT)
    return {
        "listening_seconds": listening,
        "first_episode_seconds": first,
        "all_listed_seconds": listed,
        "last_episode_seconds": last,
        **memory,
    }


def measure(folder: Path, episodes: int, repeats: int) -> Iterator[dict[str, float]]:
    """Yield what each opening of a run took."""
    from playwright.sync_api import sync_playwright

    executable = shutil.which(BROWSER)
    if executable is None:
        sys.exit(f"there is no {BROWSER}: apt-get install {BROWSER}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        try:
            for _ in range(repeats):
                yield open_once(browser, folder, episodes)
        finally:
            browser.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, and write ``benchmarks/results/viewer.json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=TARGET)
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as temporary:
        big = Path(temporary) / "big"
        made = enlarge(real_run(Path(temporary) / "real"), big, arguments.megabytes * 10**6)
        runs = list(measure(big, made["episodes"], arguments.repeats))
    medians = {name: round(statistics.median(run[name] for run in runs), 3) for name in runs[0]}
    content = {
        "machine": machine("turngym", "playwright"),
        "load_average": [round(value, 1) for value in os.getloadavg()],
        "run": made,
        "repeats": arguments.repeats,
        "medians": medians,
        "runs": [{name: round(value, 3) for name, value in run.items()} for run in runs],
        "limit_seconds": LIMIT_SECONDS,
        "is_within": medians["first_episode_seconds"] < LIMIT_SECONDS,
    }
    arguments.out.write_text(json.dumps(content, indent=2) + "\n", "utf8")
    print(f"{made['bytes'] / 1e6:.0f} MB, {made['episodes']:,} episodes, median of {arguments.repeats}:")
    for name, value in medians.items():
        print(f"  {name:24} {value:8.2f}")
    return 0 if content["is_within"] else 1


if __name__ == "__main__":
    sys.exit(main())
