"""Ray connection of a vector: a running cluster, a given one, or a local one."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from turngym.errors import ConfigError, missing_extra

_PLACEMENTS = ("SPREAD", "DEFAULT")
_OBJECT_STORE_BYTES = 80 * 1024 * 1024
"""Answers of more than 100 kB pass through it; Ray wants at least 75 MiB."""


@dataclass(frozen=True, slots=True)
class RayOptions:
    """Options of the backend ``"ray"``.

    Args:
        address: The cluster, as in ``ray.init``, if this process has not joined one yet. None starts a small Ray of
            its own on this machine, and never joins one that happens to run here.
        num_cpus: Processors that each worker reserves; None for 1, or 0 in a Ray of its own.
        resources: Further resources that each worker reserves, by name.
        placement: ``"SPREAD"`` over the nodes, or ``"DEFAULT"``, which fills one node first.
    """

    address: str | None = None
    num_cpus: float | None = None
    resources: Mapping[str, float] = field(default_factory=dict)
    placement: str = "SPREAD"

    def __post_init__(self) -> None:
        if self.placement not in _PLACEMENTS:
            raise ConfigError(f"placement must be one of {_PLACEMENTS}, got {self.placement!r}.")
        for name, amount in {"num_cpus": self.num_cpus or 0, **self.resources}.items():
            if amount < 0:
                raise ConfigError(f"a worker cannot reserve {amount!r} of {name}: pass 0 or more.")


@dataclass(slots=True)
class _Started:
    """A connection that turngym made.

    Args:
        is_own: Whether the Ray behind it is turngym's own.
        num_vectors: Vectors that use it.
    """

    is_own: bool
    num_vectors: int = 0


_started: dict[str, _Started] = {}


class RaySession:
    """One vector's use of Ray.

    Args:
        options: Ray connection.
        num_workers: Processors of a Ray that must be started.

    Raises:
        MissingExtra: Ray is not installed.
        ConfigError: This process has joined another cluster than the one asked for, or its own Ray lacks the resources
            that the workers reserve.
    """

    def __init__(self, options: RayOptions, num_workers: int) -> None:
        ray = import_ray()
        if not ray.is_initialized():
            _started.clear()
            is_own = options.address is None
            _start(ray, options, num_workers)
            _started[_connection(ray)] = _Started(is_own)
        else:
            _require_address(ray, options.address)
        self._connection = _connection(ray)
        mine = _started.get(self._connection)
        self.is_own = mine is not None and mine.is_own
        """True if the Ray is turngym's own, so that its resources are not shared."""
        if mine is not None:
            mine.num_vectors += 1

    def num_processors(self) -> int:
        """Return how many processors the cluster has, at least 1."""
        return max(1, int(import_ray().cluster_resources().get("CPU", 1)))

    def is_open(self) -> bool:
        """Return whether this process is still connected."""
        ray = import_ray()
        return bool(ray.is_initialized()) and _connection(ray) == self._connection

    def leave(self) -> None:
        """Disconnect, and end turngym's own Ray, once no vector uses it; never end one that others started."""
        mine = _started.get(self._connection)
        if mine is None or not self.is_open():
            return
        mine.num_vectors -= 1
        if mine.num_vectors == 0:
            del _started[self._connection]
            import_ray().shutdown()


def import_ray() -> Any:
    """Return the module ``ray``.

    Raises:
        MissingExtra: It is not installed.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise missing_extra('the vector backend "ray"', "ray", "ray") from error
    return ray


def _start(ray: Any, options: RayOptions, num_workers: int) -> None:
    if options.address is not None:
        ray.init(address=options.address, logging_level=logging.WARNING)
        return
    if options.resources:
        raise ConfigError(
            f"a Ray that turngym starts on this machine has no {sorted(options.resources)}: name the cluster with "
            'backend_options={"address": ...}, or call ray.init() before.'
        )
    with _on_loopback():
        ray.init(
            address="local",
            num_cpus=num_workers,
            object_store_memory=_OBJECT_STORE_BYTES,
            include_dashboard=False,
            logging_level=logging.WARNING,
        )


@contextmanager
def _on_loopback() -> Iterator[None]:
    """Make a Ray started in this block listen on the loopback only: its ports let any client run code here.

    Ray replaces a loopback address by the machine's own, unless its switch for several machines is off.
    """
    from ray._private import ray_constants

    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


def _require_address(ray: Any, address: str | None) -> None:
    running = ray.get_runtime_context().gcs_address
    if address not in (None, "auto", running):
        raise ConfigError(
            f"this process has joined the Ray at {running} already, so it cannot use the one at {address!r}: "
            "leave the address out, or call ray.shutdown() first."
        )


def _connection(ray: Any) -> str:
    """Return a name of this process's connection, which no other connection has."""
    return str(ray.get_runtime_context().get_worker_id())
