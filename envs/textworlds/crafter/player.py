"""A scripted player of Crafter that knows the whole map; its next action follows from the state alone."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeAlias

from turngym.envs.textworlds.crafter.world import package

Cell: TypeAlias = tuple[int, int]

REACHED = 12
"""Achievements that the script reaches in nearly all worlds of the default size."""
_MOVES: dict[Cell, str] = {(-1, 0): "move_left", (1, 0): "move_right", (0, -1): "move_up", (0, 1): "move_down"}
_FAR = 15
_STEP, _DIG, _PUSH = 1, 3, 4
"""Costs of a step onto free ground, through something that is dug, and past a creature."""


class _Player:
    """What the script knows, and the moves that it chooses from.

    Args:
        env: The environment of the package.
    """

    def __init__(self, env: Any) -> None:
        self.world, self.player, self.reached = env._world, env._player, env._unlocked
        self.has: dict[str, int] = env._player.inventory
        self.at: Cell = self._cell(env._player.pos)
        self.front: Cell = self._beside(self.at, self._cell(env._player.facing))

    @staticmethod
    def _cell(position: Any) -> Cell:
        return int(position[0]), int(position[1])

    @staticmethod
    def _beside(cell: Cell, move: Cell) -> Cell:
        return cell[0] + move[0], cell[1] + move[1]

    def ground(self, *kinds: str) -> set[Cell]:
        """Return the cells of some kinds of ground."""
        cells, ids = self.world._mat_map, self.world._mat_ids
        return {(int(x), int(y)) for kind in kinds for x, y in zip(*(cells == ids[kind]).nonzero(), strict=True)}

    def things(self, *kinds: str) -> set[Cell]:
        """Return the cells of some kinds of creatures and plants."""
        return {self._cell(each.pos) for each in self.world.objects if type(each).__name__ in kinds}

    def distance(self, cells: Collection[Cell]) -> int:
        """Return the steps to the nearest of some cells, a large number if there is none."""
        return min((abs(x - self.at[0]) + abs(y - self.at[1]) for x, y in cells), default=10**6)

    def is_near(self, *kinds: str) -> bool:
        """Return whether all of these kinds of ground are among the cells around the player."""
        return set(kinds) <= set(self.world.nearby(self.player.pos, 1)[0])

    def is_free(self, cell: Cell, kinds: Collection[str]) -> bool:
        """Return whether a cell has one of these kinds of ground, and nothing on it."""
        material, thing = self.world[cell]
        return thing is None and material in kinds

    def _cost(self, cell: Cell) -> int:
        """Return the cost to enter a cell, 0 if that is impossible."""
        material, thing = self.world[cell]
        if thing is not None:
            return 0 if type(thing).__name__ in ("Plant", "Player") else _PUSH
        if material in self.player.walkable and material != "lava":
            return _STEP
        tool = {"stone": "wood_pickaxe", "coal": "wood_pickaxe", "iron": "stone_pickaxe"}.get(material or "")
        return _DIG if tool and self.has[tool] else 0

    def toward(self, targets: Collection[Cell], action: str) -> str:
        """Return the action if a target is faced, else a move towards the nearest; empty if none can be reached."""
        if self.front in targets:
            return action
        costs, queue = {self.at: 0}, [(0, self.at, (0, 0))]
        while queue:
            cost, cell, first = heapq.heappop(queue)
            if cost > costs[cell]:
                continue
            for move in _MOVES:
                after = self._beside(cell, move)
                if after in targets and (cell != self.at or not self.is_free(after, self.player.walkable)):
                    return self._move(first if cell != self.at else move)
                entry = self._cost(after)
                if entry and cost + entry < costs.get(after, 10**6):
                    costs[after] = cost + entry
                    heapq.heappush(queue, (cost + entry, after, first if cell != self.at else move))
        return ""

    def _move(self, move: Cell) -> str:
        """Return a step, or ``do`` where something is in the way that is faced."""
        ahead = self._beside(self.at, move)
        return "do" if ahead == self.front and not self.is_free(ahead, self.player.walkable) else _MOVES[move]

    def before(self, kinds: Collection[str], action: str) -> str:
        """Return the action if free ground of some kind is faced, else a move after which it may be."""
        if self.is_free(self.front, kinds):
            return action
        for move, name in _MOVES.items():
            ahead = self._beside(self.at, move)
            if self._cost(ahead) == _STEP and self.is_free(self._beside(ahead, move), kinds):
                return name
        return self.toward(self.ground(*kinds) - {self.at, self.front}, "noop")

    def onto(self, targets: Collection[Cell]) -> str:
        """Return a move towards the nearest of some free cells, to stand there; empty if none can be reached."""
        for move, name in _MOVES.items():
            if self._beside(self.at, move) in targets:
                return name
        return self.toward(targets, "noop")

    def spots(self, *kinds: str) -> set[Cell]:
        """Return the free cells near which there is one of each of these kinds of ground."""
        around = [
            {(x + dx, y + dy) for x, y in self.ground(kind) for dx in (-1, 0, 1) for dy in (-1, 0, 1)} for kind in kinds
        ]
        return {cell for cell in set.intersection(*around) if self.is_free(cell, self.player.walkable[:3])}

    def tool(self, name: str) -> Iterator[str]:
        """Yield what brings a tool nearer: materials, a table, for iron a furnace, and making it."""
        rules = package().constants
        uses, near = rules.make[name]["uses"], rules.make[name]["nearby"]
        table, furnace = rules.place["table"]["uses"]["wood"], rules.place["furnace"]["uses"]["stone"]
        must_build = self.distance(self.ground("table")) > _FAR
        must_heat = len(near) > 1 and self.distance(self.spots(*near)) > _FAR and not self.is_near(*near)
        if self.has["wood"] < uses["wood"] + (table if must_build else 0):
            yield self.toward(self.ground("tree"), "do")
        for kind in ("stone", "coal", "iron"):
            if self.has[kind] < uses.get(kind, 0) + (furnace if must_heat and kind == "stone" else 0):
                yield self.toward(self.ground(kind), "do")
        if must_build:
            yield self.before(("grass", "sand", "path"), "place_table")
        if must_heat and self.is_near("table"):
            yield self.before(("grass", "sand", "path"), "place_furnace")
        yield f"make_{name}" if self.is_near(*near) else self.onto(self.spots(*(near[:1] if must_heat else near)))


def _wants(me: _Player) -> Iterator[str]:
    """Yield actions in the order of their importance; empty ones are impossible."""
    has, reached = me.has, me.reached
    if me.distance(beside := me.things("Zombie", "Skeleton")) == 1:
        yield me.toward(beside, "do")
    if has["drink"] <= 4:
        yield me.toward(me.ground("water"), "do")
    if has["food"] <= 4:
        yield me.toward(me.things("Cow"), "do")
    limit = 9 if "wake_up" not in reached and "make_stone_pickaxe" in reached else 4
    if has["energy"] < limit and me.distance(beside) > 7:
        yield "sleep"
    yield from _achievements(me)
    yield "noop"


def _achievements(me: _Player) -> Iterator[str]:
    """Yield what brings the next achievement nearer, in the order in which they become possible."""
    has = me.has
    plans: dict[str, Callable[[], Iterator[str]]] = {
        "collect_sapling": lambda: iter([me.before(("grass",), "do")]),
        "place_plant": lambda: iter([me.before(("grass",), "place_plant")] if has["sapling"] else []),
        "collect_wood": lambda: iter([me.toward(me.ground("tree"), "do")]),
        "place_table": lambda: me.tool("wood_pickaxe"),
        "make_wood_pickaxe": lambda: me.tool("wood_pickaxe"),
        "make_wood_sword": lambda: me.tool("wood_sword"),
        "collect_drink": lambda: iter([me.toward(me.ground("water"), "do")]),
        "eat_cow": lambda: iter([me.toward(me.things("Cow"), "do")]),
        "collect_stone": lambda: iter([me.toward(me.ground("stone"), "do")]),
        "place_stone": lambda: iter([me.before(("grass", "sand", "path"), "place_stone")] if has["stone"] else []),
        "make_stone_pickaxe": lambda: me.tool("stone_pickaxe"),
        "make_stone_sword": lambda: me.tool("stone_sword"),
        "collect_coal": lambda: iter([me.toward(me.ground("coal"), "do")]),
        "collect_iron": lambda: iter([me.toward(me.ground("iron"), "do")]),
        "make_iron_pickaxe": lambda: me.tool("iron_pickaxe"),
        "collect_diamond": lambda: iter([me.toward(me.ground("diamond"), "do")]),
        "make_iron_sword": lambda: me.tool("iron_sword"),
        "defeat_zombie": lambda: iter([me.toward(me.things("Zombie"), "do")]),
        "defeat_skeleton": lambda: iter([me.toward(me.things("Skeleton"), "do")]),
        "eat_plant": lambda: iter([me.toward(_ripe(me), "do")]),
    }
    for name, plan in plans.items():
        if name not in me.reached:
            yield from plan()


def _ripe(me: _Player) -> set[Cell]:
    return {(int(x.pos[0]), int(x.pos[1])) for x in me.world.objects if getattr(x, "ripe", False)}


def next_action(env: Any) -> str:
    """Return the action of the script.

    Args:
        env: The environment of the package.
    """
    if env._player.sleeping:
        return "noop"
    return next(action for action in _wants(_Player(env)) if action)
