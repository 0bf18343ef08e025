"""What a call of code costs in each sandbox, and whether a thousand of them leave anything behind.

Cold: a session of its own is started, one call is made, and it is ended. Pooled: the same with sessions that were
started before. Warm: calls of one session. The backends are measured in turn, several rounds.

    python benchmarks/studies/speed/sandbox.py [--write]                          # bubblewrap
    python benchmarks/studies/speed/sandbox.py --image IMAGE [--url URL] --write

The second adds Docker, plain and with gVisor (runsc). It needs a running engine that has the image, with Python in it;
``--own-engine`` starts one as the tests do, which takes root, and the programs dockerd, debootstrap and containerd.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from turngym.benchmarks.machine import machine
from turngym.envs.tools.sandbox import Limits, Sandbox, make_sandbox
from turngym.envs.tools.sandbox.host import SandboxError
from turngym.envs.tools.sandbox.pool import Pool
from turngym.errors import MissingExtra
from turngym.storage.files import write_json

RESULTS = Path(__file__).parents[2] / "results" / "sandbox.json"
LIMITS = Limits(wall_seconds=60.0)
CODE = "sum(range(100))"
_GROUPS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup/pids"))


def called(sandbox: Sandbox) -> None:
    """Make one call in a session of its own."""
    with sandbox.session() as session:
        assert session.run(CODE).value == "4950"


def milliseconds(act: Callable[[], None], count: int) -> list[float]:
    """Return how long each of some repetitions took."""
    found = []
    for _ in range(count):
        begin = time.perf_counter()
        act()
        found.append(1000 * (time.perf_counter() - begin))
    return found


def one_round(make: Callable[[], Sandbox], cold: int, warm: int) -> dict[str, list[float]]:
    """Return the times of the three kinds of call."""
    with make() as sandbox, sandbox.session() as session:
        session.run(CODE)
        found = {
            "cold": milliseconds(lambda: called(sandbox), cold),
            "warm": milliseconds(lambda: assert_value(session.run(CODE).value), warm),
            "pooled": [],
        }
    with Pool(make(), 2) as pool:
        for _ in range(cold):
            pool.wait_until_full()
            found["pooled"] += milliseconds(lambda: called(pool), 1)
    return found


def assert_value(value: str) -> None:
    """Raise unless a call has given what it should."""
    assert value == "4950", value


def state(containers: Callable[[], int]) -> dict[str, int]:
    """Return what a leak would show in."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "children": len(children),
        "control_groups": sum(len(list(folder.glob(f"turngym-{os.getpid()}-*"))) for folder in _GROUPS),
        "containers": containers(),
        "memory_mib": round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20),
    }


def leaks(sandbox: Sandbox, calls: int, containers: Callable[[], int]) -> dict[str, Any]:
    """Make many calls in one session and many sessions; returns what was there before and after."""
    sessions = max(1, calls // 20)
    containers()
    for _ in range(sessions):  # clients keep some connections open: as many after many sessions as after some
        called(sandbox)
    before = state(containers)
    with sandbox.session() as session:
        for _ in range(calls):
            assert_value(session.run(CODE).value)
        memory = int(session.run("open('/proc/self/statm').read().split()[1]").value.strip("'"))
        descriptors = int(session.run("import os; len(os.listdir('/proc/self/fd'))").value)
    for _ in range(sessions):
        called(sandbox)
    inside = {"memory_mib": round(memory * 4096 / 2**20, 1), "descriptors": descriptors}
    after = state(containers)
    grown = {key: after[key] - value for key, value in before.items()}
    left = {key: more for key, more in grown.items() if more > (16 if key == "memory_mib" else 0)}
    told = {"calls": calls, "sessions": sessions, "before": before, "after": after, "inside": inside}
    return {**told, "leaks": left}


def makers(arguments: argparse.Namespace, url: str) -> Iterator[tuple[str, Callable[[], Sandbox] | str]]:
    """Yield what makes a sandbox by name; a text says why one is missing, and nothing is taken in its place."""
    image = {"image": arguments.image, "url": url}
    for name, backend, options in (
        ("bubblewrap", "bubblewrap", {}),
        ("docker", "docker", image),
        ("docker with gVisor", "docker", {**image, "runtime": "runsc"}),
    ):
        if backend == "docker" and not arguments.image:
            yield name, "not asked for: no --image"
            continue
        make = partial(make_sandbox, backend, LIMITS, **options)
        try:
            with make() as sandbox:
                called(sandbox)
        except (MissingExtra, SandboxError) as error:
            yield name, str(error)[:300]
        else:
            yield name, make


def counter(url: str, image: str) -> Callable[[], int]:
    """Return what counts the containers of the engine, if there is one."""
    if not image:
        return lambda: 0
    import docker

    client = docker.DockerClient(base_url=url) if url else docker.from_env()
    return lambda: len(client.containers.list(all=True))


@contextlib.contextmanager
def engine(arguments: argparse.Namespace) -> Iterator[str]:
    """Give where the engine listens, one of our own if that was asked for."""
    if not arguments.own_engine:
        yield arguments.url
        return
    sys.path.insert(0, str(Path(__file__).parents[3] / "tests" / "support"))
    import sandbox_backends

    arguments.image = sandbox_backends.IMAGE
    with sandbox_backends.engine() as url:
        yield url


def summary(times: Mapping[str, list[float]]) -> dict[str, float]:
    """Return median and 99th percentile of each kind of call."""
    found = {}
    for kind, values in times.items():
        ordered = sorted(values)
        found[f"{kind}_p50_ms"] = float(f"{statistics.median(ordered):.3g}")
        found[f"{kind}_p99_ms"] = float(f"{ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]:.3g}")
    return found


def main() -> None:
    """Measure every backend that is here, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--image", default="", help="image for Docker")
    parser.add_argument("--url", default="", help="where the engine listens")
    parser.add_argument("--own-engine", action="store_true", help="start an engine for this")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cold", type=int, default=20, help="sessions of one backend in a round")
    parser.add_argument("--warm", type=int, default=500, help="calls of one session in a round")
    parser.add_argument("--calls", type=int, default=1000, help="calls that must leave nothing behind")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    arguments = parser.parse_args()
    with engine(arguments) as url:
        known = dict(makers(arguments, url))
        missing = {name: made for name, made in known.items() if isinstance(made, str)}
        there = {name: made for name, made in known.items() if not isinstance(made, str)}
        times: dict[str, dict[str, list[float]]] = {name: {"cold": [], "pooled": [], "warm": []} for name in there}
        for _ in range(arguments.rounds):
            for name, make in there.items():
                for kind, values in one_round(make, arguments.cold, arguments.warm).items():
                    times[name][kind] += values
        containers, found = counter(url, arguments.image), {}
        for name, make in there.items():
            with make() as sandbox:
                found[name] = {**summary(times[name]), "left_behind": leaks(sandbox, arguments.calls, containers)}
    for name, figures in found.items():
        print(f"{name}: {json.dumps(figures)}")
    for name, reason in missing.items():
        print(f"{name}: {reason}")
    if arguments.write:
        settings = {key: getattr(arguments, key) for key in ("rounds", "cold", "warm", "calls")}
        packages = ("docker",) if arguments.image else ()
        write_json(
            RESULTS, {"machine": machine(*packages), "settings": settings, "backends": found, "not_measured": missing}
        )


if __name__ == "__main__":
    main()
