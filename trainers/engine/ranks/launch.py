"""Ranks started by ``torchrun`` or ``accelerate launch``, from their environment variables."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType
from typing import NamedTuple

from turngym.errors import ConfigError
from turngym.lazy import torch
from turngym.trainers.engine.ranks.base import SINGLE, Ranks

TIMEOUT = "TURNGYM_RANK_TIMEOUT"
"""Environment variable with the timeout of a rank waiting for others, in seconds."""
_DEFAULT_TIMEOUT = 1800.0
LAUNCHER_VARIABLES = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "ROLE_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_USE_AGENT_STORE",
)
"""Variables set by a launcher for each rank; removed for child processes of a rank."""


class Place(NamedTuple):
    """Index of this process among those of the launcher."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0


def place_in(variables: Mapping[str, str]) -> Place:
    """Return the index of this process among those of a launcher.

    Args:
        variables: The environment variables.

    Raises:
        ConfigError: The variables are not numbers, or are inconsistent.

    >>> place_in({}), place_in({"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1"})
    (Place(rank=0, size=1, local_rank=0), Place(rank=3, size=4, local_rank=1))
    """
    if "RANK" not in variables or "WORLD_SIZE" not in variables:
        return Place()
    given = [variables["RANK"], variables["WORLD_SIZE"], variables.get("LOCAL_RANK", variables["RANK"])]
    if not all(value.isdecimal() for value in given) or not int(given[0]) < int(given[1]):
        raise ConfigError(
            f"RANK, WORLD_SIZE and LOCAL_RANK are {', '.join(given)}: start with torchrun or accelerate launch, which "
            "set them, or unset them to train in one process."
        )
    return Place(*map(int, given))


def is_first_here() -> bool:
    """Return True if this process is rank 0 or the only one."""
    return place_in(os.environ).rank == 0


def rank_device(name: str, place: Ranks | Place) -> str:
    """Return the device of a rank: with several, each takes the GPU of its local number.

    Args:
        name: Device in the settings.
        place: The rank.

    Raises:
        ConfigError: The settings name one GPU for several ranks.

    >>> rank_device("auto", Place()), rank_device("cuda", Place(1, 2, 1)), rank_device("cpu", Place(1, 2, 1))
    ('auto', 'cuda:1', 'cpu')
    """
    if place.size == 1 or name == "cpu":
        return name
    if name == "auto":
        return f"cuda:{place.local_rank}" if torch.cuda.is_available() else "cpu"
    if name == "cuda":
        return f"cuda:{place.local_rank}"
    raise ConfigError(f"{place.size} ranks cannot share the device {name!r}: pass --device auto, cuda or cpu.")


def timeout_in(variables: Mapping[str, str]) -> timedelta:
    """Return the timeout of a rank waiting for others.

    Args:
        variables: The environment variables.

    Raises:
        ConfigError: The variable is not a number above 0.
    """
    given = variables.get(TIMEOUT, "")
    try:
        seconds = float(given) if given else _DEFAULT_TIMEOUT
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise ConfigError(f"{TIMEOUT} must be a number of seconds above 0, got {given!r}.")
    return timedelta(seconds=seconds)


@contextmanager
def launched(device: str = "auto") -> Iterator[Ranks]:
    """Join the processes of ``torchrun`` or ``accelerate launch``; without a launcher there is one rank.

    CPU tensors are exchanged by gloo, gradients on GPUs by NCCL.

    Args:
        device: The device of the settings.

    Raises:
        ConfigError: The launcher's variables or the device are invalid, or torch.distributed is already in use.
    """
    place = place_in(os.environ)
    if place.size == 1:
        yield SINGLE
        return
    with _time_to_report(), _process_group(place, device) as ranks:
        yield ranks


@contextmanager
def _process_group(place: Place, device: str) -> Iterator[Ranks]:
    """Join the other processes."""
    import torch.distributed as dist
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    from turngym.trainers.engine.ranks.failures import is_heard
    from turngym.trainers.engine.ranks.process_group import ProcessGroup

    timeout, chosen = timeout_in(os.environ), torch.device(rank_device(device, place))
    if dist.is_initialized():
        raise ConfigError("torch.distributed is initialised already: let turngym do it, and call train() before.")
    if chosen.type == "cuda":
        torch.cuda.set_device(chosen)
    found, rank, size = next(iter(rendezvous("env://", timeout=timeout)))
    store = PrefixStore("turngym", found)
    backend = "cpu:gloo,cuda:nccl" if chosen.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=found, rank=rank, world_size=size, timeout=timeout)
    ranks = ProcessGroup(place.local_rank, store, timeout)
    try:
        yield ranks
    except Exception as error:
        if is_heard(error) and not ranks.is_first:
            raise SystemExit(1) from error  # rank 0 reports it, and the rank that raised it
        raise
    ranks.barrier()  # rank 0 may hold the store used by the others
    dist.destroy_process_group()


_GRACE = 20.0
"""Seconds from a launcher's SIGTERM to the end of a rank; torchrun kills after 30."""


@contextmanager
def _time_to_report(seconds: float = _GRACE) -> Iterator[None]:
    """Context that delays the end of this process after SIGTERM.

    A launcher that has lost a rank signals all others immediately. These detect the loss at about the same time and
    need to write a diagnosis and show an error. If the block fails, the delay therefore stays in force until the
    process has ended.

    Args:
        seconds: The delay.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        timer = threading.Timer(seconds, os._exit, (128 + number,))
        timer.daemon = True
        timer.start()

    try:
        before = signal.signal(signal.SIGTERM, handle)
    except ValueError:  # signal handlers need the main thread
        yield
        return
    yield
    signal.signal(signal.SIGTERM, before)
