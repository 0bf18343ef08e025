"""From the text of turns to numbers that a small head can read: hashed n-grams, or a language model."""

from __future__ import annotations

import copy
import itertools
import math
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Protocol, TypeAlias

from turngym.errors import ConfigError
from turngym.lazy import Tensor, nn, no_grad, torch
from turngym.trainers.reward_models.base.turns import TurnText

Inputs: TypeAlias = tuple[Tensor, ...]
"""Inputs of a head's first layer for some turns."""
NGRAMS = "ngrams"
_WORD = re.compile(r"\w+|[^\w\s]")
_LONGEST = 512


class Encoded(Protocol):
    """Turns as numbers."""

    def select(self, rows: Sequence[int]) -> Inputs:
        """Return the inputs of some of the turns, in that order."""
        ...


class Features(Protocol):
    """Encodes turns as numbers."""

    def first_layer(self, width: int) -> nn.Module:
        """Return a layer from the inputs to ``width`` numbers, all of its weights 0."""
        ...

    def encode(self, texts: Sequence[TurnText]) -> Encoded:
        """Return the turns as numbers."""
        ...


def grams(text: TurnText) -> list[str]:
    """Return the words and pairs of neighbouring words of a turn, marked by where they stand.

    >>> grams(TurnText("", "a door", "go", ""))
    ['1a', '1door', '1a door', '2go']
    """
    found = []
    for place, part in enumerate(text):
        words = _WORD.findall(part.lower())
        found += [f"{place}{word}" for word in words]
        found += [f"{place}{one} {two}" for one, two in itertools.pairwise(words)]
    return found


class _Bags:
    """Sparse rows."""

    def __init__(self, rows: Sequence[tuple[tuple[int, ...], tuple[float, ...]]]) -> None:
        self._rows = rows

    def select(self, rows: Sequence[int]) -> Inputs:
        chosen = [self._rows[row] for row in rows]
        starts = torch.tensor([0, *(len(ids) for ids, _ in chosen)][: len(chosen)]).cumsum(0)
        ids = torch.tensor([each for ids, _ in chosen for each in ids], dtype=torch.long)
        weights = torch.tensor([each for _, weights in chosen for each in weights], dtype=torch.float32)
        return ids, starts, weights


class Ngrams:
    """Counts of n-grams, hashed into a table, each turn scaled to length 1; needs no model and no vocabulary.

    Args:
        dimensions: Size of the table.
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions

    def first_layer(self, width: int) -> nn.Module:
        """Return a table of vectors that are added up."""
        layer = nn.EmbeddingBag(self.dimensions, width, mode="sum")
        nn.init.zeros_(layer.weight)
        return layer

    def encode(self, texts: Sequence[TurnText]) -> Encoded:
        """Return the turns as sparse rows."""
        known: dict[TurnText, tuple[tuple[int, ...], tuple[float, ...]]] = {}
        return _Bags([known.get(text) or known.setdefault(text, self._row(text)) for text in texts])

    def _row(self, text: TurnText) -> tuple[tuple[int, ...], tuple[float, ...]]:
        hashes = (zlib.crc32(gram.encode("utf8", "backslashreplace")) % self.dimensions for gram in grams(text))
        counts = sorted(Counter(hashes).items())
        length = math.sqrt(sum(count * count for _, count in counts)) or 1.0
        return tuple(each for each, _ in counts), tuple(count / length for _, count in counts)


class _Dense:
    """Dense rows."""

    def __init__(self, rows: Tensor) -> None:
        self._rows = rows

    def select(self, rows: Sequence[int]) -> Inputs:
        return (self._rows[torch.tensor(rows, dtype=torch.long)],)


class Hidden:
    """The last hidden state of a frozen language model at the end of a turn's text, shifted and scaled to length 1.

    Args:
        source: Model of :func:``turngym.agents.models.loading.load_model``, such as the folder ``warmup`` of a run.
        batch: Turns that go through the model together.
    """

    def __init__(self, source: str, batch: int = 64) -> None:
        from turngym.agents.models.loading import load_model  # imported here because n-grams need no transformers
        from turngym.agents.prompting.text_encoder import TextEncoder

        self._model = load_model(source)
        self._encoder = TextEncoder(self._model.tokenizer)
        self._batch = batch
        self.width = int(self._model.network.config.get_text_config().hidden_size)

    def first_layer(self, width: int) -> nn.Module:
        """Return a linear layer."""
        layer = nn.Linear(self.width, width, bias=False)
        nn.init.zeros_(layer.weight)
        return layer

    @no_grad
    def encode(self, texts: Sequence[TurnText]) -> Encoded:
        """Return the turns as dense rows; a text that is too long keeps its end."""
        distinct = {text: None for text in texts}
        ids = {text: self._ids(text) for text in distinct}
        order = sorted(distinct, key=lambda text: len(ids[text]))
        found: dict[TurnText, Tensor] = {}
        for start in range(0, len(order), self._batch):
            part = order[start : start + self._batch]
            found.update(zip(part, self._read([ids[text] for text in part]), strict=True))
        return _Dense(torch.stack([found[text] for text in texts]) if texts else torch.zeros(0, self.width))

    def _ids(self, text: TurnText) -> list[int]:
        written = f"{text.goal}\n{text.observation}\n{text.action}\n{text.seen}"
        return list(self._encoder.encode_one(written))[-_LONGEST:] or [0]

    def _read(self, ids: Sequence[list[int]]) -> Tensor:
        from turngym.agents.models.forward_pass import last_states

        return normalised(last_states(self._model.network.base_model, ids)).cpu()


class Trained(Hidden):
    """As :class:`Hidden`, of a model that is fitted together with the head, each fit from the model as it was."""

    def first_layer(self, width: int) -> nn.Module:
        """Return a linear layer on a copy of the model."""
        from turngym.trainers.reward_models.base.head import Trunk  # a class of torch's

        return Trunk(copy.deepcopy(self._model.network.base_model).float(), super().first_layer(width))

    def encode(self, texts: Sequence[TurnText]) -> Encoded:
        """Return the turns as tokens."""
        known = {text: self._ids(text) for text in dict.fromkeys(texts)}
        return _Tokens([known[text] for text in texts])


class _Tokens:
    """Rows of tokens, padded with -1."""

    def __init__(self, rows: Sequence[list[int]]) -> None:
        self._rows = rows

    def select(self, rows: Sequence[int]) -> Inputs:
        chosen = [torch.tensor(self._rows[row], dtype=torch.long) for row in rows]
        return (nn.utils.rnn.pad_sequence(chosen, batch_first=True, padding_value=-1),)


def normalised(states: Tensor) -> Tensor:
    """Return hidden states in float32, shifted to mean 0 and scaled to length 1."""
    states = states.float()
    found: Tensor = nn.functional.normalize(states - states.mean(-1, keepdim=True), dim=-1)
    return found


def make_features(description: str, dimensions: int) -> Features:
    """Return the features that ``ngrams``, ``model:SOURCE`` or ``trained:SOURCE`` describes.

    Raises:
        ConfigError: It is none of them.
    """
    kind, _, source = description.partition(":")
    if kind == NGRAMS and not source:
        return Ngrams(dimensions)
    if kind in ("model", "trained") and source:
        return Hidden(source) if kind == "model" else Trained(source)
    raise ConfigError(f"features must be 'ngrams', 'model:FOLDER' or 'trained:FOLDER', got {description!r}.")
