"""MMD: magnetic mirror descent (Sokota et al. 2022, arXiv 2206.05825).

A modifier that holds the policy near two others. With ``q`` the values of actions, the policy ``pi_k`` that sampled,
and a magnet ``rho``, an exact step is

    pi_{k+1} = argmax over pi of  <q, pi> - alpha KL(pi || rho) - (1 / eta) KL(pi || pi_k)
             ~ (pi_k * rho^(alpha eta) * exp(eta q))^(1 / (1 + alpha eta))

Plain policy gradients circle around the equilibrium of a game between two players; these steps converge, without an
average over iterations, to the equilibrium that the divergence from the magnet regularises. A magnet that follows the
policy every so many iterations takes that equilibrium to one of the game itself. Here the magnet is the reference
policy of the run, and ``<q, pi>`` is the base method's surrogate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from turngym.lazy import Tensor
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import required, sampled, within
from turngym.trainers.algorithms.base.modifier import Modifier
from turngym.trainers.core.algorithm import Algorithm, LossInputs, LossOutput, Need, Term


@dataclass(frozen=True)
class MMDConfig:
    """Settings of magnetic mirror descent."""

    magnet_coef: float = 0.05
    """Weight of the KL divergence from the magnet, alpha of the paper, in the first iteration."""
    magnet_decay: float = 0.0
    """Power with which that weight falls: in iteration k, from 0, it is divided by (k + 1) ** magnet_decay."""
    proximal_coef: float = 0.0
    """Weight of the KL divergence from the policy that sampled, 1 / eta of the paper; it has no gradient in the first
    of several updates with the same episodes."""
    refresh_every: int = 0
    """Iterations after which the magnet becomes a copy of the policy; 0 keeps the one that training started with."""

    def __post_init__(self) -> None:
        for setting in ("magnet_coef", "magnet_decay", "proximal_coef", "refresh_every"):
            within(setting, getattr(self, setting), 0)


@ALGORITHMS.register("mmd")
class MMD(Modifier[MMDConfig]):
    """Magnetic mirror descent on another method."""

    Config: ClassVar[type[MMDConfig]] = MMDConfig

    def __init__(self, config: MMDConfig, base: Algorithm[Any]) -> None:
        super().__init__(config, base)
        self.magnet_coef = config.magnet_coef
        """The current weight of the KL divergence from the magnet."""

    @property
    def needs(self) -> frozenset[Need]:
        """The magnet, where its KL divergence has a weight, and what the base needs."""
        return super().needs | ({Need.REFERENCE_LOGPROBS} if self.config.magnet_coef > 0 else frozenset())

    @property
    def normalisations(self) -> frozenset[str]:
        """Those of the base, and the mean over tokens of the metrics."""
        return super().normalisations | {"token"}

    @property
    def reference_every(self) -> int:
        """Iterations after which the magnet becomes a copy of the policy."""
        return self.config.refresh_every or super().reference_every

    def begin_iteration(self, iteration: int, num_iterations: int) -> None:
        """Set the weight of the KL divergence from the magnet."""
        super().begin_iteration(iteration, num_iterations)
        self.magnet_coef = self.config.magnet_coef / (iteration + 1) ** self.config.magnet_decay

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the base's terms, and the divergences that have a weight."""
        output = self.base.loss(inputs)
        policies: Mapping[str, tuple[float, Tensor]] = {"proximal": (self.config.proximal_coef, inputs.old_logprobs)}
        if self.config.magnet_coef > 0:
            magnet = required(inputs.reference_logprobs, "reference_logprobs")
            policies = {"magnet": (self.magnet_coef, magnet), **policies}
        terms, metrics = dict(output.terms), dict(output.metrics)
        for name, (weight, logprobs) in policies.items():
            divergence = sampled(F.sampled_divergence(inputs.logprobs, logprobs, inputs.old_logprobs), inputs)
            metrics[f"kl_{name}"] = Term(divergence.detach(), "token")
            if weight > 0:
                terms[name] = Term(weight * divergence, self.normalisation)
        return replace(output, terms=terms, metrics=metrics)
