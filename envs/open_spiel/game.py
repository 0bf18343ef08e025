"""Any game of OpenSpiel (Lanctot et al. 2019) as a :class:`Game` between seats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from turngym.envs.adapters.borrowed import import_package
from turngym.envs.multiagent.game import Game, InvalidAction
from turngym.envs.open_spiel.trial import IS_TRIAL, try_setting
from turngym.envs.settings import worded
from turngym.envs.tablegames.reading import read_choice, simplified
from turngym.errors import ConfigError, UnknownName, nearest
from turngym.options import Options as BaseOptions
from turngym.types import JSONValue

_CHANCE_SEED = "rng_seed"
"""Parameter of games that draw chance by a generator of their own."""
_MOST_EVENTS = 100_000


class OpenSpiel(Game):
    """A game of OpenSpiel, for one seat or more, in turns or simultaneous.

    Rules and texts are OpenSpiel's. A seat that is asked reads OpenSpiel's text of what it knows (the information state
    in games of imperfect information, otherwise the observation) and the legal actions, one of which it answers. In
    games of perfect information everybody also reads every action. Chance is drawn from the generator of the game, or,
    in the few games that draw it themselves, seeded from it. Rewards are the increments of OpenSpiel's returns; the
    score is the return. The seats with the highest return have won, unless all are equal; alone, or where all share one
    payoff, a positive return wins. A forfeit ends the game: the seat is left with the lowest return of the game, and
    between two seats of a zero-sum game the other one gets the highest. The anchor is OpenSpiel's text. Snapshots hold
    the actions and the outcomes of chance, which are replayed.

    Opponents are ``random``, ``first_legal``, and ``mcts`` or ``mcts:N``: tree search with N simulations per action,
    100 unless given, in games that it can search.

    Games of mean fields, games that transform another game and need it as an option, and ``crossword`` are refused.
    """

    class Options(BaseOptions):
        rules: str = "kuhn_poker"
        """Name in OpenSpiel's registry, e.g. ``"connect_four"``."""
        setting: Mapping[str, Any] | None = None
        """Parameters of the game that override its defaults, e.g. ``{"players": 3}``."""

    options: Options

    file_options = worded("rules")
    name = "open_spiel"
    players: ClassVar[Mapping[str, str]] = MappingProxyType({"mcts": "turngym.envs.open_spiel.players:MctsPlayer"})

    def __init__(self, *positional: Any, **options: Any) -> None:
        self.take_options(self.name, options, positional)
        self._package: Any = import_package("pyspiel", "turngym/OpenSpiel-v0", "open-spiel", "openspiel")
        names = self._package.registered_names()
        if self.options.rules not in names:
            raise UnknownName(
                f"OpenSpiel has no game named {self.options.rules!r}. {nearest(self.options.rules, names)}"
            )
        self._parameters = dict(self.options.setting or {})
        try:
            if self._parameters and not IS_TRIAL.get():
                try_setting(self.options.rules, self._parameters)
            self.loaded = self._loaded(self._parameters)
            super().__init__(self.loaded.num_players())
            self.setup()
        except Exception as error:  # OpenSpiel's exceptions have no common base
            raise self._unusable(error) from error

    _constructor = __init__

    def _loaded(self, parameters: Mapping[str, Any]) -> Any:
        return self._package.load_game(self.options.rules, dict(parameters))

    def _unusable(self, reason: object) -> ConfigError:
        if isinstance(reason, ConfigError):
            return reason
        words = str(reason).partition("(#")[0].strip(" .") or type(reason).__name__
        return ConfigError(f"OpenSpiel's game {self.options.rules} cannot be played here: {words[:300]}.")

    def setup(self) -> None:
        """Find out what the game offers, and that it can be played."""
        spiel, kind = self._package, self.loaded.get_type()
        if kind.dynamics == spiel.GameType.Dynamics.MEAN_FIELD:
            raise self._unusable("it is a game of mean fields")
        self.is_perfect = kind.information == spiel.GameType.Information.PERFECT_INFORMATION
        self.is_turn_based = kind.dynamics == spiel.GameType.Dynamics.SEQUENTIAL
        self._is_shared = kind.utility == spiel.GameType.Utility.IDENTICAL or self.num_seats == 1
        self._is_zero_sum = kind.utility == spiel.GameType.Utility.ZERO_SUM and self.num_seats == 2
        has_both = kind.provides_information_state_string and kind.provides_observation_string
        self._shows_information = not self.is_perfect if has_both else kind.provides_information_state_string
        self._title = kind.long_name
        self._draws_chance = _CHANCE_SEED not in self._parameters and _CHANCE_SEED in self.loaded.get_parameters()
        self.score_range = (float(self.loaded.min_utility()), float(self.loaded.max_utility()))
        self._generator = np.random.default_rng(0)
        self._chance_seed = 0
        self._can_resample = self.is_turn_based and not self.is_perfect and not self._draws_chance
        self._clear()
        self._begin()
        for seat in self.asked():
            self.prompt(seat)

    def _clear(self) -> None:
        self._events: list[Any] = []
        self._choices: dict[int, dict[str, int]] = {}
        self._walkover: list[float] = [0.0] * self.num_seats
        self._is_ended = False
        if self._draws_chance:
            self.loaded = self._loaded({**self._parameters, _CHANCE_SEED: self._chance_seed})
        self.position = self.loaded.new_initial_state()
        """OpenSpiel's state of the game, hidden information included."""

    # The course of a game.

    def instructions(self, seat: int) -> str:
        """Return the name of the game and the answer format."""
        seats = "one player" if self.num_seats == 1 else f"{self.num_seats} players"
        return (
            f"You play {self._title}, a game for {seats}, by the rules of OpenSpiel. You are shown what you know of "
            "the position and the legal actions.\nAnswer with one of these actions in brackets: [ACTION]."
        )

    def begin(self, generator: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Start a game; there are no options."""
        self.require_known(options)
        self.news.clear()
        self._generator = generator
        if self._draws_chance:
            self._chance_seed = int(generator.integers(2**31 - 1))
        self._clear()
        self._begin()

    def _begin(self) -> None:
        self._play_chance()
        for seat in self.everyone:
            self.tell((seat,), f"You are {self.seats[seat]}.")

    def _play_chance(self) -> None:
        """Draw until a seat decides or the game is over."""
        position = self.position
        while not position.is_terminal() and not self._deciding():
            event = self._outcome() if position.is_chance_node() else [0] * self.num_seats
            self._apply(event)
        self._choices.clear()

    def _outcome(self) -> int:
        outcomes = self.position.chance_outcomes()
        chances = [chance for _, chance in outcomes]
        if max(chances) - min(chances) < 1e-9:
            return int(outcomes[int(self._generator.integers(len(outcomes)))][0])
        left = float(self._generator.random())
        for outcome, chance in outcomes:
            left -= chance
            if left < 0:
                return int(outcome)
        return int(outcomes[-1][0])

    def _apply(self, event: Any) -> None:
        if isinstance(event, list):
            self.position.apply_actions(event)
        else:
            self.position.apply_action(event)
        self._events.append(event)

    def _deciding(self) -> tuple[int, ...]:
        position = self.position
        if position.is_simultaneous_node():
            return tuple([seat for seat in self.everyone if position.legal_actions(seat)])
        return () if position.is_chance_node() or position.is_terminal() else (position.current_player(),)

    def asked(self) -> tuple[int, ...]:
        """Return the seats that decide."""
        return () if self._is_ended else self._deciding()

    def choices(self, seat: int) -> dict[str, int]:
        """Return the legal actions of a seat by their texts."""
        if seat not in self._choices:
            found: dict[str, int] = {}
            for action in self.position.legal_actions(seat):
                text = " ".join(self.position.action_to_string(seat, action).split()) or f"action {action}"
                found[text if text not in found else f"{text} ({action})"] = action
            self._choices[seat] = found
        return self._choices[seat]

    def legal_actions(self, seat: int) -> tuple[str, ...]:
        """Return OpenSpiel's texts of the legal actions."""
        return tuple(self.choices(seat))

    def prompt(self, seat: int) -> str:
        """Return what the seat knows, and the legal actions."""
        legal = self.legal_actions(seat)
        mark = "\n" if any("," in text for text in legal) else ", "
        return f"{self._known(seat)}\nLegal actions:{mark.strip(',')}{mark.join(legal)}\nWhich action?"

    def _known(self, seat: int) -> str:
        position = self.position
        text = position.information_state_string(seat) if self._shows_information else position.observation_string(seat)
        return str(text).strip()

    def read(self, seat: int, text: str) -> str:
        """Return the legal action that an answer names, in any case where that is clear."""
        legal = self.legal_actions(seat)
        if text in legal:
            return text
        short: dict[str, set[str]] = {}
        for action in legal:
            short.setdefault(simplified(action), set()).add(action)
        clear = {words: next(iter(found)) for words, found in short.items() if words and len(found) == 1}
        named = read_choice(text, {**clear, **dict(zip(legal, legal, strict=True))})
        alike = short[simplified(named)]  # bxc4 is a pawn's, Bxc4 a bishop's
        if len(alike) == 1:
            return named
        found = [each for each in alike if each in text]
        written = [each for each in found if not any(each in other for other in found if other != each)]
        if len(written) != 1:
            raise InvalidAction(f"Write one of {', '.join(sorted(alike))} exactly.")
        return written[0]

    def commit(self, actions: Mapping[int, str]) -> Sequence[float]:
        """Apply the actions, and draw the outcomes of chance that follow."""
        before = self._returns()
        chosen = {seat: self.choices(seat)[text] for seat, text in actions.items()}
        if self.position.is_simultaneous_node():
            self._apply([chosen.get(seat, 0) for seat in self.everyone])
        else:
            self._apply(next(iter(chosen.values())))
        for seat, text in actions.items():
            readers = self.everyone if self.is_perfect else (seat,)
            self.tell(readers, f"{self.seats[seat]} plays {text}.")
        self._play_chance()
        if self.position.is_terminal():
            self._is_ended = True
            totals = ", ".join(f"{name} {total:g}" for name, total in zip(self.seats, self._returns(), strict=True))
            self.tell(self.everyone, f"The game is over. Returns: {totals}.")
        return [after - earlier for after, earlier in zip(self._returns(), before, strict=True)]

    def _returns(self) -> list[float]:
        return [float(one) + more for one, more in zip(self.position.returns(), self._walkover, strict=True)]

    def forfeit(self, seats: Sequence[int]) -> Sequence[float]:
        """End the game with the lowest return for those seats."""
        low, high = self.score_range
        totals = self._returns()
        for seat in self.everyone:
            if seat in seats:
                self._walkover[seat] += low - totals[seat]
                self.tell(self.everyone, f"{self.seats[seat]} gave no legal action and forfeits the game.")
            elif self._is_zero_sum:
                self._walkover[seat] += high - totals[seat]
        self._is_ended = True
        return [after - before for after, before in zip(self._returns(), totals, strict=True)]

    # What is known about it.

    def anchor(self, seat: int) -> str:
        """Return OpenSpiel's text of what the seat knows."""
        if self._is_ended:
            return f"over; {self._returns()[seat]:g}"
        return f"{self.seats[seat]}\n{self._known(seat)}"

    def winners(self) -> tuple[int, ...]:
        """Return the seats with the highest return."""
        if not self._is_ended:
            return ()
        totals = self._returns()
        best = max(totals)
        if self._is_shared:
            return tuple([seat for seat in self.everyone if totals[seat] > 0])
        return () if min(totals) == best else tuple([seat for seat in self.everyone if totals[seat] == best])

    def progress(self, seat: int) -> float:
        """Return 1 at the end, which OpenSpiel's games do not foresee."""
        return 1.0 if self._is_ended else float("nan")

    def score(self, seat: int) -> float:
        """Return the return of the seat."""
        return self._returns()[seat]

    def can_search(self) -> bool:
        """Return whether OpenSpiel's tree searches play the game."""
        kind = self.loaded.get_type()
        if not self.is_turn_based or self._draws_chance:
            return False
        if self.is_perfect:
            return bool(kind.reward_model == self._package.GameType.RewardModel.TERMINAL)
        position = self.loaded.new_initial_state()
        while position.is_chance_node():
            position.apply_action(position.chance_outcomes()[0][0])
        try:
            position.resample_from_infostate(position.current_player(), lambda: 0.5)
        except self._package.SpielError:
            return False
        return bool(kind.provides_information_state_string)

    def swap_hidden(self, seat: int, generator: np.random.Generator) -> bool:
        """Sample another history with the same information state, where OpenSpiel can do so for the game."""
        if not self._can_resample or self._is_ended:
            return False
        try:
            found = self.position.resample_from_infostate(seat, generator.random)
        except self._package.SpielError:
            self._can_resample = False
            return False
        if found.current_player() != self.position.current_player() or found.history() == self.position.history():
            return False
        self.position, self._events = found, list(found.history())
        self._choices.clear()
        return True

    def state(self) -> JSONValue:
        """Return all actions and outcomes of chance."""
        return {
            "events": [list(event) if isinstance(event, list) else event for event in self._events],
            "chance_seed": self._chance_seed,
            "walkover": list(self._walkover),
            "is_ended": self._is_ended,
        }

    def load(self, state: JSONValue) -> None:
        """Replay what ``state`` returned."""
        events, self._chance_seed, is_ended = state["events"], state["chance_seed"], state["is_ended"]
        if type(self._chance_seed) is not int or not 0 <= self._chance_seed < 2**31 or len(events) > _MOST_EVENTS:
            raise ValueError("the state is damaged")
        self._clear()
        for event in events:
            if not self._is_possible(event):
                raise ValueError(f"the event {event!r} is not possible")
            self._apply(event)
        self._walkover = [float(one) for one in state["walkover"]]
        self._is_ended = bool(is_ended)
        if len(self._walkover) != self.num_seats or (self.position.is_terminal() and not self._is_ended):
            raise ValueError("the state is damaged")

    def _is_possible(self, event: JSONValue) -> bool:
        position = self.position
        if position.is_terminal():
            return False
        if position.is_chance_node():
            return type(event) is int and event in [outcome for outcome, _ in position.chance_outcomes()]
        if not position.is_simultaneous_node():
            return type(event) is int and event in position.legal_actions()
        if not isinstance(event, list) or len(event) != self.num_seats:
            return False
        return all(type(one) is int and one in (position.legal_actions(seat) or [0]) for seat, one in enumerate(event))
