"""Exchange between a table and its players: requests, results of answers, and counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(slots=True)
class Counts:
    """Counts of one seat's answers in one game.

    Args:
        answers: Texts that it gave.
        unreadable: Those in which no action was found.
        illegal: Those whose action was not allowed.
        forfeits: 1 once it has forfeited the game, after too many attempts or a timeout.
    """

    answers: int = 0
    unreadable: int = 0
    illegal: int = 0
    forfeits: int = 0


class Answer(NamedTuple):
    """The result of an answer.

    Args:
        action: The canonical action that will be taken, None if the seat is asked again or has forfeited.
        is_valid: Whether the text was a legal action.
        reason: Why it was not.
        rewards: Reward of every seat for this answer; zeros until all answers are in.
    """

    action: str | None
    is_valid: bool
    reason: str
    rewards: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SeatRequest:
    """One request to one seat, as part of a batch for a model.

    The numbers of request and table are for the caller, who sees the requests to all seats; a player is shown the rest.

    Args:
        request_id: Valid for one answer.
        table: Number of the table.
        episode: Number of games started by the table before this one.
        seat: Number of the seat.
        role: The seat's own role.
        policy: Name of the policy that answers.
        phase: Decision to take.
        turn: Number of the seat's earlier requests in this game.
        observation: Current text for it: new lines, the error of its last answer, the question.
        new_lines: The new lines alone.
        legal_actions: The legal actions, empty where any text will do.
        retry: Number of its invalid answers to this request.
        error: Error message of the last of them.
        instructions: Rules and answer format, for the system prompt.
        anchor: Canonical text of what the seat can know.
    """

    request_id: int
    table: int
    episode: int
    seat: int
    role: str
    policy: str
    phase: str
    turn: int
    observation: str
    new_lines: tuple[str, ...]
    legal_actions: tuple[str, ...]
    retry: int
    error: str
    instructions: str
    anchor: str
