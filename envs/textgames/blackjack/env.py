"""Blackjack: take cards up to 21 and end above the dealer; hit or stand, nothing else.

The rules are in :mod:`turngym.envs.textgames.blackjack.rules`. The whole row of cards is fixed at the reset, so the
outcome depends on nothing but the actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from turngym.envs.core import MaxTurns, Outcome, Reward
from turngym.envs.pictures import PictureEnv
from turngym.envs.settings import worded
from turngym.envs.textgames import drawing
from turngym.envs.textgames.blackjack.rules import (
    FIRST,
    NATURAL,
    RANKS,
    dealer_hand,
    hand_text,
    outcomes,
    player_hand,
    result,
    total,
    worth,
)
from turngym.envs.textgames.blackjack.solver import ENDLESS, deck_without, should_hit
from turngym.envs.textgames.card_pictures import BACK, CARD_HEIGHT, GAP, place_row, row_width
from turngym.envs.validation import refuse_task, require_running
from turngym.errors import ConfigError
from turngym.types import JSONValue

ACTIONS = ("hit", "stand")
_ENDLESS_CARDS = 40  # more than any play can show: at most 21 of the player's and 13 of the dealer's
_DEALS = 1_000
_SHOWN_CARDS = 6
_NAMES = ("", *[str(min(rank, 10)) for rank in range(1, 14)])
_UNKNOWN = "Unknown action: answer with hit or stand. "
_RESULTS = {1: "You win.", 0: "It is a draw.", -1: "You lose."}
_RULES = """Play one game of Blackjack against the dealer. Cards from 2 to 10 count their number; J, Q and K count 10; \
an ace (A) counts 11, or 1 if the hand would exceed 21. A hand in which an ace counts 11 is called soft.
You see one of the dealer's two cards. Hit gives you one more card; with more than 21 you lose at once. Stand ends \
your turn: the dealer takes cards up to 17 or more, and stands on every 17. The higher hand of at most 21 wins; equal \
hands draw. Two cards that count 21 beat every other 21.
"""
_DECKS = {"endless": "Every card is drawn from a full deck.", "single": "All cards come from one deck of 52."}
_ANSWER = "Answer with hit or stand."


class Blackjack(PictureEnv):
    """Play one game of Blackjack against the dealer.

    The episode terminates when the player stands or exceeds 21, and is truncated at ``max_turns``. Success is a win.
    Deals are sampled so that some number of hits wins, unless ``winnable`` is off; optimal play does not always find
    it, because it knows neither the dealer's hidden card nor the next ones. Dealing only such games changes the winning
    probabilities of all strategies by the same factor, so the optimal strategy is unchanged. Deals that no strategy can
    distinguish are one instance. Progress is unknown until the end.

    >>> env = Blackjack()
    >>> env.reset(seed=3)[0], env.expert_action()
    ('You hold 2 4 (6). The dealer shows J.', 'hit')
    """

    class Options(PictureEnv.Options):
        deck: Literal["endless", "single"] = "endless"
        """``"endless"`` if every card is sampled from a full deck, ``"single"`` for one deck of 52 cards."""
        winnable: bool = True
        """True if only winnable games are dealt."""
        step_reward: Reward = 0.0
        """Reward of every turn."""
        win_reward: Reward = 1.0
        """Reward for a win."""
        natural_reward: Reward = 1.0
        """Reward for a win with a natural, instead of ``win_reward``."""
        draw_reward: Reward = 0.0
        """Reward for a draw."""
        loss_reward: Reward = -1.0
        """Reward for a loss."""
        max_turns: MaxTurns = 25

    options: Options

    file_options = worded("deck")
    beaten_by: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("last legal", "alphabetically last", "winners' most frequent action"),
        "standing at once is a fair strategy, and random play draws until it is bust half of the time.",
    )

    def setup(self) -> None:
        options = self.options
        self.winnable = options.winnable
        self._rewards = {1: options.win_reward, 0: options.draw_reward, -1: options.loss_reward}
        self._is_endless = options.deck == "endless"
        self.set_frame(3 * GAP + 2 * CARD_HEIGHT, row_width(_SHOWN_CARDS))
        self.instructions = f"{_RULES}{_DECKS[options.deck]} {_ANSWER}"

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        self._deal, _ = self.draw(self._shuffle, lambda drawn: drawn[1])
        self._hits, self._has_stood = 0, False
        self._look()
        return self._board

    def _shuffle(self, generator: np.random.Generator) -> tuple[list[int], str]:
        for _ in range(_DEALS):
            if self._is_endless:
                deal: list[int] = (generator.random(_ENDLESS_CARDS) * 13 + 1).astype(np.int64).tolist()
            else:
                deal = [index % 13 + 1 for index in generator.permutation(52).tolist()]
            if name := self._name(deal):
                return deal, name
        raise ConfigError(f"{self.env_id} dealt no game that can be won: pass winnable=False or another seed.")

    def _name(self, deal: list[int]) -> str:
        """Return the cards that some play shows, empty if the game may not be dealt: the others matter to no play."""
        found, shown = outcomes(deal)
        if self.winnable and 1 not in found[: self.max_turns]:
            return ""
        return " ".join([_NAMES[rank] for rank in deal[:shown]])

    def _look(self) -> None:
        """Write down what the player sees."""
        self._hand = player_hand(self._deal, self._hits)
        mine = f"You hold {hand_text(self._hand)}."
        if self._has_stood:
            dealer = dealer_hand(self._deal, self._hits)
            self._board = f"{mine} The dealer holds {hand_text(dealer)}. {_RESULTS[result(self._hand, dealer)]}"
        elif total(self._hand)[0] > 21:
            self._board = f"{mine} That is more than 21. You lose."
        else:
            self._board = f"{mine} The dealer shows {RANKS[self._deal[2] - 1]}."

    def apply_action(self, action: str) -> Outcome[str]:
        move = action.strip().lower()
        if move not in ACTIONS:
            return Outcome(_UNKNOWN + self._board, self.options.step_reward, action_is_valid=False)
        if move == "hit":
            self._hits += 1
            self._look()
            if total(self._hand)[0] <= 21:
                return Outcome(self._board, self.options.step_reward)
            return Outcome(self._board, self.options.step_reward + self._rewards[-1], True)
        self._has_stood = True
        self._look()
        end = result(self._hand, dealer_hand(self._deal, self._hits))
        is_natural = end == 1 and worth(self._hand) == NATURAL
        reward = self.options.natural_reward if is_natural else self._rewards[end]
        return Outcome(self._board, self.options.step_reward + reward, True, end == 1)

    def anchor(self) -> str:
        return self._board

    def legal_actions(self) -> tuple[str, ...]:
        return ACTIONS

    def progress(self) -> float:
        """Return 1 for a won game, 0 for any other that has ended, and before that how much of 21 the hand is worth."""
        return min(worth(self._hand), 21) / 21 if self._success < 0 else float(self._success)

    def render_image(self) -> NDArray[np.uint8]:
        picture = drawing.canvas(*self._frame, drawing.GREEN)
        dealer = [RANKS[self._deal[2] - 1], BACK]
        if self._has_stood:
            dealer = [RANKS[rank - 1] for rank in dealer_hand(self._deal, self._hits)]
        place_row(picture, GAP, dealer)
        place_row(picture, 2 * GAP + CARD_HEIGHT, [RANKS[rank - 1] for rank in self._hand])
        return picture

    def save_state(self) -> JSONValue:
        return {"deal": list(self._deal), "hits": self._hits, "has_stood": self._has_stood}

    def load_state(self, state: JSONValue) -> None:
        self._deal, self._hits, self._has_stood = list(state["deal"]), state["hits"], state["has_stood"]
        size = _ENDLESS_CARDS if self._is_endless else 52
        if len(self._deal) != size or not all(rank in range(1, 14) for rank in self._deal):
            raise ValueError(f"cards {self._deal!r}")
        if self._hits not in range(size - FIRST) or not isinstance(self._has_stood, bool):
            raise ValueError(f"hits {self._hits!r}")
        self._look()

    def resample_hidden(self) -> bool:
        """Lay other cards where the player has not seen any, so that the game can still be dealt."""
        if not self._running:
            return False
        seen = FIRST + self._hits
        hidden = [self._deal[3], *self._deal[seen:]]
        for _ in range(_DEALS):
            if self._is_endless:
                other: list[int] = self.np_random.integers(1, 14, size=len(hidden)).tolist()
            else:
                other = self.np_random.permutation(hidden).tolist()
            deal = [*self._deal[:3], other[0], *self._deal[FIRST:seen], *other[1:]]
            if deal != self._deal and (name := self._name(deal)):
                self._deal, self.instance = deal, name
                return True
        return False

    def expert_action(self) -> str:
        """Return the action that wins most often, given the cards that the player sees.

        Raises:
            ConfigError: No episode is under way.
        """
        require_running(self)
        cards = tuple([min(rank, 10) for rank in self._hand])
        shown = min(self._deal[2], 10)
        pool = ENDLESS if self._is_endless else deck_without((*cards, shown))
        return "hit" if should_hit(cards, shown, pool) else "stand"
