"""Comparing the tokenizers of two models that read the same token ids."""

from __future__ import annotations

from turngym.agents.models.loading import Vocabulary
from turngym.errors import ConfigError


def require_same_tokens(model: Vocabulary, other: Vocabulary, name: str) -> None:
    """Refuse a model that takes some token ids for other texts.

    Args:
        model: The model whose tokens are read.
        other: A model that is to read them too.
        name: What the other one is, such as ``reference``.

    Raises:
        ConfigError: Their tokenizers differ; the message shows where.
    """
    mine, theirs = (_tokens(each) for each in (model, other))
    differing = sorted(id for id in mine.keys() | theirs.keys() if mine.get(id) != theirs.get(id))
    if differing:
        first = differing[0]
        raise ConfigError(
            f"the tokenizer of the {name} is not that of the policy: {len(differing):,} of {len(mine):,} token ids "
            f"differ, such as {first} ({mine.get(first, 'no token')!r} and {theirs.get(first, 'no token')!r}). Both "
            "read the same ids, so pass a model with the policy's tokenizer."
        )


def _tokens(model: Vocabulary) -> dict[int, str]:
    return {id: token for token, id in model.tokenizer.get_vocab().items()}
