"""Actions made by a grammar and random Unicode, against every environment.

The grammar of an environment is made of what it says itself: its instructions and observations, its legal actions and
those of its expert, and delimiters that parsers use. Pieces are spliced, repeated, nested, cut and mixed with control
characters, lone surrogates and huge numbers.
"""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import gymnasium
import numpy as np

from turngym.envs.spaces import Unicode
from turngym.errors import ConfigError
from turngym.seeding import stream

ItemT = TypeVar("ItemT")
_KEPT_PIECES, _LONGEST, _LONG = 400, 2_000, 50_000
_PIECE = re.compile(r"<[^<>\n]{1,30}>|\\[a-z]+\{[^{}\n]*\}|\{[^{}\n]*\}|\[[^\[\]\n]*\]|[\w'-]+|[^\w\s]")
_WORDS = re.compile(r"[\w'. +-]+")
_DELIMITERS = (
    *("<answer>", "</answer>", "<python>", "</python>", "<code>", "</code>", "<search>", "</search>", "<think>"),
    *("</think>", "<action>", "</action>", "```", "```python\n", r"\boxed{", r"\matrix 7", r"\begin{pmatrix}", "}"),
    *("{", "[", "]", "(", ")", '"', "'", "`", "|", ":", ",", ";", "-", "/", "\\", "#", "{{", "%s", "{0}", "&amp;"),
    *('{"tool": "', '", "text": "', "search[", "click[", "fill 1 ", "null", "true", "NaN", "-Infinity", "1e999"),
)
_JUNK = (
    *("\x00", "\x1b[2J", "\ud800", "\udfff\ud800", "\u202e", "\ufeff", "\u200b", "\r\n", "\t", "\x7f", "٣", "²", "½"),
    *("İ", "ß", "ﬁ", "漢", "🙂", "e\u0301", "<|im_end|>", "[/INST]", "-1", "0", "00", "-0", "1_000", "9" * 30),
    *("9" * 400, "9" * 5_000, "1e308", "0x1F", "1/0", "9!", "10^10^10", " " * 200, "-" * 100, "(" * 100),
)


class ActionGrammar:
    """Writes actions out of what an environment says.

    Args:
        generator: The source of randomness.
        instructions: The rules of the environment.

    >>> grammar = ActionGrammar(stream("fuzz", 0), "Answer with one action, as in <answer>up</answer>.")
    >>> "<answer>" in grammar.pieces
    True
    """

    def __init__(self, generator: np.random.Generator, instructions: str) -> None:
        self._generator = generator
        self._unicode = Unicode(generator)
        self.pieces = list(dict.fromkeys(_PIECE.findall(instructions)))[:_KEPT_PIECES]
        self._actions: list[str] = [""]
        self._mutations = (self._refilled, self._cut, self._nested, self._repeated, self._with_junk, self._joined)

    def learn(self, observation: str, actions: Sequence[str]) -> None:
        """Take in what an environment shows, and actions that it understands."""
        for piece in _PIECE.findall(observation[:_LONGEST])[:20]:
            self._put(self.pieces, piece)
        for action in actions:
            self._put(self._actions, action)

    def _put(self, known: list[str], text: str) -> None:
        if len(known) < _KEPT_PIECES:
            known.append(text)
        else:
            known[self._whole(0, _KEPT_PIECES - 1)] = text

    def _whole(self, low: int, high: int) -> int:
        return int(self._generator.integers(low, high + 1))

    def _one(self, choices: Sequence[ItemT]) -> ItemT:
        return choices[self._whole(0, len(choices) - 1)]

    def sample(self) -> str:
        """Return an action, sensible or not."""
        if not self._whole(0, 4):
            return self._unicode.sample()
        text = self._one(self._actions) if self._whole(0, 2) else self._spliced()
        for _ in range(self._whole(0, 3)):
            text = self._one(self._mutations)(text)
        return text[: _LONG if not self._whole(0, 500) else _LONGEST]

    def _any_piece(self) -> str:
        kind = self._whole(0, 3)
        if kind == 0 or not self.pieces:
            return self._one(_DELIMITERS)
        return self._one(_JUNK) if kind == 1 else self._one(self.pieces)

    def _spliced(self) -> str:
        return self._one(("", " ", "\n")).join(self._any_piece() for _ in range(self._whole(1, 8)))

    def _refilled(self, text: str) -> str:
        """Return an action with other words: what it is wrapped in stays."""
        found = list(_WORDS.finditer(text[:_LONGEST]))
        if not found:
            return text
        words, new = self._one(found), "".join(self._any_piece() for _ in range(self._whole(1, 3)))
        return text[: words.start()] + new + text[words.end() :]

    def _cut(self, text: str) -> str:
        first, last = sorted((self._whole(0, len(text)), self._whole(0, len(text))))
        return self._one((text[:last], text[first:], text[:first] + text[last:]))

    def _nested(self, text: str) -> str:
        opening = self._any_piece()
        closing = opening.replace("<", "</", 1) if opening.startswith("<") else self._any_piece()
        count = self._one((1, 1, 2, 3, 50))
        return opening * count + text + closing * count

    def _repeated(self, text: str) -> str:
        first, last = sorted((self._whole(0, len(text)), self._whole(0, len(text))))
        count = self._one((2, 3, 10, 1_000)) if last - first < _LONGEST else 2
        return text[:first] + text[first:last] * count + text[last:]

    def _with_junk(self, text: str) -> str:
        place = self._whole(0, len(text))
        return text[:place] + self._one((self._one(_JUNK), self._one(_DELIMITERS), self._any_piece())) + text[place:]

    def _joined(self, text: str) -> str:
        return text + self._one(("", " ", "\n", ";", ",", "[")) + self._one(self._actions)


class Fuzzed:
    """An environment that is given one action after another, in episodes of its own.

    Args:
        env_id: Registered id.
        seed: What decides instances and actions.
        options: For the environment.
    """

    def __init__(self, env_id: str, seed: int, options: Mapping[str, Any] | None = None) -> None:
        self._env_id, self._options, self._seed = env_id, dict(options or {}), seed * 1_000_000
        self._generator = stream("fuzzed actions", env_id, seed)
        self._env: Any = gymnasium.make(env_id, **self._options)
        self._env.reset(seed=self._seed)  # rules may depend on the part that is played
        self.grammar = ActionGrammar(self._generator, self._env.get_wrapper_attr("instructions"))
        self.raised: list[list[str]] = []
        self.slowest: tuple[float, str] = 0.0, ""
        self.turns = self.episodes = 0
        self._is_over = True
        self._info: dict[str, Any] = {}

    def play(self, count: int) -> None:
        """Give it so many actions."""
        for _ in range(count):
            if self._is_over:
                self._begin()
            self._step(self._action())

    def close(self) -> None:
        """Close the environment."""
        self._env.close()

    def _begin(self) -> None:
        self._seed, self._is_over, self.episodes = self._seed + 1, False, self.episodes + 1
        observation, self._info = self._env.reset(seed=self._seed)
        self.grammar.learn(str(observation), self._info["legal_actions"][:50])

    def _action(self) -> str:
        kind, legal = self._generator.random(), self._info["legal_actions"]
        if kind < 0.1 and legal:
            return str(legal[int(self._generator.integers(len(legal)))])
        if kind < 0.15:
            try:
                action = str(self._env.get_wrapper_attr("expert_action")())
            except ConfigError:  # it knows no way on from here
                return self.grammar.sample()
            self.grammar.learn("", (action,))
            return action
        return self.grammar.sample()

    def _step(self, action: str) -> None:
        self.turns += 1
        started = time.process_time()
        try:
            observation, _, terminated, truncated, self._info = self._env.step(action)
            seconds = time.process_time() - started
            self._is_over = terminated or truncated
            if not self._env.observation_space.contains(observation):
                raise TypeError(f"the observation {ascii(observation)[:200]}")
        except Exception:
            self.raised.append([ascii(action)[:500], traceback.format_exc(limit=-3)[-800:]])
            self._env.close()
            self._env, self._is_over = gymnasium.make(self._env_id, **self._options), True
            return
        if seconds > self.slowest[0]:
            self.slowest = seconds, ascii(action)[:200]
        if not self._generator.integers(10):
            self.grammar.learn(str(observation), self._info["legal_actions"][:3])
