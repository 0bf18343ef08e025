"""Ranks as processes of a test: the environment variables of a launcher, without its process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

import warm


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


def torchrun(words: Sequence[str], size: int = 2, timeout: float = 900.0, **variables: str) -> Ended:
    """Run ``torchrun WORDS``, which ends all ranks when one has died, and wait for it."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size), *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout, check=False)
    return Ended(done.returncode, done.stdout, done.stderr)


def run(words: Sequence[str], size: int = 2, timeout: float = 900.0, **variables: str) -> list[Ended]:
    """Do what ``python WORDS`` does in a process for each rank, and wait for all of them."""
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size), **variables}
    envs = [{**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), **common} for rank in range(size)]
    done = warm.run_together([words] * size, envs, timeout=timeout, modules=warm.HEAVY)
    return [Ended(each.returncode, each.stdout, each.stderr) for each in done]
