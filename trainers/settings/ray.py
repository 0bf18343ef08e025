"""Where rollouts are played with Ray."""

from __future__ import annotations

from dataclasses import dataclass

from turngym.errors import ConfigError


@dataclass(frozen=True)
class RayConfig:
    """Rollout workers on a Ray cluster.

    Args:
        workers: Processes that play the episodes, each with a copy of the policy and environments of its own; 0 plays
            them in the learner's process.
        address: The cluster as in ``ray.init``, such as ``auto`` on one of its machines; empty starts a small Ray on
            this machine.
        gpus: GPUs that each worker reserves, also a part of one, such as 0.5; with 0 it computes on the CPU.
        cpus: Processors that each worker reserves on a cluster.
        silent_seconds: A worker that has computed nothing for so long is replaced: longer than it takes to load the
            model, and than the slowest turn.
    """

    workers: int = 0
    address: str = ""
    gpus: float = 0.0
    cpus: float = 1.0
    silent_seconds: float = 900.0

    def __post_init__(self) -> None:
        for name in ("workers", "gpus", "cpus"):
            if getattr(self, name) < 0:
                raise ConfigError(f"ray.{name} must be 0 or more, got {getattr(self, name)}.")
        if self.gpus > 1 and self.gpus != int(self.gpus):
            raise ConfigError(f"ray.gpus must be a part of one GPU or a whole number, got {self.gpus}.")
        if self.silent_seconds <= 0:
            raise ConfigError(f"ray.silent_seconds must be above 0, got {self.silent_seconds}.")
        if self.address and not self.workers:
            raise ConfigError("ray.address names the cluster of rollout workers: pass --rollout.ray.workers as well.")
