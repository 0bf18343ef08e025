"""A method that needs more memory than there is while a marker file lies there: what an update must survive."""

import os
from dataclasses import dataclass
from typing import ClassVar

import torch

from turngym.trainers.algorithms.grpo import GRPO, GRPOConfig
from turngym.trainers.core.algorithm import LossInputs, LossOutput


@dataclass(frozen=True)
class HungryConfig(GRPOConfig):
    """Settings of a hungry method.

    Args:
        marker: Path of the marker; the loss takes it away.
        device: ``cpu`` asks the allocator of the CPU; ``cuda`` raises what that of a GPU raises.
    """

    marker: str = ""
    device: str = "cpu"


class Hungry(GRPO):
    """GRPO that breaks once."""

    Config: ClassVar[type[GRPOConfig]] = HungryConfig

    def loss(self, inputs: LossInputs) -> LossOutput:
        config = self.config
        assert isinstance(config, HungryConfig)
        if os.path.exists(config.marker):
            os.unlink(config.marker)
            if config.device == "cuda":
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 28.00 GiB.")
            torch.zeros(10**15)
        return super().loss(inputs)
