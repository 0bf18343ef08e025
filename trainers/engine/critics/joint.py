"""A centralised critic: the value of a game from what all of its seats together know.

The joint view is text, and the network is deliberately small: hashed words and pairs of words, one hidden layer. It is
separate from the policy, so it needs no prompt and costs little compared with a language model.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn


@lru_cache(maxsize=100_000)
def text_features(text: str, buckets: int) -> tuple[int, ...]:
    """Return the buckets of a text's words, of neighbouring words, and of each word with the first one of its line.

    >>> len(text_features("player_0: K, bets", 64))  # 3 words, 2 pairs, 2 words with the first of the line
    7
    """
    found = []
    for line in text.splitlines():
        words = line.split()
        found += words
        found += [f"{a} {b}" for a, b in pairwise(words)]
        found += [f"{words[0]} .. {word}" for word in words[1:]]
    return tuple(zlib.crc32(feature.encode("utf8", "replace")) % buckets for feature in found)


@lru_cache(maxsize=8)
def _laid_out(views: tuple[str, ...], buckets: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the features of distinct views in a row, where each starts, how many it has, and which view is whose.

    Twin critics read the same views.
    """
    distinct = list(dict.fromkeys(views))
    position = {view: index for index, view in enumerate(distinct)}
    features = [text_features(view, buckets) for view in distinct]
    ids = torch.tensor([bucket for each in features for bucket in each], dtype=torch.long)
    offsets = torch.tensor([0, *map(len, features)][:-1]).cumsum(0)
    lengths = torch.tensor([max(len(each), 1) for each in features])
    return ids, offsets, lengths, torch.tensor([position[view] for view in views])


class JointCritic(nn.Module):
    """Value of joint views.

    The last layer starts at 0, so before training the value of every view is 0.

    Args:
        buckets: Size of the hash table of features.
        width: Size of the hidden layers.
        seed: Of the first weights.
    """

    def __init__(self, buckets: int, width: int, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.words = nn.EmbeddingBag(buckets, width, mode="sum")
            self.hidden = nn.Linear(width, width)
            self.head = nn.Linear(width, 1)
        self.buckets = buckets
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, views: Sequence[str]) -> Float[Tensor, "view"]:
        """Return the value of each view, equal ones computed once."""
        if not views:
            return self.head.bias.new_zeros(0)
        device = self.head.weight.device
        ids, offsets, lengths, place = (each.to(device) for each in _laid_out(tuple(views), self.buckets))
        total = self.words(ids, offsets) / lengths.sqrt()[:, None]
        values: Tensor = self.head(torch.tanh(self.hidden(torch.tanh(total)))).squeeze(-1)
        return values[place]
