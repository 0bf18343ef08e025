"""Training sequences: tokens with the positions whose log-probabilities are needed, and the batch made of them.

If the next prompt starts with the previous prompt plus completion, the turns share a sequence; otherwise a new one
begins. Loss inputs are compact: one column for each position that is read, not one for each token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from turngym.agents.trajectory import Trajectory
from turngym.lazy import Tensor, torch
from turngym.trainers.core.flattened import FlatTurn, flatten

if TYPE_CHECKING:
    from jaxtyping import Bool, Int


@dataclass(frozen=True, slots=True)
class Read:
    """One position of a sequence whose output is used.

    Args:
        position: Index into the sequence's ids; the network's output there predicts the next token.
        target: The sampled token that follows; -1 where only the critic reads.
        token: Index of that token among the table's sampled tokens; -1 where only the critic reads.
        turn: Row of the turn table; -1 at the prompt after the last turn.
        episode: Episode in the turn table.
    """

    position: int
    target: int
    token: int
    turn: int
    episode: int


@dataclass(frozen=True, slots=True)
class Row:
    """One training sequence and the positions that are read."""

    ids: tuple[int, ...]
    reads: tuple[Read, ...]


class _RowWriter:
    """Builds the sequences of one episode after another."""

    def __init__(self, merge: bool) -> None:
        self.merge = merge
        self.rows: list[Row] = []
        self._ids: tuple[int, ...] = ()
        self._reads: list[Read] = []

    def flush(self) -> None:
        """End the current sequence."""
        if self._reads:
            self.rows.append(Row(self._ids, tuple(self._reads)))
        self._ids, self._reads = (), []

    def add(self, prompt: tuple[int, ...], completion: tuple[int, ...], token: int, turn: int, episode: int) -> None:
        """Add one turn, or the prompt after the last turn, to the current or a new sequence."""
        if not (self.merge and self._ids and prompt[: len(self._ids)] == self._ids):
            self.flush()
        start = len(prompt)
        self._ids = prompt + completion
        if completion:
            self._reads += [Read(start + j - 1, c, token + j, turn, episode) for j, c in enumerate(completion)]
        else:
            self._reads.append(Read(start - 1, -1, -1, turn, episode))


def build_rows(trajectories: Sequence[Trajectory], with_final_prompts: bool, merge: bool = True) -> list[Row]:
    """Return the training sequences of trajectories that are in a turn table, in table order.

    Args:
        trajectories: Usable trajectories, the same as in the table.
        with_final_prompts: Whether the critic reads the prompt after the last turn of truncated episodes.
        merge: False gives every turn its own sequence; the loss and its gradient stay the same.
    """
    return rows_of(flatten(trajectories), with_final_prompts, merge)


def rows_of(turns: Sequence[FlatTurn], with_final_prompts: bool, merge: bool = True) -> list[Row]:
    """Return the training sequences of trajectories, given their turns from ``flatten``."""
    writer = _RowWriter(merge)
    for number, (episode, position, trajectory, turn, first_token) in enumerate(turns):
        if turn.prompt_ids:
            writer.add(turn.prompt_ids, turn.completion_ids, first_token, number, episode)
        if position + 1 == len(trajectory.turns):
            if with_final_prompts and trajectory.truncated and trajectory.final_prompt_ids:
                writer.add(trajectory.final_prompt_ids, (), -1, -1, episode)
            writer.flush()
    return writer.rows


@dataclass(frozen=True)
class Batch:
    """The training sequences of one iteration, with duplicates stored once.

    Args:
        sequences: Distinct token sequences with their read positions.
        sequence_of: The sequence of each row.
        token: Index of the sampled token of a column, -1 elsewhere, ``[row, column]``.
        turn: Row of the turn table, -1 elsewhere, ``[row, column]``.
        episode: Episode of each column, -1 in padding, ``[row, column]``.
    """

    sequences: tuple[Row, ...]
    sequence_of: Int[Tensor, "row"]
    token: Int[Tensor, "row column"]
    turn: Int[Tensor, "row column"]
    episode: Int[Tensor, "row column"]

    @property
    def action_mask(self) -> Bool[Tensor, "row column"]:
        """True where a column has a sampled token."""
        return self.token >= 0


def build_batch(rows: Sequence[Row]) -> Batch:
    """Find the distinct sequences and lay the columns out."""
    sequences: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
    distinct: list[Row] = []
    sequence_of = []
    for row in rows:
        key = (row.ids, tuple(read.position for read in row.reads))
        if key not in sequences:
            sequences[key] = len(distinct)
            distinct.append(row)
        sequence_of.append(sequences[key])
    columns = max((len(row.reads) for row in rows), default=0)

    def lay_out(name: str) -> Tensor:
        padded = [[getattr(read, name) for read in row.reads] + [-1] * (columns - len(row.reads)) for row in rows]
        return torch.tensor(padded, dtype=torch.long).reshape(len(rows), columns)

    return Batch(
        tuple(distinct),
        torch.tensor(sequence_of, dtype=torch.long),
        lay_out("token"),
        lay_out("turn"),
        lay_out("episode"),
    )


@dataclass(frozen=True)
class MicroBatch:
    """Some distinct sequences and every row that repeats one of them.

    Args:
        sequences: Indices of the sequences.
        rows: Indices of the rows.
        sequence_of: For each of these rows, its position in ``sequences``.
    """

    sequences: Int[Tensor, "sequence"]
    rows: Int[Tensor, "row"]
    sequence_of: Int[Tensor, "row"]


def micro_batches(batch: Batch, sequences: Sequence[int], max_tokens: int) -> list[MicroBatch]:
    """Cut sequences into micro-batches of at most ``max_tokens`` padded tokens, similar lengths together."""
    order = sorted(sequences, key=lambda s: (len(batch.sequences[s].ids), s))
    chunks: list[list[int]] = []
    for s in order:
        if chunks and len(batch.sequences[s].ids) * (len(chunks[-1]) + 1) <= max_tokens:
            chunks[-1].append(s)
        else:
            chunks.append([s])
    position = torch.full((len(batch.sequences),), -1, dtype=torch.long)
    found = []
    for chunk in chunks:
        index = torch.tensor(chunk, dtype=torch.long)
        position[index] = torch.arange(len(chunk))
        rows = torch.nonzero(position[batch.sequence_of] >= 0).flatten()
        found.append(MicroBatch(index, rows, position[batch.sequence_of[rows]]))
        position[index] = -1
    return found
