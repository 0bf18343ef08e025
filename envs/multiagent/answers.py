"""What passes between a table and those who answer: questions, what became of answers, and counts of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(slots=True)
class Counts:
    """What one seat did in one game.

    Args:
        answers: Texts that it gave.
        unreadable: Those in which no action was found.
        illegal: Those whose action was not allowed.
        defaults: Actions that were taken for it, after too many tries or too long a wait.
    """

    answers: int = 0
    unreadable: int = 0
    illegal: int = 0
    defaults: int = 0


class Answer(NamedTuple):
    """What became of an answer.

    Args:
        action: The canonical action that will be taken, None if the seat is asked again.
        is_valid: Whether the text was a legal action; False where ``action`` is the default one.
        reason: Why it was not.
        rewards: Of every seat, what this answer brought; zeros until the answers are complete.
    """

    action: str | None
    is_valid: bool
    reason: str
    rewards: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class SeatRequest:
    """One question to one seat, as a batch for a model holds it.

    The numbers of request and table are for whoever runs the tables, who sees the questions to all seats anyway; a
    player is shown the rest.

    Args:
        request_id: Valid for one answer.
        table: Number of the table.
        episode: How many games the table has begun before this one.
        seat: Number of the seat.
        role: The seat's own role.
        policy: Name of the policy that is to answer.
        phase: What is being decided.
        turn: How many questions the seat has been asked before in this game.
        observation: What it reads now: new lines, what was wrong with its last answer, the question.
        new_lines: The new lines alone.
        legal_actions: The legal actions, empty where any text will do.
        retry: How many of its answers to this question were invalid.
        error: What was wrong with the last of them.
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
