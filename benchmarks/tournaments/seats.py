"""The players of a tournament, and one game between them; a player that fails forfeits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.episodes.seat_player import SeatPlayer
from turngym.agents.episodes.turn_writer import TurnWriter
from turngym.agents.players import AGENTS, AgentSettings, make_agent
from turngym.agents.players.styled import learns_between_tries
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.arithmetic import is_finite
from turngym.benchmarks.tournaments.pairings import Match
from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.hosted import HostedTable
from turngym.envs.multiagent.players import PLAYERS, Player, make_player
from turngym.envs.multiagent.records import transcript_sha256
from turngym.envs.multiagent.table import Table
from turngym.errors import ConfigError, PromptTooLong
from turngym.loading import is_own, load_place, raised_text, split_place
from turngym.seeding import stream

_TRIES = 2  # a player that raises is asked once more
_LONGEST_MESSAGE = 500
RULES = -1
"""Stands for a seat where the rules of a game run."""


class Roster:
    """Makes the players of a tournament. An agent is made once and plays at all its seats.

    Args:
        players: Name in the tournament -> what plays: a player of the game or a generic one (``random``,
            ``tabular:FILE``), a custom player (``my_module:MyPlayer``), or an agent with a colon (``hf:PATH``,
            ``scripted:a``).
        game: Environment to play.
        settings_of: Gives what the agent of a name is made with.
        agents: Agents made so far, by description and settings, which other games share; they are added to it.

    Raises:
        UnknownName: There is no such player or agent.
        ConfigError: An agent cannot play at a table.
    """

    def __init__(
        self,
        players: Mapping[str, str],
        game: Game,
        settings_of: Callable[[str], AgentSettings],
        agents: dict[str, Agent] | None = None,
    ) -> None:
        self._players, self._game = dict(players), game
        self._agents: dict[str, Agent] = {}
        made = {} if agents is None else agents
        for name, description in players.items():
            if is_agent(description, game):
                settings = settings_of(name)
                key = f"{name} {description} {settings}"
                self._agents[name] = made[key] if key in made else make_agent(description, settings)
                made[key] = self._agents[name]
                if learns_between_tries(self._agents[name]):
                    raise ConfigError(
                        f"the style {settings.style!r} learns from one try at a task to the next, and a tournament has "
                        "none: use another style, or `turngym eval`."
                    )
            else:
                make_player(description, game)
        for agent in self._agents.values():
            agent.prepare()

    def make(self, name: str) -> Player:
        """Return a fresh player."""
        if name in self._agents:
            return SeatPlayer(self._agents[name])
        return make_player(self._players[name], self._game)

    def seated(self, match: Match, seat: int) -> Player:
        """Return a fresh player for a seat; what it raises makes the seat forfeit."""
        return self.make(match.players[seat])

    def asking(self, seats: Sequence[tuple[Match, int]]) -> None:
        """Hear, before code of players or rules runs, whose it is; does nothing.

        Args:
            seats: Games and seats that are about to answer; :data:`RULES` for the rules of a game.
        """


def is_agent(description: str, game: Game) -> bool:
    """Return whether a description is one of an agent rather than of a player.

    Raises:
        ConfigError: It is an agent that only a single-agent environment can have.
    """
    prefix, colon, _ = description.partition(":")
    if not colon or prefix in game.players or prefix in PLAYERS:
        return False
    if prefix == "expert":
        raise ConfigError(
            f"the agent 'expert' asks an environment for its solver; the players of {game.name} are: "
            f"{', '.join([*game.players, 'random', 'first_legal'])}."
        )
    if not is_own(description, AGENTS):
        return True
    place, name = split_place(description)
    found = getattr(load_place(place, description), name, None)
    return issubclass(found, Agent) if isinstance(found, type) else callable(found)


@dataclass(slots=True)
class Usage:
    """Usage of one seat in one game.

    Args:
        calls: Number of requests.
        tokens_in: Tokens of its prompts.
        tokens_out: Tokens of its completions.
        seconds: Time until its answers were there; every seat of a batch counts the whole of it.
        faults: Number of forfeits after two consecutive exceptions.
        too_long: Number of prompts that did not fit, which also count as faults.
        cost: Price of the tokens in USD; None if it is unknown.
    """

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    faults: int = 0
    too_long: int = 0
    cost: float | None = None


class LiveGame:
    """One game that is being played. What raises here is a fault of the rules; those of players are dealt with.

    Args:
        match: Seating and seed.
        table: A table for this game alone.
        roster: Makes the players.
    """

    def __init__(self, match: Match, table: Table, roster: Roster) -> None:
        self.match, self.table, self._roster = match, table, roster
        self.usage = [Usage() for _ in match.players]
        self._are_valid = [True for _ in match.players]
        self.fault = ""
        """The first fault of a player."""
        self._retried: list[str] = []
        self._hosted = HostedTable(table)
        self._hosted.begin(match.seed)
        self.players: list[Player | None] = [self._seated(seat) for seat, _ in _seats(match)]
        self._writers = {
            seat: TurnWriter(self._trajectory(seat, name), table.game.seats[seat])
            for seat, name in _seats(match)
            if isinstance(self.players[seat], SeatPlayer)
        }

    def _seated(self, seat: int) -> Player | None:
        """Return the player, ready; None if it cannot start, so that it forfeits."""
        self._roster.asking([(self.match, seat)])
        problem: Exception | None = None
        for _ in range(_TRIES):
            try:
                player = self._roster.seated(self.match, seat)
                player.begin(self.table.views[seat], stream("tournament player", self.match.key, seat))
                self.retried(seat, problem)
                return player
            except Exception as error:  # user code: a tournament continues without the player
                problem = error
        assert problem is not None
        self._note(seat, problem)
        return None

    def _trajectory(self, seat: int, name: str) -> Trajectory:
        game, spec = self.table.game, EpisodeSpec(seat, self.match.seed, self.match.block)
        return Trajectory(spec, game.name, role=game.role(seat) or game.seats[seat], policy=name)

    @property
    def trajectories(self) -> list[Trajectory]:
        """Usage of agents, one per seat with an agent; built-in players have none."""
        return [writer.trajectory for writer in self._writers.values()]

    def _note(self, seat: int, problem: Exception) -> None:
        self.usage[seat].faults += 1
        self.usage[seat].too_long += isinstance(problem, PromptTooLong)
        self.fault = self.fault or self._message(seat, problem)

    def retried(self, seat: int, problem: Exception | None) -> None:
        """Note what a player raised at a call that succeeded when it was repeated; None for nothing."""
        if problem is not None:
            self._retried.append(self._message(seat, problem))

    def _message(self, seat: int, problem: Exception) -> str:
        return f"{self.match.players[seat]} at seat {seat}: {raised_text(problem)}"[:_LONGEST_MESSAGE]

    def asked_agents(self) -> Iterator[tuple[int, SeatPlayer, Request]]:
        """Let all other players answer, then yield the seats of agents that the game waits for; none at its end."""
        while any([self._answered(seat) for seat in self.table.pending]):
            pass
        for seat in self.table.pending:
            player = self.players[seat]
            if isinstance(player, SeatPlayer):
                self._earned(seat)
                yield seat, player, player.request(self.table.views[seat])

    def _answered(self, seat: int) -> bool:
        """Let a player answer; return whether there was an answer, which there is not from an agent."""
        player, view, usage = self.players[seat], self.table.views[seat], self.usage[seat]
        if isinstance(player, SeatPlayer):
            return False
        if player is None:
            self._hosted.expire(seat)
            return True
        usage.calls += 1
        self._roster.asking([(self.match, seat)])
        began = time.perf_counter()
        problem: Exception | None = None
        for _ in range(_TRIES):
            try:
                text = player.act(view)
                if not isinstance(text, str):
                    raise TypeError(f"an answer must be a string, got {type(text).__name__}")
                self.retried(seat, problem)
                break
            except Exception as error:  # user code: a tournament continues without the player
                _ = view.observation, view.legal_actions, view.anchor  # raises where the rules are to blame
                problem = error
        else:
            assert problem is not None
            self.give_up(seat, problem)
            return True
        usage.seconds += time.perf_counter() - began
        self._roster.asking([(self.match, RULES)])
        self._hosted.answer(seat, text)
        return True

    def answer(self, seat: int, request: Request, decision: Decision, seconds: float) -> None:
        """Take what an agent decided, when it was asked so."""
        usage = self.usage[seat]
        usage.calls += 1
        usage.seconds += seconds
        used = self._writers[seat].decided(request, decision, latency=seconds).usage
        assert used is not None
        usage.tokens_in += used.tokens_in
        usage.tokens_out += used.tokens_out
        if used.cost is not None:
            usage.cost = (usage.cost or 0.0) + used.cost
        self._are_valid[seat] = self._hosted.answer(seat, decision.action).is_valid

    def _earned(self, seat: int) -> None:
        """Complete the turn of an agent whose reward is all there."""
        writer = self._writers[seat]
        if writer.is_open:
            info = self.table.info(seat, action_is_valid=self._are_valid[seat])
            writer.earned(self._hosted.rewards[seat], info)

    def give_up(self, seat: int, problem: Exception) -> None:
        """Let a seat forfeit whose player raised, and count it."""
        self._note(seat, problem)
        self._hosted.expire(seat)

    def end(self) -> None:
        """Let agents forget the game."""
        for seat, player in enumerate(self.players):
            if isinstance(player, SeatPlayer):
                self._roster.asking([(self.match, seat)])
                try:
                    player.end()
                except Exception as error:  # user code: a tournament continues without the player
                    self._note(seat, error)

    def content(self) -> dict[str, Any]:
        """Return what there is to say of the game when it is over, as JSON can hold it."""
        table, game = self.table, self.table.game
        for seat, writer in self._writers.items():
            self._earned(seat)
            writer.end(table.views[seat].observation, table.info(seat), terminated=not table.is_truncated(seat))
        names, winners = game.seats, table.winners()
        return {
            "roles": {name: game.role(seat) for seat, name in enumerate(names)},
            "teams": {name: game.team(seat) for seat, name in enumerate(names)},
            "returns": {name: float(table.returns[seat]) for seat, name in enumerate(names)},
            "scores": {name: float(game.score(seat)) for seat, name in enumerate(names)},
            "winners": [names[seat] for seat in winners],
            "winner": _only({game.team(seat) for seat in winners}),
            "length": len(table.actions),
            "metrics": {key: _finite(value) for key, value in game.metrics().items()},
            "seats": {name: self._seat_content(seat) for seat, name in enumerate(names)},
            "actions": [[seat, action] for seat, action in table.actions],
            "transcript_sha256": transcript_sha256(table),
            "status": "agent_error" if self.fault else "ok",
            "fault": self.fault,
            **({"retried": len(self._retried), "first_retried": self._retried[0]} if self._retried else {}),
        }

    def _seat_content(self, seat: int) -> dict[str, Any]:
        counts, usage = self.table.counts[seat], self.usage[seat]
        return {
            "calls": usage.calls,
            "answers": counts.answers,
            "parse_failures": counts.unreadable,
            "illegal": counts.illegal,
            "forfeits": counts.forfeits,
            "faults": usage.faults,
            **({"too_long": usage.too_long} if usage.too_long else {}),
            "tokens_in": usage.tokens_in,
            "tokens_out": usage.tokens_out,
            "latency": round(usage.seconds, 6),
            **({} if usage.cost is None else {"cost": usage.cost}),
        }


def _seats(match: Match) -> Iterator[tuple[int, str]]:
    return enumerate(match.players)


def _finite(value: float) -> float | None:
    """Return a number, or None if there is none: JSON has no nan."""
    return float(value) if is_finite(value) else None


def _only(teams: set[str]) -> str | None:
    return next(iter(teams)) if len(teams) == 1 else None
