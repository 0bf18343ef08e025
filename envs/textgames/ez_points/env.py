"""Points: build a formula from the dealt cards, each used once, whose value is the target.

With two cards, the target 12 and only + and * this is EZ Points; with four cards and the target 24, the 24 game. The
formula is built token by token, or given as a whole. Formulas are read and evaluated in
:mod:`turngym.envs.textgames.ez_points.formula`; every hand has a solution, found in
:mod:`turngym.envs.textgames.ez_points.solver`.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from turngym.envs.core import MaxTurns, Outcome, Reward
from turngym.envs.ordering import from_drawn_place
from turngym.envs.pictures import PictureEnv
from turngym.envs.settings import worded
from turngym.envs.textgames import drawing
from turngym.envs.textgames.card_pictures import CARD_HEIGHT, place_row, row_width
from turngym.envs.textgames.ez_points.deals import RANKS, card_value, names, shown_as, solvable_deals, two_card_formulas
from turngym.envs.textgames.ez_points.formula import (
    OPERATORS,
    START,
    evaluate,
    is_formula,
    next_tokens,
    read,
    token_of,
    tokenize,
    value_text,
    without_result,
)
from turngym.envs.textgames.ez_points.solver import Hand, completion, is_solvable, solution
from turngym.envs.validation import refuse_task, require_running
from turngym.errors import ConfigError, ExpertLost
from turngym.options import OptionError, between
from turngym.types import JSONValue

_DEALS = 5_000
_LONGEST = 200
_LINE = 24
_FACES = {"ten": "J, Q and K count 10", "rank": "J counts 11, Q 12 and K 13"}


class EZPoints(PictureEnv):
    """Combine cards into 24 (or 12) with arithmetic.

    Four cards with the same values are one instance, always dealt in the same order and with the same images; of fewer
    cards, which have too few hands for splits, every deal is one.

    With ``entry="token"`` an action is one token. A token after which the formula cannot be ended, for example a
    number that is not in the hand, is invalid and changes nothing. The episode terminates with ``=``: success if the
    formula has the value of the target. At most ``cards - 1`` brackets may be opened.

    With ``entry="formula"`` an action is a whole formula. The episode terminates with a correct one; a wrong one is
    answered with its value. In both modes the episode is truncated at ``max_turns``. Progress is the share of the cards
    that have been used, with the ``=`` counted as one more, and 1 only for a success.

    >>> env = EZPoints()
    >>> env.reset(seed=0)[0], env.expert_action()
    ('Cards: J, 2. Target: 12. Formula:', '2')
    """

    class Options(PictureEnv.Options):
        cards: Annotated[int, between(2, 4)] = 2
        """Number of cards of a hand."""
        target: Annotated[int, between(1, 1000)] = 12
        """Value to reach."""
        operators: str = "+*"
        """Allowed operators, some of ``+-*/``."""
        faces: Literal["ten", "rank"] = "ten"
        """``"ten"`` if J, Q and K count 10, ``"rank"`` if they count 11, 12 and 13."""
        entry: Literal["token", "formula"] = "token"
        """``"token"`` or ``"formula"``."""
        step_reward: Reward = 0.0
        """Reward of every turn."""
        solve_reward: Reward = 1.0
        """Reward for a correct formula."""
        max_turns: MaxTurns = 20
        """Turns after which the episode is truncated; by token, at least the length of the longest formula."""

        def check(self) -> None:
            if not self.operators or Counter(self.operators) - Counter(OPERATORS):
                raise OptionError("operators", f"must be some of '+-*/', each once, got {self.operators!r}.")
            longest = 4 * self.cards - 2
            if self.entry == "token" and self.max_turns < longest:
                raise OptionError(
                    "max_turns",
                    f"is {self.max_turns}, but a formula of {self.cards} cards can have {longest} tokens: "
                    f"pass max_turns={longest} or more.",
                )

    options: Options

    file_options = worded("faces", "entry", operators=r"[-+*/]{1,4}")
    beaten_by: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("alphabetically last", "winners' most frequent action"),
        "most hands of two cards that make 12 are sums, and random play multiplies half of the time.",
    )

    def setup(self) -> None:
        options = self.options
        self.cards, self.target = options.cards, options.target
        self.operators, self.faces = options.operators, options.faces
        self._by_token = options.entry == "token"
        self._deals: tuple[tuple[int, ...], ...] = ()
        if options.cards < 4:
            self._deals = solvable_deals(options.cards, options.target, options.operators, options.faces)
            self.finite_instances = len(self._deals)
            if not self._deals:
                raise self._unsolvable()
        longest_text = 6 * options.cards - 2  # two digits a number, and every operator, bracket and =
        self.set_frame(2 * _LINE + CARD_HEIGHT, max(row_width(options.cards), _LINE // 2 * longest_text, _LINE * 6))
        self.instructions = self._rules()
        self._plan: tuple[str, ...] = ()
        self._order_salt = 0

    def _rules(self) -> str:
        brackets = " and brackets" if self.cards > 2 else ""
        bracket, limit = ", a bracket", f" You may open at most {self.cards - 1} brackets."
        if self.cards == 2:
            bracket = limit = ""
        answer = (
            f"Build it token by token. A token is the value of a card, an operator{bracket} or =, which ends the "
            f"formula.{limit} Answer with one token only."
            if self._by_token
            else "Answer with the whole formula only; after a wrong one you may try again."
        )
        return (
            f"You hold {self.cards} cards. Make a formula whose value is exactly {self.target}: use every card exactly "
            f"once, with {' '.join(self.operators)}{brackets}. * and / bind more strongly than + and -.\n"
            f"A counts 1; {_FACES[self.faces]}. You have at most {self.max_turns} turns.\n{answer}"
        )

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        self._ranks = self.draw(self._deal, lambda ranks: f"{names(ranks)} for {self.target}")
        self._open()
        return self._board

    def _hand(self, ranks: tuple[int, ...]) -> Hand:
        return tuple(sorted([card_value(rank, self.faces) for rank in ranks]))

    def _deal(self, generator: np.random.Generator) -> tuple[int, ...]:
        if self._deals:
            return self._deals[int(generator.integers(len(self._deals)))]
        for _ in range(_DEALS):
            hand = self._hand(tuple(generator.integers(1, 14, size=self.cards).tolist()))
            if is_solvable(hand, self.target, self.operators):
                return shown_as(hand, self.faces)
        raise self._unsolvable()

    def _unsolvable(self) -> ConfigError:
        return ConfigError(
            f"{self.env_id} has no hand of {self.cards} cards that makes {self.target} with {self.operators}: pass "
            f"more cards, more operators or another target."
        )

    def _open(self) -> None:
        """Start the formula."""
        self._tokens: list[str] = []
        self._left, self._has_value = self._hand(self._ranks), False
        self._depth, self._opens = 0, self.cards - 1 if self.cards > 2 else 0
        self._head = f"Cards: {names(self._ranks)}. Target: {self.target}."
        self._order_salt = zlib.crc32(self._head.encode())  # equal instances start alike
        self._board = self._head + " Formula:" if self._by_token else self._head
        self._list()

    def _list(self) -> None:
        legal: tuple[str, ...] = ()
        if self._by_token:
            legal = next_tokens(self._left, self.operators, self._depth, self._opens, self._has_value)
        elif self.cards == 2:
            legal = two_card_formulas(self._left, self.operators)
        if self.cards == 2:  # listed in order, the first operator solves most hands
            legal = from_drawn_place(legal, self._order_salt, str(len(self._tokens)))
        self._legal = legal

    def _put(self, token: str) -> None:
        """Add a token that is legal."""
        self._tokens.append(token)
        self._board = f"{self._board} {token}"
        if token == "(":
            self._depth, self._opens = self._depth + 1, self._opens - 1
        elif token == ")":
            self._depth -= 1
        elif token in OPERATORS:
            self._has_value = False
        elif token != "=":
            self._has_value = True
            index = self._left.index(int(token))
            self._left = self._left[:index] + self._left[index + 1 :]
        self._list()

    def apply_action(self, action: str) -> Outcome[str]:
        if not self._by_token:
            return self._try(action)
        token = token_of(action.strip())
        if token not in self._legal:
            note = f"Unknown action: answer with one of {' '.join(self._legal)}. "
            return Outcome(note + self._board, self.options.step_reward, action_is_valid=False)
        self._put(token)
        if token != "=":
            return Outcome(self._board, self.options.step_reward)
        value = evaluate(self._tokens[:-1])
        note = f"{self._board} {value_text(value)}"
        if value == self.target:
            return Outcome(note, self.options.step_reward + self.options.solve_reward, True, True)
        return Outcome(f"{note}, not {self.target}", self.options.step_reward, True)

    def _try(self, action: str) -> Outcome[str]:
        """Answer a whole formula."""
        tokens = tokenize(without_result(action, self.target)) if len(action) <= _LONGEST else None
        if tokens is None or not is_formula(tokens) or set(tokens) & set(OPERATORS) - set(self.operators):
            note = f"Unknown action: answer with one formula of the cards with {' '.join(self.operators)}. "
            return Outcome(note + self._board, self.options.step_reward, action_is_valid=False)
        if sorted([int(token) for token in tokens if token.isdigit()]) != list(self._left):
            note = f"Unknown action: use each of {', '.join(map(str, self._left))} exactly once. "
            return Outcome(note + self._board, self.options.step_reward, action_is_valid=False)
        value = evaluate(tokens)
        if value == self.target:
            return Outcome(f"{value}: correct", self.options.step_reward + self.options.solve_reward, True, True)
        return Outcome(f"The value is {value_text(value)}, not {self.target}. {self._board}", self.options.step_reward)

    def anchor(self) -> str:
        return self._board

    def legal_actions(self) -> tuple[str, ...]:
        return self._legal

    def progress(self) -> float:
        return 1.0 if self._success == 1 else (self.cards - len(self._left)) / (self.cards + 1)

    def render_image(self) -> NDArray[np.uint8]:
        picture = drawing.canvas(*self._frame, drawing.GREEN)
        drawing.write(picture[:_LINE], f"MAKE {self.target}", drawing.WHITE, scale=2)
        place_row(picture, _LINE, [RANKS[rank - 1] for rank in self._ranks])
        drawing.write(picture[_LINE + CARD_HEIGHT :], "".join(self._tokens), drawing.WHITE, scale=2)
        return picture

    def save_state(self) -> JSONValue:
        return {"ranks": list(self._ranks), "tokens": list(self._tokens)}

    def load_state(self, state: JSONValue) -> None:
        self._ranks = tuple(state["ranks"])
        if len(self._ranks) != self.cards or not all(type(rank) is int and 1 <= rank <= 13 for rank in self._ranks):
            raise ValueError(f"cards {self._ranks!r}")
        self._open()
        for token in state["tokens"]:
            if token not in self._legal:
                raise ValueError(f"token {token!r}")
            self._put(token)

    def expert_action(self) -> str:
        """Return the next token of a right formula, or the whole of it.

        Raises:
            ConfigError: No episode is under way.
            ExpertLost: No right formula starts like the one so far.
        """
        require_running(self)
        done = tuple(self._tokens)
        if not self._by_token or self._plan[: len(done)] != done or not self._fits(self._plan):
            self._plan = done + self._ending()
        return self._plan[len(done)] if self._by_token else " ".join(self._plan[:-1])

    def _fits(self, plan: tuple[str, ...]) -> bool:
        numbers = sorted([int(token) for token in plan if token.isdigit()])
        return len(plan) > len(self._tokens) and numbers == list(self._hand(self._ranks))

    def _ending(self) -> tuple[str, ...]:
        tail = self._tail()
        if tail is None:
            raise ExpertLost(
                f"{self.env_id} has no expert action here: no formula that starts with {' '.join(self._tokens)!r} "
                f"makes {self.target}. Call reset(), or restore() an earlier state."
            )
        return (*tail, "=")

    def _tail(self) -> tuple[str, ...] | None:
        if not self._tokens:
            return solution(self._left, self.target, self.operators)
        stack = START
        for token in self._tokens:
            grown = read(stack, token)
            if grown is None:
                return None
            stack = grown
        return completion(stack, self._left, self._opens, Fraction(self.target), self.operators)
