"""Hangman: find a hidden word letter by letter, or by guessing it as a whole, before the lives are used up.

The rules are in :mod:`turngym.envs.textgames.hangman.rules`. The words come from a list of common English words,
:mod:`turngym.envs.textgames.words`.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated

from turngym.envs.core import MaxTurns, Outcome, Reward, TextEnv
from turngym.envs.settings import worded
from turngym.envs.textgames.hangman.rules import ALPHABET, HIDDEN, best_guess, fits, revealed
from turngym.envs.textgames.words import LONGEST, SHORTEST, is_finite, words, words_of_split
from turngym.envs.validation import refuse_task, require_running
from turngym.options import between
from turngym.types import JSONValue

_RULES = """I have chosen an English word of {lengths} letters. Find it before you have no lives left; you have {lives}.
Letters that you have not found are shown as _. A letter that the word does not have costs one life, and so does a \
wrong word.
Answer with one letter, or with the whole word."""


class Hangman(TextEnv[str]):
    r"""A hidden word from the list, every word of the split equally likely.

    The episode terminates when all letters are found or the word is guessed (success), or with the last life (no
    success), and is truncated at ``max_turns``. Repeated guesses, and text that is neither a letter nor a word of the
    right length, are answered and cost a turn but no life. A whole word need not be in the list; the legal actions list
    only letters.

    >>> env = Hangman(5, 5)
    >>> print(env.reset(seed=0)[0])
    _ _ _ _ _
    wrong: none
    lives: 8
    >>> print(env.step("e")[0])
    _ _ _ _ e
    wrong: none
    lives: 8
    """

    class Options(TextEnv.Options):
        shortest: Annotated[int, between(SHORTEST, LONGEST)] = 5
        """Minimum length of the words."""
        longest: int = 8
        """Maximum length of the words, ``shortest`` to 10."""
        lives: Annotated[int, between(1, len(ALPHABET))] = 8
        """Number of wrong guesses that end the episode."""
        step_reward: Reward = 0.0
        """Reward of every turn."""
        solve_reward: Reward = 1.0
        """Reward for finding the word."""
        max_turns: MaxTurns = 20

        def check(self) -> None:
            self.require("longest", between(self.shortest, LONGEST))

    options: Options

    file_options = worded()

    def setup(self) -> None:
        options = self.options
        self.shortest, self.longest, self.lives = options.shortest, options.longest, options.lives
        lengths = range(options.shortest, options.longest + 1)
        self.finite_instances = sum(len(words(n)) for n in lengths) if all(map(is_finite, lengths)) else None
        self._pool = _pool(options.shortest, options.longest, self.split)
        told = f"{self.shortest} to {self.longest}" if self.shortest < self.longest else str(self.shortest)
        self.instructions = _RULES.format(lengths=told, lives=options.lives)

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        self.instance = self._hidden = self._pool[int(self.np_random.integers(len(self._pool)))]
        self._guessed, self._untried, self._wrong = "", ALPHABET, list[str]()
        return self._show()

    def _show(self) -> str:
        """Bring the shown word, and the text that tells everything, up to date."""
        self._shown = revealed(self._hidden, self._guessed)
        wrong = " ".join(self._wrong) or "none"
        self._text = f"{' '.join(self._shown)}\nwrong: {wrong}\nlives: {self.lives - len(self._wrong)}"
        return self._text

    def apply_action(self, action: str) -> Outcome[str]:
        guess = action.strip().lower()
        if len(guess) == 1 and guess in ALPHABET:
            if guess in self._guessed:
                return self._refusal(f"You have guessed {guess} already.")
            self._guessed += guess
            self._untried = self._untried.replace(guess, "")
            is_right = guess in self._hidden
        elif len(guess) == len(self._hidden) and guess.isascii() and guess.isalpha():
            if guess in self._wrong:
                return self._refusal(f"You have guessed {guess} already.")
            is_right = guess == self._hidden
            if is_right:
                self._guessed += "".join([letter for letter in sorted(set(guess)) if letter not in self._guessed])
        else:
            length = len(self._hidden)
            return self._refusal(f"Unknown action: answer with one letter, or with a word of {length} letters.")
        return self._answer(guess, is_right)

    def _refusal(self, note: str) -> Outcome[str]:
        return Outcome(f"{note}\n{self._text}", self.options.step_reward, action_is_valid=False)

    def _answer(self, guess: str, is_right: bool) -> Outcome[str]:
        if not is_right:
            self._wrong.append(guess)
            self._wrong.sort()
        text = self._show()
        if HIDDEN not in self._shown:
            return Outcome(text, self.options.step_reward + self.options.solve_reward, True, True)
        return Outcome(text, self.options.step_reward, len(self._wrong) >= self.lives)

    def anchor(self) -> str:
        return self._text

    def legal_actions(self) -> tuple[str, ...]:
        return tuple(self._untried)

    def progress(self) -> float:
        return 1 - self._shown.count(HIDDEN) / len(self._shown)

    def save_state(self) -> JSONValue:
        return {"hidden": self._hidden, "guessed": self._guessed, "wrong": self._wrong}

    def load_state(self, state: JSONValue) -> None:
        hidden, guessed, wrong = state["hidden"], state["guessed"], list(state["wrong"])
        if (
            not isinstance(guessed, str)
            or hidden not in words(len(hidden))
            or not set(guessed) <= set(ALPHABET)
            or not all(map(str.isalpha, wrong))
        ):
            raise ValueError(f"the word {hidden!r} with the guesses {guessed!r} and {wrong!r}")
        self._hidden, self._guessed, self._wrong = hidden, guessed, wrong
        self._untried = "".join([letter for letter in ALPHABET if letter not in guessed])
        self._show()

    def resample_hidden(self) -> bool:
        """Hide another word of the list that fits what is shown."""
        if not self._running or HIDDEN not in self._shown:
            return False
        pool = words(len(self._hidden))
        others = [word for word in pool if word != self._hidden and fits(word, self._shown, self._guessed, self._wrong)]
        if not others:
            return False
        self.instance = self._hidden = others[int(self.np_random.integers(len(others)))]
        return True

    def expert_action(self) -> str:
        """Return the letter that most words of the list that fit contain, or the word where only one fits.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        refused = tuple(word for word in self._wrong if len(word) > 1)
        return best_guess(self._shown, "".join(sorted(self._guessed)), refused)


@cache
def _pool(shortest: int, longest: int, split: str) -> tuple[str, ...]:
    """Return the words that an episode can start with."""
    return tuple([word for length in range(shortest, longest + 1) for word in words_of_split(length, split)])
