"""Columns in batches: from turns and episodes to the turn table, and from per-token credit to micro-batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

from turngym.agents.trajectory import Trajectory, Turn
from turngym.errors import ConfigError
from turngym.lazy import Tensor, torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

Scope: TypeAlias = Literal["token", "turn", "episode"]
TableColumn: TypeAlias = "Tensor | tuple[str, ...]"
"""Numbers in double precision, or strings; nan or empty if missing."""
RecordT = TypeVar("RecordT", Turn, Trajectory)
NO_COLUMNS: Mapping[Scope, Mapping[str, TableColumn]] = {"token": {}, "turn": {}, "episode": {}}


@dataclass(frozen=True)
class Texts:
    """Strings laid out like a tensor; equal strings are stored once.

    Args:
        values: The distinct strings.
        index: Index of the string at each position, -1 for none.

    >>> Texts.of(["a", "b", "a"]).at(torch.tensor([True, False, True]))
    ['a', 'a']
    """

    values: tuple[str, ...]
    index: Int[Tensor, "..."]

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        """Lay out strings in one dimension."""
        numbers: dict[str, int] = {}
        index = [numbers.setdefault(text, len(numbers)) for text in texts]
        return cls(tuple(numbers), torch.tensor(index, dtype=torch.long))

    def __getitem__(self, where: Tensor) -> Texts:
        """Return the strings at some positions, indexed like a tensor."""
        return Texts(self.values, self.index[where.cpu()])

    def at(self, where: Bool[Tensor, "..."]) -> list[str]:
        """Return the strings selected by a mask, in order."""
        return self[where].tolist()

    def tolist(self) -> list[str]:
        """Return all strings in order, as one list."""
        return [self.values[number] if number >= 0 else "" for number in self.index.flatten().tolist()]


TokenColumn: TypeAlias = "Tensor | Texts"
"""A column over sampled tokens: numbers of any precision, or strings; further dimensions may follow."""


class SampledTokens(NamedTuple):
    """The sampled tokens of a micro-batch; computed on the host to avoid synchronisation with a device.

    Args:
        place: Position of each token in the flattened rows.
        turn: Index of the token's turn within the micro-batch.
        num_turns: Number of these turns.

    >>> SampledTokens.of(torch.tensor([[7, -1, 7], [9, -1, -1]]))
    SampledTokens(place=tensor([0, 2, 3]), turn=tensor([0, 0, 1]), num_turns=2)
    """

    place: Int[Tensor, "token"]
    turn: Int[Tensor, "token"]
    num_turns: int

    @classmethod
    def of(cls, turn_ids: Int[Tensor, "batch token"]) -> SampledTokens:
        """Return the sampled tokens of a micro-batch, given the turn of each token, -1 if not sampled."""
        flat = turn_ids.flatten()
        place = torch.nonzero(flat >= 0).squeeze(-1)
        distinct, turn = torch.unique(flat[place], return_inverse=True)
        return cls(place, turn, len(distinct))

    def to(self, device: torch.device) -> SampledTokens:
        """Return them on a device."""
        return SampledTokens(self.place.to(device), self.turn.to(device), self.num_turns)


def lay_out(column: Tensor, index: Tensor, fill: float = 0.0) -> Tensor:
    """Lay out numbers over sampled tokens as ``[row, column]``.

    Args:
        column: The numbers; the first dimension is that of the tokens.
        index: Token at each position, -1 for none.
        fill: Value at positions without a token.
    """
    shape = (*index.shape, *column.shape[1:])
    if not len(column):
        return torch.full(shape, fill, dtype=column.dtype)
    known = (index >= 0).reshape(*index.shape, *[1] * (column.dim() - 1))
    return torch.where(known, column[index.clamp(min=0)], torch.as_tensor(fill, dtype=column.dtype))


def lay_out_column(column: TokenColumn, index: Tensor, device: torch.device | str = "cpu") -> TokenColumn:
    """Lay out a column over sampled tokens as ``[row, column]``: 0 or empty at positions without a token.

    Numbers keep their precision. Strings stay on the CPU.
    """
    if isinstance(column, Texts):
        return Texts(column.values, lay_out(column.index, index, -1).long())
    return lay_out(column, index).to(device)


def check_token_columns(columns: Mapping[str, TokenColumn], num_tokens: int) -> None:
    """Raise unless each column of a credit has one entry per sampled token.

    Raises:
        ConfigError: A column has another number of entries.
    """
    for name, column in columns.items():
        length = len(column.index if isinstance(column, Texts) else column)
        if length != num_tokens:
            raise ConfigError(
                f"the credit's column {name!r} has {length} entries for {num_tokens} sampled tokens: give one for each "
                "token, as TurnTable.to_tokens does for a column over turns."
            )


def table_columns(
    episodes: Sequence[Mapping[str, Any]], turns: Sequence[Mapping[str, Any]], num_tokens: Sequence[int]
) -> dict[Scope, dict[str, TableColumn]]:
    """Collect the columns of episodes and turns.

    Args:
        episodes: Columns of each episode.
        turns: Columns of each turn.
        num_tokens: Number of sampled tokens of each turn.

    Raises:
        ConfigError: A column mixes numbers and strings, or its number of entries is not that of tokens.
    """
    of_turns = [name for name in _names(turns) if not _is_over_tokens(turns, name)]
    of_tokens = [name for name in _names(turns) if _is_over_tokens(turns, name)]
    return {
        "token": {name: _over_tokens(name, turns, num_tokens) for name in of_tokens},
        "turn": {name: _column(name, turns) for name in of_turns},
        "episode": {name: _column(name, episodes) for name in _names(episodes)},
    }


def _names(records: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for record in records if record for name in record))


def _is_over_tokens(turns: Sequence[Mapping[str, Any]], name: str) -> bool:
    return any(isinstance(turn.get(name), tuple) for turn in turns)


def _column(name: str, records: Sequence[Mapping[str, Any]]) -> TableColumn:
    values = [record.get(name) for record in records]
    is_text = {isinstance(value, str) for value in values if value is not None}
    if len(is_text) > 1:
        raise ConfigError(f"the column {name!r} has numbers and texts: give the same kind at every turn.")
    if is_text == {True}:
        return tuple("" if value is None else str(value) for value in values)
    return torch.tensor([float("nan") if value is None else float(value) for value in values], dtype=torch.float64)


def _over_tokens(name: str, turns: Sequence[Mapping[str, Any]], num_tokens: Sequence[int]) -> Tensor:
    found: list[float] = []
    for number, (turn, count) in enumerate(zip(turns, num_tokens, strict=True)):
        values = turn.get(name, (float("nan"),) * count)
        if not isinstance(values, tuple) or len(values) != count:
            raise ConfigError(
                f"the column {name!r} is over tokens, and turn {number} of the batch has {count} of them: give a tuple "
                f"with one number for each, got {str(values)[:60]!r}."
            )
        found += values
    return torch.tensor(found, dtype=torch.float64)


# Counts from ``collect``.

_COLLECTED = "collected/"


def with_columns(record: RecordT, columns: Mapping[str, Any]) -> RecordT:
    """Return a copy of a turn or trajectory with additional columns.

    >>> with_columns(Turn("", "", "go", columns={"cost": 1.0}), {"value": 0.5}).columns
    {'cost': 1.0, 'value': 0.5}
    """
    return replace(record, columns={**record.columns, **columns})


def with_counts(trajectories: Sequence[Trajectory], counts: Mapping[str, float]) -> list[Trajectory]:
    """Return copies of an iteration's trajectories with the counts of ``collect``, for :func:`counts_of`."""
    named = {_COLLECTED + name: float(count) for name, count in counts.items()}
    return [with_columns(trajectory, named) for trajectory in trajectories]


def counts_of(columns: Mapping[str, TableColumn]) -> dict[str, float]:
    """Return the counts of ``collect``, given the episode columns of a turn table."""
    found = {}
    for name, column in columns.items():
        if name.startswith(_COLLECTED) and isinstance(column, Tensor) and not bool(column.isnan().all()):
            found[name.removeprefix(_COLLECTED)] = float(column[~column.isnan()][0])
    return found


def without_counts(trajectory: Trajectory) -> Trajectory:
    """Return a copy of a trajectory without the counts of ``collect``."""
    kept = {name: value for name, value in trajectory.columns.items() if not name.startswith(_COLLECTED)}
    return replace(trajectory, columns=kept)
