"""From episodes to loss inputs: the interface between rollouts and any optimiser."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.errors import ConfigError
from turngym.lazy import Tensor, nn, no_grad, torch
from turngym.trainers.core import context
from turngym.trainers.core.algorithm import Algorithm, Credit, LossInputs, Need
from turngym.trainers.core.columns import check_token_columns, lay_out, lay_out_column
from turngym.trainers.core.finite import check_advantages
from turngym.trainers.core.flattened import check_tokens, flatten
from turngym.trainers.core.rows import Batch, MicroBatch, Row, build_batch, micro_batches, rows_of
from turngym.trainers.core.turn_table import TurnTable, table_of
from turngym.trainers.core.update_config import (
    EVERYTHING,
    Exclusion,
    LayoutName,
    OldLogprobs,
    default_micro_batch_tokens,
)
from turngym.trainers.engine.adapters import adapters_off
from turngym.trainers.engine.layouts import ROWS, Layout
from turngym.trainers.engine.layouts.check import require_layout
from turngym.trainers.engine.layouts.pictures import layout_for
from turngym.trainers.engine.scoring import Critic, score
from turngym.trainers.functional import loss_weights

FirstPass: TypeAlias = Callable[[list[int]], Sequence[Sequence[int]]]


def one_update(sequences: list[int]) -> Sequence[Sequence[int]]:
    """Return all sequences as those of one update."""
    return [sequences]


@dataclass(frozen=True)
class Networks:
    """The networks that a batch is evaluated with.

    Args:
        policy: The policy's network.
        temperature: The sampler's temperature: log-probabilities are those of the distribution that was sampled from.
        critic: For methods that need values.
        reference: A frozen policy, for methods that need its log-probabilities; the policy itself stands for what it
            is without its low-rank adapters.
        max_tokens: Tokens that go through a network together, padding included; 0 takes the layout's own number.
        layout: How sequences go through a network.
    """

    policy: Any
    temperature: float = 1.0
    critic: Critic | None = None
    reference: nn.Module | None = None
    max_tokens: int = 0
    layout: Layout = ROWS

    @property
    def token_limit(self) -> int:
        """Tokens that go through a network together, padding included."""
        return self.max_tokens or default_micro_batch_tokens(self.policy.device.type, self.layout.name)


@dataclass(frozen=True)
class PreparedBatch:
    """The episodes of an iteration with their credit, ready for losses.

    Args:
        trajectories: The episodes that are trained on.
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

    @property
    def sequences(self) -> list[int]:
        """The distinct token sequences in which something was sampled, as ``micro_batches`` takes them."""
        return _scored_sequences(self._batch)

    @property
    def num_sequences(self) -> int:
        """Number of distinct token sequences, including those that only a critic reads."""
        return len(self._batch.sequences)

    def micro_batches(
        self, *, max_tokens: int = 0, sequences: Sequence[int] | None = None, scale: float = 1.0
    ) -> Iterator[LossInputs]:
        """Yield the loss inputs of each micro-batch; the sum of their losses is the batch's loss.

        Args:
            max_tokens: Tokens that go through the network together, padding included; 0 takes what ``prepare`` was
                given.
            sequences: Some of ``sequences``, for several updates on one batch; all by default.
            scale: What the weights are multiplied by; with every sequence in one of ``n`` updates it is ``n``.
        """
        chosen = self.sequences if sequences is None else sequences
        networks = self._networks
        for part in micro_batches(self._batch, chosen, max_tokens or networks.token_limit, networks.layout.cut):
            yield self._inputs(part, scale)

    def _inputs(self, part: MicroBatch, scale: float) -> LossInputs:
        batch, networks, credit = self._batch, self._networks, self.credit
        sequences = [batch.sequences[int(s)] for s in part.sequences]
        scores = score(networks.policy, sequences, networks.temperature, self._with_entropy, networks.layout)
        width, token = scores.logprobs.shape[1], batch.token[part.rows]
        dtype, device = scores.logprobs.dtype, scores.logprobs.device
        token, turn = token[:, :width], batch.turn[part.rows][:, :width]
        sequence_of = part.sequence_of.to(device)
        critic = networks.critic

        def column(flat: Tensor, fill: float = 0.0) -> Tensor:
            return lay_out(flat, token, fill).to(device=device, dtype=dtype)

        def optional(flat: Tensor | None, fill: float = 0.0) -> Tensor | None:
            return None if flat is None else column(flat, fill)

        return LossInputs(
            logprobs=scores.logprobs[sequence_of],
            old_logprobs=column(self.table.token_old_logprob),
            advantages=column(credit.advantages),
            action_mask=(token >= 0).to(device),
            turn_ids=torch.where(token >= 0, turn, -1).to(device),
            weights={name: column(flat * scale) for name, flat in self._weights.items()},
            entropy=None if scores.entropy is None else scores.entropy[sequence_of],
            reference_logprobs=optional(self.table.token_reference_logprob),
            sampler_logprobs=None if self.table.token_trainer_logprob is None else column(self.table.token_logprob),
            values=None if critic is None else critic(sequences, networks.layout)[sequence_of],
            old_values=optional(self.table.token_value),
            returns=optional(credit.returns, float("nan")),
            columns={name: lay_out_column(each, token, device) for name, each in credit.columns.items()},
        )


def prepare(
    trajectories: Sequence[Trajectory],
    policy: LanguageModel,
    algorithm: Algorithm[Any],
    *,
    temperature: float = 1.0,
    critic: Critic | None = None,
    reference: nn.Module | None = None,
    exclusion: Exclusion = EVERYTHING,
    old_logprobs: OldLogprobs = "sampler",
    first_pass: FirstPass = one_update,
    merge_rows: bool = True,
    max_tokens: int = 0,
    layout: LayoutName = "rows",
) -> PreparedBatch:
    """Assign credit to episodes and lay them out for losses.

    ``method.loss(inputs).total(inputs).backward()`` for each of its micro-batches accumulates the gradients of the
    whole batch, for any optimiser. Episodes with a fault, and ones without a turn, are left out.

    Args:
        trajectories: Episodes that the policy played.
        policy: The policy.
        algorithm: The method.
        temperature: The temperature that the episodes were sampled with.
        critic: For methods that need values; its parameters are trained by the same losses.
        reference: A frozen copy of a policy's network, for methods that need its log-probabilities; with low-rank
            adapters the policy's network itself, which is then scored without them.
        exclusion: What becomes of episodes and completions that were cut off, see
            :class:`turngym.trainers.core.update_config.UpdateConfig`.
        old_logprobs: What ratios are taken against, see there; methods that need the trainer's get them anyway.
        first_pass: Sequences to those of each update of the first pass over the batch. The trainer's log-probabilities
            are computed in the micro-batches of these updates, because in 16 bits a sequence's depend on what goes
            through the network beside it.
        merge_rows: False gives every turn its own sequence; the loss and its gradient stay the same.
        max_tokens: Tokens that go through a network together, padding included; 0 takes the layout's own number.
        layout: How sequences go through a network, see there; the loss and its gradient stay the same.

    Raises:
        ConfigError: Critic or reference is missing, a turn's tokens and log-probabilities do not match, or the network
            computes something else in that layout.
        DivergenceError: A reward or an advantage is not finite.
    """
    _require(algorithm, Need.VALUES, critic, "critic=Critic(policy.network), and let the optimiser have its parameters")
    _require(algorithm, Need.REFERENCE_LOGPROBS, reference, "reference=copy.deepcopy(policy.network)")
    networks = Networks(policy.network, temperature, critic, reference, max_tokens, layout_for(policy, layout))
    require_layout(policy.network, networks.layout)
    kept = context.kept(trajectories, exclusion.on_context)
    turns = flatten(kept)
    check_tokens(turns)
    table = context.masked(table_of(kept, turns), kept, exclusion)
    rows = rows_of(turns, with_final_prompts=critic is not None, merge=merge_rows) if table.has_loss else []
    batch = build_batch(rows)
    if critic is not None and rows:
        table = with_values(batch, table, critic, networks.token_limit, networks.layout)
    if reference is not None and rows:
        with adapters_off(policy.network) if reference is policy.network else nullcontext():
            found = sampled_logprobs(batch, table, reference, networks)
        table = replace(table, token_reference_logprob=found)
    if rows and (old_logprobs == "trainer" or Need.TRAINER_LOGPROBS in algorithm.needs):
        updates = first_pass(_scored_sequences(batch))
        found = sampled_logprobs(batch, table, networks.policy, networks, updates)
        table = replace(table, token_trainer_logprob=found)
    credit = algorithm.credit(table) if rows else Credit(torch.zeros(len(table.token_turn), dtype=torch.float64))
    check_advantages(credit.advantages, table, kept)
    check_token_columns(credit.columns, len(table.token_turn))
    weights = {name: loss_weights(table, name, credit.masked) for name in algorithm.normalisations} if rows else {}
    return PreparedBatch(kept, table, credit, len(rows), batch, networks, weights, Need.ENTROPY in algorithm.needs)


def _require(algorithm: Algorithm[Any], need: Need, given: object, way_out: str) -> None:
    if need in algorithm.needs and given is None:
        raise ConfigError(f"{type(algorithm).__name__} needs {need.value.replace('_', ' ')}: pass {way_out}.")


@no_grad
def _map_reads(
    batch: Batch,
    read: Callable[[Sequence[Row], Layout], Tensor],
    max_tokens: int,
    layout: Layout,
    updates: Sequence[Sequence[int]] | None = None,
) -> Tensor:
    """Return the output of ``read`` for every sequence, or those of some updates, laid out as ``[row, column]``."""
    found = torch.zeros(batch.token.shape, dtype=torch.float64)
    for chosen in [range(len(batch.sequences))] if updates is None else updates:
        for part in micro_batches(batch, chosen, max_tokens, layout.cut):
            values = read([batch.sequences[int(s)] for s in part.sequences], layout).double().cpu()
            found[part.rows, : values.shape[1]] = values[part.sequence_of]
    return found


def _scored_sequences(batch: Batch) -> list[int]:
    """Return the distinct sequences in which something was sampled."""
    found = enumerate(batch.sequences)
    return [number for number, row in found if bool((row.reads.token >= 0).any())]


def with_values(batch: Batch, table: TurnTable, critic: Critic, max_tokens: int, layout: Layout = ROWS) -> TurnTable:
    """Return the table with the critic's columns filled in."""
    values = _map_reads(batch, critic, max_tokens, layout)
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


def sampled_logprobs(
    batch: Batch,
    table: TurnTable,
    network: Any,
    networks: Networks,
    updates: Sequence[Sequence[int]] | None = None,
) -> Tensor:
    """Return the log-probability of each sampled token of the table under a network, without gradients.

    Args:
        batch: The sequences.
        table: The table.
        network: The network.
        networks: How sequences go through it.
        updates: The sequences of each update, which are cut into the same micro-batches as there.
    """

    def read(part: Sequence[Row], layout: Layout) -> Tensor:
        return score(network, part, networks.temperature, layout=layout).logprobs

    laid_out = _map_reads(batch, read, networks.token_limit, networks.layout, updates)
    found = torch.zeros(len(table.token_turn), dtype=torch.float64)
    found[batch.token[batch.action_mask]] = laid_out[batch.action_mask]
    return found
