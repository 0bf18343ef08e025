"""The servers of a pool, what happened to them, and the weights that they are given."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol

from turngym.agents.models.rollout_servers.client import PolicyClient

STALE = "stale"
"""Kind of the failure of a server that samples with weights of another name."""


class State(Enum):
    """Purpose of a server."""

    IN_USE = auto()
    UPDATING = auto()
    LOST = auto()
    GIVEN_UP = auto()


@dataclass
class Member:
    """A server of the pool.

    Args:
        server: Its client.
        label: Name of the weights that it was given last.
        version: Their number.
    """

    server: PolicyClient
    state: State = State.LOST
    label: str = ""
    version: int = -1
    in_flight: int = 0
    reason: str = "it has not answered yet"
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    """Held while weights are synced."""


@dataclass
class ServerCounts:
    """Counts of events of servers and requests so far."""

    faults: int = 0
    retries: int = 0
    stale: int = 0
    returns: int = 0
    restarts: int = 0
    syncs: int = 0
    sync_seconds: float = 0.0
    gap: float = 0.0


class Handover(Protocol):
    """Weights, and how a server gets them."""

    @property
    def label(self) -> str:
        """Name of the weights, different from that of all others."""
        ...

    @property
    def version(self) -> int:
        """Their number, which completions carry."""
        ...

    def deliver(self, server: PolicyClient) -> None:
        """Give them to a server that is not sampling.

        Raises:
            CallFailed: It does not take them.
        """
        ...

    def check(self, server: PolicyClient) -> float:
        """Return how far the server's log-probabilities are from the trainer's.

        Raises:
            CallFailed: It computes with other weights, or does not answer.
        """
        ...
