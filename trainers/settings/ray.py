"""Ray rollouts."""

from __future__ import annotations

from typing import Annotated

from turngym.errors import ConfigError
from turngym.options import Amount, Natural, Options, above


class RayConfig(Options):
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

    workers: Natural = 0
    address: str = ""
    gpus: Amount = 0.0
    cpus: Amount = 1.0
    silent_seconds: Annotated[float, above(0)] = 900.0

    def check(self) -> None:
        """Check what depends on several settings."""
        if self.gpus > 1 and self.gpus != int(self.gpus):
            raise ConfigError(f"ray.gpus must be a part of one GPU or a whole number, got {self.gpus}.")
        if self.address and not self.workers:
            raise ConfigError("ray.address names the cluster of rollout workers: pass --rollout.ray.workers as well.")
