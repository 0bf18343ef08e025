"""Concurrent sessions whose step waits a second: turngym's server for OpenEnv's clients beside openenv's own.

One process serves, another plays: it opens all sessions, resets them, and then takes turns in all of them at once, with
the same code for both servers. The environment echoes after a second, in a coroutine or with a blocking sleep.

    make .venvs/openenv
    PYTHONPATH=.venvs/openenv .venv/bin/python benchmarks/studies/speed/openenv_sessions.py
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from openenv_side import child

from turngym.benchmarks.machine import machine
from turngym.storage.files import write_json

RESULTS = Path(__file__).parents[2] / "results" / "openenv_sessions.json"
SIDES = ("turngym coroutine", "openenv coroutine", "turngym blocking", "openenv blocking")
_OPEN_AT_ONCE = 64
_LIMIT_SECONDS = 60.0
_LONGEST_TALK = 400.0


@contextmanager
def serving(side: str, sessions: int) -> Iterator[tuple[int, str]]:
    """Run a server in a process of its own, and give its number and its URL."""
    argv = [sys.executable, "-W", "ignore", __file__, "--child", side, "--sessions", str(sessions)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http"), f"the server of {side} did not begin"
        try:
            yield process.pid, url
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()


def memory_mib(process: int) -> float:
    """Return the resident memory of a process."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def processor_seconds(process: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Players:
    """All sessions of one server.

    Args:
        url: The server.
        sessions: How many.
    """

    def __init__(self, url: str, sessions: int) -> None:
        self._connect: Callable[..., Any] = importlib.import_module("websockets.asyncio.client").connect
        self._url = f"ws{url.removeprefix('http')}/ws"
        self._count, self._gate = sessions, asyncio.Semaphore(_OPEN_AT_ONCE)
        self.sockets: list[Any] = []
        self.latencies: list[float] = []
        self.failures: dict[str, int] = {}

    async def open(self) -> None:
        """Open and reset every session."""
        await asyncio.gather(*[self._open() for _ in range(self._count)])

    async def play(self, turns: int) -> None:
        """Take turns in all sessions at once."""
        await asyncio.gather(*[self._play(socket, turns) for socket in self.sockets])

    async def close(self) -> None:
        """Close every session."""
        await asyncio.gather(*[socket.close() for socket in self.sockets], return_exceptions=True)

    async def _open(self) -> None:
        async with self._gate:
            try:
                options = {"compression": None, "proxy": None, "ping_interval": None, "open_timeout": _LIMIT_SECONDS}
                socket = await self._connect(self._url, close_timeout=5, **options)
                await self._ask(socket, "reset", {"seed": 0})
            except Exception as error:  # the boundary that counts it
                self._fail(error)
            else:
                self.sockets.append(socket)

    async def _play(self, socket: Any, turns: int) -> None:
        for turn in range(turns):
            begin = time.perf_counter()
            try:
                observation = await self._ask(socket, "step", {"message": f"turn {turn}"})
                if f"turn {turn}" not in observation.values():
                    raise ValueError("another echo")
            except Exception as error:  # the boundary that counts it
                self._fail(error)
                return
            self.latencies.append(time.perf_counter() - begin)

    async def _ask(self, socket: Any, kind: str, data: dict[str, Any]) -> dict[str, Any]:
        async with asyncio.timeout(_LIMIT_SECONDS):
            await socket.send(json.dumps({"type": kind, "data": data}))
            answer = json.loads(await socket.recv())
        if answer["type"] != "observation":
            raise ValueError(str(answer["data"])[:80])
        found: dict[str, Any] = answer["data"]["observation"]
        return found

    def _fail(self, error: Exception) -> None:
        words = f"{type(error).__name__}: {error}"[:120]
        self.failures[words] = self.failures.get(words, 0) + 1


async def measure(process: int, url: str, sessions: int, turns: int) -> dict[str, Any]:
    """Return the figures of one server."""
    empty, begin = memory_mib(process), time.perf_counter()
    players = Players(url, sessions)
    await players.open()
    opened = time.perf_counter() - begin
    begin, used = time.perf_counter(), processor_seconds(process)
    async with asyncio.timeout(_LONGEST_TALK):
        playing = asyncio.create_task(players.play(turns))
        most = 0.0
        while not playing.done():
            await asyncio.wait([playing], timeout=0.5)
            most = max(most, memory_mib(process))
    seconds, used = time.perf_counter() - begin, processor_seconds(process) - used
    await players.close()
    latencies = sorted(players.latencies)
    done = len(latencies)
    return {
        "sessions": sessions,
        "turns_each": turns,
        "sessions_opened": len(players.sockets),
        "seconds_to_open": round(opened, 1),
        "success_share": round(done / (sessions * turns), 4),
        "latency_seconds": {
            name: round(latencies[min(done - 1, int(share * done))], 3) if done else None
            for name, share in (("median", 0.5), ("p99", 0.99), ("largest", 1.0))
        },
        "requests_per_second": round(done / seconds),
        "server_memory_mib": {"empty": round(empty), "largest": round(most)},
        "server_processor_milliseconds_per_request": round(1000 * used / max(1, done), 3),
        "failures": players.failures,
    }


def summary(rounds: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the medians over the rounds, and the smallest share of successes."""

    def middle(*path: str) -> float:
        values = []
        for figures in rounds:
            value: Any = figures
            for key in path:
                value = value[key]
            values.append(float("nan") if value is None else float(value))
        return round(statistics.median(values), 3)

    return {
        "success_share": min(float(figures["success_share"]) for figures in rounds),
        "p99_seconds": middle("latency_seconds", "p99"),
        "requests_per_second": middle("requests_per_second"),
        "memory_mib": middle("server_memory_mib", "largest"),
        "processor_milliseconds_per_request": middle("server_processor_milliseconds_per_request"),
        "seconds_to_open": middle("seconds_to_open"),
    }


def main() -> None:
    """Measure every side, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--sessions", type=int, default=2048)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3, help="times that every side is measured, in turn")
    parser.add_argument("--sides", nargs="*", default=list(SIDES), choices=SIDES)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    parser.add_argument("--child", default="")
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if arguments.child:
        child(arguments.child, arguments.sessions)
        return
    rounds: dict[str, list[dict[str, Any]]] = {side: [] for side in arguments.sides}
    for _ in range(arguments.rounds):
        for side in arguments.sides:
            load = round(os.getloadavg()[0], 1)
            with serving(side, arguments.sessions) as (process, url):
                figures = asyncio.run(measure(process, url, arguments.sessions, arguments.turns))
            rounds[side].append({"load_average_before": load, **figures})
            print(f"{side}: {json.dumps(rounds[side][-1])}", flush=True)
    middle = {side: summary(figures) for side, figures in rounds.items()}
    for side, figures in middle.items():
        print(f"{side:18} {figures}")
    report = {
        "machine": machine("turngym", "openenv", "uvicorn", "websockets", "fastapi"),
        "step_seconds": 1.0,
        "medians": middle,
        "rounds": rounds,
    }
    if arguments.write:
        write_json(RESULTS, report)


if __name__ == "__main__":
    main()
