"""From episodes to loss inputs: the interface between rollouts and any optimiser."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

from turngym.agents.models.loading import LanguageModel, require_same_tokens
from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.lazy import Tensor, nn, torch
from turngym.trainers.core import context
from turngym.trainers.core.algorithm import Algorithm, Credit, Divergence, LossInputs, Need
from turngym.trainers.core.columns import SampledTokens, check_token_columns, lay_out, lay_out_column
from turngym.trainers.core.finite import check_advantages
from turngym.trainers.core.flattened import check_tokens, flatten
from turngym.trainers.core.rows import Batch, MicroBatch, build_batch, micro_batches, rows_of
from turngym.trainers.core.turn_table import TurnTable, table_of
from turngym.trainers.core.update_config import EVERYTHING, Exclusion, LayoutName, OldLogprobs
from turngym.trainers.engine.divergences import Compared, TeacherStates
from turngym.trainers.engine.layouts.check import require_layout
from turngym.trainers.engine.layouts.pictures import layout_for
from turngym.trainers.engine.network_columns import (
    Networks,
    lengths_of,
    sampled_logprobs,
    scored_by,
    shortest,
    with_distributions,
    with_teacher,
    with_values,
)
from turngym.trainers.engine.other_prompts import with_other_prompts
from turngym.trainers.engine.ranks.spread import Replicated, Spread
from turngym.trainers.engine.scoring import Critic, score
from turngym.trainers.engine.teachers import Teacher, require_teacher
from turngym.trainers.functional import loss_weights

_FirstPass: TypeAlias = Callable[[list[int]], Sequence[Sequence[int]]]


def one_update(sequences: list[int]) -> Sequence[Sequence[int]]:
    """Return all sequences as a single update."""
    return [sequences]


@dataclass(frozen=True)
class PreparedBatch:
    """The episodes of an iteration with their credit, ready for losses.

    Args:
        trajectories: The training episodes.
        table: Their turns.
        credit: The algorithm's credit of their sampled tokens.
        num_rows: Number of training sequences before deduplication.
    """

    trajectories: list[Trajectory]
    table: TurnTable
    credit: Credit
    num_rows: int
    _batch: Batch
    _networks: Networks
    _weights: Mapping[str, Tensor]
    _with_entropy: bool
    _is_own_old: bool = False
    """True if the old log-probabilities of ratios are those of the loss's own forward pass."""
    _compared: tuple[TeacherStates, Divergence] | None = None
    """The teacher's distributions, and the divergence."""
    _with_observations: bool = False

    @cached_property
    def num_observed(self) -> int:
        """Number of observation tokens for the loss, repeated sequences included."""
        batch = self._batch
        return int(batch.observed[batch.action_mask.any(-1)].sum())

    @property
    def sequences(self) -> list[int]:
        """The distinct sequences with sampled tokens, for ``micro_batches``."""
        return _scored_sequences(self._batch)

    @property
    def num_sequences(self) -> int:
        """Number of distinct token sequences, including those that only a critic reads."""
        return len(self._batch.sequences)

    def refreshed(self, algorithm: Algorithm[Any]) -> PreparedBatch:
        """Return the batch with the columns that a method makes of the policy as it is before an update."""
        now = sampled_logprobs(self._batch, self.table, self._networks.policy, self._networks)
        columns = {**self.credit.columns, **algorithm.update_columns(self.table, now)}
        return replace(self, credit=replace(self.credit, columns=columns))

    def micro_batches(
        self, *, max_tokens: int = 0, sequences: Sequence[int] | None = None, scale: float = 1.0
    ) -> Iterator[LossInputs]:
        """Yield the loss inputs of each micro-batch; the sum of their losses is the batch's loss.

        Args:
            max_tokens: Tokens per forward pass, padding included; 0 for the value given to ``prepare``.
            sequences: Some of ``sequences``, for several updates on one batch; all by default.
            scale: Factor of the weights: ``n`` if every sequence is in one of ``n`` updates.
        """
        chosen = self.sequences if sequences is None else sequences
        networks = self._networks
        for part in micro_batches(self._batch, chosen, max_tokens or networks.token_limit, networks.layout.cut):
            yield self._inputs(part, scale)

    def passes(self, sequences: Sequence[int], scale: float = 1.0) -> Iterator[tuple[LossInputs, bool]]:
        """Yield the micro-batches of this rank's share of some sequences, each with a flag if it counts.

        Passes that do not count, with weights 0, keep the ranks synchronised.

        Args:
            sequences: Some of ``sequences``, the same on every rank.
            scale: Factor of the weights.
        """
        networks, batch = self._networks, self._batch
        mine = networks.spread.mine(sequences, lengths_of(batch))
        parts = micro_batches(batch, mine, networks.token_limit, networks.layout.cut)
        total = networks.spread.passes(len(parts))  # before the first, in which other ranks may take part
        for part in parts:
            yield self._inputs(part, scale), True
        for _ in range(total - len(parts)):
            yield self._inputs(shortest(batch), 0.0), False

    def _inputs(self, part: MicroBatch, scale: float) -> LossInputs:
        batch, networks, credit = self._batch, self._networks, self.credit
        sequences = [batch.sequences[int(s)] for s in part.sequences]
        width = max(len(row.reads) for row in sequences)
        token = batch.token[part.rows][:, :width]
        compared = Compared(*self._compared, token, part.sequence_of) if self._compared else None
        scores = score(networks.policy, sequences, networks.temperature, self._with_entropy, networks.layout, compared)
        dtype, device = scores.logprobs.dtype, scores.logprobs.device
        turn = torch.where(token >= 0, batch.turn[part.rows][:, :width], -1)
        sequence_of = part.sequence_of.to(device)
        critic = networks.critic

        def column(flat: Tensor, fill: float = 0.0) -> Tensor:
            return lay_out(flat, token, fill).to(device=device, dtype=dtype)

        def optional(flat: Tensor | None, fill: float = 0.0) -> Tensor | None:
            return None if flat is None else column(flat, fill)

        logprobs, own = scores.logprobs[sequence_of], self._is_own_old
        weights = {name: column(flat * scale) for name, flat in self._weights.items()}
        observed = batch.observed[part.rows][:, :width].to(device) if self._with_observations else None
        if observed is not None:
            weights["observation"] = observed.to(dtype) * (scale / max(self.num_observed, 1))
        has_trainers = own or self.table.token_trainer_logprob is not None
        return LossInputs(
            logprobs=logprobs,
            old_logprobs=logprobs.detach() if own else column(self.table.token_old_logprob),
            advantages=column(credit.advantages),
            action_mask=(token >= 0).to(device),
            turn_ids=turn.to(device),
            weights=weights,
            entropy=None if scores.entropy is None else scores.entropy[sequence_of],
            reference_logprobs=optional(self.table.token_reference_logprob),
            sampler_logprobs=column(self.table.token_logprob) if has_trainers else None,
            values=None if critic is None else critic(sequences, networks.layout)[sequence_of],
            old_values=optional(self.table.token_value),
            returns=optional(credit.returns, float("nan")),
            columns={name: lay_out_column(each, token, device) for name, each in credit.columns.items()},
            divergence=scores.divergence,
            sampled=SampledTokens.of(turn).to(device),
            observed=observed,
        )


def prepare(
    trajectories: Sequence[Trajectory],
    policy: LanguageModel,
    algorithm: Algorithm[Any],
    *,
    temperature: float = 1.0,
    critic: Critic | None = None,
    reference: LanguageModel | nn.Module | None = None,
    teacher: LanguageModel | Teacher | None = None,
    exclusion: Exclusion = EVERYTHING,
    old_logprobs: OldLogprobs | Literal["own"] = "sampler",
    first_pass: _FirstPass = one_update,
    merge_rows: bool = True,
    max_tokens: int = 0,
    layout: LayoutName = "rows",
    spread: Spread | None = None,
) -> PreparedBatch:
    """Assign credit to episodes and prepare them for losses.

    ``method.loss(inputs).total(inputs).backward()`` for each of its micro-batches accumulates the gradients of the
    whole batch, for any optimiser. Episodes with a fault or without turns are excluded.

    Args:
        trajectories: Episodes that the policy played.
        policy: The policy.
        algorithm: The method.
        temperature: Sampling temperature of the episodes.
        critic: Critic, for methods that need values; its parameters are trained by the same losses.
        reference: Reference policy, for methods that need its log-probabilities: a model with the policy's tokenizer,
            or a frozen copy of a policy's network; with low-rank adapters the policy's network itself, scored without
            them.
        teacher: Teacher, for methods that learn from one: a model with the policy's tokenizer, or a result of
            :func:`turngym.trainers.engine.teachers.make_teacher`.
        exclusion: Handling of truncated episodes and completions, see
            :class:`turngym.trainers.core.update_config.UpdateConfig`.
        old_logprobs: Source of the old log-probabilities, see there; methods that need the trainer's always get them.
            ``own`` uses the trainer's from the loss's own forward pass, which saves a pass; only for a single update
            and a method whose credit does not use them.
        first_pass: Maps the sequences to those of each update of the first pass over the batch. The trainer's
            log-probabilities are computed in the micro-batches of these updates, because in 16 bits they depend on the
            composition of the batch.
        merge_rows: If False, every turn is its own sequence, with the same loss and gradient.
        max_tokens: Tokens per forward pass, padding included; 0 for the layout's default.
        layout: Batch layout, see there; does not affect loss and gradient.
        spread: Distribution of the networks over ranks, which all have the same episodes; one rank by default.

    Raises:
        ConfigError: Critic, reference or teacher is missing or has another tokenizer, a turn's tokens and
            log-probabilities do not match, or the network does not support the layout.
        DivergenceError: A reward or an advantage is not finite.
    """
    _require(algorithm, Need.VALUES, critic, "critic=Critic(policy.network), and let the optimiser have its parameters")
    _require(algorithm, Need.REFERENCE_LOGPROBS, reference, "reference=copy.deepcopy(policy.network)")
    if Need.TEACHER_LOGPROBS in algorithm.needs:
        require_teacher(type(algorithm).__name__, teacher)
    if isinstance(reference, LanguageModel):
        require_same_tokens(policy, reference, "reference")
        reference = reference.network
    if isinstance(teacher, LanguageModel):
        require_same_tokens(policy, teacher, "teacher")
        teacher = Teacher(teacher.network)
    chosen = layout_for(policy, layout)
    require_layout(policy.network, chosen)
    networks = Networks(policy.network, temperature, critic, reference, max_tokens, chosen, spread or Replicated())
    kept = context.kept(trajectories, exclusion.on_context)
    turns = flatten(kept)
    check_tokens(turns)
    table = context.masked(table_of(kept, turns), kept, exclusion)
    observed = Need.OBSERVATIONS in algorithm.needs
    rows = rows_of(turns, critic is not None, merge_rows, observed) if table.has_loss else []
    batch = build_batch(rows)
    if not rows:
        nothing = Credit(torch.zeros(len(table.token_turn), dtype=torch.float64))
        return PreparedBatch(kept, table, nothing, 0, batch, networks, {}, Need.ENTROPY in algorithm.needs)
    wanted = {Need.TRAINER_LOGPROBS} | ({Need.OLD_LOGPROBS} if old_logprobs == "own" else set())
    trainers = old_logprobs == "trainer" or bool(wanted & algorithm.needs)
    form = algorithm.divergence
    source = None if form is None else form.source
    table, states = _with_columns(table, kept, batch, networks, first_pass if trainers else None, source == "reference")
    if teacher is not None:
        table, taught = with_teacher(table, kept, rows, batch, networks, teacher, source == "teacher")
        states = states or taught
    table = with_distributions(table, batch, networks, algorithm, states)
    if Need.OTHER_PROMPTS in algorithm.needs:
        table = with_other_prompts(table, turns, policy, networks, algorithm.other_observation)
    credit = _checked_credit(algorithm, table, kept)
    weights = {name: loss_weights(table, name, credit.masked) for name in algorithm.normalisations}
    is_own = old_logprobs == "own" and not trainers
    with_entropy = Need.ENTROPY in algorithm.needs
    compared = (states, form) if states is not None and form is not None else None
    return PreparedBatch(
        kept, table, credit, len(rows), batch, networks, weights, with_entropy, is_own, compared, observed
    )


def _with_columns(
    table: TurnTable,
    kept: Sequence[Trajectory],
    batch: Batch,
    networks: Networks,
    first_pass: _FirstPass | None,
    with_states: bool,
) -> tuple[TurnTable, TeacherStates | None]:
    """Return the table with the networks' columns, the trainer's log-probabilities only with a first pass.

    With states, the reference's distributions at the sampled tokens are also returned.
    """
    states = None
    policy, reference, critic = networks.policy, networks.reference, networks.critic
    if critic is not None:
        table = with_values(batch, table, critic, networks.token_limit, networks.layout, networks.spread)
    if reference is not None:
        found, states = scored_by(
            Teacher(reference, is_bare=reference is policy), table, kept, batch, networks, with_states, fill=0.0
        )
        table = replace(table, token_reference_logprob=found)
    if first_pass is not None:
        found = sampled_logprobs(batch, table, policy, networks, first_pass(_scored_sequences(batch)))
        table = replace(table, token_trainer_logprob=found)
    return table, states


def _checked_credit(algorithm: Algorithm[Any], table: TurnTable, kept: Sequence[Trajectory]) -> Credit:
    credit = algorithm.credit(table)
    check_advantages(credit.advantages, table, kept)
    check_token_columns(credit.columns, len(table.token_turn))
    return credit


def _require(algorithm: Algorithm[Any], need: Need, given: object, way_out: str) -> None:
    if need in algorithm.needs and given is None:
        raise ConfigError(f"{type(algorithm).__name__} needs {need.value.replace('_', ' ')}: pass {way_out}.")


def _scored_sequences(batch: Batch) -> list[int]:
    """Return the distinct sequences with sampled tokens."""
    found = enumerate(batch.sequences)
    return [number for number, row in found if bool((row.reads.token >= 0).any())]
