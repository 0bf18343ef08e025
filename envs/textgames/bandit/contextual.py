"""A contextual bandit: recommend a book to each reader, and learn from the ratings which books suit which readers.

Readers, books and ratings are described in :mod:`turngym.envs.textgames.bandit.readers`. It replaces the film
recommendations of BanditBench (Nie et al. 2024, arXiv 2410.06238), with 10 arms and 200 pulls or 30 arms and 1,000
pulls, and needs no data set.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

import numpy as np

from turngym.envs.settings import worded
from turngym.envs.textgames.bandit.base import Bandit
from turngym.envs.textgames.bandit.players import LinUCB
from turngym.envs.textgames.bandit.readers import (
    MIDDLE,
    THEMES,
    TITLES,
    book_text,
    draw_books,
    draw_themes,
    mean_ratings,
    readers,
)
from turngym.envs.textgames.bandit.scenarios import Scenario
from turngym.options import between
from turngym.seeding import stream
from turngym.types import JSONValue

_STORY = Scenario(
    "You work in a bookshop and recommend one book to each reader who comes in. The reward is the reader's rating: "
    "about 3 for a book that leaves them cold, more for one that they like, less for one that they do not.",
    "book",
    TITLES,
)
_MORE = (
    "You are told what each reader likes, and two themes of each book; the rest of a book you learn from the ratings, "
    "which vary a little. A reader who hates a theme likes a book less for it."
)


class ContextualBandit(Bandit):
    """Contextual bandit: recommend a book to a new reader every turn.

    Terminates, succeeds and is scored like :class:`turngym.envs.textgames.bandit.BernoulliBandit`; the best book of a
    turn is the best for its reader. The splits have different readers. Titles carry no information: the themes are
    sampled from the seed. The anchor holds the books, the reader and what is known, with the ratings as a hash.

    >>> env = ContextualBandit(arms=2)
    >>> env.reset(seed=0)[0].splitlines()[1:3]
    ['the salt lantern: much romance, some humour', 'nine doors: much adventure, some romance']
    """

    class Options(Bandit.Options):
        arms: int = 10
        """Number of books, 2 to 30."""
        noise: Annotated[float, between(0.0, 10.0)] = 0.5
        """Standard deviation of a rating around its mean."""
        view: Literal["history", "summary", "guide"] = "history"
        """``"history"`` shows each rating, ``"summary"`` also a table of counts and means, ``"guide"`` also the
        estimate for the reader and the bonus that LinUCB gives each book."""
        expert: Literal["ucb", "greedy"] = "ucb"
        """Reference player of ``expert_action``: ``"ucb"`` for LinUCB, ``"greedy"`` for LinUCB without bonus."""
        most_arms = len(TITLES)

    options: Options

    file_options = worded("view", "on_invalid", "expert")

    def setup(self) -> None:
        super().setup()
        self.noise = self.options.noise
        self._set_story(_STORY, TITLES[: self.arms], _MORE)

    def _deal(self) -> None:
        keys, themes = self.draw(
            lambda generator: (self._draw_keys(generator), draw_themes(generator, self.arms)),
            lambda drawn: f"readers {drawn[0][1]} ratings {drawn[0][0]} themes {drawn[1]}",
        )
        self._reward_key, self._player_key = keys
        self._set_themes(themes)
        self._set_ratings()

    def _set_themes(self, themes: list[list[int]]) -> None:
        """Take over what is known from the beginning: the books' themes; and the readers, who come one by one."""
        self._themes = themes
        people = readers(self.split)
        coming = stream("bandit visitors", self._player_key).integers(len(people.profiles), size=self.horizon)
        self._profiles = [people.profiles[index] for index in coming]
        self._tastes = people.tastes[coming]
        lines = [book_text(name, pair) for name, pair in zip(self.names, themes, strict=True)]
        self._books_text = "Books:\n" + "\n".join(lines)

    def _set_ratings(self) -> None:
        """Take over what is hidden: the rest of the books and every rating; both follow from the key."""
        generator = stream("bandit ratings", self._reward_key)
        means = mean_ratings(self._tastes, draw_books(generator, self._themes))
        self._gap_rows = means.max(axis=1, keepdims=True) - means
        self._ratings = np.round(means + self.noise * generator.standard_normal(means.shape), 2)

    def _start(self) -> None:
        super()._start()
        self._known = 0
        self._learners: dict[str, tuple[LinUCB, int]] = {}

    def _gaps(self, turn: int) -> tuple[float, ...]:
        return tuple(self._gap_rows[turn].tolist())

    def _reward(self, turn: int, arm: int) -> float:
        return float(self._ratings[turn, arm])

    def _record(self, turn: int, arm: int, reward: float) -> None:
        super()._record(turn, arm, reward)
        seen = f"{self._profiles[turn]}|{arm}|{reward}".encode()
        self._known = (self._known + int.from_bytes(hashlib.blake2b(seen, digest_size=8).digest(), "big")) % 2**64

    def _introduction(self) -> str:
        reader = f"The reader is {self._profiles[len(self._pulled)]}. Choose a book."
        return reader if self._pulled else f"{self._books_text}\n{reader}"

    def _learner(self, player: str) -> LinUCB:
        """Return LinUCB after all that has been seen."""
        options = {} if player == "ucb" else {"alpha": 0.0}
        learner, seen = self._learners.get(player) or (LinUCB(self.arms, len(THEMES), **options), 0)
        for turn in range(seen, len(self._pulled)):
            learner.update(self._tastes[turn], self._pulled[turn], self._received[turn] - MIDDLE)
        self._learners[player] = learner, len(self._pulled)
        return learner

    def _player_choice(self, player: str) -> int:
        return self._learner(player).choose(self._tastes[len(self._pulled)])

    def _table(self) -> str:
        lines = []
        for name, count, total in zip(self.names, self.counts, self.sums, strict=True):
            times = "once" if count == 1 else f"{count} times"
            known = f"recommended {times}, mean rating {total / count:.2f}" if count else "not recommended yet"
            lines.append(f"{name}: {known}")
        if self.view == "guide" and len(self._pulled) < self.horizon:
            estimates, extras = self._learner("ucb").parts(self._tastes[len(self._pulled)])
            lines = [
                f"{line}, estimate for the next reader {MIDDLE + estimate:.2f}, exploration bonus {extra:.2f}"
                for line, estimate, extra in zip(lines, estimates, extras, strict=True)
            ]
        return "\n".join(lines)

    def anchor(self) -> str:
        turn = len(self._pulled)
        reader = f"Reader: {self._profiles[turn]}" if turn < self.horizon else "No reader"
        counts = " ".join(map(str, self.counts))
        return f"{self._books_text}\n{reader}\nRecommended: {counts}\nRatings: {self._known:016x}"

    def _hidden(self) -> JSONValue:
        return self._themes

    def _adopt_hidden(self, hidden: JSONValue) -> None:
        themes = [[int(theme) for theme in pair] for pair in hidden]
        if len(themes) != self.arms or not all(len(pair) == 2 and set(pair) <= set(range(5)) for pair in themes):
            raise ValueError(f"themes {hidden!r}")
        self._set_themes(themes)
        self._set_ratings()

    def resample_hidden(self) -> bool:
        """Draw the untold part of the books and the coming ratings again; any are possible after any ratings."""
        if not self._running:
            return False
        self._reward_key = self._draw_keys(self.np_random)[0]
        self._set_ratings()
        self.instance = f"readers {self._player_key} ratings {self._reward_key} themes {self._themes}"
        self._replay(self._pulled, self._received)
        return True
