"""Ray rollouts."""

from __future__ import annotations

from dataclasses import dataclass

from turngym.errors import ConfigError


@dataclass(frozen=True)
class RayConfig:
    """Rollout workers on a Ray cluster.

    Args:
        workers: Number of rollout workers, each with its own policy copy and environments; 0 plays in the learner's
            process.
        address: Cluster address as in ``ray.init``, such as ``auto`` on one of its machines; empty starts a local Ray.
        gpus: GPUs reserved per worker, possibly a fraction such as 0.5; 0 for the CPU.
        cpus: CPUs reserved per worker.
        silent_seconds: Seconds without CPU activity after which a worker is replaced: longer than loading the model and
            than the slowest turn.
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
