"""The viewer's list of episodes, and searching it."""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from turngym.arithmetic import float_sum
from turngym.benchmarks.pages.viewer.jsonl import Place, items, number, numbered, text, whole

BROKEN = "broken"
"""Status of a line that cannot be read."""
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Summary:
    """An episode in the list.

    Args:
        index: Its position.
        file: Number of the file.
        place: Position in it.
        name: Label of the environment, or name of the sample.
        env: Id of the environment.
        seed: The seed, as text.
        task: Number of the task, or name of the match.
        attempt: Attempt at the task.
        seat: The seat and its role, where one seat of a game is told about.
        episode: Number of the episode that a seat of a game was recorded with; None where there is none.
        winner: Winning side, when the whole game is reported.
        success: 1 solved, 0 not, -1 unknown.
        score: The benchmark's number.
        returns: Sum of the rewards.
        turns: Number of turns.
        invalid: Number of invalid actions.
        status: ``ok``, ``agent_error``, ``env_error``, ``context`` (a prompt did not fit), ``cut`` (it has no end), or
            ``broken`` (it cannot be read).
        fault: Cause of the fault.
        instance: Hash of the task instance.
        trace: A checksum of each action, so that episodes can be compared without reading them again; empty where
            nothing is compared.
    """

    index: int
    file: int
    place: Place
    name: str = ""
    env: str = ""
    seed: str = ""
    task: str = ""
    attempt: int = 0
    seat: str = ""
    episode: int | None = None
    winner: str = ""
    success: int = -1
    score: float | None = None
    returns: float | None = None
    turns: int = 0
    invalid: int = 0
    status: str = "ok"
    fault: str = ""
    instance: str = ""
    trace: bytes = b""

    @property
    def flags(self) -> list[str]:
        """Searchable remarks about it."""
        found = ["solved"] if self.success == 1 else ["failed"] if self.success == 0 else []
        if self.status != "ok":
            found.append(
                {"env_error": "fault", "agent_error": "agent fault", "context": "prompt too long"}.get(
                    self.status, self.status
                )
            )
        if self.invalid:
            found.append("invalid")
        return found

    def row(self) -> dict[str, Any]:
        """Return what a page shows, as JSON can hold it."""
        return {
            "n": self.index,
            "name": self.name or self.env or f"line {self.place.line}",
            "env": self.env,
            "seed": self.seed,
            "task": self.task,
            "attempt": self.attempt,
            "seat": self.seat,
            "winner": self.winner,
            "instance": self.instance,
            "success": self.success,
            "score": self.score,
            "returns": self.returns,
            "turns": self.turns,
            "invalid": self.invalid,
            "flags": self.flags,
        }

    def is_task(self, wanted: str) -> bool:
        """Return whether a number of a task, label#task, match, instance or seed, in lower case, means this episode."""
        return wanted in [each.lower() for each in (self.task, f"{self.name}#{self.task}", self.instance, self.seed)]


def matches(summary: Summary, words: Iterable[str]) -> bool:
    """Return whether every word occurs in what is known of an episode; ``seed:7`` and ``task:3`` are exact.

    >>> one = Summary(0, 0, Place(0, 1, 1), name="Sokoban", seed="7", success=0)
    >>> matches(one, ["sokoban", "failed"]), matches(one, ["seed:70"])
    (True, False)
    """
    known = ""
    for word in words:
        key, colon, value = word.partition(":")
        if colon and key in ("task", "seed"):
            if not (summary.is_task(value) if key == "task" else summary.seed.lower() == value):
                return False
            continue
        known = (
            known
            or " ".join(
                (
                    summary.name,
                    summary.env,
                    summary.seat,
                    summary.winner,
                    summary.task,
                    summary.seed,
                    summary.instance,
                    *summary.flags,
                )
            ).lower()
        )
        if word not in known:
            return False
    return True


def words_of(query: str) -> list[str]:
    """Return the words of a query."""
    return query.lower().split()


def trace_of(actions: Iterable[Any]) -> bytes:
    """Return four bytes for each action."""
    sums = (zlib.crc32(text(action).encode("utf8", "surrogatepass")) for action in actions)
    return array("I", sums).tobytes()


def first_difference(first: bytes, second: bytes) -> int | None:
    """Return the first turn at which two traces differ, the end of the shorter one included; None if they are equal.

    >>> first_difference(trace_of(["up", "left"]), trace_of(["up", "down"]))
    1
    >>> first_difference(trace_of(["up"]), trace_of(["up", "down"])), first_difference(b"", b"")
    (1, None)
    """
    if first == second:
        return None
    shared = min(len(first), len(second)) // 4
    for turn in range(shared):
        if first[4 * turn : 4 * turn + 4] != second[4 * turn : 4 * turn + 4]:
            return turn
    return shared


def of_record(
    record: Mapping[str, Any], index: int, file: int, place: Place, name: str = "", with_trace: bool = True
) -> Summary:
    """Return the summary of an episode that stands in one line.

    Args:
        record: The line.
        index: Position in the list.
        file: Number of the file.
        place: Position of the line.
        name: Name of the episodes in the file, such as that of a sample.
        with_trace: Whether to compute the trace, which only comparing needs.
    """
    turns = [turn for turn in items(record.get("turns")) if isinstance(turn, dict)]
    actions: Iterable[Any] = [turn.get("action") for turn in turns]
    if "actions" in record:
        actions = [action[-1] if isinstance(action, list) and action else action for action in items(record["actions"])]
    returns = number(record.get("returns"))
    if returns is None and turns:
        returns = float_sum(number(turn.get("reward")) or 0.0 for turn in turns)
    invalid = whole(record.get("illegal")) or sum(turn.get("action_is_valid") is False for turn in turns)
    fault = text(record.get("fault"))[:_LONGEST]
    seat = " ".join(text(record.get(key)) for key in ("agent", "role") if record.get(key))
    winner = (_short(record.get("winner")) or "nobody") if "winners" in record else ""
    return Summary(
        index,
        file,
        place,
        name=_kept(record.get("label") or name),
        env=_kept(record.get("env")),
        seed=text(record.get("seed")),
        task=_short(record.get("task", record.get("match"))),
        attempt=whole(record.get("attempt")),
        seat=_kept(seat),
        episode=numbered(record.get("episode")),
        winner=_kept(winner),
        success=_success(record),
        score=number(record.get("score")),
        returns=returns,
        turns=whole(record.get("length")) or len(turns),
        invalid=invalid,
        status=_kept(record.get("status") or ("env_error" if fault else "ok")),
        fault=fault,
        instance=_short(record.get("instance")),
        trace=trace_of(actions) if with_trace else b"",
    )


def _success(record: Mapping[str, Any]) -> int:
    value = record.get("success")
    return value if value in (0, 1) and isinstance(value, int) else -1


def _short(value: Any) -> str:
    return text(value)[:_LONGEST]


def _kept(value: Any) -> str:
    """Return text that many episodes share, once in memory."""
    return sys.intern(_short(value))
