"""A Sokoban solver: A* over moves (Hart, Nilsson and Raphael 1968).

The estimate is the number of pushes that the boxes need at least: the cheapest way to give each box a goal of its own,
where the price of a pair is what a lone box would need. It never exceeds the truth, so the first solution is a
shortest one. Where many boxes make that search too long, it starts again with the estimate weighted up, which finds
a solution at most that factor longer.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count, permutations

from turngym.envs.textgames.sokoban.rules import MOVES, Room, State, transition

_SEARCHES = ((1.0, 30_000), (2.0, 30_000), (10.0, None))
"""Weight and most states expanded of each search; the last one has no limit."""


def _push_distances(room: Room, goal: int) -> dict[int, int]:
    """Return the pushes that a lone box needs from each cell to ``goal``; cells without a way are absent."""
    distances = {goal: 0}
    queue = [goal]
    for cell in queue:
        for delta in room.deltas.values():
            before = cell - delta  # the box was here, the player one cell further back
            if before in room.floor and before - delta in room.floor and before not in distances:
                distances[before] = distances[cell] + 1
                queue.append(before)
    return distances


class PushEstimate:
    """Lower bound of the pushes that are left, remembered for each set of boxes."""

    def __init__(self, room: Room) -> None:
        self._tables = [_push_distances(room, goal) for goal in sorted(room.goals)]
        self._known: dict[frozenset[int], int | None] = {}

    def __call__(self, boxes: frozenset[int]) -> int | None:
        """Return the bound, None if some box can no longer reach its own goal."""
        if boxes not in self._known:
            sums = []
            for order in permutations(boxes):
                pairs = [table.get(box, -1) for table, box in zip(self._tables, order, strict=True)]
                if min(pairs) >= 0:
                    sums.append(sum(pairs))
            self._known[boxes] = min(sums, default=None)
        return self._known[boxes]


def solve(room: Room, state: State) -> list[tuple[State, str]] | None:
    """Return pairs of state and move from ``state`` to a solved state, None if there is no way.

    The way is a shortest one, except where that is too long to search for: then it is at most twice, and in the
    hardest rooms ten times, as long.
    """
    estimate = PushEstimate(room)
    for weight, most in _SEARCHES:
        finished, path = _search(room, state, estimate, weight, most)
        if finished:
            break
    return path


def _search(
    room: Room, state: State, estimate: PushEstimate, weight: float, most: int | None
) -> tuple[bool, list[tuple[State, str]] | None]:
    """Return whether the search came to an end, and what it found."""
    first = estimate(state.boxes)
    if first is None:
        return True, None
    order = count(0, -1)  # among equals the newest first
    costs = {state: 0}
    came_from: dict[State, tuple[State, str]] = {}
    waiting = [(weight * first, next(order), 0, state)]
    expanded = 0
    while waiting:
        _, _, moves, current = heappop(waiting)
        if current.boxes == room.goals:
            return True, _path(came_from, current)
        if moves > costs[current]:
            continue
        expanded += 1
        if most is not None and expanded > most:
            return False, None
        for move in MOVES:
            after = transition(room, current, move)
            if costs.get(after, moves + 2) <= moves + 1:
                continue
            left = estimate(after.boxes)
            if left is not None:
                costs[after] = moves + 1
                came_from[after] = (current, move)
                heappush(waiting, (moves + 1 + weight * left, next(order), moves + 1, after))
    return True, None


def _path(came_from: dict[State, tuple[State, str]], end: State) -> list[tuple[State, str]]:
    path: list[tuple[State, str]] = []
    while end in came_from:
        before, move = came_from[end]
        path.append((before, move))
        end = before
    return path[::-1]
