"""One seat of a game as a single-agent environment; given players take the other seats."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from turngym.envs.core import Outcome, TextEnv
from turngym.envs.instances import split_of
from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.hosted import HostedTable
from turngym.envs.multiagent.lookup import class_at
from turngym.envs.multiagent.players import PLAYERS, Player, make_player
from turngym.envs.multiagent.registration import GAMES, game_class, game_refusal, make_game
from turngym.envs.multiagent.table import SeatView, Table
from turngym.envs.settings import worded
from turngym.envs.validation import refuse_task
from turngym.errors import ConfigError, nearest
from turngym.options import OptionError, UnknownOption, constructor_signature
from turngym.seeding import restart, stream_seed
from turngym.types import JSONValue

_ANY_SEAT = "random"
_MAX_DRAWS = 10_000

Opponents: TypeAlias = "str | Mapping[str, str] | Sequence[str]"
"""One name of a player for all other seats, names by seat, or names in the order of the other seats."""


class SeatEnv(TextEnv[str]):
    """Plays one seat of a game against built-in players.

    The sampled seed of the game determines the deal, the seat, and all randomness of the game and the other players;
    its hash determines the split. A game in which the seat never acts is resampled. An episode continues to the end of
    the game, even after the seat has been eliminated, so its last reward includes the result. ``success`` means that
    the seat has won.

    Args:
        game: An id of :data:`turngym.envs.multiagent.GAMES`, or ``"module:Class"``.
        seat: Name of the seat to play, or ``"random"`` for a random one in every episode.
        role: Play only games in which the seat has this role; empty for any.
        opponents: Players of the other seats; see :data:`Opponents` and :func:`turngym.envs.multiagent.make_player`.
        retries: Retries after an invalid answer, before the seat forfeits.
        invalid_penalty: Penalty per invalid answer.
        max_turns: Answers after which an unfinished episode is truncated.
        split: Share of the games to sample from.
        env_id: The registered id.
        render_mode: ``"ansi"`` or None.
        options: Options of the game.

    Raises:
        ConfigError: An option is out of its range.
        UnknownName: There is no such game or player.
    """

    file_options = worded("seat", "role")

    def __init__(
        self,
        game: str,
        *,
        seat: str = _ANY_SEAT,
        role: str = "",
        opponents: Opponents = "random",
        retries: int = 1,
        invalid_penalty: float = 0.0,
        max_turns: int = 500,
        split: str = "train",
        env_id: str = "",
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(max_turns=max_turns, split=split, env_id=env_id, render_mode=render_mode)
        self.game = self._game(game, options)
        self._hosted = HostedTable(Table(self.game, retries=retries, invalid_penalty=invalid_penalty))
        if not isinstance(seat, str):
            names = ", ".join([*self.game.seats, _ANY_SEAT])
            raise OptionError("seat", f"must be the name of a seat: {names}; got {seat!r:.80}.", self.env_id)
        if seat not in (*self.game.seats, _ANY_SEAT):
            raise ConfigError(f"{self.env_id} has no seat {seat!r}. {nearest(seat, (*self.game.seats, _ANY_SEAT))}")
        if not isinstance(role, str):
            raise ConfigError(f"role of {self.env_id} must be the name of a role, or empty for any, got {role!r}.")
        self.finite_instances = self.game.finite_instances
        self._wanted, self._role, self._opponents = seat, role, opponents
        self._seat, self._seed = 0, 0
        self._players: dict[tuple[int, str], Player] = {}
        for number, name in enumerate(self.game.seats):
            if seat in (_ANY_SEAT, name):
                self._seated(number)

    def _game(self, game: str, options: Mapping[str, Any]) -> Game:
        """Return the game; an unknown option may be meant for the game or for the seat."""
        try:
            return make_game(game, **options)
        except UnknownOption as error:
            kind = game_class(game) if game in GAMES else class_at(game, Game)  # type: ignore[type-abstract]
            names = {*constructor_signature(type(self)).parameters, *constructor_signature(kind).parameters}
            known = names - {"game", "env_id", "options", "positional"}
            raise UnknownOption(error.option, nearest(error.option, known), self.env_id) from None

    @classmethod
    def refusal(cls, options: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> str:
        """Return why an untrusted file may not request these options; options of the game are checked by the game."""
        defaults = defaults or {}
        game = str(defaults.get("game"))
        if game not in GAMES:
            return "its game is not registered here"
        given = options.get("opponents", "random")
        names = given if isinstance(given, list) else given.values() if isinstance(given, dict) else [given]
        known = {*PLAYERS, *game_class(game).players}
        if not all(isinstance(name, str) and name in known for name in names):
            return f"the opponents {str(given)[:60]!r} are not players that are installed here"
        named = constructor_signature(cls).parameters
        own = {key: value for key, value in options.items() if key in named and key != "opponents"}
        of_game = {key: value for key, value in options.items() if key not in named}
        return super().refusal(own, defaults) or (game_refusal(game, of_game) if of_game else "")

    @classmethod
    def misfit(cls, options: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> str:
        """Return why these options are invalid; empty if they are valid."""
        game = str((defaults or {}).get("game"))
        named = inspect.signature(cls).parameters
        of_game = {key: value for key, value in options.items() if key not in named}
        return super().misfit(options, defaults) or (game_class(game).misfit(of_game) if game in GAMES else "")

    @property
    def table(self) -> Table:
        """The table of the game, hidden information included."""
        return self._hosted.table

    @property
    def seat(self) -> str:
        """The name of the seat that is played."""
        return self.game.seats[self._seat]

    @property
    def instructions(self) -> str:  # type: ignore[override]  # depends on the seat's role
        """Rules, answer format and handling of invalid answers, for the system prompt."""
        return self.view.instructions

    @property
    def beaten_by(self) -> Mapping[str, str]:  # type: ignore[override]  # depends on the game
        """Players without skill that do better than random play: see :attr:`TextEnv.beaten_by`."""
        return self.game.beaten_by

    @property
    def score_range(self) -> tuple[float, float]:  # type: ignore[override]  # depends on the game
        """Lowest and highest score of a seat; 0 is the score of a game that is not over."""
        low, high = self.game.score_range
        return min(low, 0.0), max(high, 0.0)

    @property
    def finds_action(self) -> bool:  # type: ignore[override]  # as the game says
        """Whether an action is found in a whole completion by a notation of the rules."""
        return self.game.finds_action

    @property
    def view(self) -> SeatView:
        """View of the seat."""
        return self.table.views[self._seat]

    # The other seats.

    def _names(self, seat: int) -> list[str]:
        """Return the player of every other seat."""
        others = [name for number, name in enumerate(self.game.seats) if number != seat]
        given = self._opponents
        if isinstance(given, str):
            chosen = dict.fromkeys(others, given)
        elif isinstance(given, Mapping):
            chosen = {name: given.get(name, "") for name in others}
        else:
            is_complete = isinstance(given, Sequence) and len(given) == len(others)
            chosen = dict(zip(others, given, strict=False)) if is_complete else {}
        if not all(isinstance(chosen.get(name), str) and chosen[name] for name in others):
            raise ConfigError(
                f"opponents of {self.env_id} must name a player for each of {others}, got {self._opponents!r}: pass "
                f"one name for all, a mapping from seat to name, or {len(others)} names."
            )
        return [chosen.get(name, "") for name in self.game.seats]

    def _seated(self, seat: int) -> list[Player | None]:
        """Return the players of the other seats; each is made once."""
        players: list[Player | None] = []
        for number, name in enumerate(self._names(seat)):
            if number == seat:
                players.append(None)
                continue
            if (number, name) not in self._players:
                self._players[number, name] = make_player(name, self.game)
            players.append(self._players[number, name])
        return players

    # The rules.

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        for _ in range(_MAX_DRAWS):
            seed = int(self.np_random.integers(2**62))
            if self._is_of_split(seed) and self._deal(seed):
                return self.view.observation
        wanted = f"a seat that is asked as {self._role}" if self._role else f"{self._wanted} being asked"
        raise ConfigError(
            f"{self.env_id} found no game of split {self.split!r} with {wanted}: roles of the last one were "
            f"{[self.game.role(seat) for seat in self.game.everyone]}."
        )

    def _is_of_split(self, seed: int) -> bool:
        """Return whether a seed, or the content of its game, belongs to the split."""
        self.instance = f"{self.game.name} {seed}"
        if self.game.content():
            self._hosted.begin(seed)
            self.instance = f"{self.game.name} {self.game.content()}"
        return self.finite_instances is not None or split_of(self.instance) == self.split

    def _deal(self, seed: int) -> bool:
        """Start a game and play it to the seat's first turn; return whether there is one."""
        self._hosted.begin(seed)
        fitting = [
            seat
            for seat in self.game.everyone
            if self._wanted in (_ANY_SEAT, self.game.seats[seat]) and self._role in ("", self.game.role(seat))
        ]
        if not fitting:
            return False
        self._seed, self._seat = seed, fitting[stream_seed("seat", seed) % len(fitting)]
        self._hosted.seat(self._seated(self._seat), seed)
        self._hosted.play_on()
        return not self.table.is_over

    def apply_action(self, action: str) -> Outcome[str]:
        hosted, seat = self._hosted, self._seat
        answer = hosted.answer(seat, action)
        hosted.play_on()
        is_cut = self.table.is_truncated(seat)
        is_over = self.table.is_over and not is_cut
        return Outcome(
            self.view.observation,
            hosted.rewards[seat],
            is_over,
            is_over and seat in self.table.winners(),
            answer.is_valid,
            is_cut,
        )

    def refuse_long_action(self, action: str) -> Outcome[str]:
        return self.apply_action(action)  # the table refuses it and asks again; in the end the seat forfeits

    def close(self) -> None:
        """Release the game's resources."""
        self.table.close()
        super().close()

    def anchor(self) -> str:
        return self.game.anchor(self._seat)

    def legal_actions(self) -> tuple[str, ...]:
        return self.view.legal_actions

    def progress(self) -> float:
        return self.game.progress(self._seat)

    def score(self) -> float:
        return self.game.score(self._seat) if self.table.is_over else 0.0

    def render_text(self) -> str:
        return "\n".join([*self.view.lines, self.view.observation.rpartition("\n")[2]])

    def expert_action(self) -> str:
        """Return the answer of the game's reference player, which knows no more than the seat.

        Raises:
            ConfigError: The game has no reference player.
        """
        if not self.game.players:
            raise ConfigError(f"{self.env_id} has no solver: {self.game.name} has no player of its own.")
        player = make_player(next(iter(self.game.players)), self.game)
        player.begin(self.view, restart(np.random.default_rng(0), "expert", self._seed, self.turn))
        return player.act(self.view)

    def resample_hidden(self) -> bool:
        """Resample what the seat cannot know, consistent with everything it has read."""
        is_last_try = self.view.retry >= self.table.retries
        if not self._running or is_last_try:  # there the next text lets the others act, who know what is hidden
            return False
        return self.table.swap_hidden(self._seat, self.np_random)

    def save_state(self) -> JSONValue:
        return {"hosted": self._hosted.state(), "seat": self._seat, "seed": self._seed}

    def load_state(self, state: JSONValue) -> None:
        seat, seed = state["seat"], state["seed"]
        if seat not in self.game.everyone or not isinstance(seed, int):
            raise ValueError(f"seat {seat!r}, seed {seed!r}")
        self._hosted.load(state["hosted"], self._seated(seat))
        self._seat, self._seed = seat, seed
        if self._running != (seat in self.table.pending) and (self._running or self.turn < self.max_turns):
            raise ValueError(f"the seat {seat!r} is {'not ' * self._running}asked")
