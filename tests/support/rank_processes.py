"""Ranks as processes of a test: the environment variables of a launcher, without its process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple


class Ended(NamedTuple):
    """A rank that has ended: its exit status and what it wrote."""

    status: int
    output: str
    errors: str


def free_port() -> int:
    """Return a port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(words: Sequence[str], size: int = 2, **variables: str) -> list[subprocess.Popen[str]]:
    """Start ``python WORDS`` once for each rank."""
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size)}
    found = []
    for rank in range(size):
        mine = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        found.append(
            subprocess.Popen(
                [sys.executable, *words],
                env={**os.environ, "OMP_NUM_THREADS": "1", **common, **mine, **variables},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    return found


def wait(processes: Sequence[subprocess.Popen[str]], timeout: float = 900.0) -> list[Ended]:
    """Wait until every rank has ended; none is left behind."""
    found = []
    try:
        for process in processes:
            output, errors = process.communicate(timeout=timeout)
            found.append(Ended(process.returncode, output, errors))
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return found


def torchrun(words: Sequence[str], size: int = 2, timeout: float = 900.0, **variables: str) -> Ended:
    """Run ``torchrun WORDS``, which ends all ranks when one has died, and wait for it."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size), *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


def run(words: Sequence[str], size: int = 2, timeout: float = 900.0, **variables: str) -> list[Ended]:
    """Run ``python WORDS`` once for each rank and wait for all of them."""
    return wait(start(words, size, **variables), timeout)
