"""Shortest solutions of levels, by breadth-first search over exact states."""

from __future__ import annotations

from turngym.envs.rules.mechanics import Level, State, press

MOST_STATES = 2_500
"""States after which a search gives up; levels that need more are not used."""


def solve(level: Level, start: State) -> dict[State, int] | None:
    """Return state -> button of a shortest solution, in order; None without one, empty if the state is solved."""
    if level.is_solved(start):
        return {}
    buttons, before = level.rules.buttons, {start: (start, -1)}
    frontier, mask, wanted = [start], level.mask, level.wanted
    while frontier and len(before) <= MOST_STATES:
        found = list[State]()
        for state in frontier:
            for button in buttons:
                after = press(level, state, button)
                if after is not state and after not in before:
                    before[after] = state, button
                    if after[2] & mask == wanted and level.is_solved(after):
                        return _path(before, after)
                    found.append(after)
        frontier = found
    return None


def _path(before: dict[State, tuple[State, int]], last: State) -> dict[State, int]:
    state, button = before[last]
    path = list[tuple[State, int]]()
    while button >= 0:
        path.append((state, button))
        state, button = before[state]
    return dict(reversed(path))
