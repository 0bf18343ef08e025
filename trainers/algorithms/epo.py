"""EPO: entropy-regularised policy optimisation (arXiv 2509.22576).

A modifier that replaces the base method's entropy bonus. It adds to the loss, with ``H`` the entropy of the
next-token distribution and ``Hbar`` the mean of its averages over all earlier iterations,

    -coefficient * (H - beta * alpha * P(H))

``P`` is the penalty for leaving ``[kappa_low * Hbar, kappa_high * Hbar]``: the distance in the later version of the
paper (``hinge``), 1 in the first version (``indicator``, which has no gradient). Everything is averaged over the tokens
of a turn, the turns of a trajectory and the trajectories. ``released`` is what the released code does instead:
``Hbar`` for each turn position, the indicator, another schedule of ``beta``, and an average over tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, takewhile
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch
from turngym.trainers import functional as F
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.algorithms.base.clipped import one_of, required, sampled, within
from turngym.trainers.algorithms.base.modifier import Modifier, logged
from turngym.trainers.core.algorithm import Algorithm, Credit, LossInputs, LossOutput, Need, Term
from turngym.trainers.core.turn_table import TurnTable

Form: TypeAlias = Literal["hinge", "indicator", "released"]
Level: TypeAlias = Literal["token", "turn"]
_RELEASED_ITERATIONS = 150
"""The released code's schedule has this length whatever the length of the training."""


@dataclass(frozen=True)
class EPOConfig:
    """Settings of EPO."""

    coefficient: float = 0.001
    """Weight of the whole regulariser."""
    kappa_low: float = 0.0
    """Lower end of the range, as a multiple of the mean of earlier entropies; at 0 it never binds."""
    kappa_high: float = 2.0
    """Upper end of the range, as a multiple of the mean of earlier entropies."""
    alpha: float = 0.1
    """Weight of the penalty for leaving the range, in addition to the schedule."""
    decay: float = 3.0
    """Decay rate of the penalty's schedule from 2 towards 1."""
    form: Form = "hinge"
    """The penalty: a differentiable distance, an indicator without gradient, or all that the released code does."""
    released_level: Level = "token"
    """Whether the released form judges each token or the mean of each turn."""
    released_max_turns: int = 50
    """The released form penalises only in batches that reach half of this turn limit."""

    def __post_init__(self) -> None:
        for setting in ("coefficient", "kappa_low", "alpha", "decay"):
            within(setting, getattr(self, setting), 0)
        if not self.kappa_low <= self.kappa_high:
            raise ConfigError(f"kappa_high must be at least kappa_low={self.kappa_low}, got {self.kappa_high}.")
        one_of("form", self.form, get_args(Form))
        one_of("released_level", self.released_level, get_args(Level))
        within("released_max_turns", self.released_max_turns, 1)


def released_references(history: Sequence[Sequence[float]]) -> list[float]:
    """Return the mean over past iterations of each turn position's entropy, as the released code forms it.

    Shorter iterations are padded with zeros on the left, so that their positions shift.

    >>> released_references([[1.0, 2.0], [4.0]])
    [0.5, 3.0]
    """
    longest = max(map(len, history), default=0)
    padded = [[0.0] * (longest - len(entropies)) + list(entropies) for entropies in history]
    return [sum(column) / len(padded) for column in zip(*padded, strict=True)]


@ALGORITHMS.register("epo")
class EPO(Modifier[EPOConfig]):
    """Entropy smoothing on another method."""

    Config: ClassVar[type[EPOConfig]] = EPOConfig

    def __init__(self, config: EPOConfig, base: Algorithm[Any]) -> None:
        super().__init__(config, base)
        self.base = self.base.without_entropy_bonus()
        self.history: list[float] = []
        self.turn_history: list[list[float]] = []
        self._iteration, self._num_iterations = 0, 1

    @property
    def needs(self) -> frozenset[Need]:
        """The entropy, and what the base needs."""
        return super().needs | {Need.ENTROPY}

    @property
    def normalisations(self) -> frozenset[str]:
        """The nested mean, and those of the base."""
        return super().normalisations | {"nested", "token"}

    def begin_iteration(self, iteration: int, num_iterations: int) -> None:
        """Store the progress of training, for the schedule."""
        super().begin_iteration(iteration, num_iterations)
        self._iteration, self._num_iterations = iteration, num_iterations

    def credit(self, table: TurnTable) -> Credit:
        """Assign credit as the base does; the released form compares by the position of turns in their episodes."""
        credit = super().credit(table)
        if self.config.form != "released":
            return credit
        position = table.to_tokens(table.turn)
        tokens = torch.bincount(position)
        last = int(table.turn.max()) if table.num_turns else 0
        columns = {
            "epo_position": position,
            "epo_tokens_at_position": tokens[position],
            "epo_batch": torch.tensor([last, len(tokens), len(position)]).expand(len(position), 3),
        }
        return replace(credit, columns={**credit.columns, **columns})

    def loss(self, inputs: LossInputs) -> LossOutput:
        """Return the base's terms and the regulariser."""
        output = self.base.loss(inputs)
        entropy = sampled(required(inputs.entropy, "entropy"), inputs)
        if self.config.form == "released":
            penalty, over = self._released_penalty(entropy, inputs), "token"
            beta = F.released_smoothing_weight(self._iteration, _RELEASED_ITERATIONS)
            positions = self._position_metrics(entropy.detach(), inputs)
        else:
            penalty, over = sampled(self._penalty(entropy), inputs), "nested"
            beta = F.smoothing_weight(self._iteration, self._num_iterations, decay=self.config.decay)
            positions = {}
        regulariser = -self.config.coefficient * (entropy - beta * self.config.alpha * penalty)
        metrics = {
            **output.metrics,
            **positions,
            "entropy_nested": Term(entropy.detach(), "nested"),
            "entropy_penalty": Term(penalty.detach(), over),
        }
        return replace(output, terms={**output.terms, "epo": Term(regulariser, over)}, metrics=metrics)

    def _penalty(self, entropy: Tensor) -> Tensor:
        if not self.history:
            return torch.zeros_like(entropy)
        penalty = F.hinge_penalty if self.config.form == "hinge" else F.indicator_penalty
        reference = sum(self.history) / len(self.history)
        return penalty(entropy, reference, low=self.config.kappa_low, high=self.config.kappa_high)

    @staticmethod
    def _batch(inputs: LossInputs) -> tuple[int, int, int]:
        """Return the last position of a turn in the batch, how many positions have tokens, and how many tokens."""
        found = inputs.numbers("epo_batch")[inputs.action_mask]
        last, positions, tokens = found[0].tolist() if len(found) else (0, 0, 0)
        return last, positions, tokens

    def _released_penalty(self, entropy: Tensor, inputs: LossInputs) -> Tensor:
        references = torch.tensor(released_references(self.turn_history), dtype=entropy.dtype, device=entropy.device)
        if len(references) == 0 or self._batch(inputs)[0] < self.config.released_max_turns // 2:
            return torch.zeros_like(entropy)
        judged = entropy if self.config.released_level == "token" else F.turn_mean(entropy, inputs.turn_ids)
        position = inputs.numbers("epo_position")
        reference = references[position.clamp_max(len(references) - 1)]
        penalty = F.indicator_penalty(judged, reference, low=self.config.kappa_low, high=self.config.kappa_high)
        return penalty * (inputs.action_mask & (position < len(references)))

    def _position_metrics(self, entropy: Tensor, inputs: LossInputs) -> dict[str, Term]:
        """Return the mean entropy of the tokens at each turn position, as means over all tokens of the batch."""
        position, tokens = inputs.numbers("epo_position"), inputs.numbers("epo_tokens_at_position")
        _, positions, total = self._batch(inputs)
        found = {}
        for k in range(positions):
            here = (position == k) & inputs.action_mask
            scale = total / int(tokens[here][0]) if bool(here.any()) else 0.0
            found[f"entropy_turn_{k}"] = Term(entropy * here * scale, "token")
        return found

    def observe(self, metrics: Mapping[str, float]) -> None:
        """Store the iteration's entropies."""
        super().observe(metrics)
        entropy = logged(metrics, "entropy_nested")
        if entropy is not None:
            self.history.append(entropy)
        by_turn = (logged(metrics, f"entropy_turn_{k}") for k in count())
        if entropies := [found for found in takewhile(lambda found: found is not None, by_turn) if found is not None]:
            self.turn_history.append(entropies)

    def state(self) -> dict[str, Any]:
        """Return the history of entropies, and the base's state."""
        return {**super().state(), "history": list(self.history), "turn_history": [list(x) for x in self.turn_history]}

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restore the history."""
        super().load_state(state)
        self.history = list(state["history"])
        self.turn_history = [list(entropies) for entropies in state["turn_history"]]
