"""LSPO: latent space policy optimisation for games of speech (Xu et al. 2025, arXiv 2502.04686).

Each iteration records games of self-play, clusters the speeches of each role into latent strategies, solves the game
between latent strategies by counterfactual regret minimisation, and trains the language model towards that solution by
preferences with soft labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from turngym.lazy import torch
from turngym.options import Amount, Natural, Options, Positive
from turngym.trainers.algorithms import LEARNERS
from turngym.trainers.core.algorithm import Algorithm, Credit, LossInputs, LossOutput, Need
from turngym.trainers.core.turn_table import TurnTable

if TYPE_CHECKING:
    from turngym.trainers.engine.learner import Learner
    from turngym.trainers.settings.config import TrainConfig


class LSPOConfig(Options):
    """Settings of latent space policy optimisation. Games per iteration, step size and clipping are those of the run.

    Args:
        clusters: Latent strategies of each role in the first iteration; each later one has one more.
        most_clusters: Largest number of them.
        layer: Hidden states of the policy that embed a speech: 0 for the token embeddings, -1 for the last layer.
        solver_steps: Steps of the solver of the abstract game; each plays one game per seat, and the rest of it once
            per abstract action of each decision.
        candidates: Speeches that are compared at one decision, those of the same seat and role.
        updates: Updates of the weights in each iteration.
        decisions: Decisions in each update.
        beta: Scale of the log-ratios in the loss.
        mass_coef: Weight of the squared change of the log-probability of all answers that are compared together.
            Preferences leave it free, and answers that are none would take their place.
    """

    clusters: Positive = 2
    most_clusters: Positive = 5
    layer: int = 0
    solver_steps: Positive = 500
    candidates: Positive = 8
    updates: Natural = 50
    decisions: Positive = 16
    beta: Amount = 1.0
    mass_coef: Amount = 1.0


@LEARNERS.register("lspo")
class LSPO(Algorithm[LSPOConfig]):
    """Latent space policy optimisation for games of talk.

    :class:`turngym.trainers.lspo.learner.LspoLearner` does the work.
    """

    Config: ClassVar[type[LSPOConfig]] = LSPOConfig

    def __init__(self, config: LSPOConfig) -> None:
        super().__init__(config)
        self.solution: dict[str, Any] = {}
        """Speeches of each latent strategy by role, and the average policy of the last abstract game."""

    @property
    def needs(self) -> frozenset[Need]:
        """What an abstraction of the game keeps of each decision."""
        return frozenset({Need.SITUATIONS})

    @property
    def normalisations(self) -> frozenset[str]:
        """None."""
        return frozenset()

    def learner(self, run: TrainConfig) -> Callable[..., Learner]:
        """Return the learner of preferences."""
        from turngym.trainers.lspo.learner import LspoLearner

        return partial(LspoLearner, run)

    def credit(self, table: TurnTable) -> Credit:
        """Return no credit: preferences between speeches are trained on, not sampled tokens."""
        return Credit(torch.zeros(len(table.token_turn)))

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return no terms."""
        return LossOutput({})

    def state(self) -> dict[str, Any]:
        """Return the solution of the last abstract game."""
        return self.solution

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore it."""
        self.solution = dict(state)
