"""A gateway under load: 256 agent programs at once beside a policy whose speed is known.

The gateway is one process, the agents are asyncio clients in another one. The policy is scripted: it answers with a
numbered text after a known time, so the time that the gateway adds is the latency that a client sees less the time that
the sampler took for this answer. Three loads, each repeated:

- ``thinking``: every agent pauses between its calls, as one does whose tools run; the latency of this load is what an
  agent waits for. With a policy that answers at once, and with one that takes 20 ms a batch.
- ``endless``: no agent pauses, and the policy answers at once: calls a second, and processor time a call.
- ``killed``: the processes of a tenth of the agents get SIGKILL in mid-call; every answer that was sampled is in the
  log of its episode exactly once, and every other episode is complete.

    python benchmarks/studies/speed/gateway_load.py

On a machine that does other work ``--nice -10`` (as root) keeps that work from being measured.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any

from turngym.benchmarks.studies.harness import arguments, write_result
from turngym.benchmarks.studies.speed.sides.gateway_load_side import TURNS
from turngym.benchmarks.studies.speed.sides.worker import Results, Worker

AGENTS = 256
KILLED = AGENTS // 10
_LOADS = {
    "thinking, policy at once": {"think": 1.5, "service_ms": 0.0, "episodes": AGENTS},
    "thinking, policy 20 ms": {"think": 1.5, "service_ms": 20.0, "episodes": AGENTS},
    "endless, policy at once": {"think": 0.0, "service_ms": 0.0, "episodes": 2 * AGENTS},
}


def worker() -> Worker:
    """Return a new process."""
    return Worker(sys.executable, "gateway_load_side.py", os.environ)


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return median, 99th percentile and maximum in milliseconds."""
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return {
        "p50_ms": round(1e3 * cuts[49], 3),
        "p99_ms": round(1e3 * cuts[98], 3),
        "max_ms": round(1e3 * max(values), 3),
    }


def load(server: Worker, client: Worker, url: str, think: float, episodes: int) -> Results:
    """Play episodes once, and return the figures."""
    opened = server.ask(do="open", count=episodes)["episodes"]
    before = server.ask(do="used")
    client.ask(do="play", url=url, episodes=opened, at_once=AGENTS, think=think)
    played = client.ask(do="played")
    after = server.ask(do="used")
    sampled = server.ask(do="sampled")["sampled"]
    logged = server.ask(do="logged", episodes=[name for name, _ in opened])
    server.ask(do="forget", episodes=[name for name, _ in opened])
    calls = played["calls"]
    numbers = sorted(number for number, _ in calls)
    assert sorted(logged["calls"]) == sorted(logged["turns"]) == numbers, "an answer is lost"
    assert len(calls) == episodes * TURNS
    return {
        "calls": len(calls),
        "calls_per_second": round(len(calls) / played["seconds"], 1),
        "latency": percentiles([seconds for _, seconds in calls]),
        "over_the_sampler": percentiles([seconds - sampled[str(number)] for number, seconds in calls]),
        "gateway_processor_ms_a_call": round(1e3 * (after["processor_s"] - before["processor_s"]) / len(calls), 3),
        "gateway_waited_for_a_core_ms_a_call": round(1e3 * (after["waited_s"] - before["waited_s"]) / len(calls), 3),
        "clients_processor_ms_a_call": round(1e3 * played["processor_s"] / len(calls), 3),
        "gateway_memory_mib": round(after["memory_mib"], 1),
        "memory_kib_a_call": round(1024 * (after["memory_mib"] - before["memory_mib"]) / len(calls), 2),
        "load_average": round(os.getloadavg()[0], 1),
    }


def killed(service_ms: float = 20.0) -> Results:
    """Kill the process of a tenth of the agents in mid-call, and return what became of the answers."""
    server, client, victims = worker(), worker(), worker()
    try:
        url = server.ask(do="serve", service_ms=service_ms)["url"]
        opened = server.ask(do="open", count=AGENTS)["episodes"]
        dying, living = opened[:KILLED], opened[KILLED:]
        victims.ask(do="play", url=url, episodes=dying, at_once=KILLED, think=0.0)
        client.ask(do="play", url=url, episodes=living, at_once=len(living), think=0.0)
        while server.ask(do="used")["answers"] < AGENTS * TURNS // 4:
            time.sleep(0.001)
        victims.close()
        played = client.ask(do="played")
        sampled = server.ask(do="used")["answers"]
        found = {
            kind: server.ask(do="logged", episodes=[name for name, _ in some])
            for kind, some in (("dead", dying), ("alive", living))
        }
    finally:
        for each in (server, client, victims):
            each.close()
    numbers = sorted(found["dead"]["calls"] + found["alive"]["calls"])
    return {
        "agents": AGENTS,
        "agents killed": KILLED,
        "answers sampled": sampled,
        "answers in logs": len(numbers),
        "answers in two logs": len(numbers) - len(set(numbers)),
        "answers of dead agents": len(found["dead"]["calls"]),
        "of those not delivered": len(found["dead"]["calls"]) - len(found["dead"]["turns"]),
        "answers received by living agents": len(played["calls"]),
        "of those in their logs": len({number for number, _ in played["calls"]} & set(found["alive"]["turns"])),
        "expected of living agents": len(living) * TURNS,
    }


def measure(name: str, repeats: int) -> Results:
    """Return the figures of one load."""
    about: dict[str, Any] = _LOADS[name]
    server, client = worker(), worker()
    try:
        url = server.ask(do="serve", service_ms=about["service_ms"])["url"]
        load(server, client, url, 0.0, AGENTS // 8)
        runs = [load(server, client, url, about["think"], about["episodes"]) for _ in range(repeats)]
    finally:
        server.close()
        client.close()
    return {**about, "agents": AGENTS, "runs": runs}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print, and write the figures."""
    parser = arguments(__doc__, "gateway_load.json", repeats=3)
    parser.add_argument("--loads", nargs="*", choices=_LOADS, default=list(_LOADS))
    parser.add_argument("--nice", type=int, default=0, help="added to the priority of all processes of the measurement")
    args = parser.parse_args(argv)
    about = {"turns": TURNS, "nice": os.nice(args.nice)}
    figures: Results = {**about, "loads": {}}
    for name in args.loads:
        figures["loads"][name] = measure(name, args.repeats)
        for run in figures["loads"][name]["runs"]:
            print(name, run, flush=True)
    figures["killed"] = killed()
    print(figures["killed"])
    write_result(args.out, figures, "uvicorn", "tokenizers")


if __name__ == "__main__":
    main()
