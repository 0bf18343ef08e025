"""The open requests of a vector of tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from turngym.envs.multiagent.hosted import HostedTable
from turngym.envs.multiagent.table import SeatRequest


class Receipt(NamedTuple):
    """The result of a submitted answer.

    Args:
        request_id: As submitted.
        is_taken: Whether the request was open; if not, the answer had no effect.
        is_valid: Whether the text was a legal action.
        reason: Why it was not taken or not valid.
    """

    request_id: int
    is_taken: bool
    is_valid: bool
    reason: str


class RequestBook:
    """Issues request ids, each valid for one answer."""

    def __init__(self) -> None:
        self._requests: dict[int, SeatRequest] = {}
        self._next = 0

    def issue(self, hosted: HostedTable, seat: int, *, table: int, episode: int, policy: str, turn: int) -> SeatRequest:
        """Ask a seat.

        Args:
            hosted: The table at which it is asked.
            seat: Its number.
            table: Number of the table.
            episode: Number of games started by the table before.
            policy: Seats to answer.
            turn: Number of earlier questions to the seat.
        """
        view = hosted.table.views[seat]
        request = SeatRequest(
            request_id=self._next,
            table=table,
            episode=episode,
            seat=seat,
            role=view.role,
            policy=policy,
            phase=view.phase,
            turn=turn,
            observation=view.observation,
            new_lines=tuple(view.new_lines),
            legal_actions=view.legal_actions,
            retry=view.retry,
            error=view.why_again,
            instructions=view.instructions,
            anchor=view.anchor,
        )
        self._requests[self._next] = request
        self._next += 1
        return request

    def redeem(self, request_id: int) -> SeatRequest | None:
        """Return the open question of an id and close it, or None if there is none."""
        return self._requests.pop(request_id, None)

    def withdraw(self, requests: Iterable[SeatRequest]) -> None:
        """Close questions that need no answer any more."""
        for request in requests:
            self._requests.pop(request.request_id, None)

    def refusal(self, request_id: int) -> str:
        """Return why there is no open question of an id."""
        is_known = isinstance(request_id, int) and 0 <= request_id < self._next
        return "answered or withdrawn before" if is_known else "no such request"

    def waiting(self, policy: str | None, limit: int | None) -> list[SeatRequest]:
        """Return the open questions in the order of tables and seats."""
        found = [request for request in self._requests.values() if policy is None or request.policy == policy]
        found.sort(key=_place)
        return found if limit is None else found[:limit]

    def __len__(self) -> int:
        return len(self._requests)


def _place(request: SeatRequest) -> tuple[int, int]:
    return request.table, request.seat
