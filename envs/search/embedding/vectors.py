"""The vectors of a corpus, computed once and cached: processes on one machine share their memory."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from turngym.envs.search.documents import Document, content_hash
from turngym.envs.search.embedding.encoder import Encoder, Vectors
from turngym.storage.files import cache_folder, write_atomic


def corpus_vectors(documents: Sequence[Document], encoder: Encoder) -> Vectors:
    """Return the vectors of a corpus, from the cache if they are there.

    Args:
        documents: The corpus.
        encoder: The encoder.
    """
    path = cache_folder("search") / f"{content_hash(documents)}-{encoder.version()}.npy"
    kept = _kept(path, (len(documents), encoder.width))
    if kept is not None:
        return kept
    made = encoder.encode([document.contents for document in documents])
    _keep(path, made)
    return made


def _kept(path: Path, shape: tuple[int, int]) -> Vectors | None:
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return found if found.shape == shape and found.dtype == np.float32 else None


def _keep(path: Path, vectors: Vectors) -> None:
    """Write the vectors; without a cache they are recomputed the next time."""
    content = io.BytesIO()
    np.save(content, vectors, allow_pickle=False)
    with contextlib.suppress(OSError):
        write_atomic(path, content.getvalue())
