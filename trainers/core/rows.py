"""Training sequences: tokens with the positions whose log-probabilities are needed, and batches of them.

If a prompt starts with an earlier prompt plus completion of the episode, the turns share a sequence; otherwise a new
one starts. A conversation is therefore one sequence per episode, and interleaved conversations are one each. In
``window`` mode no prompt continues an earlier one, because earlier answers are repeated as text in the user's message.
Loss inputs are compact: one column per position that is read, not per token.

A completion is contiguous and stored as a span; the sequences are slices of shared arrays of tokens and reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from turngym.agents.trajectory import Trajectory
from turngym.lazy import Tensor, torch
from turngym.trainers.core.flattened import FlatTurn, flatten

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

Integers: TypeAlias = NDArray[np.int64]


class Read(NamedTuple):
    """A position of a sequence whose network output is used.

    Args:
        position: Index into the sequence's ids; the network's output there predicts the next token.
        target: The next token; -1 if only the critic reads the position.
        token: Index of that token among the table's sampled tokens; -1 if it was not sampled.
        turn: Row of the turn table; -1 at the prompt after the last turn, and at observed tokens.
        episode: Episode in the turn table; -1 at observed tokens.
    """

    position: int
    target: int
    token: int
    turn: int
    episode: int


@dataclass(frozen=True, slots=True, eq=False)
class Reads:
    """The read positions of a sequence, as arrays of equal length; iteration yields :class:`Read` objects.

    >>> reads = Reads.of([Read(1, 7, 0, 0, 0), Read(2, 8, 1, 0, 0)])
    >>> len(reads), reads.target.tolist()
    (2, [7, 8])
    """

    position: Integers
    target: Integers
    token: Integers
    turn: Integers
    episode: Integers

    @classmethod
    def of(cls, reads: Iterable[Read]) -> Reads:
        """Return the arrays of single reads."""
        return cls(*np.array(list(reads), dtype=np.int64).reshape(-1, len(Read._fields)).T)

    def __len__(self) -> int:
        """Return the number of read positions."""
        return len(self.position)

    def __iter__(self) -> Iterator[Read]:
        """Yield each read."""
        columns = (self.position, self.target, self.token, self.turn, self.episode)
        return map(Read._make, zip(*(column.tolist() for column in columns), strict=True))

    def __getitem__(self, where: slice) -> Reads:
        """Return some of the reads; the arrays are views."""
        return Reads(self.position[where], self.target[where], self.token[where], self.turn[where], self.episode[where])


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A training sequence and its read positions, with its images in the order of their placeholders."""

    ids: Integers
    reads: Reads
    pictures: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, ids: Sequence[int], reads: Iterable[Read]) -> Row:
        """Return a sequence of single tokens and reads."""
        return cls(np.array(ids, dtype=np.int64), Reads.of(reads))


_OBSERVED = -2


class _Span(NamedTuple):
    """Consecutive read positions of one turn: ``length`` from ``position`` on.

    The first token is -1 if only the critic reads them, and ``_OBSERVED`` for an observation after an answer.
    """

    position: int
    length: int
    token: int
    turn: int
    episode: int


class _Tokens(NamedTuple):
    """The tokens of one turn, and the images in its prompt."""

    prompt: tuple[int, ...]
    completion: tuple[int, ...]
    pictures: tuple[bytes, ...]


class _OpenRow:
    """A sequence that may still continue."""

    __slots__ = ("completion", "prompt", "shown", "spans")

    def __init__(self) -> None:
        self.prompt: tuple[int, ...] = ()
        self.completion: tuple[int, ...] = ()
        self.shown: tuple[bytes, ...] = ()
        self.spans: list[_Span] = []

    def __len__(self) -> int:
        return len(self.prompt) + len(self.completion)

    def is_continued_by(self, tokens: _Tokens) -> bool:
        prompt, shown = tokens.prompt, tokens.pictures[: len(self.shown)]
        before, end = len(self.prompt), len(self)
        return (
            0 < end <= len(prompt)
            and prompt[end - 1] == (self.completion or self.prompt)[-1]
            and shown == self.shown
            and prompt[:before] == self.prompt
            and prompt[before:end] == self.completion
        )


class _RowWriter:
    """Collects the sequences of one episode after another."""

    def __init__(self, merge: bool, observed: bool = False) -> None:
        self.merge = merge
        self.observed = observed
        self._rows: list[_OpenRow] = []
        self._open: dict[int, list[int]] = {}
        """Length -> indices of this episode's sequences of that length."""

    def flush(self) -> None:
        """End the sequences of the episode."""
        self._open.clear()

    def add(self, tokens: _Tokens, token: int, turn: int, episode: int) -> None:
        """Add one turn, or the prompt after the last turn, to the latest sequence that it continues, or a new one."""
        number, known = self._continued(tokens) if self.merge or self.observed else None, 0
        if number is not None:
            known = len(self._rows[number])
            self._open[known].remove(number)
        if number is None or not self.merge:
            number = len(self._rows)
            self._rows.append(_OpenRow())
        row = self._rows[number]
        if self.observed and known and turn >= 0:
            row.spans.append(_Span(known - 1, len(tokens.prompt) - known, _OBSERVED, -1, -1))
        row.prompt, row.completion, row.shown = tokens
        self._open.setdefault(len(row), []).append(number)
        length = len(row.completion) or 1
        row.spans.append(_Span(len(row.prompt) - 1, length, token if row.completion else -1, turn, episode))

    def _continued(self, tokens: _Tokens) -> int | None:
        """Return the latest sequence that a turn continues; conversations of one episode may be interleaved."""
        longest = len(tokens.prompt)
        short = [number for length, numbers in self._open.items() if length <= longest for number in numbers]
        return next((k for k in sorted(short, reverse=True) if self._rows[k].is_continued_by(tokens)), None)

    def rows(self) -> list[Row]:
        """Return the sequences, as slices of shared arrays."""
        lengths = [len(each.prompt) + len(each.completion) for each in self._rows]
        tokens = chain.from_iterable((each.prompt, each.completion) for each in self._rows)
        ids = np.fromiter(chain.from_iterable(tokens), np.int64, sum(lengths))
        starts = np.cumsum([0, *lengths], dtype=np.int64)
        reads, bounds = self._reads(ids, starts[:-1])
        slices = zip(pairwise(starts.tolist()), pairwise(bounds.tolist()), self._rows, strict=True)
        return [Row(ids[start:end], reads[first:last], row.shown) for (start, end), (first, last), row in slices]

    def _reads(self, ids: Integers, starts: Integers) -> tuple[Reads, Integers]:
        """Return the reads of all sequences, and the bounds of each sequence."""
        spans = [span for row in self._rows for span in row.spans]
        counts = [len(row.spans) for row in self._rows]
        position, lengths, token, turn, episode = np.array(spans, dtype=np.int64).reshape(-1, 5).T
        bounds = np.cumsum([0, *lengths], dtype=np.int64)
        offset = np.repeat(starts, counts)
        within = np.arange(bounds[-1]) - np.repeat(bounds[:-1], lengths)
        places = np.repeat(position, lengths) + within
        tokens, turns, episodes = (np.repeat(each, lengths) for each in (token, turn, episode))
        sampled, written = tokens >= 0, tokens != -1
        targets = np.full(len(places), -1, dtype=np.int64)
        targets[written] = ids[(np.repeat(offset, lengths) + places + 1)[written]]
        reads = Reads(places, targets, np.where(sampled, tokens + within, -1), turns, episodes)
        return reads, bounds[np.cumsum([0, *counts])]


def build_rows(trajectories: Sequence[Trajectory], with_final_prompts: bool, merge: bool = True) -> list[Row]:
    """Return the training sequences of a turn table's trajectories, in table order.

    Args:
        trajectories: Usable trajectories, the same as in the table.
        with_final_prompts: Let the critic read the prompt after the last turn of truncated episodes.
        merge: False gives every turn its own sequence; the loss and its gradient stay the same.
    """
    return rows_of(flatten(trajectories), with_final_prompts, merge)


def rows_of(
    turns: Sequence[FlatTurn], with_final_prompts: bool, merge: bool = True, observed: bool = False
) -> list[Row]:
    """Return the training sequences of trajectories, given their turns from ``flatten``.

    With ``observed``, tokens of observations in continued prompts are read as well, each once.
    """
    writer = _RowWriter(merge, observed)
    for number, (episode, position, trajectory, turn, first_token) in enumerate(turns):
        if turn.prompt_ids:
            writer.add(_Tokens(turn.prompt_ids, turn.completion_ids, turn.pictures), first_token, number, episode)
        if position + 1 == len(trajectory.turns):
            if with_final_prompts and trajectory.truncated and trajectory.final_prompt_ids:
                writer.add(_Tokens(trajectory.final_prompt_ids, (), trajectory.final_pictures), -1, -1, episode)
            writer.flush()
    return writer.rows()


@dataclass(frozen=True)
class Batch:
    """The training sequences of one iteration, with duplicates stored once.

    Args:
        sequences: Distinct token sequences with their read positions.
        sequence_of: Index of the sequence of each row.
        token: Index of the sampled token, -1 for none, ``[row, column]``.
        turn: Row of the turn table, -1 for none, ``[row, column]``.
        episode: Episode, -1 in padding, ``[row, column]``.
        observed: True at tokens of observations, ``[row, column]``.
    """

    sequences: tuple[Row, ...]
    sequence_of: Int[Tensor, "row"]
    token: Int[Tensor, "row column"]
    turn: Int[Tensor, "row column"]
    episode: Int[Tensor, "row column"]
    observed: Bool[Tensor, "row column"]

    @property
    def action_mask(self) -> Bool[Tensor, "row column"]:
        """True at sampled tokens."""
        return self.token >= 0


def build_batch(rows: Sequence[Row]) -> Batch:
    """Deduplicate the sequences and lay out the columns."""
    numbers: dict[tuple[bytes, ...], int] = {}
    distinct: list[Row] = []
    sequence_of = []
    for row in rows:
        read = (row.reads.position.tobytes(), row.reads.target.tobytes())
        number = numbers.setdefault((row.ids.tobytes(), *read, *row.pictures), len(numbers))
        if number == len(distinct):
            distinct.append(row)
        sequence_of.append(number)
    return Batch(
        tuple(distinct),
        torch.tensor(sequence_of, dtype=torch.long),
        padded([row.reads.token for row in rows]),
        padded([row.reads.turn for row in rows]),
        padded([row.reads.episode for row in rows]),
        padded([((row.reads.target >= 0) & (row.reads.token < 0)).astype(np.int64) for row in rows], 0).bool(),
    )


def padded(arrays: Sequence[Integers], fill: int = -1) -> Int[Tensor, "row column"]:
    """Return a matrix with the arrays as rows, padded at the end with ``fill``.

    >>> padded([np.array([4, 5]), np.array([6])]).tolist()
    [[4, 5], [6, -1]]
    """
    lengths = np.array([len(each) for each in arrays], dtype=np.int64)
    width = int(lengths.max(initial=0))
    found = np.full((len(arrays), width), fill, dtype=np.int64)
    if len(arrays):
        found[np.arange(width) < lengths[:, None]] = np.concatenate(arrays)
    return torch.from_numpy(found)


@dataclass(frozen=True)
class MicroBatch:
    """Some distinct sequences and all rows that repeat them.

    Args:
        sequences: Indices of the sequences.
        rows: Indices of the rows.
        sequence_of: For each of these rows, its position in ``sequences``.
    """

    sequences: Int[Tensor, "sequence"]
    rows: Int[Tensor, "row"]
    sequence_of: Int[Tensor, "row"]


class Cut(Protocol):
    """Assigns sequences to forward passes."""

    def __call__(self, sequences: Sequence[Row], chosen: Sequence[int], max_tokens: int, /) -> list[list[int]]:
        """Return the indices of the chosen sequences, split into micro-batches."""
        ...


SQUARES_FROM = 4096
"""Number of attended tokens above which a token counts several times in a micro-batch."""


def token_cost(tokens: int, seen: int) -> float:
    """Return the cost of tokens in a micro-batch's budget.

    Activations grow with the number of tokens, attention and its mask with that number times the attended tokens.
    Logits do not count: at most one chunk of them is held.

    Args:
        tokens: Number of tokens in a forward pass.
        seen: Number of tokens that each attends to, masked ones included.

    >>> token_cost(2048, 512), token_cost(16_384, 8192)
    (2048.0, 32768.0)
    """
    return tokens * max(1.0, seen / SQUARES_FROM)


def by_padded_length(sequences: Sequence[Row], chosen: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Split sequences into micro-batches of at most ``max_tokens`` padded tokens, similar lengths together."""
    chunks: list[list[int]] = []
    for s in sorted(chosen, key=lambda s: (len(sequences[s].ids), s)):
        length = len(sequences[s].ids)
        if chunks and token_cost(length * (len(chunks[-1]) + 1), length) <= max_tokens:
            chunks[-1].append(s)
        else:
            chunks.append([s])
    return chunks


def micro_batches(
    batch: Batch, sequences: Sequence[int], max_tokens: int, cut: Cut = by_padded_length
) -> list[MicroBatch]:
    """Split sequences into micro-batches, each with all rows that repeat its sequences.

    Args:
        batch: The batch.
        sequences: Indices of the distinct sequences to include.
        max_tokens: Maximum number of tokens per forward pass.
        cut: Layout.
    """
    position = torch.full((len(batch.sequences),), -1, dtype=torch.long)
    found = []
    for chunk in cut(batch.sequences, sequences, max_tokens):
        index = torch.tensor(chunk, dtype=torch.long)
        position[index] = torch.arange(len(chunk))
        rows = torch.nonzero(position[batch.sequence_of] >= 0).flatten()
        found.append(MicroBatch(index, rows, position[batch.sequence_of[rows]]))
        position[index] = -1
    return found
