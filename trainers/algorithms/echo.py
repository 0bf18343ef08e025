"""ECHO: the policy also learns to predict what the environment answers (repository prime-rl).

A modifier. In a conversation with tools most tokens are observations, and methods throw them away. Predicting them is a
dense signal about what actions lead to, also in episodes that are all paid alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from turngym.lazy import torch
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import within
from turngym.trainers.algorithms.base.modifier import Modifier
from turngym.trainers.core.algorithm import LossInputs, LossOutput, Need, Term


@dataclass(frozen=True)
class ECHOConfig:
    """Settings of ECHO."""

    coef: float = 0.1
    """Weight of the cross-entropy of observations, a mean over their tokens."""

    def __post_init__(self) -> None:
        within("coef", self.coef, 0)


@ALGORITHMS.register("echo")
class ECHO(Modifier[ECHOConfig]):
    """Prediction of observations, on another method."""

    Config: ClassVar[type[ECHOConfig]] = ECHOConfig

    @property
    def needs(self) -> frozenset[Need]:
        """The log-probabilities of observations, and what the base needs."""
        return super().needs | {Need.OBSERVATIONS}

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the base's terms, and the cross-entropy of observations after the first answer."""
        output = super().loss(inputs)
        if inputs.observed is None:
            return output
        surprise = torch.where(inputs.observed, -inputs.logprobs, torch.zeros_like(inputs.logprobs))
        terms = {**output.terms, "echo": Term(self.config.coef * surprise, "observation")}
        metrics = {**output.metrics, "observation_surprise": Term(surprise.detach(), "observation")}
        return replace(output, terms=terms, metrics=metrics)
