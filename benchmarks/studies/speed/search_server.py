"""Latency of the search server for 64 slots at once beside one slot, on the real corpus of 150,000 passages.

The server is ``turngym serve-search`` in a process of its own. A slot is an environment between whose searches its
model thinks: a search, then a pause of half a second to a second and a half. Beside that, slots that never pause show
what the server can do at most. One slot and many are measured in turn, several times.

    python benchmarks/studies/speed/search_server.py --write
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from turngym.benchmarks.machine import machine
from turngym.envs.data_files import data_file, read_lines
from turngym.envs.search.client import SearchClient
from turngym.envs.search.datasets import corpus_file
from turngym.storage.files import write_json

DATA = Path(__file__).parents[4] / "shared" / "data" / "search"
RESULTS = Path(__file__).parents[2] / "results" / "search_server.json"
SETS = ("musique", "hotpotqa", "2wikimultihopqa", "nq", "ottqa")


@contextmanager
def serving(corpus: str, engine: str) -> Iterator[str]:
    """Run the server in a process of its own, and give its address."""
    command = [sys.executable, "-m", "turngym", "serve-search", corpus, "--port", "0", "--engine", engine]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        found = re.search(r"(http://\S+)/retrieve", process.stdout.readline())
        assert found, "the server did not begin"
        try:
            yield found[1]
        finally:
            process.terminate()


def play(url: str, slots: int, seconds: float, thinks: bool, queries: Sequence[str]) -> dict[str, float]:
    """Search in several slots for some seconds.

    Returns:
        The latencies' median and 99th percentile in milliseconds, and searches per second.
    """
    client, latencies = SearchClient(url), list[float]()
    end = time.perf_counter() + seconds

    def slot(number: int) -> None:
        generator = random.Random(number)
        time.sleep(generator.random() * thinks)
        while time.perf_counter() < end:
            begin = time.perf_counter()
            client.search([generator.choice(queries)], 3)
            latencies.append(time.perf_counter() - begin)
            if thinks:
                time.sleep(0.5 + generator.random())

    threads = [threading.Thread(target=slot, args=(number,)) for number in range(slots)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ordered = sorted(latencies)
    return {
        "searches": len(ordered),
        "p50_ms": 1000 * statistics.median(ordered),
        "p99_ms": 1000 * ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))],
        "searches_per_second": len(ordered) / seconds,
    }


def middle(rounds: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return the medians over the rounds."""
    return {key: float(f"{statistics.median(one[key] for one in rounds):.3g}") for key in rounds[0]}


def main() -> None:
    """Measure one slot and many in turn, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--corpus", default="wiki")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20.0, help="time of one measurement")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    arguments = parser.parse_args()
    queries = [str(row["question"]) for name in SETS for row in read_lines(data_file(str(DATA), name, "train"))[:100]]
    rounds: dict[str, list[dict[str, float]]] = {}
    with serving(str(corpus_file(DATA, arguments.corpus)), arguments.engine) as url:
        play(url, 2, 1.0, False, queries)  # the first searches fill caches
        for _ in range(arguments.rounds):
            for thinks in (True, False):
                for slots in (1, arguments.slots):
                    name = f"{slots} {'thinking' if thinks else 'without pause'}"
                    rounds.setdefault(name, []).append(play(url, slots, arguments.seconds, thinks, queries))
                    print(f"{name:20} {json.dumps(rounds[name][-1])}", flush=True)
    medians = {name: middle(each) for name, each in rounds.items()}
    one, many = medians["1 thinking"], medians[f"{arguments.slots} thinking"]
    growth = {key: round(many[key] / one[key], 2) for key in ("p50_ms", "p99_ms")}
    for name, each in medians.items():
        print(f"{name:20} {each}")
    print(f"growth of latency from 1 to {arguments.slots} slots that think: {growth}")
    if arguments.write:
        settings = {key: getattr(arguments, key) for key in ("corpus", "engine", "slots", "rounds", "seconds")}
        report: dict[str, Any] = {"machine": machine("tantivy"), "settings": settings, "growth": growth}
        write_json(RESULTS, {**report, "medians": medians, "rounds": rounds})


if __name__ == "__main__":
    main()
