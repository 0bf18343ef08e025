"""A gateway under attack: what hostile programs send, and what all others notice of it.

The gateway is one process with 1,024 open files, 16 agents play in a second one, the attacker is a third, and this one
asks ``/health`` 20 times a second. The attacks are requests of 8 MiB that are expensive in different ways, one after
the other; memory that requests leave behind; and connections that are opened and kept. For each attack:

- ``health``: the latency of ``/health`` next to it, and how many questions had no answer within 5 seconds.
- ``run_factor``: the time of the agents' episodes next to it, as a multiple of their time without it.
- ``memory_mib``: how much larger the gateway's process is than before.
- ``answers``: what the attacker got.

    python benchmarks/studies/speed/gateway_attacks.py
"""

from __future__ import annotations

import http.client
import os
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

from turngym.benchmarks.studies.harness import arguments, write_result
from turngym.benchmarks.studies.speed.sides.gateway_attacks_side import BODIES, CONTEXT, FILES
from turngym.benchmarks.studies.speed.sides.worker import Results, Worker

AGENTS, EPISODES, THINK = 16, 32, 0.1
SECONDS = 8.0
_CONNECTIONS = (
    "reasoning that the template drops",
    "bodies without end",
    "connections without a key",
    "connections that hold a half head",
    "connections of the sandbox",
    "streams that nobody reads",
)
_PATIENCE = 5.0


class Health:
    """Asks ``/health`` from a thread, and keeps how long each answer took."""

    def __init__(self, url: str) -> None:
        self._place = (urlsplit(url).hostname or "", urlsplit(url).port or 0)
        self._over = threading.Event()
        self.seconds: list[float] = []
        self.unanswered = 0
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def _ask(self) -> None:
        while not self._over.wait(0.05):
            began = time.perf_counter()
            connection = http.client.HTTPConnection(*self._place, timeout=_PATIENCE)
            try:
                connection.request("GET", "/health")
                connection.getresponse().read()
                self.seconds.append(time.perf_counter() - began)
            except (OSError, http.client.HTTPException):
                self.unanswered += 1
            finally:
                connection.close()

    def end(self) -> Results:
        """Stop asking, and return what was found."""
        self._over.set()
        self._thread.join()
        found = sorted(self.seconds) or [float("nan")]
        return {
            "p50_ms": round(1e3 * statistics.median(found), 1),
            "p99_ms": round(1e3 * found[int(0.99 * (len(found) - 1))], 1),
            "max_ms": round(1e3 * found[-1], 1),
            "answered": len(self.seconds),
            "unanswered": self.unanswered,
        }


def _run_time(client: Worker, server: Worker, url: str) -> float:
    """Play episodes once, and return the seconds that they took; infinity if one failed."""
    opened = server.ask(do="open", count=EPISODES)["episodes"]
    client.ask(do="play", url=url, episodes=opened, at_once=AGENTS, think=THINK)
    try:
        return float(client.ask(do="played")["seconds"])
    except (KeyError, RuntimeError):
        return float("inf")


def measure(name: str) -> Results:
    """Return the figures of one attack on a new gateway; without a name those of none."""
    server, client, attacker = (Worker(sys.executable, "gateway_attacks_side.py", os.environ) for _ in range(3))
    try:
        began = server.ask(do="serve")
        url = began["url"]
        _run_time(client, server, url)
        alone = _run_time(client, server, url)
        keys = server.ask(do="open", count=2)["episodes"]
        before = server.ask(do="used")["memory_mib"]
        if name:
            place = {"url": url, "path": began["path"], "episodes": keys}
            attacker.ask(do="attack", name=name, seconds=SECONDS, **place)
            time.sleep(1.0)
        health = Health(url)
        attacked = _run_time(client, server, url)
        found = attacker.ask(do="attacked") if name else {"statuses": {}}
        return {
            "health": health.end(),
            "run_seconds": [round(alone, 2), round(attacked, 2)],
            "run_factor": round(attacked / alone, 2),
            "memory_mib": round(server.ask(do="used")["memory_mib"] - before, 1),
            "answers": found["statuses"],
            "load_average": round(os.getloadavg()[0], 1),
        }
    finally:
        for each in (server, client, attacker):
            each.close()


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print, and write the figures after each attack."""
    names = ["", *BODIES, *_CONNECTIONS]
    parser = arguments(__doc__, "gateway_attacks.json")
    parser.add_argument("--attacks", nargs="*", choices=names, default=names)
    parser.add_argument("--nice", type=int, default=0, help="added to the priority of all processes of the measurement")
    args = parser.parse_args(argv)
    os.nice(args.nice)
    about = {"agents": AGENTS, "episodes": EPISODES, "context": CONTEXT, "open_files": FILES, "seconds": SECONDS}
    figures: Results = {**about, "attacks": {}}
    for name in args.attacks:
        figures["attacks"][name or "none"] = found = measure(name)
        print(name or "none", found, flush=True)
        write_result(args.out, figures, "uvicorn", "h11", "tokenizers")


if __name__ == "__main__":
    main()
