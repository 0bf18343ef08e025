"""The table of what each backend survives, tried out cell by cell: the others go on, and everything is counted."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import toy_envs
from gymnasium.vector import AutoresetMode
from vector_envs import Waiting
from vector_play import assert_faulted, play, without

from turngym.envs.vector import TextVectorEnv, make_vec
from turngym.envs.vector.backends.forking.handle import Handle

Make = Callable[..., TextVectorEnv]
LIMIT = 1.5
TIMEOUT = f"timeout: step took longer than {LIMIT} s"
IN_PROCESS = {"raise": "exception: ValueError: no such door", "hang": TIMEOUT, "exit": "exception: SystemExit: 3"}
SURVIVES: dict[str, dict[str, str]] = {
    "sync": {"raise": IN_PROCESS["raise"], "exit": IN_PROCESS["exit"]},
    "thread": IN_PROCESS,
    "asyncio": IN_PROCESS,
    "process": {
        "raise": IN_PROCESS["raise"],
        "hang": TIMEOUT,
        "exit": IN_PROCESS["exit"],
        "quit": "worker died (exit code 3)",
        "kill": "worker died (exit code -9)",
        "eat": "exception: MemoryError",
        "garbage": "garbage on the pipe",
    },
}
"""Backend -> what breaks -> the fault that the slot shows. ``exit`` is ``sys.exit``, ``quit`` is ``os._exit``."""
ENDS = {"exit": 3, "quit": 3, "kill": -9, "hang": -signal.SIGALRM}
"""How the whole program ends where a backend does not survive: its exit code, that of an alarm if it hangs."""

CELLS = [(backend, kind) for backend, kinds in SURVIVES.items() for kind in kinds]
RESETS = [
    ("sync", "raise"),
    *[(backend, kind) for backend in ("thread", "asyncio", "process") for kind in ("raise", "hang", "exit")],
    ("process", "kill"),
]


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("thread", "process"):
        monkeypatch.setattr(f"turngym.envs.vector.backends.{module}._CLOSE_SECONDS", 0.3)


@pytest.fixture
def make() -> Iterator[Make]:
    opened: list[TextVectorEnv] = []

    def make(count: int = 3, backend: str = "sync", kind: type[Any] = toy_envs.Faulty, **options: Any) -> TextVectorEnv:
        limits = {
            name: options.pop(name)
            for name in ("autoreset_mode", "memory_limit_mib", "reset_timeout_seconds", "num_workers")
            if name in options
        }
        if backend == "process":
            limits.setdefault("num_workers", 1)
        opened.append(
            make_vec(env_fns=[lambda: kind(**options)] * count, backend=backend, step_timeout_seconds=LIMIT, **limits)
        )
        return opened[-1]

    yield make
    for vector in opened:
        vector.close()


def masked(seen: list[Any], fault: str) -> str:
    """Return what was seen as text, with the fault's own words left out."""
    return repr(seen).replace(repr(fault), "FAULT")


@pytest.mark.parametrize(("backend", "kind"), CELLS)
def test_only_the_slot_that_breaks_shows_it(make: Make, backend: str, kind: str) -> None:
    """The others are byte-equal to a run in which nothing broke; the slot goes on as after a mere exception."""
    fault = SURVIVES[backend][kind]
    limit = {"memory_limit_mib": 200} if kind == "eat" else {}
    vector = make(backend=backend, **limit)
    broken = play(vector, 6, {(1, 1): kind})
    assert without(broken, 1) == without(play(make(), 6, {}), 1)
    row = broken[2][4][1]
    assert_faulted(row, fault)
    raised = play(make(), 6, {(1, 1): "raise"})
    assert masked(broken, row["fault"]) == masked(raised, IN_PROCESS["raise"])
    stats = vector.stats()
    assert list(stats["faults"].values()) == [1]
    assert (stats["workers_replaced"] > 0) == (kind not in ("raise", "eat", "exit"))
    assert stats["abandoned"] == (kind == "hang" and backend != "process")


@pytest.mark.parametrize(
    ("backend", "kind"), [("sync", "raise"), ("thread", "hang"), ("asyncio", "exit"), ("process", "kill")]
)
def test_a_slot_may_break_again_and_again(make: Make, backend: str, kind: str) -> None:
    vector = make(2, backend, autoreset_mode=AutoresetMode.DISABLED)
    for turn in range(2):
        vector.reset(seed=turn)
        rows = vector.step(["up", kind])[4].rows
        assert rows[0]["fault"] == ""
        assert_faulted(rows[1], SURVIVES[backend][kind])
    assert sum(vector.stats()["faults"].values()) == 2


@pytest.mark.parametrize("backend", ["sync", "thread", "asyncio"])
def test_where_the_table_says_no_the_program_is_lost(backend: str) -> None:
    """The other side of the table: who needs more than this has to take another backend."""
    kinds = [kind for kind in ENDS if kind not in SURVIVES[backend]]
    code = (
        "import json, os, signal, sys; sys.path.insert(0, sys.argv[1]); import toy_envs\n"
        "from turngym.envs.vector import make_vec; codes = {}\n"
        "for kind in sys.argv[3:]:\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        signal.alarm(1 if kind == 'hang' else 60)\n"
        "        v = make_vec(env_fns=[toy_envs.Faulty], backend=sys.argv[2], step_timeout_seconds=1.5)\n"
        "        v.reset(seed=0); v.step([kind]); os._exit(77)\n"
        "    codes[kind] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
        "print(json.dumps(codes))"
    )
    arguments = [sys.executable, "-c", code, str(Path(toy_envs.__file__).parent), backend, *kinds]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, timeout=600)
    assert json.loads(done.stdout) == {kind: ENDS[kind] for kind in kinds}


@pytest.mark.parametrize(("backend", "kind"), RESETS)
def test_a_reset_that_breaks_is_tried_once_more(make: Make, tmp_path: Path, backend: str, kind: str) -> None:
    """The first break shows nowhere but in the counts; the second leaves an episode that ends at its first step."""
    marker = tmp_path / "marker"
    vector = make(2, backend, marker=str(marker), reset_fault=kind, reset_timeout_seconds=LIMIT)
    healthy = make(2).reset(seed=3)
    marker.write_text("x")
    assert repr(vector.reset(seed=3)) == repr(healthy)
    assert sum(vector.stats()["faults"].values()) == 1
    vector.step(["up", "up"])
    marker.write_text("xx")
    observations, infos = vector.reset(seed=3, options={"reset_mask": np.array([True, False])})
    assert observations[0] == "" and infos.rows[0]["success"] == -1
    assert infos.rows[0]["fault"].startswith(("exception", "worker died", f"timeout: reset took longer than {LIMIT}"))
    _, rewards, terminations, truncations, infos = vector.step(["up", "up"])
    assert (rewards[0], terminations[0], truncations.tolist()) == (0.0, False, [True, False])
    assert infos.rows[1]["fault"] == "" and infos.rows[1]["anchor"] == "2 of 3"
    assert sum(vector.stats()["faults"].values()) == 3
    assert vector.stats()["abandoned"] == (3 if kind == "hang" and backend != "process" else 0)
    assert repr(vector.reset(seed=3)) == repr(healthy)


@pytest.mark.parametrize("backend", ["thread", "asyncio", "process"])
def test_a_reset_without_seed_that_hangs_goes_on_with_the_same_generator(
    make: Make, tmp_path: Path, backend: str
) -> None:
    """A second try with another generator would make episodes depend on what broke when."""
    marker = tmp_path / "marker"
    vector = make(1, backend, marker=str(marker), reset_fault="hang", reset_timeout_seconds=LIMIT)
    twin = make(1)
    for each in (vector, twin):
        each.reset(seed=5)
        for _ in range(3):
            each.step(["up"])
    marker.write_text("x")
    assert repr(vector.step(["up"])) == repr(twin.step(["up"]))  # begins the next episode
    assert vector.stats()["faults"] == {"timeout": 1}


@pytest.mark.parametrize("backend", ["thread", "asyncio", "process"])
@pytest.mark.parametrize("kind", [toy_envs.Faulty, Waiting])
def test_a_call_that_hangs_raises_and_the_episode_goes_on(make: Make, backend: str, kind: type[Any]) -> None:
    vector, twin = make(2, backend, kind, reset_timeout_seconds=LIMIT), make(2)
    for each in (vector, twin):
        each.reset(seed=1)
        each.step(["up", "up"])
        each.set_attr("goal", 5)
    with pytest.raises(Exception, match=r"call \('explode',\) of slot 0 broke its worker: timeout"):
        vector.call("explode", "hang", indices=[0])
    assert vector.get_attr("goal") == (5, 5)
    assert repr(vector.step(["up", "up"])) == repr(twin.step(["up", "up"]))
    assert vector.stats()["faults"] == {}


@pytest.mark.parametrize("backend", ["sync", "thread", "asyncio", "process"])
def test_an_environment_that_cannot_be_closed_is_left(
    make: Make, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``close`` comes back, and waits for all that hang together, not for one after the other."""
    waited: list[float] = []
    stop = Handle.stop

    def noted(self: Handle, patience_seconds: float) -> int:
        began = time.monotonic()
        code = stop(self, patience_seconds)
        waited.append(min(patience_seconds, time.monotonic() - began))
        return code

    monkeypatch.setattr(Handle, "stop", noted)
    fault = "raise" if backend == "sync" else "hang"
    vector = make(3, backend, close_fault=fault, num_workers=3)
    vector.reset(seed=0)
    vector.close()
    vector.close()
    assert vector._backend.abandoned == (3 if backend in ("thread", "asyncio") else 0)
    assert sum(waited) <= 0.3 * 1.01


@pytest.mark.parametrize("backend", ["thread", "asyncio", "process"])
def test_a_hang_while_a_broken_environment_is_closed_is_a_timeout(make: Make, backend: str) -> None:
    vector = make(2, backend, close_fault="hang")
    vector.reset(seed=0)
    rows = vector.step(["up", "raise"])[4].rows
    assert rows[0]["fault"] == ""
    assert_faulted(rows[1], TIMEOUT)


@pytest.mark.parametrize("backend", ["thread", "asyncio"])
def test_the_program_ends_although_something_hangs(backend: str) -> None:
    """The threads that were left behind, and one that is still waited for, do not keep the interpreter."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import vector_envs, toy_envs\n"
        "from turngym.envs.vector import make_vec\n"
        "fns = [toy_envs.Faulty, vector_envs.Waiting, vector_envs.Waiting]\n"
        "v = make_vec(env_fns=fns, backend=sys.argv[2], step_timeout_seconds=1.5); v.reset(seed=0)\n"
        "print(*(row['fault'] for row in v.step(['hang', 'thread', 'hang'])[4].rows), sep='|')\n"
        "v.reset(seed=0); v.send(['hang', 'deaf', 'block'])"
    )
    arguments = [sys.executable, "-c", code, str(Path(toy_envs.__file__).parent), backend]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=600, check=True)
    faults = done.stdout.strip().split("|")
    assert all(fault.startswith("timeout") for fault in faults[: None if backend == "asyncio" else 1])
    assert "Traceback" not in done.stderr


def test_a_vector_that_is_forgotten_ends_its_threads(make: Make) -> None:
    import threading

    before = {thread.ident for thread in threading.enumerate()}
    for backend in ("thread", "asyncio"):
        vector = make_vec(env_fns=[toy_envs.Faulty, Waiting], backend=backend)
        vector.reset(seed=0)
        del vector
    deadline = time.monotonic() + 120
    while {thread.ident for thread in threading.enumerate()} - before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert {thread.ident for thread in threading.enumerate()} <= before


def test_the_system_would_end_a_worker_before_the_vector(make: Make) -> None:
    path = Path("/proc/self/oom_score_adj")
    if not path.exists():
        pytest.skip("this system has no /proc/self/oom_score_adj")
    vector = make(1, "process")
    (pid,) = vector._backend.pids()  # type: ignore[attr-defined]
    assert int(Path(f"/proc/{pid}/oom_score_adj").read_text()) >= 500 > int(path.read_text())
    assert os.getpid() != pid
