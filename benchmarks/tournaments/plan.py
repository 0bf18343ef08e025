"""Definition of a tournament: everything that its result depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from turngym.agents.players import AgentSettings
from turngym.benchmarks.evaluation.rulesets import game_ruleset_hash
from turngym.benchmarks.tournaments.pairings import Match, fitting_pairing, schedule
from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.hosted import begin_game
from turngym.envs.multiagent.registration import make_game
from turngym.envs.multiagent.table import Table
from turngym.envs.vector.slots.boundary import closing_quietly
from turngym.errors import ConfigError, UnknownName, nearest

_SIDES = ("auto", "apart", "alike", "together")


@dataclass(frozen=True)
class TournamentPlan:
    """Everything that a tournament's result depends on.

    Args:
        game: Id of the game, or ``"module:Class"``.
        players: Name in the tournament -> what plays; see :class:`turngym.benchmarks.tournaments.seats.Roster`.
        blocks: Blocks of games; the games of a block share a seed.
        seed: Seed of the tournament.
        options: Options of the game.
        pairing: ``"auto"`` or one of :data:`turngym.benchmarks.tournaments.pairings.PAIRINGS`.
        sides: Whether a player has a strength for each side (``"apart"``) or one (``"alike"``), or, in a cooperative
            game, none, only mean scores with each partner (``"together"``). ``"auto"`` is that for a cooperative game;
            in others, sides are alike where all seats decide at once and nobody has a role.
        retries: Retries after an invalid answer.
        agents: Settings of the agents.
        trained: Player -> fields of ``agents`` that are others for it, as its model was trained with those.
    """

    game: str
    players: Mapping[str, str]
    blocks: int = 10
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    pairing: str = "auto"
    sides: str = "auto"
    retries: int = 1
    agents: AgentSettings = field(default_factory=AgentSettings)
    trained: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.blocks < 1:
            raise ConfigError(f"a tournament needs one block at least, got {self.blocks}.")
        if self.sides not in _SIDES:
            raise UnknownName(f"no treatment of sides named {self.sides!r}. {nearest(self.sides, _SIDES)}")

    def make_game(self) -> Game:
        """Return the rules."""
        return make_game(self.game, **self.options)

    def settings_of(self, name: str) -> AgentSettings:
        """Return what the agent of a player is made with."""
        return replace(self.agents, **self.trained.get(name, {}))

    def settled(self) -> TournamentPlan:
        """Return the plan with ``"auto"`` replaced by what it stands for."""
        with closing_quietly(self.make_game()) as game:
            return self._settled(game)

    def _settled(self, game: Game) -> TournamentPlan:
        sides, pairing = self.sides, self.pairing
        if sides == "auto":
            sides = _fitting_sides(game)
        elif (sides == "together") != game.is_cooperative:
            given = "together" if game.is_cooperative else "apart or alike"
            raise ConfigError(f"sides must be {given} in {self.game}, got {sides!r}; auto is right for every game.")
        if pairing == "auto":
            pairing = fitting_pairing(game, sides == "alike")
        return replace(self, sides=sides, pairing=pairing)

    def matches(self) -> list[Match]:
        """Return the games, in the order in which they start."""
        with closing_quietly(self.make_game()) as game:
            return list(schedule(game, list(self.players), self.pairing, self.blocks, self.seed))

    def content(self) -> dict[str, Any]:
        """Return the plan as JSON can hold it, with a hash of the behaviour of the rules."""
        order = list(self.players)  # it decides who meets whom where, and a file sorts its keys
        told = {name: value for name, value in asdict(self).items() if name != "trained" or value}
        with closing_quietly(self.make_game()) as game:
            return {**told, "player_order": order, "ruleset_hash": game_ruleset_hash(self.game, game)}


def _fitting_sides(game: Game) -> str:
    if game.is_cooperative:
        return "together"
    begin_game(Table(game), 0)  # there are no roles before
    return "alike" if game.is_simultaneous and not any(map(game.role, game.everyone)) else "apart"
