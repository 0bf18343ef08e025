"""What the tests of the adapters of GEM and TextArena share."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
WORDS = (
    "the",
    "cat",
    "dog",
    "sun",
    "bird",
    "rain",
    "house",
    "river",
    "stone",
    "light",
    "bread",
    "cloud",
    "winter",
    "garden",
)


def make_word_lists(folder: Path) -> Path:
    """Write a folder that NLTK takes for its data, with a short list of words, and return it."""
    corpus = folder / "corpora" / "words"
    corpus.mkdir(parents=True)
    for name in ("en", "en-basic"):
        (corpus / name).write_text("\n".join(WORDS) + "\n", "utf8")
    return folder


@pytest.fixture
def word_lists(tmp_path: Path) -> Iterator[None]:
    """NLTK finds a short list of words, and forgets it afterwards."""
    import nltk
    from nltk.corpus import words

    nltk.data.path.insert(0, str(make_word_lists(tmp_path)))
    yield
    nltk.data.path.pop(0)
    if "_LazyCorpusLoader__args" not in vars(words):  # it has been loaded: unload it
        words._unload()


def play(env: Any, seed: int, choose: random.Random, max_turns: int = 40) -> list[Any]:
    """Return all that an episode of random legal actions shows; ``no action`` where none are listed."""
    seen: list[Any] = [env.reset(seed=seed)]
    for _ in range(max_turns):
        legal = seen[-1][-1]["legal_actions"]
        seen.append(env.step(choose.choice(legal) if legal else "no action"))
        if seen[-1][2] or seen[-1][3]:
            break
    return seen
