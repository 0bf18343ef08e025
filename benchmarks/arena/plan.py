"""Definition of an arena: its games, its players, and which of them play from which match on.

Each command that changes the population starts a *stage*. Within a stage, matches are chosen round by round: all of a
round from the results before it, so that they can be played side by side and the choice depends on no race.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from turngym.agents.players import AgentSettings
from turngym.benchmarks.evaluation.rulesets import game_ruleset_hash
from turngym.benchmarks.tournaments.plan import TournamentPlan
from turngym.benchmarks.tournaments.seats import is_agent
from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.players import make_player
from turngym.envs.vector.slots.boundary import closing_quietly
from turngym.errors import ConfigError, UnknownName, nearest

ROUND, MATCHES = 16, 100
"""Matches that are chosen at once, and those of a new arena, unless others are asked for."""
PAIRING = "arena"
"""The pairing that the folder of one of its games names."""
_FORMAT = 1
_NUMBERS = {"matches": (1, 100_000), "seed": (0, 2**63 - 1), "retries": (0, 1_000), "round": (1, 100_000)}
_LENGTHS = {"players": 200, "games": 100, "stages": 10_000}


@dataclass(frozen=True)
class ArenaGame:
    """A game of an arena.

    Args:
        game: Its id, or ``"module:Class"``.
        options: Options of the game.
        sides: Whether a player has a strength for each side (``"apart"``) or one (``"alike"``).
        ruleset_hash: Hash of the behaviour of the rules.
        players: Names of the players that can play it.
    """

    game: str
    options: Mapping[str, Any]
    sides: str
    ruleset_hash: str
    players: tuple[str, ...] = ()


@dataclass(frozen=True)
class ArenaPlayer:
    """A player of an arena.

    Args:
        player: What plays; see :class:`turngym.benchmarks.tournaments.seats.Roster`.
        settings: Fields of :class:`turngym.agents.players.AgentSettings` that are not the usual ones.
    """

    player: str
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """A part of the matches, between which the population stays the same.

    Args:
        start: Number of its first match.
        held: Numbers above that which were played in the stage before: a kill left gaps between them.
        games: Names of the games that are played.
        players: Names of the players that play.
    """

    start: int
    held: tuple[int, ...]
    games: tuple[str, ...]
    players: tuple[str, ...]


@dataclass(frozen=True)
class Change:
    """What a command changes.

    Args:
        games: Name -> id and options of games to add.
        players: Name -> players to add.
        retire: Names of players that shall play no more.
        matches: Number of matches to have in the end; None leaves it, or means :data:`MATCHES` for a new arena.
    """

    games: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    players: Mapping[str, ArenaPlayer] = field(default_factory=dict)
    retire: Collection[str] = ()
    matches: int | None = None


@dataclass(frozen=True)
class Arena:
    """Everything that the results of an arena depend on.

    Args:
        games: Name -> game.
        players: Name -> player, in the order in which they came.
        stages: Who plays what from which match on.
        matches: Number of matches to have in the end.
        seed: Seed of the games.
        retries: Retries after an invalid answer, before the seat forfeits.
        round: Matches that are chosen at once.
    """

    games: Mapping[str, ArenaGame]
    players: Mapping[str, ArenaPlayer]
    stages: tuple[Stage, ...]
    matches: int
    seed: int = 0
    retries: int = 1
    round: int = ROUND

    def __post_init__(self) -> None:
        for name, (least, most) in _NUMBERS.items():
            if not least <= getattr(self, name) <= most:
                raise ConfigError(f"{name} of an arena must be {least} to {most:,}, got {getattr(self, name)}.")
        for name, most in _LENGTHS.items():
            if len(getattr(self, name)) > most:
                raise ConfigError(f"an arena has at most {most:,} {name}, got {len(getattr(self, name)):,}.")

    @property
    def retired(self) -> tuple[str, ...]:
        """The players that play no more."""
        return tuple(name for name in self.players if name not in self.stages[-1].players)

    def plan_of(self, name: str) -> TournamentPlan:
        """Return the plan of one game, whose matches are not scheduled by it."""
        game = self.games[name]
        players = {player: self.players[player] for player in game.players}
        return TournamentPlan(
            game.game,
            {player: each.player for player, each in players.items()},
            1,
            self.seed,
            game.options,
            PAIRING,
            game.sides,
            self.retries,
            AgentSettings(seed=self.seed),
            {player: each.settings for player, each in players.items() if each.settings},
        )

    def content(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        order = {"player_order": list(self.players), "game_order": list(self.games)}  # a file sorts its keys
        return {"arena": _FORMAT, **order, **asdict(self)}

    @classmethod
    def from_content(cls, content: Mapping[str, Any]) -> Arena:
        """Return what :meth:`content` returned; its shape must have been checked."""
        players = {name: ArenaPlayer(**content["players"][name]) for name in content["player_order"]}
        games = {
            name: ArenaGame(**{**each, "players": tuple(each["players"])}) for name, each in content["games"].items()
        }
        lists = ("held", "games", "players")
        stages = [Stage(each["start"], *(tuple(each[name]) for name in lists)) for each in content["stages"]]
        numbers = {name: content[name] for name in ("matches", "seed", "retries", "round")}
        return cls({name: games[name] for name in content["game_order"]}, players, tuple(stages), **numbers)


def started(seed: int = 0, retries: int = 1, round: int = ROUND) -> Arena:
    """Return an arena without games and players."""
    return Arena({}, {}, (Stage(0, (), (), ()),), 1, seed, retries, round)


def changed(arena: Arena, change: Change, played: Collection[int]) -> Arena:
    """Return an arena after a change; the same one if it changes nothing.

    Args:
        arena: The arena before.
        change: The change.
        played: Numbers of the matches that are over.

    Raises:
        ConfigError: A name is taken, a retired player is added, a player can play no game, or too few are left.
        UnknownName: There is no such game or player.
    """
    games = {name: _game(arena.games.get(name), name, *given) for name, given in change.games.items()}
    games, players = {**arena.games, **games}, {**arena.players, **change.players}
    for name, player in arena.players.items():
        if players[name] != player:
            raise ConfigError(
                f"the arena has a player {name!r} already, {player.player} with other settings or another kind: give "
                f"this one another name, such as other={players[name].player}."
            )
    if again := sorted(set(change.players).intersection(arena.retired).difference(change.retire)):
        raise ConfigError(
            f"the player {again[0]!r} is retired: to let it play again, give it another name, such as "
            f"other={players[again[0]].player}."
        )
    games = {name: replace(game, players=tuple(_able(game, players))) for name, game in games.items()}
    _require_games(games, change.players)
    gone = {*arena.retired, *change.retire}
    if unknown := sorted(set(change.retire).difference(players)):
        raise UnknownName(f"no player named {unknown[0]!r} to retire. {nearest(unknown[0], players)}")
    active = tuple(name for name in players if name not in gone)
    able = tuple(name for name, game in games.items() if len(set(active).intersection(game.players)) > 1)
    if not able:
        raise ConfigError(
            f"an arena needs a game that two players can play: games {', '.join(games) or 'none'}, players "
            f"{', '.join(active) or 'none'}. Add some with --games and --players."
        )
    least = max(arena.matches if arena.players else 0, len(played))
    matches = (least or MATCHES) if change.matches is None else change.matches
    if matches < least:
        raise ConfigError(f"the arena has {least} matches, more than {matches}: matches can only be added.")
    stages = _stages(arena, able, active, played)
    return replace(arena, games=games, players=players, stages=stages, matches=matches)


def _stages(
    arena: Arena, games: tuple[str, ...], players: tuple[str, ...], played: Collection[int]
) -> tuple[Stage, ...]:
    last = arena.stages[-1]
    if (last.games, last.players) == (games, players):
        return arena.stages
    start = next(number for number in range(len(played) + 1) if number not in played)
    held = tuple(sorted(number for number in played if number > start))
    kept = arena.stages if start > last.start or held else arena.stages[:-1]
    return (*kept, Stage(start, held, games, players))


def _game(known: ArenaGame | None, name: str, game_id: str, options: Mapping[str, Any]) -> ArenaGame:
    """Return a game; one that is there already must be the same."""
    plan = TournamentPlan(game_id, {}, options=options).settled()
    if plan.sides == "together":
        raise ConfigError(
            f"{game_id} is cooperative: its seats win together, so there is nothing to rate a player by in an arena. "
            "`turngym tournament` compares players by their partners."
        )
    with closing_quietly(plan.make_game()) as rules:
        found = ArenaGame(game_id, dict(options), plan.sides, game_ruleset_hash(game_id, rules))
    if known is not None and replace(known, players=()) != found:
        raise ConfigError(
            f"the arena has a game {name!r} already, {known.game} with options {dict(known.options)}, or its rules "
            f"have changed: give this one another name, such as {name}2={game_id}."
        )
    return found


def _able(game: ArenaGame, players: Mapping[str, ArenaPlayer]) -> Iterator[str]:
    """Yield the players that can play a game: those of another game cannot."""
    with closing_quietly(TournamentPlan(game.game, {}, options=game.options).make_game()) as rules:
        for name, player in players.items():
            if not _refusal(player.player, rules):
                yield name


def _refusal(player: str, rules: Game) -> str:
    """Return why a player cannot play a game; empty if it can. Files that cannot be loaded are errors."""
    try:
        if not is_agent(player, rules):
            make_player(player, rules)
    except (UnknownName, ConfigError) as error:
        return str(error)
    return ""


def _require_games(games: Mapping[str, ArenaGame], players: Mapping[str, ArenaPlayer]) -> None:
    """Refuse new players that can play no game, with the reason."""
    for name, player in players.items():
        if games and not any(name in game.players for game in games.values()):
            first = next(iter(games.values()))
            with closing_quietly(TournamentPlan(first.game, {}, options=first.options).make_game()) as rules:
                reason = _refusal(player.player, rules)
            raise ConfigError(f"the player {name!r} can play no game of the arena: {reason}")


def rounds(arena: Arena, stage: Stage, stop: int) -> Iterator[range]:
    """Yield the numbers of the matches of a stage, round by round.

    Args:
        arena: Its arena.
        stage: The stage.
        stop: Number above the last match.
    """
    for start in range(stage.start, stop, arena.round):
        yield range(start, min(start + arena.round, stop))


def before(stage: Stage, start: int, numbers: Iterable[int]) -> Sequence[int]:
    """Return the numbers of the matches from whose results a round is chosen, in order."""
    return sorted(number for number in numbers if number < start or number in stage.held)
