"""Self-play: multi-agent games of a learner, its frozen copies and built-in players.

The counterpart of :func:`turngym.agents.episodes.rollout.rollout` for games: it returns one trajectory for each seat of
the learner. The reward of a turn is the sum of its seat's rewards until its next request or the end. All seats of all
tables that wait for the same policy are answered in one batch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.episodes.situations import SITUATION, situation_of
from turngym.agents.episodes.turn_writer import TurnWriter
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.columns import Value
from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.players import Player, make_player
from turngym.envs.multiagent.records import EpisodeRecord, StepRecord
from turngym.envs.multiagent.table import SeatRequest, Table
from turngym.envs.multiagent.vector import TableVector
from turngym.envs.vector.info import fault_info
from turngym.envs.vector.slots.boundary import close_quietly
from turngym.errors import ConfigError
from turngym.seeding import stream

LEARNER = "learner"
"""Name of the trained policy."""
CALLER, CALLER_TURN = "caller", "caller_turn"
"""Columns of a sub-agent's trajectory: number of the episode of the agent that called it, and index of the turn."""


@dataclass(frozen=True, slots=True)
class GameSpec:
    """One game to play.

    Args:
        number: Number of the game, unique within a call; with the seat, part of the key of the sampling generators.
        seed: Seed of the game; equal seeds give equal deals.
        group: Games of the same group are compared with each other.
        opponent: Policy of the other side's seats; by default the learner plays all seats.
        side: Index of the learner's side against an opponent, modulo the number of sides.
    """

    number: int
    seed: int
    group: int = 0
    opponent: str = LEARNER
    side: int = 0


def seating_of(spec: GameSpec, teams: Sequence[str]) -> tuple[str, ...]:
    """Return the policy at each seat.

    >>> seating_of(GameSpec(0, 0, opponent="random", side=0), ["wolves", "village", "village"])
    ('random', 'learner', 'learner')
    """
    sides = sorted(set(teams))
    mine = sides[spec.side % len(sides)]
    return tuple(LEARNER if team == mine else spec.opponent for team in teams)


@dataclass(slots=True)
class _Game:
    """A game in progress: seating, decisions and records."""

    spec: GameSpec
    policies: tuple[str, ...] = ()
    writers: dict[int, TurnWriter] = field(default_factory=dict)
    out: set[int] = field(default_factory=set)
    """Seats whose prompts no longer fit; they have forfeited."""

    @property
    def learners(self) -> list[int]:
        """Seats of the learner."""
        return [seat for seat, policy in enumerate(self.policies) if policy == LEARNER]


class SelfPlay:
    """Tables of one game, and the loop that plays them.

    A table whose game ends takes the next one. The course of a game does not depend on the number of tables or on other
    games, except for the last bits of a model's outputs.

    Args:
        game: Creates the rules; called once per table.
        num_tables: Number of parallel games.
        env_id: Name of the game in trajectories.
        retries: Retries after an invalid answer.
        invalid_penalty: Penalty of a seat per invalid answer.
        joint_views: Record the joint view of all seats in turns, for a centralised critic.
        situations: Record the game's abstraction of each decision.
        final_prompts: Keep the next prompt of truncated trajectories, for critics.
    """

    def __init__(
        self,
        game: Callable[[], Game],
        num_tables: int,
        *,
        env_id: str,
        retries: int = 1,
        invalid_penalty: float = 0.0,
        joint_views: bool = False,
        situations: bool = False,
        final_prompts: bool = True,
    ) -> None:
        self.env_id = env_id
        self.final_prompts = final_prompts
        self.joint_views = joint_views
        self.situations = situations
        self.rules = game()
        """The rules in a started game, for inspection; no table uses this object."""
        self.rules.begin(stream("rules", 0), {})
        self.cut_opponents = 0
        """Number of forfeits of other agents' seats because their prompt did not fit."""
        self._agents: Mapping[str, Agent] = {}
        self._playing: dict[int, _Game] = {}
        self._players: dict[tuple[int, int, str], Player] = {}
        self.vector = TableVector(
            game,
            num_tables,
            lambda table, seat, role: self._seat(table, seat),
            retries=retries,
            invalid_penalty=invalid_penalty,
            auto_reset=False,
        )

    @property
    def sides(self) -> tuple[str, ...]:
        """Teams of the game, in the order of sides."""
        return tuple(sorted({self.rules.team(seat) for seat in self.rules.everyone}))

    def _seat(self, table: int, seat: int) -> str | Player:
        """Return the policy or player of a seat in the game that starts at a table."""
        playing, rules = self._playing[table], self.vector.tables[table].game
        if not playing.policies:
            playing.policies = seating_of(playing.spec, [rules.team(each) for each in rules.everyone])
        policy = playing.policies[seat]
        if policy in self._agents:
            return policy
        key = table, seat, policy
        if key not in self._players:
            self._players[key] = make_player(policy, rules)
        return self._players[key]

    def play(self, specs: Sequence[GameSpec], agents: Mapping[str, Agent]) -> list[Trajectory]:
        """Play games and return the trajectories of the learner's seats, ordered by game and seat.

        If the rules or a player fail, the game's trajectories have a fault and are excluded from loss and statistics.
        If the next prompt of a seat does not fit, its trajectory is truncated with the reason ``context``, and the seat
        forfeits the game.

        Args:
            specs: The games; their numbers must differ.
            agents: Policy -> its agent. A policy without an agent is the name of a player, which sees only its seat's
                view.

        Raises:
            ConfigError: Two games have the same number, or there is no agent for the learner.
            UnknownName: A policy is neither an agent nor a player.
        """
        if len({spec.number for spec in specs}) != len(specs):
            raise ConfigError("two games of self-play have the same number: give every GameSpec its own.")
        if LEARNER not in agents:
            raise ConfigError(f"self-play needs an agent for the policy {LEARNER!r}, got {sorted(agents)}.")
        for name in {spec.opponent for spec in specs} - agents.keys():
            make_player(name, self.rules)  # an unknown name raises before the first game
        self._agents = agents
        queue, free = deque(specs), deque(range(self.vector.num_tables))
        finished: dict[int, list[Trajectory]] = {}
        self._playing.clear()
        self.vector.abandon()  # leftovers of an interrupted call
        while queue or self._playing:
            while queue and free:
                spec = queue.popleft()
                table = free.popleft()
                self._playing[table] = _Game(spec)
                self.vector.begin(table, spec.seed)
            for table, fault in self._answer().items():
                game = self._playing.pop(table)
                finished[game.spec.number] = self._end_with_fault(game, fault)
                free.append(table)
            for record in self.vector.drain():
                self._record(record)
            for episode in self.vector.drain_episodes():
                game = self._playing.pop(episode.table)
                finished[game.spec.number] = self._finish(game, episode)
                free.append(episode.table)
        self._agents = {}  # their caches may fill a device
        return [trajectory for spec in specs for trajectory in finished[spec.number]]

    def _number(self, spec: GameSpec, seat: int) -> int:
        """Return the number of a seat's episode, the key of agents' memory and sampling."""
        return spec.number * self.rules.num_seats + seat

    def _answer(self) -> dict[int, str]:
        """Let every policy answer all its requests in one batch; return the faults of policies by table."""
        by_policy: dict[str, list[SeatRequest]] = {}
        for request in self.vector.pending():
            by_policy.setdefault(request.policy, []).append(request)
        answers, expired, faults = [], [], {}
        for policy in sorted(by_policy):
            is_out = [each.seat in self._playing[each.table].out for each in by_policy[policy]]
            expired += [each.request_id for each, out in zip(by_policy[policy], is_out, strict=True) if out]
            requests = [each for each, out in zip(by_policy[policy], is_out, strict=True) if not out]
            asked = [self._request(request) for request in requests]
            decisions = self._agents[policy].act(asked) if asked else []
            for request, shown, decision in zip(requests, asked, decisions, strict=True):
                if decision.fault and self.rules.caller(request.seat) is not None:
                    expired.append(request.request_id)
                    self._end_call_with_fault(request, decision.fault)
                elif decision.fault:
                    faults[request.table] = decision.fault
                elif decision.too_long:
                    expired.append(request.request_id)
                    self._end_without_room(request, shown, decision.too_long)
                else:
                    answers.append((request.request_id, decision.action))
                    self._note(request, shown, decision)
        for table in faults:
            self.vector.drop(table)
        self.vector.submit(answers)  # decisions for a dropped game have no effect
        self.vector.expire(expired)
        return faults

    def _request(self, request: SeatRequest) -> Request:
        info = {
            "anchor": request.anchor,
            "legal_actions": request.legal_actions,
            "progress": float(self.vector.tables[request.table].game.progress(request.seat)),
            "seat": request.seat,
        }
        number = self._number(self._playing[request.table].spec, request.seat)
        finds = self.rules.finds_action
        return Request(
            request.table, number, request.turn, request.observation, info, request.instructions, finds_action=finds
        )

    def _joint(self, column: str, table: int) -> dict[str, Value]:
        return {column: joint_view(self.vector.tables[table])} if self.joint_views else {}

    def _writer(self, game: _Game, seat: int, role: str) -> TurnWriter:
        """Return the writer of a learner's seat, a new one at its first turn."""
        if seat not in game.writers:
            spec = EpisodeSpec(self._number(game.spec, seat), game.spec.seed, game.spec.group)
            name, call = self.rules.seats[seat], self._call(game, seat)
            started = Trajectory(spec, self.env_id, role=role or name, policy=LEARNER, columns=call)
            game.writers[seat] = TurnWriter(started, name)
        return game.writers[seat]

    def _call(self, game: _Game, seat: int) -> dict[str, Value]:
        """Return the columns that link a sub-agent to its caller, and to the turn if the learner took it."""
        caller = self.rules.caller(seat)
        if caller is None:
            return {}
        found: dict[str, Value] = {CALLER: float(self._number(game.spec, caller))}
        if caller in game.writers and game.writers[caller].is_open:
            found[CALLER_TURN] = float(len(game.writers[caller].trajectory.turns))
        return found

    def _note(self, request: SeatRequest, shown: Request, decision: Decision) -> None:
        """Start a turn of the learner."""
        if request.policy == LEARNER:
            writer = self._writer(self._playing[request.table], request.seat, request.role)
            columns = self._joint("joint_view", request.table)
            if self.situations:
                game = self.vector.tables[request.table].game
                columns[SITUATION] = situation_of(game, request.seat, decision.action).as_text()
            writer.decided(shown, decision, columns=columns)

    def _record(self, record: StepRecord) -> None:
        """Complete a turn of the learner with its whole reward."""
        request, game = record.request, self._playing[record.request.table]
        if request.policy == LEARNER and request.seat not in game.out:
            self._writer(game, request.seat, request.role).earned(record.reward, record.info)

    def _end_without_room(self, request: SeatRequest, shown: Request, why: str) -> None:
        """End the episode of a seat whose prompt does not fit: it forfeits the game."""
        game = self._playing[request.table]
        game.out.add(request.seat)
        if request.policy != LEARNER:
            self.cut_opponents += 1
            return
        writer = self._writer(game, request.seat, request.role)
        writer.end_without_room(shown, why)
        if self.final_prompts:
            writer.keep_final_prompt(self._agents[LEARNER], shown)

    def _end_call_with_fault(self, request: SeatRequest, fault: str) -> None:
        """End the call of a failed sub-agent; its seat forfeits, and the game continues."""
        game = self._playing[request.table]
        game.out.add(request.seat)
        if request.policy == LEARNER:
            self._writer(game, request.seat, request.role).end("", fault_info(fault, running=True), fault=fault)

    def _end_with_fault(self, game: _Game, fault: str, roles: Sequence[str] = ()) -> list[Trajectory]:
        """Return the trajectories of a failed game, or of one that a policy cannot continue."""
        writers = self._writers(game, roles)
        self._forget(game)
        for writer in writers:
            writer.end("", fault_info(fault, running=True), fault=fault)
        return [writer.trajectory for writer in writers]

    def _finish(self, game: _Game, episode: EpisodeRecord) -> list[Trajectory]:
        """Return the trajectories of a game that has ended, one for each seat of the learner."""
        if episode.fault:
            game.policies = game.policies or (LEARNER,)  # the rules may fail before any seat is taken
            return self._end_with_fault(game, episode.fault, episode.roles)
        table, joint = self.vector.tables[episode.table], self._joint("final_joint_view", episode.table)
        writers = self._writers(game, episode.roles)
        for seat, writer in zip(game.learners, writers, strict=True):
            if seat not in game.out:
                info, is_cut = table.info(seat), table.is_truncated(seat)
                writer.end(table.views[seat].observation, info, terminated=not is_cut, columns=joint)
                if is_cut and self.final_prompts and writer.trajectory.turns:
                    writer.keep_final_prompt(self._agents[LEARNER], self._last_request(game, table, seat))
        self._forget(game)
        return [writer.trajectory for writer in writers]

    def _last_request(self, game: _Game, table: Table, seat: int) -> Request:
        """Return a seat's request at the end of a truncated game."""
        view, number = table.views[seat], self._number(game.spec, seat)
        info = {"anchor": view.anchor, "legal_actions": (), "progress": view.progress, "seat": seat}
        turn = len(game.writers[seat].trajectory.turns)
        finds = self.rules.finds_action
        slot = self.vector.tables.index(table)
        return Request(slot, number, turn, view.observation, info, view.instructions, finds_action=finds)

    def close(self) -> None:
        """Release resources of the games."""
        close_quietly(self.vector, self.rules)

    def _writers(self, game: _Game, roles: Sequence[str]) -> list[TurnWriter]:
        """Return the writers of the learner's seats."""
        return [self._writer(game, seat, roles[seat] if roles else "") for seat in game.learners]

    def _forget(self, game: _Game) -> None:
        """Let every policy forget a game."""
        for seat, policy in enumerate(game.policies):
            if policy in self._agents:
                self._agents[policy].forget(self._number(game.spec, seat))


def joint_view(table: Table) -> str:
    """Return the joint view of all seats: the anchor of each, by name."""
    return "\n".join(f"{view.name}: {view.anchor}" for view in table.views)


class PlayerAgent(Agent):
    """Agent of built-in players: one player per seat, reset for every game.

    Args:
        tables: The tables; a request's slot is the number of its table.
        name: Name of the player for :func:`turngym.envs.multiagent.players.make_player`.
        seed: Seed of the players, combined with the episode.
    """

    def __init__(self, tables: Sequence[Table], name: str, seed: int = 0) -> None:
        self.tables, self.name, self.seed = tables, name, seed
        self._players: dict[int, Player] = {}

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Return the answer of each player."""
        return [Decision(self._answer(request)) for request in requests]

    def _answer(self, request: Request) -> str:
        info: Mapping[str, Any] = request.info
        table = self.tables[request.slot]
        view = table.views[info["seat"]]
        if request.episode not in self._players:
            player = self._players[request.episode] = make_player(self.name, table.game)
            player.begin(view, stream("player agent", self.name, self.seed, request.episode))
        return self._players[request.episode].act(view)

    def forget(self, episode: int) -> None:
        """Drop the player of a seat after its game."""
        self._players.pop(episode, None)
