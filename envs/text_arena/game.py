"""Any game of TextArena (Guertler et al. 2025) for several players as a :class:`Game` between seats."""

from __future__ import annotations

import copy
import hashlib
import importlib
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from turngym.arithmetic import as_float, is_finite
from turngym.envs.adapters.borrowed import import_package, made_for, mute
from turngym.envs.adapters.global_random import GlobalRandom
from turngym.envs.core import UNBOUNDED
from turngym.envs.multiagent.game import Game, InvalidAction
from turngym.envs.multiagent.speech import quoted
from turngym.envs.settings import worded
from turngym.errors import ConfigError, UnknownName, nearest
from turngym.options import Options as BaseOptions
from turngym.options import between
from turngym.types import JSONValue

_ID, _FEATURE = "turngym/TextArenaGame-v0", "TextArena"
_BREAKS = (ArithmeticError, AssertionError, AttributeError, LookupError, NameError, TypeError, ValueError)
_JUDGED = re.compile("(Debate|GuessWho|ScenarioPlanning|TwentyQuestions)-")
_LISTED = re.compile(r"\b(?:available|legal|valid) (?:actions|moves)\b[^:\n]*:(.*)", re.IGNORECASE)
_BRACKETS = re.compile(r"\[[^\[\]\n]{1,80}\]")
_NO_ACTION = "That is no action that can be read."


class TextArenaGame(Game):
    """A game of TextArena for two seats or more, which answer one after the other.

    Rules, texts and rewards are TextArena's. A seat reads the rules first, and then what the game says to it and what
    others say aloud, quoted as one line. The legal actions are those that the game has listed for it last; there are
    none where it lists none. An answer that TextArena calls an invalid move changes nothing and is an illegal action.
    Rewards come at the end as they are, which need not sum to zero; the score is the reward. The seats with the highest
    reward have won, unless all are equal. A forfeit ends the game with -1, and between two seats with 1 for the other.
    A game with more answers than ``max_moves`` is cut off without rewards. The anchor is every line that the seat has
    read. Snapshots hold the seed and the answers, which are replayed.

    Games that need another version of Python, word lists that are not on this machine, or a judge behind a server are
    refused, and so are games for one player, which ``turngym/TextArena-v0`` plays.

    Three seats: ``turngym tournament turngym/TextArenaGame-v0 --option rules=ThreePlayerTicTacToe-v0 --option seats=3
    --players random,first_legal --blocks 1``. Where a game lists no actions, the players ``random`` and ``first_legal``
    answer with a sentence and forfeit at once, unless it takes any text: use models or a custom player there.

    Names below are ids of textarena 0.7.4 without their ``-v0``, with Python 3.11, no word lists, and two players
    unless a number is given. Actions are listed from the first turn on in Crusade, KuhnPoker, Othello, PigDice,
    SimpleTak, SpiteAndMalice, Stratego, ThreePlayerTicTacToe (3), TicTacToe and WildTicTacToe.

    No actions are listed in the first turn of Alquerque, Battleship, Breakthrough, Briscola (2 to 4),
    CharacterConclave (3 to 15), Chopsticks, ColonelBlotto, ConnectFour, GameOfPureStrategy, GermanWhist, Golf (2 to 4),
    HighSociety, IndianPoker, IteratedMatchingPennies, IteratedPrisonersDilemma, IteratedRockPaperScissors,
    IteratedTwoThirdsAverage, IteratedUltimatumGame, LiarsDice (2 to 15), LinesOfAction, MarketEntryGame (2 to 15),
    MemoryGame, NewRecruit, Nim, Poker (2 to 15), PublicGoodsGame (2 to 15), QuantumTicTacToe, SantoriniBaseFixed (2 or
    3), SecretMafia (6 to 15), SettlersOfCatan (4), SimpleBlindAuction, SimpleNegotiation, Snake (2 to 9), Surround (2
    to 9), Taboo (4), Tak, ThreePlayerGOPS (3), ThreePlayerIPD (3), TruthAndDeception, TwoDollar and UltimateTicTacToe.
    """

    class Options(BaseOptions):
        rules: str = "TicTacToe-v0"
        """Id in TextArena's registry, e.g. ``"KuhnPoker-v0"``. A suffix such as ``"-train"`` names wrappers only and
        changes nothing here."""
        seats: Annotated[int, between(2, 15)] = 2
        """Number of players, as far as the game allows it."""
        game_options: Mapping[str, Any] | None = None
        """Options that override those of the id, JSON values only."""
        max_moves: Annotated[int, between(1, 100_000)] = 1_000
        """Answers after which the game is cut off."""

    options: Options

    file_options = worded(rules="[A-Za-z0-9-]{1,60}")
    name = "text_arena"
    score_range = UNBOUNDED

    def __init__(self, *positional: Any, **options: Any) -> None:
        self.take_options(self.name, options, positional)
        super().__init__(self.options.seats)
        self._random = GlobalRandom()
        with self._random.lent():
            self._package = import_package("textarena", _ID, "textarena", "textarena")
            self._unused, self._has_brackets = self._made()
        self._start(0)

    _constructor = __init__

    # Create the game.

    def _made(self) -> tuple[Any, bool]:
        """Return the bare game, and whether TextArena would put missing brackets around an action."""
        registry, name = importlib.import_module("textarena.envs.registration").ENV_REGISTRY, self.options.rules
        if name not in registry:
            raise UnknownName(f"TextArena has no game named {name!r}. {nearest(name, registry)[:300]}")
        if _JUDGED.match(name):
            raise ConfigError(f"{name} cannot be played here: its judge is a model behind a server.")
        try:
            with made_for(_FEATURE, name):
                game = self._package.make(name, **dict(self.options.game_options or {}))
        except ConfigError as error:
            if isinstance(error.__cause__, SyntaxError):
                version = ".".join(map(str, sys.version_info[:2]))
                raise ConfigError(f"{name} of TextArena is written for a later Python than {version}.") from error
            raise
        formats, has_brackets = importlib.import_module("textarena.wrappers").ActionFormattingWrapper, False
        while isinstance(game, self._package.Wrapper):
            has_brackets, game = has_brackets or isinstance(game, formats), game.env
        mute(type(game).__module__.rpartition(".")[0])
        return game, has_brackets

    def _start(self, seed: int) -> None:
        """Start a game, so that a wrong number of seats is an error now."""
        self._seed, self._moves, self._rewards = seed, list[str](), [0.0] * self.num_seats
        self._is_ended, self._is_cut, self._lost = False, False, list[int]()
        self._known: list[list[str]] = [[] for _ in self.everyone]
        self._legal: list[tuple[str, ...]] = [()] * self.num_seats
        self._random.seed(seed)
        try:
            with self._random.lent(), made_for(_FEATURE, f"a game of {self.options.rules}"):
                self._game = copy.deepcopy(self._unused)  # some keep their shuffled deck at a reset
                self._game.reset(num_players=self.num_seats, seed=seed)
        except ConfigError as error:
            raise ConfigError(
                f"{str(error).rstrip('.')}. The game was created with seats={self.num_seats}. "
                "turngym/TextArena-v0 plays games for one player."
            ) from error
        self._first = list(self._heard())

    # The course of a game.

    def instructions(self, seat: int) -> str:
        """Return the name of the game and the answer format."""
        return (
            f"You play {self.options.rules.partition('-v')[0]}, a game for {self.num_seats} players, by the rules of "
            "TextArena, which you are shown first.\nAnswer with one action as these rules say, in brackets if they "
            "ask for brackets."
        )

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Start a game; ``{"seed": 1}`` takes TextArena's game of that seed."""
        self.require_known(options, ["seed"])
        seed = options.get("seed", int(generator.integers(2**31)))
        if type(seed) is not int or not 0 <= seed < 2**31:
            raise ConfigError(f"the seed of a game of {self.name} must be 0 to 2147483647, got {seed!r:.60}.")
        self.news.clear()
        self._start(seed)
        for seat, line in self._first:
            self.tell((seat,), line)

    def _heard(self) -> Iterator[tuple[int, str]]:
        """Yield each new line with the seat that reads it, without the seat's own words."""
        kinds, state = self._package.ObservationType, self._game.state
        spoken, board = kinds.PLAYER_ACTION, kinds.GAME_BOARD
        for seat in self.everyone:
            if seat == state.current_player_id and not self._is_ended:
                with self._random.lent():
                    messages = self._game.get_observation()[1] or ()
            else:
                messages, state.observations[seat] = state.observations[seat], []
            for speaker, message, kind in messages:
                if kind is spoken and speaker == seat:
                    continue
                line = quoted(self.seats[speaker], str(message)) if kind is spoken else str(message).strip()
                if line:
                    self._known[seat].append(line)
                    if kind is board and (listed := _LISTED.findall(line)):
                        self._legal[seat] = tuple(dict.fromkeys(_BRACKETS.findall(listed[-1])))
                    yield seat, line

    def asked(self) -> tuple[int, ...]:
        """Return the seat that answers."""
        return () if self._is_ended else (int(self._game.state.current_player_id),)

    def prompt(self, seat: int) -> str:
        """Return the question; the game has said before what may be answered."""
        return "What do you answer?"

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return the actions that the game has listed for the seat last; empty where it lists none."""
        return self._legal[seat]

    def read(self, seat: int, text: str) -> str:
        """Return an answer that TextArena takes, which is tried on a copy of the game.

        Raises:
            InvalidAction: It calls the answer an invalid move, or cannot read it.
        """
        words, game = self._words(text), self._copied()
        before = _errors(game, seat)
        try:
            with copy.deepcopy(self._random).lent():
                game.step(words)
        except _BREAKS:
            raise InvalidAction(_NO_ACTION) from None
        if _errors(game, seat) > before:
            told = [_reason(str(message)) for _, message, _ in game.state.observations[seat][-2:]]
            reasons = [reason for reason in told if reason]
            raise InvalidAction(reasons[-1] if reasons else _NO_ACTION)
        return words

    def _words(self, text: str) -> str:
        """Return an answer as TextArena gets it."""
        words = text.strip()
        return f"[{words}]" if self._has_brackets and "[" not in words and "]" not in words else words

    def _copied(self) -> Any:
        """Return a copy of the game with a flat copy of its log, which holds plain values and grows with every move."""
        log = self._game.state.logs
        return copy.deepcopy(self._game, {id(log): list(log)})

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Pass on the answer."""
        ((seat, text),) = actions.items()
        for reader, line in self._move(seat, text):
            self.tell((reader,), line)
        return list(self._rewards)

    def _move(self, seat: int, text: str) -> list[tuple[int, str]]:
        """Pass on an answer, and return the new lines with their readers."""
        self._known[seat].append(f"> {text}")
        self._legal[seat] = ()
        with self._random.lent():
            self._is_ended, _ = self._game.step(text)
        self._moves.append(text)
        lines = list(self._heard())
        if self._is_ended:
            given, about = self._game.close()
            self._rewards = [as_float((given or {}).get(each, 0.0)) for each in self.everyone]
            if not all(map(is_finite, self._rewards)):
                raise ValueError(f"{self.options.rules} of TextArena gave the rewards {self._rewards}")
            reason = " ".join(str(about.get(seat, {}).get("reason", "")).split())
            line = f"The game is over. {reason}".strip()
        elif len(self._moves) >= self.options.max_moves:
            self._is_ended = self._is_cut = True
            line = f"The game is cut off after {len(self._moves)} answers."
        else:
            return lines
        for each in self.everyone:
            self._known[each].append(line)
        return [*lines, *((each, line) for each in self.everyone)]

    def forfeit(self, seats: Sequence[int]) -> Sequence[float]:
        """End the game with -1 for those seats, and 1 for the other one of two."""
        self._lose(seats)
        for seat in seats:
            self.tell(self.everyone, f"{self.seats[seat]} gave no legal action and forfeits the game.")
        return list(self._rewards)

    def _lose(self, seats: Sequence[int]) -> None:
        self._lost, self._is_ended = list(seats), True
        other = 1.0 if self.num_seats == 2 else 0.0
        self._rewards = [-1.0 if seat in seats else other for seat in self.everyone]

    # What is known about it.

    def role(self, seat: int) -> str:
        """Return the role that TextArena gives a seat; empty if it has only numbers."""
        role = str(self._game.state.game_info[seat].get("role", ""))
        return "" if role == f"Player {seat}" else role

    def anchor(self, seat: int) -> str:
        """Return every line that the seat has read, with its own answers."""
        return "\n".join([self.seats[seat], *self._known[seat]])

    def winners(self) -> tuple[int, ...]:
        """Return the seats with the highest reward."""
        best = max(self._rewards)
        if best == min(self._rewards):
            return ()
        return tuple([seat for seat in self.everyone if self._rewards[seat] == best])

    def is_truncated(self, seat: int) -> bool:
        """Return whether the game was cut off after ``max_moves``."""
        return self._is_cut

    def progress(self, seat: int) -> float:
        """Return 1 at the end and 0 before, since TextArena's games do not foresee it."""
        return float(self._is_ended)

    def score(self, seat: int) -> float:
        """Return the reward of the seat."""
        return self._rewards[seat]

    def close(self) -> None:
        """Release nothing: what ``close`` of TextArena does is to return the rewards."""

    def _digest(self) -> str:
        return hashlib.sha256(json.dumps(self._known).encode()).hexdigest()

    def state(self) -> JSONValue:
        """Return the seed, the answers, a hash of what was read, and the seats that forfeited."""
        return {"seed": self._seed, "moves": list(self._moves), "seen": self._digest(), "lost": list(self._lost)}

    def load(self, state: JSONValue) -> None:
        """Replay what ``state`` returned."""
        seed, moves, lost = state["seed"], state["moves"], state["lost"]
        if type(seed) is not int or not 0 <= seed < 2**31 or len(moves) > self.options.max_moves:
            raise ValueError("the state is damaged")
        self._start(seed)
        for text in moves:
            if not self.asked() or not isinstance(text, str) or self._words(text) != text or not self._replayed(text):
                raise ValueError(f"the answer {text!r:.60} is not possible")
        if state["seen"] != self._digest():
            raise ValueError("the answers gave another game: another version of TextArena, or damage")
        if lost:
            if lost != list(self.asked()):
                raise ValueError(f"the seats {lost!s:.60} cannot have forfeited")
            self._lose(lost)
        self.news.clear()

    def _replayed(self, text: str) -> bool:
        """Pass on an answer of a snapshot, and return whether TextArena takes it."""
        (seat,) = self.asked()
        before = _errors(self._game, seat)
        try:
            self._move(seat, text)
        except _BREAKS:
            return False
        return _errors(self._game, seat) <= before


def _reason(message: str) -> str:
    """Return the reason in what TextArena says of an invalid move; empty if it says something else."""
    _, marked, after = message.partition("Reason: ")
    told, asked, _ = after.rpartition(" Please resubmit")
    return " ".join(told.split())[:300] if marked and asked else ""


def _errors(game: Any, seat: int) -> int:
    """Return how often a seat has made an invalid move since its last valid one, or lost by them."""
    state = game.state
    return int(getattr(state, "error_count", 0)) + 1_000 * bool(state.game_info[seat].get("invalid_move"))
