"""Killing parts of a run: its learner, a rank, a worker process, a server, a Ray worker."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from turngym.__main__ import main as turngym
from turngym.agents.chat_client.exchange import CallFailed
from turngym.agents.models.rollout_servers.client import PolicyClient
from turngym.benchmarks.studies.checks.killed_runs.runs import Run, child

_HEALTH_SECONDS = 5.0
_RAY_WORKER = b"ray::RolloutWorker"


def start(run: Run) -> int:
    """Start a process that trains, or one that starts ranks; returns its id."""
    if run.kind.torchrun:
        return _torchrun(run)
    if run.kind.ranks > 1:
        return forked(lambda: _ranks(run), run.folder / "errors")
    return forked(lambda: _train(run), run.folder / "errors")


def forked(work: Callable[[], object], errors: Path) -> int:
    """Return the id of a new process that does some work and has imported everything already.

    Args:
        work: What it does.
        errors: File for what it writes.
    """
    found = os.fork()
    if found:
        return found
    status = 1
    try:
        os.setsid()
        descriptor = os.open(errors, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)  # servers that fork workers complain when their process has gone
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _train(run: Run) -> None:
    try:
        child(run)
    except BaseException as error:
        (run.folder / "error").write_text(f"{type(error).__name__}: {error}")
        raise


def _ranks(run: Run) -> None:
    """Start ranks, and end all when one has failed, as torchrun does."""
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(run.kind.ranks)}
    os.environ.update(place)
    ranks = []
    for rank in range(run.kind.ranks):
        os.environ.update({"RANK": str(rank), "LOCAL_RANK": str(rank)})
        ranks.append(forked(lambda: child(run), run.folder / "errors"))
    left = set(ranks)
    while left:
        ended, status = os.wait()
        left.discard(ended)
        if status:
            for each in left:
                os.kill(each, signal.SIGTERM)
            for each in left:
                os.waitpid(each, 0)
            raise SystemExit(1)


def _torchrun(run: Run) -> int:
    module = "turngym.benchmarks.studies.checks.killed_runs.runs"
    launcher = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(run.kind.ranks), "-m", module]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with (run.folder / "errors").open("a") as errors:
        command = [sys.executable, "-m", *launcher, str(run.folder)]
        return subprocess.Popen(command, env=variables, stdout=errors, stderr=errors, start_new_session=True).pid


def _children_of(process: int) -> list[int]:
    """Return the ids of the processes that a process has started."""
    try:
        return [
            int(each) for t in Path(f"/proc/{process}/task").iterdir() for each in (t / "children").read_text().split()
        ]
    except OSError:
        return []


def _workers_of(process: int) -> list[int]:
    """Return the ids of the processes below one, the deepest ones."""
    return [leaf for each in _children_of(process) for leaf in (_workers_of(each) or [each])]


def _ray_workers_of(process: int) -> list[int]:
    """Return the ids of the rollout workers below a process."""
    found = []
    for each in _children_of(process):
        with suppress(OSError):
            if Path(f"/proc/{each}/cmdline").read_bytes().startswith(_RAY_WORKER):
                found.append(each)
        found += _ray_workers_of(each)
    return found


def lines_of(run: Run) -> int:
    """Return how many lines the environments have written so far."""
    return (run.folder / "log").read_bytes().count(b"\n")


def wait(run: Run, process: int, condition: Callable[[], bool]) -> bool:
    """Wait until a condition holds or the process has ended; returns whether it is still alive."""
    while not run.is_over and not condition():
        run.is_over = bool(os.waitpid(process, os.WNOHANG)[0])
        time.sleep(0.005)
    return not run.is_over


def live(run: Run, draw: random.Random, servers: Servers) -> None:
    """Let a run live for a while, and kill a part of it, unless it ends before.

    How long that is depends on what the environments have written, and not on how busy the machine is; where the
    learner is killed, one life in eight ends at a time of the clock, mostly before anything is played.
    """
    run.is_over = False
    process, began = start(run), time.monotonic()
    if run.kind.victim in ("server", "Ray worker"):
        _kill_others(run, draw, process, servers)
        return
    if draw.random() < 1 / 8:
        end = began + draw.uniform(0.0, 4.0 if run.kind.ranks == 1 else 20.0)
        wait(run, process, lambda: time.monotonic() > end)
    elif wait(run, process, lambda: (run.run / "warmup" / "done").exists()):
        before = lines_of(run)
        ends = before + draw.randrange(1, run.longest_life)
        if run.kind.victim == "environment worker":
            wait(run, process, lambda: lines_of(run) > draw.randrange(before, ends))
            _kill_one(run, "worker", _workers_of(process), draw)
        wait(run, process, lambda: lines_of(run) >= ends)
    if run.is_over:
        return
    time.sleep(draw.uniform(0.0, 0.2))
    if run.kind.victim == "rank":
        while not run.is_over and not _kill_one(run, "rank", _workers_of(process), draw):
            wait(run, process, lambda: bool(_workers_of(process)))
        wait(run, process, lambda: False)  # the launcher ends the other one
        run.is_over = False
    else:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        run.killed("learner")


def _has_played(run: Run, process: int, lines: int) -> bool:
    """Wait for some resets and steps; returns whether the process is still alive."""
    ends = lines_of(run) + lines
    return wait(run, process, lambda: lines_of(run) >= ends)


def _kill_one(run: Run, what: str, processes: Sequence[int], draw: random.Random) -> bool:
    with suppress(ProcessLookupError):
        if processes:
            os.kill(draw.choice(processes), signal.SIGKILL)
            run.killed(what)
            return True
    return False


def _kill_others(run: Run, draw: random.Random, process: int, servers: Servers) -> None:
    """Kill servers or Ray workers again and again while a learner goes on; sometimes the learner of servers."""
    while True:
        if not _has_played(run, process, draw.randrange(1, run.longest_life)):
            return
        if run.kind.victim == "Ray worker":
            _kill_one(run, "Ray worker", _ray_workers_of(process), draw)
        elif draw.random() < 1 / 5:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            run.killed("learner")
            return
        else:
            servers.kill(draw)
            run.killed("server")


class Servers:
    """Servers of the policy of a run, each of which is started again after it was killed.

    Args:
        run: The run's folder, with the model.
        count: Their number.
    """

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        (folder / "exchange").mkdir(exist_ok=True)
        os.environ["TURNGYM_TOKEN"] = os.environ["TURNGYM_API_KEY"] = "of-the-study"  # of servers and learner
        self.ports = [free_port() for _ in range(count)]
        self.processes = [self._start(port) for port in self.ports]

    @property
    def urls(self) -> list[str]:
        """Their addresses."""
        return [f"http://127.0.0.1:{port}" for port in self.ports]

    def _start(self, port: int) -> int:
        words = ["serve-model", str(self.folder / "model"), "--weights-folder", str(self.folder / "exchange")]
        words += ["--port", str(port), "--cache-tokens", "20000"]
        return forked(lambda: turngym(words), self.folder / f"server-{port}.log")

    def await_answers(self) -> None:
        """Wait until every server answers."""
        for url in self.urls:
            while True:
                try:
                    PolicyClient(url, "", "").check_health(_HEALTH_SECONDS)
                    break
                except CallFailed:
                    time.sleep(0.2)

    def kill(self, draw: random.Random) -> None:
        """Kill one of them, and start it again."""
        number = draw.randrange(len(self.processes))
        os.kill(self.processes[number], signal.SIGKILL)
        os.waitpid(self.processes[number], 0)
        self.processes[number] = self._start(self.ports[number])

    def close(self) -> None:
        """End all."""
        for process in self.processes:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)


def free_port() -> int:
    """Return a port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
