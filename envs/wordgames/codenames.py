"""Codenames as a game for a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np

from turngym.envs.multiagent.game import Game, InvalidAction
from turngym.envs.settings import worded
from turngym.envs.tablegames.reading import read_choice
from turngym.envs.wordgames import clues
from turngym.envs.wordgames.clues import Clue
from turngym.envs.wordgames.words import features
from turngym.errors import ConfigError
from turngym.options import OptionError, between
from turngym.options import Options as BaseOptions
from turngym.types import JSONValue

TEAMS = ("red", "blue")
NEUTRAL, ASSASSIN = "neutral", "assassin"
PASS = "pass"
_FIXED = ("words", "key")
_PLAYERS = "turngym.envs.wordgames.codenames_players"


class Codenames(Game):
    """Two teams find their words on a board: a spymaster gives a word and a number, a guesser names words.

    Only spymasters know whose each word is. A clue is one word of the letters a to z and a number from 0 to 9. It is
    illegal if it equals, contains or is contained in a word that is not revealed yet. The guesser names at least one
    word and up to the number and one more, without limit after 0; a word of another kind ends the turn, the assassin
    the game. The first team whose words are all revealed wins. Rewards are 1 for the winners and -1 for the others at
    the end; a seat that forfeits loses the game for its team. The anchor is the board as the seat knows it, with all
    clues.

    >>> game = Codenames(words=4, own=2, assassins=0)
    >>> board = {"words": ["apple", "pear", "lion", "drum"], "key": ["red", "red", "blue", "neutral"]}
    >>> game.begin(np.random.default_rng(0), board)
    >>> game.commit({0: game.read(0, "[fruit 2]")}), game.commit({1: game.read(1, "apple")}), game.commit({1: "pear"})
    ([0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [1.0, 1.0, -1.0, -1.0])
    """

    name = "codenames"
    file_options = worded()
    players: ClassVar[Mapping[str, str]] = {
        "associate": f"{_PLAYERS}:Associate",
        "single": f"{_PLAYERS}:Single",
    }

    class Options(BaseOptions):
        words: Annotated[int, between(4, 40)] = 25
        """Words on the board."""
        own: Annotated[int, between(2, 15)] = 9
        """Words of the team that begins; the other one has one less."""
        assassins: Annotated[int, between(0, 3)] = 1
        """Words that lose the game."""

        def check(self) -> None:
            most = (self.words - self.assassins + 1) // 2
            if self.own > most:
                raise OptionError("own", f"must be at most {most} on a board of {self.words} words, got {self.own}.")

    options: Options

    def __init__(self, *positional: Any, **options: Any) -> None:
        self.take_options(self.name, options, positional)
        super().__init__(2 * len(TEAMS))
        chosen = self.options
        counts = {TEAMS[0]: chosen.own, TEAMS[1]: chosen.own - 1, ASSASSIN: chosen.assassins}
        kinds = [kind for kind, count in counts.items() for _ in range(count)]
        self._kinds = [*kinds, *[NEUTRAL] * (chosen.words - len(kinds))]
        self._categories = tuple(sorted({found[0] for found in features().values()}))
        self._set_up(sorted(features())[: chosen.words], self._kinds)

    _constructor = __init__

    def _set_up(self, words: Sequence[str], key: Sequence[str]) -> None:
        self.words, self.key = tuple(words), list(key)
        """The board, and whose each word is."""
        self.revealed: list[str] = []
        """Words in the order in which they were named."""
        self.clues: list[tuple[int, Clue]] = []
        """Seat of the spymaster and clue of every turn."""
        self._turn, self._named, self.winner, self._clue = 0, 0, "", None
        self._meanings = {
            form: word for word in words for form in (word, f"guess {word}", f"i guess {word}", f"[{word}]")
        } | {form: PASS for form in (PASS, "i pass", "stop")}

    _clue: Clue | None

    def role(self, seat: int) -> str:
        """Return ``"spymaster"`` or ``"guesser"``."""
        return ("spymaster", "guesser")[seat % 2]

    def team(self, seat: int) -> str:
        """Return ``"red"`` or ``"blue"``."""
        return TEAMS[seat // 2]

    def instructions(self, seat: int) -> str:
        """Return the rules for a role."""
        chosen = self.options
        return clues.instructions(self.team(seat), self.role(seat), chosen.words, chosen.own, chosen.assassins)

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Draw words and key; ``{"words": ["apple", ...], "key": ["red", "blue", "neutral", ...]}`` fixes them."""
        self.require_known(options, _FIXED)
        known = sorted(features())
        drawn = [known[place] for place in generator.permutation(len(known))[: self.options.words].tolist()]
        kinds = [self._kinds[place] for place in generator.permutation(len(self._kinds)).tolist()]
        words, kinds = options.get("words", drawn), options.get("key", kinds)
        if not _are_texts(words) or not {*words} <= features().keys() or not len({*words}) == len(words) == len(drawn):
            number = len(drawn)
            raise ConfigError(f"words of {self.name} must be {number} different words of its list, got {words!s:.80}.")
        if not _are_texts(kinds) or sorted(kinds) != sorted(self._kinds):
            raise ConfigError(
                f"key of {self.name} must be an order of {sorted(self._kinds)!s:.200}, got {kinds!s:.80}."
            )
        self.news.clear()
        self._set_up(words, kinds)
        for seat in self.everyone:
            self.tell((seat,), f"You are {self.seats[seat]}, the {self.team(seat)} {self.role(seat)}.")

    # Decisions.

    def phase(self) -> str:
        """Return ``"clue"``, ``"guess"`` or ``"over"``."""
        return "over" if self.winner else "clue" if self._clue is None else "guess"

    def is_speech(self, seat: int) -> bool:
        """Return whether a seat gives a clue."""
        return self._clue is None

    def asked(self) -> tuple[int, ...]:
        """Return the spymaster of the team whose turn it is, or its guesser after the clue."""
        return () if self.winner else (2 * self._turn + (self._clue is not None),)

    def hidden(self) -> list[str]:
        """Return the words that are not revealed."""
        return [word for word in self.words if word not in self.revealed]

    def left(self, team: str) -> int:
        """Return how many words of a team are not revealed."""
        return sum(kind == team and word not in self.revealed for word, kind in zip(self.words, self.key, strict=True))

    def prompt(self, seat: int) -> str:
        """Return the board and the question."""
        if self._clue is None:
            return f"{self._board(seat)}\nWhich clue do you give?"
        word, number = self._clue
        rest = "any number of" if not number else f"up to {number + 1 - self._named}"
        end = "" if not self._named else ", or [pass]"
        return f"{self._board(seat)}\nThe clue is {word} {number}. You may name {rest} words{end}. Which word?"

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return the words that are not revealed; of clues, categories with 1, which are not all that are legal."""
        if self._clue is not None:
            return (*self.hidden(), *[PASS] * bool(self._named))
        hidden = self.hidden()
        fixed = [each for each in self._categories if not any(each in word or word in each for word in hidden)]
        return tuple([f"{each} 1" for each in fixed])

    def read(self, seat: int, text: str) -> str:
        """Return the clue or the guess that an answer names."""
        return self._read_guess(text) if self._clue is not None else self._read_clue(text)

    def _read_guess(self, text: str) -> str:
        try:
            word = read_choice(text, self._meanings)
        except InvalidAction as error:
            raise InvalidAction(f"{error.reason} Name a word on the board that is not revealed.", error.kind) from None
        if word in self.revealed:
            raise InvalidAction(f"{word} is revealed already: name a word that is not.")
        if word == PASS and not self._named:
            raise InvalidAction("You must name a word before you pass.")
        return word

    def _read_clue(self, text: str) -> str:
        word, number = clues.clue_of(text)
        clash = next((each for each in self.hidden() if each in word or word in each), "")
        if clash:
            raise InvalidAction(f"{word} equals, contains or is contained in {clash}, which is on the board.")
        return f"{word} {number}"

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Take a clue or a guess."""
        ((seat, action),) = actions.items()
        if self._clue is None:
            word, _, number = action.partition(" ")
            self._clue, self._named = Clue(word, int(number)), 0
            self.clues.append((seat, self._clue))
            self.tell(self.everyone, f"The {self.team(seat)} clue is {action}.")
        elif action == PASS:
            self.tell(self.everyone, f"The {self.team(seat)} guesser passes.")
            self._next_turn()
        else:
            self._reveal(self.team(seat), action)
        return self._rewards()

    def _reveal(self, team: str, word: str) -> None:
        kind = self.key[self.words.index(word)]
        self.revealed.append(word)
        self._named += 1
        self.tell(self.everyone, f"The {team} guesser names {word}: {kind}.")
        other = TEAMS[1 - TEAMS.index(team)]
        assert self._clue is not None
        if kind == ASSASSIN:
            self._end(other)
        elif not (self.left(team) and self.left(other)):
            self._end(team if not self.left(team) else other)
        elif kind != team or self._named == self._clue.number + 1 > 1:
            self._next_turn()

    def _next_turn(self) -> None:
        self._turn, self._clue, self._named = 1 - self._turn, None, 0

    def _end(self, winner: str) -> None:
        self.winner = winner
        self.tell(self.everyone, f"The game is over: {winner} wins.")

    def _rewards(self) -> list[float]:
        if not self.winner:
            return [0.0] * self.num_seats
        return [1.0 if self.team(seat) == self.winner else -1.0 for seat in self.everyone]

    def forfeit(self, seats: Sequence[int]) -> Sequence[float]:
        """End the game, lost by the team of the seat."""
        (seat,) = seats
        self.tell(self.everyone, f"The {self.team(seat)} {self.role(seat)} gave no legal action.")
        self._end(TEAMS[1 - seat // 2])
        return self._rewards()

    # What is known about the game.

    def _board(self, seat: int) -> str:
        """Return the words with what the seat knows about them."""
        kinds = dict(zip(self.words, self.key, strict=True))
        shown = [f"{word} ({kinds[word]})" for word in self.revealed]
        lines = [f"Revealed: {', '.join(shown) or 'none'}."]
        hidden = self.hidden()
        if self.role(seat) == "guesser":
            return "\n".join([f"Words: {', '.join(hidden)}.", *lines])
        found = {kind: [word for word in hidden if kinds[word] == kind] for kind in (*TEAMS, NEUTRAL, ASSASSIN)}
        return "\n".join([*[f"{kind}: {', '.join(words) or 'none'}." for kind, words in found.items()], *lines])

    def anchor(self, seat: int) -> str:
        """Return the board as the seat knows it, and all clues."""
        given = ", ".join([f"{self.team(giver)} {clue.word} {clue.number}" for giver, clue in self.clues]) or "none"
        return f"{self._board(seat)}\nClues: {given}.\nNamed after the last clue: {self._named}."

    def progress(self, seat: int) -> float:
        """Return the share of the words that are revealed."""
        return 1.0 if self.winner else len(self.revealed) / len(self.words)

    def winners(self) -> tuple[int, ...]:
        """Return the seats of the team that has won."""
        return tuple([seat for seat in self.everyone if self.team(seat) == self.winner])

    def metrics(self) -> dict[str, float]:
        """Return whether red has won and the assassin was named, the turns, and words named per clue."""
        assassins = [word for word, kind in zip(self.words, self.key, strict=True) if kind == ASSASSIN]
        return {
            "red_wins": float(self.winner == TEAMS[0]),
            "assassin": float(any(word in self.revealed for word in assassins)),
            "turns": float(len(self.clues)),
            "words_per_clue": len(self.revealed) / max(1, len(self.clues)),
        }

    def state(self) -> JSONValue:
        """Return board, key, clues and whose turn it is."""
        return {
            "words": list(self.words),
            "key": list(self.key),
            "revealed": list(self.revealed),
            "clues": [[seat, *clue] for seat, clue in self.clues],
            "turn": self._turn,
            "named": self._named,
            "winner": self.winner,
            "clue": self._clue and list(self._clue),
        }

    def load(self, state: JSONValue) -> None:
        """Restore what ``state`` returned."""
        words, key = list(state["words"]), list(state["key"])
        if sorted(key) != sorted(self._kinds) or len({*words}) != len(key) or not {*words} <= features().keys():
            raise ValueError(f"the words {words!s:.80} and the key {key!s:.80}")
        if not {*state["revealed"]} <= {*words} or state["turn"] not in (0, 1) or state["winner"] not in ("", *TEAMS):
            raise ValueError(f"the turn {state['turn']!r} and the winner {state['winner']!r}")
        self._set_up(words, key)
        self.revealed = list(state["revealed"])
        self.clues = [(seat, Clue(word, number)) for seat, word, number in state["clues"]]
        self._turn, self._named, self.winner = state["turn"], state["named"], state["winner"]
        self._clue = Clue(*state["clue"]) if state["clue"] else None

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Shuffle for a guesser whose the words are that are not revealed; spymasters know them."""
        if self.winner or self.role(seat) == "spymaster":
            return False
        places = [place for place, word in enumerate(self.words) if word not in self.revealed]
        before, kinds = list(self.key), [self.key[place] for place in places]
        for place, other in zip(places, generator.permutation(len(places)).tolist(), strict=True):
            self.key[place] = kinds[other]
        return self.key != before


def _are_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
