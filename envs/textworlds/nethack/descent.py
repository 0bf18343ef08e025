"""A scripted player of NetHack that goes down: explore, fight what is near, rest, eat, pray, take the staircase."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from turngym.envs.textworlds.nethack.paths import (
    BOULDER,
    CLOSED,
    DOORS,
    MAP_GLYPHS,
    MOVES,
    STAIRS_DOWN,
    Cell,
    Plan,
    cells_of,
)
from turngym.envs.textworlds.nethack.words import DIRECTIONS, VERBS, Command

Level: TypeAlias = tuple[int, int]
"""Depth, and number of the part of the dungeon."""
_PETS, _INVISIBLE, _OBJECTS, _STATUES = 381, 762, 1906, 5595
"""First glyphs of pets and of things, and those of what is not seen, and of statues."""
_SWALLOWED = range(2541, 5589)
_GROUND = range(MAP_GLYPHS, _SWALLOWED.start)
_ROCK = range(MAP_GLYPHS, MAP_GLYPHS + 12)
"""Glyphs of what is not known, and of walls, in which secret doors may be found."""
_HOLES = (2413, 2414)
_WAYS_DOWN = (STAIRS_DOWN, 2385, *_HOLES)
"""Glyphs of staircases, ladders, holes and trap doors."""
_HUNGRY, _WEAK = 2, 3
_FIRST_PRAYER, _NEXT_PRAYER = 300, 1_000
"""Turns until prayers are safe at first, and after a prayer."""
_SEARCH, _REST = 10, 20
_FAR = 8
"""Steps to a hostile creature from which the player rests."""
_HARMFUL = (
    "floating eye",
    "blue jelly",
    "cockatrice",
    "chickatrice",
    "acid blob",
    "gas spore",
    " mold",
    "violet fungus",
)
"""Creatures that harm who hits them, and which are slow or do not move."""
_SHOP, _SHUT = "shopkeeper", "Closed for inventory"
_ONWARD = 4
"""Steps past the place that was to be explored."""
_NAMES = {ord(key): name for name, key in DIRECTIONS.items()}
_FAILED = 2
"""Failed steps after which a direction is not taken again from a cell."""
_BLOCKED = ("a wall", "solid stone", "diagonally", "boulder", "obstacle", "statue", "bars", "too large", "too much")
"""Parts of what the game says of a step that fails, and would fail again."""


class Sight(NamedTuple):
    """What the player sees and knows of himself at a moment.

    Args:
        here: Column and row of the player.
        level: Level of the dungeon.
        turns: Turns of the game.
        glyphs: Map, of shape (rows, columns).
        names: Names of what the map shows, of shape (rows, columns, letters).
        health: Hit points, and most hit points.
        hunger: Degree of hunger: 1 is not hungry, 2 hungry.
        food: Letters of things to eat.
        said: What the game said last.
    """

    here: Cell
    level: Level
    turns: int
    glyphs: Any
    names: Any
    health: tuple[int, int]
    hunger: int
    food: tuple[str, ...]
    said: tuple[str, ...]

    def creatures(self) -> Iterator[tuple[Cell, str]]:
        """Yield place and name of the creatures in view, apart from pets."""
        for x, y in cells_of((self.glyphs < _PETS) | (self.glyphs == _INVISIBLE)):
            if (x, y) != self.here:
                yield (x, y), bytes(self.names[y, x]).split(b"\0")[0].decode("latin-1")


class Memory:
    """What the script remembers of the commands so far."""

    def __init__(self) -> None:
        self.visited: defaultdict[Level, set[Cell]] = defaultdict(set)
        self.searched: defaultdict[Level, Counter[Cell]] = defaultdict(Counter)
        self.failed: defaultdict[Level, Counter[tuple[Cell, str]]] = defaultdict(Counter)
        self.ways_down: defaultdict[Level, set[Cell]] = defaultdict(set)
        self.doors: defaultdict[Level, set[Cell]] = defaultdict(set)
        self.shut: defaultdict[Level, set[Cell]] = defaultdict(set)
        self.shops: set[Level] = set()
        self.prayed = _FIRST_PRAYER - _NEXT_PRAYER

    def see(self, sight: Sight) -> None:
        """Note what is in view."""
        self.visited[sight.level].add(sight.here)
        glyphs, doors = sight.glyphs, self.doors[sight.level]
        self.ways_down[sight.level] |= cells_of((glyphs >= STAIRS_DOWN) & np.isin(glyphs, _WAYS_DOWN))
        doors -= {(x, y) for x, y in doors if int(glyphs[y, x]) in _GROUND}
        doors |= cells_of((glyphs >= DOORS[0]) & (glyphs <= DOORS[-1]))
        if any(_SHUT in each for each in sight.said):
            self.shut[sight.level] |= {(sight.here[0] + dx, sight.here[1] + dy) for dx, dy in MOVES.values()}
        if any(_SHOP in name for _, name in sight.creatures()):
            self.shops.add(sight.level)

    def note(self, command: Command, before: Sight, after: Sight) -> None:
        """Note a command that was carried out."""
        self.see(after)
        key, name = command.keys[-1], _NAMES.get(command.keys[0])
        if key == VERBS["pray"]:
            self.prayed = after.turns
        elif key == VERBS["search"]:
            self.searched[before.level][before.here] += 1
        is_same = before.level == after.level and before.here == after.here and before.turns == after.turns
        if name and is_same and any(each in text for each in _BLOCKED for text in after.said):
            x, y = after.here[0] + MOVES[name][0], after.here[1] + MOVES[name][1]
            if int(after.glyphs[y, x]) not in (*CLOSED, *_ROCK):
                self.failed[before.level][before.here, name] += 1


class Script:
    """The next command of the script.

    Args:
        sight: What the player sees.
        memory: What it remembers.
    """

    def __init__(self, sight: Sight, memory: Memory) -> None:
        self.sight, self.memory, self.level = sight, memory, sight.level
        found = list(sight.creatures())
        self.hostile = {
            cell: name for cell, name in found if not name.startswith("peaceful") and not self._is_left_alone(name)
        }
        self.left_alone = {cell for cell, _ in found if cell not in self.hostile}
        self.plan = self._plan()

    @staticmethod
    def _is_left_alone(name: str) -> bool:
        return any(each in name for each in _HARMFUL)

    def _plan(self, pushes: bool = False) -> Plan:
        glyphs = self.sight.glyphs
        plan = Plan(glyphs)
        plan.charge(cells_of(glyphs >= _STATUES), 0)
        if self.level in self.memory.shops:
            plan.charge(cells_of((glyphs >= _OBJECTS) & (glyphs < MAP_GLYPHS)), 30)
        if pushes:
            plan.charge(cells_of(glyphs == BOULDER), 8)
        plan.charge(self.left_alone, 0)
        plan.charge(self.memory.shut[self.level] & cells_of(np.isin(glyphs, CLOSED)), 0)
        plan.doors |= self.memory.doors[self.level]
        plan.barred = {step for step, times in self.memory.failed[self.level].items() if times >= _FAILED}
        return plan

    def next_commands(self, most: int) -> list[str]:
        """Return the next commands, at most so many."""
        urgent = self._urgent()
        if urgent:
            return [urgent]
        path = self._descend() or self._onward(self.plan) or self._onward(self._plan(pushes=True))
        if not path:
            return self._search(most)
        return path[: min(most, max(1, self._distance() - 1))]

    def _onward(self, plan: Plan) -> list[str] | None:
        """Return the way to where the map may show more, and further in the same direction."""
        path = self._explore(plan)
        return path + path[-1:] * _ONWARD if path and path[-1] in MOVES else path

    def _distance(self) -> int:
        """Return the steps to the nearest hostile creature in view, a large number if there is none."""
        x, y = self.sight.here
        return min((max(abs(a - x), abs(b - y)) for a, b in self.hostile), default=99)

    def _urgent(self) -> str:
        """Return what does not wait: a fight, a prayer, a meal, a rest."""
        sight = self.sight
        health, most = sight.health
        is_dying = health < max(6, most / 7) or sight.hunger >= _WEAK
        if is_dying and sight.turns - self.memory.prayed >= _NEXT_PRAYER:
            return "pray"
        for name, (dx, dy) in MOVES.items():
            cell = sight.here[0] + dx, sight.here[1] + dy
            if cell in self.hostile or self._is_swallowed(cell):
                return f"attack {name}"
        if sight.hunger >= _HUNGRY and sight.food:
            asks = any("eat it?" in each for each in sight.said)
            return f"eat no {sight.food[0]}" if asks else f"eat {sight.food[0]}"
        if health < most * 0.6 and self._distance() > _FAR and sight.hunger < _WEAK:
            return f"search {_REST}"
        return ""

    def _is_swallowed(self, cell: Cell) -> bool:
        rows, columns = self.sight.glyphs.shape
        x, y = cell
        return 0 <= x < columns and 0 <= y < rows and int(self.sight.glyphs[y, x]) in _SWALLOWED

    def _descend(self) -> list[str] | None:
        """Return the way to a staircase or a hole, None if none is known."""
        self.plan.charge(cells_of(np.isin(self.sight.glyphs, _HOLES)), 1)
        path = self.plan.path(self.sight.here, self.memory.ways_down[self.level])
        return ["down"] if path == [] else path

    def _explore(self, plan: Plan) -> list[str] | None:
        """Return the way to the nearest place from where the map may show more."""
        dark = np.pad(self.sight.glyphs == MAP_GLYPHS, 1, constant_values=False)
        frontier = np.zeros_like(self.sight.glyphs, dtype=bool)
        for dx, dy in MOVES.values():
            frontier |= dark[1 + dy : dark.shape[0] - 1 + dy, 1 + dx : dark.shape[1] - 1 + dx]
        frontier |= np.isin(self.sight.glyphs, CLOSED)
        targets = cells_of(frontier) - self.memory.visited[self.level] - {self.sight.here}
        path = plan.path(self.sight.here, targets)
        return self._kicks(path) if path else None

    def _kicks(self, path: list[str]) -> list[str]:
        """Return a way on which a locked door is kicked."""
        is_locked = any("locked" in each or "WHAMM" in each for each in self.sight.said)
        dx, dy = MOVES[path[0]]
        x, y = self.sight.here[0] + dx, self.sight.here[1] + dy
        return [f"kick {path[0]}"] if is_locked and int(self.sight.glyphs[y, x]) in CLOSED else path

    def _search(self, most: int) -> list[str]:
        """Return the way to where a secret door is most likely, and a search there."""
        costs, _ = self.plan.reach(self.sight.here)
        searched = self.memory.searched[self.level]
        dark = (self.sight.glyphs == MAP_GLYPHS).astype(int)
        sums = np.pad(dark.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
        rows, columns = dark.shape

        def price(cell: Cell) -> float:
            x, y = cell
            left, right, top, bottom = max(0, x - 7), min(columns, x + 8), max(0, y - 4), min(rows, y + 5)
            unknown = int(sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left])
            times = sum(searched[x + dx, y + dy] for dx, dy in [(0, 0), *MOVES.values()])
            ways = len(self.plan.steps(cell))
            is_open = ways == len(MOVES)
            return costs[cell] - unknown / 5 + 25 * times - 30 * (ways == 1) + 100 * is_open

        best = min(sorted(costs), key=price)
        path = self.plan.path(self.sight.here, {best})
        return path[:most] if path else [f"search {_SEARCH}"]
