"""Latent strategies: clusters of recorded speeches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from turngym.errors import ConfigError

Vectors = NDArray[np.float64]
_RESTARTS = 10
_STEPS = 100


@dataclass(frozen=True)
class LatentSpace:
    """Clusters of the speeches of one seat.

    Args:
        clusters: Speech -> number of its cluster.
        representatives: For each cluster, the speech that is closest to its centre.
    """

    clusters: dict[str, int]
    representatives: tuple[str, ...]

    def representative(self, text: str) -> str:
        """Return the representative of a speech's cluster."""
        return self.representatives[self.clusters[text]]

    def translated(self, name: str) -> str:
        """Return the name of an information set with every known speech replaced by its representative."""
        for text in sorted(self.clusters, key=len, reverse=True):
            if text in name:
                return name.replace(text, self.representative(text))
        return name


def latent_space(texts: Sequence[str], vectors: Vectors, clusters: int, seed: int = 0) -> LatentSpace:
    """Cluster speeches by k-means with k-means++ starts (Arthur and Vassilvitskii 2007).

    Args:
        texts: Different speeches.
        vectors: [speeches, dimensions] embeddings.
        clusters: Number of clusters; fewer if there are fewer different embeddings.
        seed: Seed of the starts.

    Raises:
        ConfigError: There are no speeches, or not one embedding for each.

    >>> latent_space(["hi", "hello", "bye"], np.array([[0.0], [0.1], [5.0]]), 2).representative("hello")
    'hi'
    """
    if not texts or vectors.shape[0] != len(texts) or clusters < 1:
        raise ConfigError(
            f"{len(texts)} speeches need as many embeddings and at least 1 cluster, got {vectors.shape[0]}."
        )
    generator = np.random.default_rng(seed)
    count = min(clusters, len(np.unique(vectors, axis=0)))
    _, labels, centres = min(
        (_k_means(vectors, count, generator) for _ in range(_RESTARTS)), key=lambda found: found[0]
    )
    distances = ((vectors - centres[labels]) ** 2).sum(axis=1)
    representatives = []
    for number in range(count):
        members = np.flatnonzero(labels == number)
        representatives.append(texts[int(members[np.argmin(distances[members])])])
    return LatentSpace(dict(zip(texts, labels.tolist(), strict=True)), tuple(representatives))


def _k_means(vectors: Vectors, count: int, generator: np.random.Generator) -> tuple[float, NDArray[np.int64], Vectors]:
    """Return the sum of squared distances, the cluster of each vector, and the centres."""
    centres = vectors[[int(generator.integers(len(vectors)))]]
    while len(centres) < count:
        nearest = _distances(vectors, centres).min(axis=1)
        centres = np.vstack([centres, vectors[generator.choice(len(vectors), p=nearest / nearest.sum())]])
    labels = _distances(vectors, centres).argmin(axis=1)
    for _ in range(_STEPS):
        members = [vectors[labels == number] for number in range(count)]
        centres = np.stack(
            [each.mean(axis=0) if len(each) else old for each, old in zip(members, centres, strict=True)]
        )
        previous, labels = labels, _distances(vectors, centres).argmin(axis=1)
        if (previous == labels).all():
            break
    return float(_distances(vectors, centres).min(axis=1).sum()), labels, centres


def _distances(vectors: Vectors, centres: Vectors) -> Vectors:
    found: Vectors = ((vectors[:, None] - centres[None]) ** 2).sum(axis=2)
    return found
