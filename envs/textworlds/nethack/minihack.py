"""MiniHack (Samvelyan et al. 2021, arXiv 2109.13202) in words: tasks on one level of NetHack.

Levels, rules and the judge of success are those of the packages minihack and nle; texts and expert are turngym's.
"""

from __future__ import annotations

import functools
import hashlib
import math
from functools import partial
from typing import Annotated, Any

import numpy as np

from turngym.envs.core import MaxTurns, Outcome
from turngym.envs.settings import worded
from turngym.envs.textworlds.nethack import words
from turngym.envs.textworlds.nethack.engine import Game, open_task
from turngym.envs.textworlds.nethack.paths import STAIRS_DOWN, Plan
from turngym.envs.textworlds.nethack.play import Words
from turngym.envs.validation import refuse_task, require_running
from turngym.errors import ConfigError, ExpertLost
from turngym.options import between

_WALKS = ("ClosedDoor", "Corridor-R", "HideNSeek", "Labyrinth", "LockedDoor", "MazeWalk", "Room-")
"""Starts of the names of tasks that walking alone solves, doors opened or kicked in on the way."""
_KICKS = 5
"""Steps that a locked door counts for: the script needs 4.3 commands more than steps in the mean, at most 18."""
_MANY, _REPEATS = 32, 8
"""Levels that count as many; and draws without another one, for each that is known, after which these are all."""
_STAIRS = "Reach the staircase down."
_GOALS = {
    "Eat": "Eat the apple.",
    "Wield": "Wield the dagger.",
    "Wear": "Wear the robe.",
    "PutOn": "Put on the amulet.",
    "Zap": "Zap the wand.",
    "Read": "Read the scroll.",
    "Pray": "Pray on the altar.",
    "Sink": "Drink from the sink, standing on it.",
    "Freeze": "Make a bolt of cold bounce off a wall.",
    "Levitate": "Float in the air.",
    "WoD": "Kill the minotaur.",
    "Memento": "Kill the grid bug, and do not make a sound: a trap that squeaks loses the game.",
}
"""First word of a task without staircase -> its goal."""
_RULES = """You play a task of MiniHack on one level of NetHack. {goal}
Answer with {commands} a turn: {names}.
{hints}The map shows @ for you, . for floor, # for corridors, | and - for walls and open doors, + for closed doors, > \
for the staircase down, letters for creatures. You have {turns} turns{limit}."""
_HINTS = {
    "far": "far DIRECTION: walk until something is there; attack DIRECTION: hit what is there.\n",
    "kick": "open DIRECTION and kick DIRECTION: doors.\n",
    "eat": "Letters say which thing: eat d, wear e, zap f north.\n",
}


@functools.lru_cache(maxsize=256)
def own_limit(task: str) -> int:
    """Return the turns that the package allows for a task."""
    env = open_task(task)
    limit = int(env._max_episode_steps)
    env.close()
    return limit


@functools.lru_cache(maxsize=256)
def _has_many_levels(task: str) -> bool:
    """Return whether a task has many levels: not so once many more draws find no other."""
    game = Game(partial(open_task, task, is_mapped=True))
    found: dict[str, int] = {}
    seed = last = 0
    while len(found) < _MANY and seed - last <= _REPEATS * len(found) + _REPEATS:
        game.enter(seed)
        if found.setdefault(_level(game), seed) == seed:
            last = seed
        seed += 1
    game.close()
    return len(found) >= _MANY


def _level(game: Game) -> str:
    """Return a hash of the level of a game whose map is known."""
    return hashlib.sha256(np.ascontiguousarray(game.part("glyphs")).tobytes()).hexdigest()


def _player(game: Game) -> str:
    """Return a hash of the statistics and the inventory of the player, and of the messages."""
    said = "\n".join(game.said).encode()
    return hashlib.sha256(game.part("blstats").tobytes() + game.part("inv_strs").tobytes() + said).hexdigest()


class MiniHack(Words):
    """Reach the staircase of a level, or carry out another task of MiniHack.

    Success is the package's own, and the reward is 1 for it. The commands are those that the package allows for the
    task: for most navigation the eight directions. In the tasks that walking solves (``Room``, ``MazeWalk``,
    ``Corridor-R``, ``Labyrinth``, ``HideNSeek``, ``ClosedDoor``, ``LockedDoor``), an episode is truncated when it has
    spent ``slack`` commands for each step of the shortest path, on which a locked door counts as 5 more, because in the
    package's own limit wandering solves the small ones.

    An instance is the map of its level, with the places of the player, of traps and of things, and what the player is
    and has at the start. Splits share no level, except in the 32 of 118 tasks that have at most 28 levels, many of them
    only one, such as ``Room-5x5``: there the instances of the splits differ in the player and in the dice alone. The
    eight tasks of ``Sokoban`` are one puzzle each, whose levels differ in creatures and things alone. The progress is
    the share of the shortest path that is behind the player, as far as the staircase is on the map that the player
    knows. Snapshots are restored by replay.

    Left out are the tasks whose levels follow from no seed of the game: those made of MiniGrid's levels (``MultiRoom``,
    ``LavaCrossing``, ``SimpleCrossing``) and of files that are downloaded (``Boxoban``); and ``ExploreMaze``, which has
    rewards but no success.

    The expert, for the tasks that walking solves, takes the shortest path on the map of the whole level, where there
    is one: about one level in six of ``Corridor-R`` has secret parts, which it does not search for, and which have
    neither a limit by ``slack`` nor a progress.
    """

    class Options(Words.Options):
        task: str = "MazeWalk-15x15"
        """A task of MiniHack, such as ``"Room-Random-5x5"``, ``"MazeWalk-9x9"``, ``"Corridor-R3"`` or
        ``"Quest-Easy"``."""
        slack: Annotated[float, between(0, 100)] = 3.0
        """Commands for each step of the shortest path, after which the episode is truncated; 0 for the turn limit
        alone."""
        max_turns: MaxTurns | None = None  # type: ignore[assignment]  # as turn_limit says
        """Turns after which the episode is truncated; None for the package's own limit of the task."""

        @property
        def turn_limit(self) -> int:
            return self.max_turns or own_limit(self.task)

    options: Options

    file_options = worded("task")

    def setup(self) -> None:
        game = Game(partial(open_task, self.options.task))
        has_stairs = game.env.reward_manager is None
        self._is_walk = self.options.task.startswith(_WALKS)
        self.take(game)
        self._map = Game(partial(open_task, self.options.task, is_mapped=True))
        several: int = self.options.commands
        names = [each for each in words.VERBS if each in self._allowed]
        self.instructions = _RULES.format(
            goal=_STAIRS if has_stairs else _GOALS[self.options.task.partition("-")[0]],
            commands="one command" if several == 1 else f"up to {several} commands, separated by commas,",
            names=", ".join([*words.DIRECTIONS, *names]),
            hints="".join(text for name, text in _HINTS.items() if name in self._allowed),
            turns=self.max_turns,
            limit=", and fewer where the staircase is near" * bool(self.options.slack and self._is_walk),
        )

    def begin(self, task: str | int | None) -> str:
        refuse_task(self.env_id, task)
        is_by_level = _has_many_levels(self.options.task)
        seed = self.draw(
            lambda generator: int(generator.integers(2**31)), self._level_of if is_by_level else self.name_of
        )
        self.instance = self.name_of(seed)
        return self.enter(seed)

    def name_of(self, seed: int) -> str:
        return f"{self._level_of(seed)} {_player(self._map)}"

    def _level_of(self, seed: int) -> str:
        self._map.enter(seed)
        return f"MiniHack {self.options.task} {_level(self._map)}"

    def enter(self, seed: int) -> str:
        text = super().enter(seed)
        self._map.enter(seed)
        self._known = self._map.part("glyphs").copy()
        path = self._path(self._known) if self._is_walk else None
        self._shortest = len(path) if path else 0
        kicks = _KICKS * (bool(path) and self.options.task.startswith("LockedDoor"))
        self._limit = math.ceil(self.options.slack * (self._shortest + kicks))
        return f"{text}\n{self._left()}" if self._limit else text

    def _left(self) -> str:
        return f"You may use {max(0, self._limit - self._spent)} more commands."

    def _path(self, known: Any) -> list[str] | None:
        """Return a path to the staircase, on what the player knows and a map that completes it."""
        plan = Plan(self._glyphs, known)
        return plan.path(self.here, plan.cells(STAIRS_DOWN))

    def judge(self, text: str) -> Outcome[str]:
        is_solved, is_over = self._game.is_solved, self._game.is_over
        is_cut = bool(self._limit) and self._spent >= self._limit
        if self._limit and not is_over:
            text = f"{text}\n{self._left()}"
        return Outcome(text, float(is_solved), is_over, is_solved, truncated=is_cut)

    def is_over(self) -> bool:
        return self._game.is_over or (bool(self._limit) and self._spent >= self._limit)

    def progress(self) -> float:
        if self._game.is_solved:
            return 1.0
        if not self._shortest:
            return float("nan")
        path = self._path(None)  # to the staircase, if it is on the map that the player knows
        return 0.0 if path is None else max(0.0, 1 - len(path) / self._shortest)

    def expert_action(self) -> str:
        """Return the next step of the shortest path on the map of the whole level.

        Raises:
            ConfigError: Walking alone does not solve the task, or no episode is under way.
            ExpertLost: No path of known ground leads there.
        """
        require_running(self)
        if not self._is_walk:
            raise ConfigError(
                f"{self.env_id} has no expert for {self.options.task}: only for tasks named {', '.join(_WALKS)}..."
            )
        path = self._path(self._known)
        if not path:
            raise ExpertLost(f"no path of known ground leads to the staircase of this {self.options.task}.")
        is_locked = any("locked" in each for each in self._game.said) and "kick" in self._allowed
        return f"kick {path[0]}" if is_locked else path[0]

    def close(self) -> None:
        self._game.close()
        self._map.close()
        super().close()
