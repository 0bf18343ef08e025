"""The records of a vector of tables: one per answer, one per game."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.table import Counts, SeatRequest, Table

_quoted = json.JSONEncoder().encode
_TABLE_RULES = "forfeits"
"""Sets games apart from those of tables that took default actions."""

Status: TypeAlias = Literal["ok", "agent_error", "env_error"]
"""End of a game: by its rules, or by an exception of a player or the rules."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One external answer and its results until the seat was asked again, or until the end of the game.

    Args:
        request: The question.
        text: The answer as it was given; empty where none came in time.
        action: The canonical action that was taken, None if the seat was asked again or has forfeited.
        is_valid: Whether the text was a legal action.
        reason: Why it was not.
        reward: Rewards of the seat for the action and since.
        terminated: Whether the rules ended the game before the seat was asked again.
        truncated: Whether a limit outside of the rules ended it, or a fault, which the info names; exclude records with
            a fault from statistics.
        info: The seat's info table when it was asked again, or at the end.
        parent_step: Number of the turn that this one is a part of, for calls within a call; None for the others.
    """

    request: SeatRequest
    text: str
    action: str | None
    is_valid: bool
    reason: str
    reward: float
    terminated: bool
    truncated: bool
    info: Mapping[str, Any]
    parent_step: int | None = None


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """One game, with everything needed to replay and evaluate it.

    Args:
        table: Number of the table.
        episode: Number of games started by the table before.
        seed: Names the game: every view that is reset with it starts the same one.
        game: Name of the game.
        ruleset: Hash of the game's name, its options and the rules of the table; results with different ones cannot be
            compared.
        seats: Names of the seats.
        policies: Name of the policy at each seat.
        roles: Role of each seat.
        teams: Side of each seat.
        returns: Sum of each seat's rewards.
        scores: The benchmark's number of each seat.
        winners: Numbers of the seats that won.
        counts: Answers, unreadable and illegal ones and forfeits of each seat.
        metrics: Numbers about the whole game.
        actions: Every action with its seat, in order, None for a forfeit; with the seed, enough to replay the game.
        transcript_sha256: Hash of :func:`transcript_text`; empty where the game broke.
        status: End of the game.
        fault: Error, empty if there is none.
        fault_seat: The seat whose player failed, -1 if none did.
    """

    table: int
    episode: int
    seed: int
    game: str
    ruleset: str
    seats: tuple[str, ...]
    policies: tuple[str, ...]
    roles: tuple[str, ...]
    teams: tuple[str, ...]
    returns: tuple[float, ...]
    scores: tuple[float, ...]
    winners: tuple[int, ...]
    counts: tuple[Counts, ...]
    metrics: Mapping[str, float]
    actions: tuple[tuple[int, str | None], ...]
    transcript_sha256: str
    status: Status = "ok"
    fault: str = ""
    fault_seat: int = -1


def ruleset_hash(game: Game) -> str:
    """Return a hash of the rules: the game's name, all its options, and the rules of the table.

    Two games with equal hashes can be compared.
    """
    text = json.dumps([game.name, dict(game.settings), _TABLE_RULES], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def transcript_text(table: Table) -> str:
    """Return the game so far as canonical text: every line with its readers, every action, every return, the winners.

    It is the same in every view that drove the table with the same seed and answers.
    """
    readers = {to: " ".join(map(str, to)) for to, _ in table.log}
    lines = [f"{readers[to]}: {_quoted(text)}" for to, text in table.log]
    lines += [f"{seat} does {_quoted(action)}" for seat, action in table.actions]
    lines.append(f"returns {[float(total) for total in table.returns]}, winners {list(table.winners())}")
    return "\n".join(lines)


def transcript_sha256(table: Table) -> str:
    """Return the hash of :func:`transcript_text`."""
    return hashlib.sha256(transcript_text(table).encode()).hexdigest()


def episode_record(
    table: Table, index: int, episode: int, seed: int, policies: tuple[str, ...], ruleset: str
) -> EpisodeRecord:
    """Return the record of a game that has ended by its rules."""
    game = table.game
    return EpisodeRecord(
        table=index,
        episode=episode,
        seed=seed,
        game=game.name,
        ruleset=ruleset,
        seats=game.seats,
        policies=policies,
        roles=tuple(map(game.role, game.everyone)),
        teams=tuple(map(game.team, game.everyone)),
        returns=tuple(table.returns),
        scores=tuple([float(game.score(seat)) for seat in game.everyone]),
        winners=table.winners(),
        counts=tuple(table.counts),
        metrics=game.metrics(),
        actions=tuple(table.actions),
        transcript_sha256=transcript_sha256(table),
    )


def faulted_record(table: Table, ruleset: str, status: Status, fault: str) -> EpisodeRecord:
    """Return the record of a game that failed; no method of the rules is called."""
    game = table.game
    nobody = ("",) * game.num_seats
    return EpisodeRecord(
        table=0,
        episode=0,
        seed=0,
        game=game.name,
        ruleset=ruleset,
        seats=game.seats,
        policies=nobody,
        roles=nobody,
        teams=nobody,
        returns=tuple(table.returns),
        scores=(0.0,) * game.num_seats,
        winners=(),
        counts=tuple(table.counts),
        metrics={},
        actions=tuple(table.actions),
        transcript_sha256="",
        status=status,
        fault=fault,
    )
