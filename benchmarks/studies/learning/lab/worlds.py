"""Worlds of the laboratory: finite Markov decision processes that many episodes step through at once.

A state is a number; the policy sees an observation of it, and methods that compare states see an anchor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from turngym.seeding import stream

Integers: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.float64]
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))


class Step(NamedTuple):
    """What became of the actions of several episodes."""

    state: Integers
    reward: Numbers
    ended: NDArray[np.bool_]
    solved: NDArray[np.bool_]
    valid: NDArray[np.bool_]


class World(ABC):
    """A finite Markov decision process with a turn limit."""

    @property
    @abstractmethod
    def num_states(self) -> int:
        """How many states there are."""

    @property
    @abstractmethod
    def num_actions(self) -> int:
        """How many actions there are; larger numbers of a step are no action, and invalid."""

    @property
    @abstractmethod
    def max_turns(self) -> int:
        """Turns after which an episode is cut off."""

    @abstractmethod
    def start(self, seed: int) -> int:
        """Return the first state of an instance."""

    @abstractmethod
    def step(self, state: Integers, action: Integers, draw: Numbers) -> Step:
        """Act in several states.

        Args:
            state: The states.
            action: What is done; -1 is no action.
            draw: A uniform random number for each.
        """

    @property
    def num_observations(self) -> int:
        """How many observations there are."""
        return self.num_states

    def observe(self, state: Integers) -> Integers:
        """Return what the policy sees of states."""
        return state

    def anchor(self, state: Integers) -> Integers:
        """Return what methods that compare states see of them; the policy may know more, as from its history."""
        return state


def distances(cells: set[tuple[int, int]], goal: tuple[int, int]) -> dict[tuple[int, int], int]:
    """Return the steps from each cell to the goal, for those that can reach it."""
    found, waiting = {goal: 0}, deque([goal])
    while waiting:
        row, column = waiting.popleft()
        for down, right in MOVES:
            cell = (row + down, column + right)
            if cell in cells and cell not in found:
                found[cell] = found[row, column] + 1
                waiting.append(cell)
    return found


@dataclass(frozen=True)
class Maze(World):
    """A maze with one goal; an instance is a first cell at least half as far from the goal as the farthest one.

    A step into a wall stays. The reward is 1 at the goal, and ``dense`` adds the progress towards it.

    Args:
        size: Cells of each side.
        walls: Share of inner cells that are walls, as far as the goal stays in reach.
        layout: Seed of the walls; all runs of an experiment have the same ones.
        limit: Turns of an episode.
        slip: Probability that a random move is made instead.
        dense: Reward for every step nearer to the goal, taken back for one away from it, as a share of the distance.
        walls_invalid: Whether a step into a wall counts as an invalid action.
        extra_actions: Further actions that are never legal.
        nearest: Least distance of a first cell, as a share of the largest.
    """

    size: int = 8
    walls: float = 0.25
    layout: int = 0
    limit: int = 40
    slip: float = 0.0
    dense: float = 0.0
    walls_invalid: bool = False
    extra_actions: int = 0
    nearest: float = 0.5

    @cached_property
    def _plan(self) -> tuple[list[tuple[int, int]], dict[tuple[int, int], int]]:
        """The cells in order, and the distance of each."""
        goal, rng = (self.size - 1, self.size - 1), stream("lab-maze", self.layout, self.size)
        every = {(row, column) for row in range(self.size) for column in range(self.size)}
        cells = set(every)
        for row, column in rng.permutation(sorted(every - {goal})).tolist():
            if len(cells) <= (1 - self.walls) * len(every):
                break
            less = cells - {(row, column)}
            if len(distances(less, goal)) == len(less):
                cells = less
        found = distances(cells, goal)
        return sorted(found), found

    @cached_property
    def _next(self) -> Integers:
        """The state after each move from each state, ``[state, move]``."""
        cells, _ = self._plan
        place = {cell: number for number, cell in enumerate(cells)}
        rows = [
            [place.get((row + down, column + right), place[row, column]) for down, right in MOVES]
            for row, column in cells
        ]
        return np.array(rows, dtype=np.int64)

    @cached_property
    def distance(self) -> Integers:
        """Steps from each state to the goal."""
        cells, found = self._plan
        return np.array([found[cell] for cell in cells], dtype=np.int64)

    def distances_after(self) -> Integers:
        """Return the steps to the goal after each move from each state, ``[state, move]``."""
        return self.distance[self._next]

    @property
    def num_states(self) -> int:
        return len(self._plan[0])

    @property
    def num_actions(self) -> int:
        return len(MOVES) + self.extra_actions

    @property
    def max_turns(self) -> int:
        return self.limit

    @cached_property
    def _starts(self) -> Integers:
        return np.flatnonzero(self.distance >= self.nearest * self.distance.max())

    def start(self, seed: int) -> int:
        return int(stream("lab-start", seed).choice(self._starts))

    def step(self, state: Integers, action: Integers, draw: Numbers) -> Step:
        legal = (action >= 0) & (action < len(MOVES))
        slips = legal & (draw < self.slip)
        random = np.minimum(draw / max(self.slip, 1e-9) * len(MOVES), len(MOVES) - 1).astype(np.int64)
        move = np.where(slips, random, np.where(legal, action, 0))
        after = np.where(legal, self._next[state, move], state)
        ended = self.distance[after] == 0
        progress = self.distance[state] - self.distance[after]
        reward = ended + self.dense * progress / self.distance.max()
        valid = legal & ((self._next[state, np.where(legal, action, 0)] != state) | (not self.walls_invalid))
        return Step(after, reward, ended, ended, valid)


@dataclass(frozen=True)
class AlikeMaze(Maze):
    """A maze whose cells look alike to methods that compare states, in sets of ``alike``; the policy tells them apart.

    That is how a current observation looks to an agent that also remembers earlier ones.

    Args:
        alike: Cells of each look.
    """

    alike: int = 2

    @cached_property
    def _look(self) -> Integers:
        return stream("lab-looks", self.layout, self.size).permutation(self.num_states) // self.alike

    def anchor(self, state: Integers) -> Integers:
        return self._look[state]


@dataclass(frozen=True)
class Combination(World):
    """A lock: ``length`` right actions in a row open it, and a wrong one sets it back.

    All first actions but a few lead nowhere, so success is rare at first. An instance is one of ``locks`` locks.

    Args:
        length: Right actions that are needed.
        locks: Different locks.
        actions: Actions in every state.
        limit: Turns of an episode.
        slip: Probability that a right action does not count.
        back: Steps that a wrong action sets back; 0 for all.
    """

    length: int = 6
    locks: int = 4
    actions: int = 4
    limit: int = 12
    slip: float = 0.0
    back: int = 0

    @cached_property
    def _right(self) -> Integers:
        return stream("lab-lock", self.length).integers(self.actions, size=self.locks * self.length)

    @property
    def num_states(self) -> int:
        return self.locks * self.length + 1

    @property
    def num_actions(self) -> int:
        return self.actions

    @property
    def max_turns(self) -> int:
        return self.limit

    def start(self, seed: int) -> int:
        return int(stream("lab-start", seed).integers(self.locks)) * self.length

    def step(self, state: Integers, action: Integers, draw: Numbers) -> Step:
        opened = self.locks * self.length
        depth = state % self.length
        right = (self._right[np.minimum(state, opened - 1)] == action) & (draw >= self.slip)
        behind = state - (depth if self.back == 0 else np.minimum(depth, self.back))
        ended = right & (depth == self.length - 1)
        after = np.where(ended, opened, np.where(right, state + 1, behind))
        return Step(after, ended.astype(np.float64), ended, ended, action >= 0)


@dataclass(frozen=True)
class NoisyMaze(Maze):
    """A maze whose observations have an irrelevant symbol that changes at every turn.

    Policy and critic must learn every symbol's contexts apart, so a critic sees each of them rarely.

    Args:
        symbols: How many there are.
    """

    symbols: int = 8

    @property
    def num_states(self) -> int:
        return super().num_states * self.symbols

    def start(self, seed: int) -> int:
        return super().start(seed) * self.symbols + seed % self.symbols

    def step(self, state: Integers, action: Integers, draw: Numbers) -> Step:
        place, symbol = np.divmod(state, self.symbols)
        found = super().step(place, action, draw)
        shown = (symbol + 1 + np.floor(draw * 1e6).astype(np.int64)) % self.symbols
        return found._replace(state=found.state * self.symbols + shown)
