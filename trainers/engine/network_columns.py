"""Columns of a turn table computed by networks without gradients: values and log-probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from turngym.agents.trajectory import Trajectory
from turngym.lazy import Tensor, nn, no_grad, torch
from turngym.trainers.core.algorithm import Algorithm, Need
from turngym.trainers.core.rows import Batch, MicroBatch, Row, build_batch, micro_batches
from turngym.trainers.core.turn_table import TurnTable
from turngym.trainers.core.update_config import default_micro_batch_tokens
from turngym.trainers.engine.divergences import TeacherStates, head_as_it_is, hidden_states
from turngym.trainers.engine.layouts import ROWS, Layout
from turngym.trainers.engine.layouts.check import fits
from turngym.trainers.engine.lessons import rows_after
from turngym.trainers.engine.ranks.spread import Replicated, Spread
from turngym.trainers.engine.scoring import Critic, score
from turngym.trainers.engine.teachers import Teacher

Updates: TypeAlias = Sequence[Sequence[int]]
"""The sequences of each update of a pass over a batch."""


@dataclass(frozen=True)
class Networks:
    """Networks for the evaluation of a batch.

    Args:
        policy: The policy's network.
        temperature: The sampler's temperature; log-probabilities are those of the sampling distribution.
        critic: Critic, for methods that need values.
        reference: Frozen policy, for methods that need its log-probabilities; the policy itself means the policy
            without its low-rank adapters.
        max_tokens: Tokens per forward pass, padding included; 0 for the layout's default.
        layout: Layout of sequences.
        spread: Distribution of the networks over ranks.
    """

    policy: Any
    temperature: float = 1.0
    critic: Critic | None = None
    reference: nn.Module | None = None
    max_tokens: int = 0
    layout: Layout = ROWS
    spread: Spread = field(default_factory=Replicated)

    @property
    def token_limit(self) -> int:
        """Tokens per forward pass, padding included."""
        return self.max_tokens or default_micro_batch_tokens(self.policy.device.type, self.layout.name)


def lengths_of(batch: Batch) -> list[int]:
    """Return the number of tokens of each distinct sequence."""
    return [len(row.ids) for row in batch.sequences]


def shortest(batch: Batch) -> MicroBatch:
    """Return the cheapest micro-batch: the shortest sequence of a batch with all its rows."""
    lengths = lengths_of(batch)
    return micro_batches(batch, [lengths.index(min(lengths))], max(lengths))[0]


@no_grad
def _map_reads(
    batch: Batch,
    read: Callable[[Sequence[Row], Layout], Tensor],
    max_tokens: int,
    layout: Layout,
    spread: Spread,
    updates: Updates | None = None,
    like: Tensor | None = None,
) -> Tensor:
    """Return the outputs of ``read`` for every sequence, or those of some updates, laid out as ``[row, column]``.

    Numbers are returned in double precision; vectors have the size and the precision of ``like``.

    Each rank computes its share of every update, with 0 elsewhere; the results are summed over ranks.
    """
    like = torch.zeros((), dtype=torch.float64) if like is None else like
    found = like.new_zeros(*batch.token.shape, *like.shape)
    lengths = lengths_of(batch)
    parts: list[MicroBatch] = []
    for chosen in [range(len(batch.sequences))] if updates is None else updates:
        parts += micro_batches(batch, spread.mine(chosen, lengths), max_tokens, layout.cut)

    def read_own() -> None:
        total = spread.passes(len(parts))  # before the first, in which other ranks may take part
        outputs = [read([batch.sequences[int(s)] for s in part.sequences], layout) for part in parts]
        for part, values in zip(parts, _on_host(outputs, like.dtype), strict=True):
            found[part.rows, : values.shape[1]] = values[part.sequence_of]
        for _ in range(total - len(parts)):
            read([batch.sequences[int(s)] for s in shortest(batch).sequences], layout)

    spread.together(read_own)
    columns = batch.episode >= 0
    flat = found[columns]
    spread.ranks.sum([flat])
    found[columns] = flat
    return found


def _on_host(outputs: Sequence[Tensor], dtype: torch.dtype) -> list[Tensor]:
    """Return outputs in one precision on the host, with a single synchronisation for all passes."""
    if not outputs:
        return []
    flat = torch.cat([each.to(dtype).flatten() for each in outputs]).cpu()
    parts = flat.split([each.numel() for each in outputs])
    return [part.view(each.shape) for part, each in zip(parts, outputs, strict=True)]


def with_values(
    batch: Batch,
    table: TurnTable,
    critic: Critic,
    max_tokens: int,
    layout: Layout = ROWS,
    spread: Spread | None = None,
) -> TurnTable:
    """Return the table with the critic's columns filled in."""
    values = _map_reads(batch, critic, max_tokens, layout, spread or Replicated())
    token_value = torch.zeros(len(table.token_turn), dtype=torch.float64)
    token_value[batch.token[batch.action_mask]] = values[batch.action_mask]
    turn_value = torch.zeros(table.num_turns, dtype=torch.float64)
    empty = (batch.token < 0) & (batch.turn >= 0)
    turn_value[batch.turn[empty]] = values[empty]
    first = table.first_tokens()
    turn_value[table.token_turn[first]] = token_value[first]
    final_value = torch.zeros(table.num_episodes, dtype=torch.float64)
    final_value[table.episode[table.truncated]] = turn_value[table.truncated]  # if no prompt follows
    final = (batch.turn < 0) & (batch.episode >= 0)
    final_value[batch.episode[final]] = values[final]
    return table.with_values(turn_value, token_value, final_value)


def teacher_states(batch: Batch, table: TurnTable, teacher: Teacher, networks: Networks) -> TeacherStates:
    """Return a teacher's distributions at the sampled tokens of the table, without gradients.

    Args:
        batch: The teacher's sequences.
        table: The table.
        teacher: The teacher, within :meth:`.Teacher.ready`.
        networks: Layout of sequences.
    """
    network = teacher.network

    def read(part: Sequence[Row], layout: Layout) -> Tensor:
        return hidden_states(network, part, layout)

    head = head_as_it_is(network)
    like = torch.zeros(head.weight.shape[1], dtype=torch.promote_types(head.weight.dtype, torch.float32))
    laid_out = _map_reads(batch, read, networks.token_limit, networks.layout, networks.spread, like=like)
    found, known = (
        like.new_zeros(len(table.token_turn), len(like)),
        torch.zeros(len(table.token_turn), dtype=torch.bool),
    )
    found[batch.token[batch.action_mask]] = laid_out[batch.action_mask]
    known[batch.token[batch.action_mask]] = True
    return TeacherStates(found, known, head)


def sampled_logprobs(
    batch: Batch,
    table: TurnTable,
    network: Any,
    networks: Networks,
    updates: Updates | None = None,
    fill: float = 0.0,
) -> Tensor:
    """Return the log-probability of each sampled token of the table under a network, without gradients.

    Args:
        batch: The sequences.
        table: The table.
        network: The network.
        networks: Layout of sequences.
        updates: The sequences of each update, split into the same micro-batches as in the update.
        fill: Value for tokens in none of the sequences.
    """

    def read(part: Sequence[Row], layout: Layout) -> Tensor:
        return score(network, part, networks.temperature, layout=layout).logprobs

    laid_out = _map_reads(batch, read, networks.token_limit, networks.layout, networks.spread, updates)
    found = torch.full((len(table.token_turn),), fill, dtype=torch.float64)
    found[batch.token[batch.action_mask]] = laid_out[batch.action_mask]
    return found


def with_distributions(
    table: TurnTable, batch: Batch, networks: Networks, algorithm: Algorithm[Any], states: TeacherStates | None
) -> TurnTable:
    """Return the table with the columns of the policy's whole distributions that the credit needs.

    Args:
        table: The table.
        batch: The sequences.
        networks: The networks.
        algorithm: The method.
        states: Distributions for the divergence.
    """
    needs, form = algorithm.needs, algorithm.divergence
    if not needs & {Need.SQUARED_PROBABILITIES, Need.DIVERGENCES}:
        return table
    own = teacher_states(batch, table, Teacher(networks.policy), networks)
    if Need.SQUARED_PROBABILITIES in needs:
        table = replace(table, token_squares=own.squares(networks.temperature))
    if Need.DIVERGENCES in needs and states is not None and form is not None:
        table = replace(table, token_divergence=own.divergence(states, form, networks.temperature))
    return table


def with_teacher(
    table: TurnTable,
    kept: Sequence[Trajectory],
    rows: Sequence[Row],
    batch: Batch,
    networks: Networks,
    teacher: Teacher,
    with_states: bool,
) -> tuple[TurnTable, TeacherStates | None]:
    """Return the table with the teacher's log-probabilities, nan in episodes without a lesson.

    With states, the teacher's distributions at the sampled tokens are also returned.
    """
    if teacher.lessons is not None:
        batch = build_batch(rows_after(rows, teacher.lessons(kept)))
    if not fits(teacher.network, networks.layout):
        networks = replace(networks, layout=ROWS)
    found, states = scored_by(teacher, table, kept, batch, networks, with_states, fill=float("nan"))
    return replace(table, token_teacher_logprob=found), states


def scored_by(
    teacher: Teacher,
    table: TurnTable,
    kept: Sequence[Trajectory],
    batch: Batch,
    networks: Networks,
    with_states: bool,
    fill: float,
) -> tuple[Tensor, TeacherStates | None]:
    """Return log-probabilities of the sampled tokens under a network, and optionally its distributions."""
    with teacher.ready():
        if not with_states:
            return sampled_logprobs(batch, table, teacher.network, networks, fill=fill), None
        states = teacher_states(batch, table, teacher, networks)
        ids = [token for each in kept for turn in each.turns for token in turn.completion_ids]
        return states.logprobs(torch.tensor(ids, dtype=torch.long), networks.temperature), states
