"""Text environments for frameworks that know only numbers: observations become vectors, actions become numbers.

The encodings are simple: a text is hashed, or encoded character by character. This is enough for small policies to
learn small games, and to run a framework end to end.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from turngym.errors import ConfigError
from turngym.seeding import stream

Vector: TypeAlias = NDArray[np.float32]
Encoding: TypeAlias = Literal["ngrams", "characters", "image"]
Source: TypeAlias = Literal["anchor", "observation"]
Actions: TypeAlias = "Sequence[str] | int | None"

_CODES = 128
_TRIED_EPISODES, _TRIED_TURNS = 20, 100
_MOST_ACTIONS = 1000


@lru_cache(maxsize=8192)
def _ngrams(text: str, size: int) -> Vector:
    words = text.split()
    features = [*words, *(f"{a} {b}" for a, b in pairwise(words)), *(text[i : i + 3] for i in range(len(text) - 2))]
    found = np.zeros(size, np.float32)
    for feature in features:
        code = zlib.crc32(feature.encode("utf8", "surrogatepass"))
        found[code % size] += 1 if code & 0x8000_0000 else -1
    found /= max(1.0, float(np.linalg.norm(found)))
    found.flags.writeable = False
    return found


def ngram_vector(text: str, size: int) -> Vector:
    """Return the words, pairs of words and groups of three characters of a text, hashed into a vector of length 1.

    Args:
        text: Any text; positions within it are lost.
        size: Length of the vector.

    >>> bool((ngram_vector("a red door", 64) == ngram_vector("a blue door", 64)).all())
    False
    """
    return _ngrams(text, size).copy()


def character_vector(text: str, size: int) -> Vector:
    """Return the codes of the first ``size`` characters, scaled to [0, 1]: for boards, where positions matter.

    >>> character_vector("ab", 3).round(2).tolist()
    [0.7599999904632568, 0.7699999809265137, 0.0]
    """
    codes = np.frombuffer(text[:size].encode("utf-32-le", "surrogatepass"), np.uint32) % _CODES
    found = np.zeros(size, np.float32)
    found[: len(codes)] = codes / (_CODES - 1)
    return found


@dataclass(frozen=True)
class NumericView:
    """Encoding of observations as numbers.

    Args:
        encoding: ``"ngrams"`` for :func:``ngram_vector``, ``"characters"`` for :func:``character_vector``, ``"image"``
            for the image of an environment that was made with ``image=True``.
        features: Length of the vector; an image has its own size.
        source: The text that is encoded: ``"anchor"``, which is all that the agent can know, or ``"observation"``,
            which is only what is new.

    Raises:
        ConfigError: There is no such encoding or source, or `features` is no whole number from 1 to a million.
    """

    encoding: Encoding = "ngrams"
    features: int = 256
    source: Source = "anchor"

    def __post_init__(self) -> None:
        for name, choices in (("encoding", get_args(Encoding)), ("source", get_args(Source))):
            if getattr(self, name) not in choices:
                raise ConfigError(f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}.")
        if isinstance(self.features, bool) or not isinstance(self.features, int) or not 1 <= self.features <= 1_000_000:
            raise ConfigError(f"features must be a whole number from 1 to 1000000, got {self.features!r}.")

    def space(self, inner: gymnasium.Space[Any]) -> Box:
        """Return the encoded space of an observation space."""
        if self.encoding != "image":
            return Box(-1.0 if self.encoding == "ngrams" else 0.0, 1.0, (self.features,), np.float32)
        picture = inner["image"] if isinstance(inner, gymnasium.spaces.Dict) and "image" in inner.spaces else None
        if not isinstance(picture, Box):
            raise ConfigError('encoding="image" needs an environment with pictures: make it with image=True.')
        return picture

    def numbers(self, observation: Any, info: Mapping[str, Any]) -> NDArray[Any]:
        """Return the encoding of an observation and its info table."""
        if self.encoding == "image":
            return np.asarray(observation["image"])
        whole = observation["text"] if isinstance(observation, Mapping) else observation
        text = str(info["anchor"] if self.source == "anchor" else whole)
        return ngram_vector(text, self.features) if self.encoding == "ngrams" else character_vector(text, self.features)


@dataclass(frozen=True)
class Menu:
    """A numbered list of action texts.

    Args:
        texts: The texts; empty where numbers are indices into the sorted list of legal actions.
        places: Number of actions.
    """

    texts: tuple[str, ...]
    places: int

    @classmethod
    def of(cls, actions: Actions, seen: Callable[[], Iterator[Sequence[str]]]) -> Menu:
        """Return the requested menu.

        Args:
            actions: The texts themselves, or a maximum number of legal actions, indexed by position in the sorted
                list, or None for all texts that were seen to be legal.
            seen: Yields lists of legal actions; only iterated when needed.

        Raises:
            ConfigError: The list is empty, repeats a text, or would be too long.
        """
        texts: tuple[str, ...] = ()
        if actions is None:
            texts = tuple(sorted({text for legal in seen() for text in legal}))
        elif not isinstance(actions, int):
            texts = (actions,) if isinstance(actions, str) else tuple(actions)
        places = actions if isinstance(actions, int) else len(texts)
        if not 1 <= places <= _MOST_ACTIONS or len(set(texts)) < len(texts):
            raise ConfigError(
                f"a menu has 1 to {_MOST_ACTIONS} different actions, got {places}: pass actions=[...], or actions=N "
                "for the first N of the legal actions of each turn."
            )
        return cls(texts, places)

    def text(self, number: int, legal: Sequence[str]) -> str:
        """Return the action text of a number; an empty text, which the environment answers, beyond the list."""
        if self.texts:
            return self.texts[number]
        return sorted(legal)[number] if number < len(legal) else ""

    def mask(self, legal: Sequence[str]) -> NDArray[np.bool_]:
        """Return a mask of the legal numbers; all of them where no list is known."""
        if not legal:
            return np.ones(self.places, bool)
        if not self.texts:
            return np.arange(self.places) < len(legal)
        allowed = np.isin(self.texts, legal)
        return allowed if allowed.any() else np.ones(self.places, bool)


class NumericEnv(gymnasium.Wrapper[NDArray[Any], Any, Any, str], RecordConstructorArgs):
    """A text environment whose observations are vectors and whose actions are numbers.

    ``info["action_mask"]`` and ``action_masks()`` say which numbers are legal now. An illegal number is passed on as
    its text, and the environment answers it like any other invalid action.

    Args:
        env: A text environment; wrappers of turngym may be around it.
        encoding: See :class:`NumericView`.
        features: See :class:`NumericView`.
        source: See :class:`NumericView`.
        actions: See :meth:`Menu.of`. None plays some random episodes to collect the legal actions.

    Raises:
        ConfigError: An option is wrong, or no legal actions were seen.

    >>> import turngym
    >>> env = NumericEnv(gymnasium.make("turngym/FrozenLake-v0"), encoding="characters", features=64)
    >>> env.menu.texts, env.reset(seed=0)[0].shape
    (('down', 'left', 'right', 'up'), (64,))
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, str],
        *,
        encoding: Encoding = "ngrams",
        features: int = 256,
        source: Source = "anchor",
        actions: Actions = None,
    ) -> None:
        RecordConstructorArgs.__init__(self, encoding=encoding, features=features, source=source, actions=actions)
        super().__init__(env)
        self.view = NumericView(encoding, features, source)
        self.observation_space = self.view.space(env.observation_space)
        self.menu = Menu.of(actions, lambda: _seen_actions(env))
        self.action_space = Discrete(self.menu.places)
        self._legal: Sequence[str] = ()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start a new episode."""
        return self._shown(*self.env.reset(seed=seed, options=options))

    def step(self, action: Any) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        """Take one turn with the action of a number."""
        text = self.menu.text(int(action), self._legal)
        observation, reward, terminated, truncated, info = self.env.step(text)
        shown, info = self._shown(observation, info)
        return shown, float(reward), terminated, truncated, info

    def _shown(self, observation: Any, info: dict[str, Any]) -> tuple[NDArray[Any], dict[str, Any]]:
        self._legal = info["legal_actions"]
        return self.view.numbers(observation, info), {**info, "action_mask": self.action_masks()}

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which numbers are legal now; the name is that of sb3-contrib."""
        return self.menu.mask(self._legal)


def _seen_actions(env: gymnasium.Env[Any, str]) -> Iterator[Sequence[str]]:
    """Play random episodes of fixed seeds, and yield the legal actions of every turn."""
    for episode in range(_TRIED_EPISODES):
        _, info = env.reset(seed=episode)
        generator = stream("menu", episode)
        for _ in range(_TRIED_TURNS):
            legal = info["legal_actions"]
            if not legal:
                break
            yield legal
            _, _, terminated, truncated, info = env.step(legal[int(generator.integers(len(legal)))])
            if terminated or truncated:
                break
