"""Games of the package nle that repeat, played by keys; every call leaves the game at its prompt for a command."""

from __future__ import annotations

import functools
import importlib
import os
import re
import warnings
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from turngym.envs.adapters.borrowed import import_package
from turngym.errors import UnknownName, nearest

_ESCAPE, _SPACE, _RETURN = 27, 32, 13
_MOST_KEYS = 300
"""Most keys that end a command: pages of text, and questions without an answer."""
_ENDLESS = 10**9
_LEFT_OUT = ("minihack.envs.minigrid", "minihack.envs.boxohack", "minihack.envs.exploremaze")
"""Modules whose levels follow from no seed, or that have rewards and no success."""
_MENU = re.compile(r"\((?:end|\d+ of \d+)\)")


class Game:
    """A game of NetHack. A closed one can be started again; a fork of the process goes on in a game of its own.

    Args:
        make: Opens an environment of the package, as :func:`played` does.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._moves: list[tuple[tuple[int, ...], str]] = []
        self._open()

    def _open(self) -> None:
        self.env = env = self._make()
        self._owner = os.getpid()
        self._keys: list[str] = env._observation_keys
        self.keys = frozenset(map(int, env.actions))
        env._max_episode_steps = _ENDLESS
        env.actions = tuple(range(256))
        env._allow_all_modes = env._allow_all_yn_questions = True
        env.read = self._note
        _opened().add(env)

    @property
    def is_closed(self) -> bool:
        """Whether it was closed, and not started again."""
        return self.env is None

    def enter(self, seed: int) -> None:
        """Start the game of a seed."""
        if self.is_closed:
            self._open()
        elif self._owner != os.getpid():
            _LEFT.append(self.env)
            self._open()
        self._seed, self._moves = seed, []
        core, disp, levels = (int(each) for each in np.random.SeedSequence(seed).generate_state(3))
        self.env.seed(core, disp, reseed=False, lgen=levels)
        self.is_over = self.is_solved = False
        self.said: list[str] = []
        self.env.reset()
        self._note()
        self._end([])

    def part(self, name: str) -> Any:
        """Return an array of the package's last observation, which the next key overwrites."""
        return self.env.last_observation[self._keys.index(name)]

    def act(self, keys: tuple[int, ...], answers: str = "") -> list[str]:
        """Press the keys of a command, answer its questions, and return what the game says."""
        if self._owner != os.getpid():
            self._play_again()
        self._moves.append((keys, answers))
        self.said = []
        for key in keys:
            self._press(key)
        self._end(list(answers))
        return self.said

    def _play_again(self) -> None:
        """Play the game so far again, in a fork: the files of levels are those of the process that it left."""
        moves = self._moves
        self.enter(self._seed)
        for keys, answers in moves:
            self.act(keys, answers)

    def _press(self, key: int) -> None:
        if self.is_over:
            return
        _, reward, done, _, info = self.env.step(key)
        has_ended = info["end_status"].name == "TASK_SUCCESSFUL"
        self.is_solved = has_ended and reward > 0  # Memento's wrong end has the same status
        self.is_over = bool(done) or has_ended
        self._note()

    def _note(self) -> None:
        """Keep what the game says, which the next key clears."""
        text = " ".join(bytes(self.part("message")).split(b"\0")[0].decode("latin-1").split())
        if text and (not self.said or self.said[-1] != text):
            self.said.append(text)

    def _end(self, answers: list[str]) -> None:
        """Answer questions, turn pages, and leave what has no answer."""
        has_left = False
        for _ in range(_MOST_KEYS):
            if self.is_over:
                return
            asks, asks_text, waits = (bool(each) for each in self.part("internal")[1:4])
            if asks_text:
                self._press(_ESCAPE)
            elif waits:
                self._turn(answers)
            elif asks:
                self._press(ord(answers.pop(0)) if answers else _ESCAPE)
            elif not has_left:
                self._press(_ESCAPE)  # a choice of a place does not show in these numbers
                has_left, answers = True, []
            else:
                return

    def _turn(self, answers: list[str]) -> None:
        """Read a page, choose from it if there is an answer, and turn it."""
        lines = [bytes(row).decode("latin-1").rstrip() for row in self.part("tty_chars")]
        ends = [(row, found.start()) for row, line in enumerate(lines) if (found := _MENU.search(line))]
        mores = [(row, line.find("--More--")) for row, line in enumerate(lines) if "--More--" in line]
        for row, column in (ends or mores)[-1:]:
            left = column if ends or row > 1 else 0
            page = [line[left:].strip() for line in lines[:row]] if ends or row > 1 else []
            self.said.extend(each for each in page if each and each not in self.said)
        if ends and answers:
            self._press(ord(answers.pop(0)))
            if self.part("internal")[3] and not self.is_over:
                self._press(_RETURN)
        else:
            self._press(_SPACE)

    def close(self) -> None:
        """End the game; closing it twice is harmless."""
        if self.env is None:
            return
        if self._owner == os.getpid():
            _opened().discard(self.env)
            self.env.close()
        else:
            _LEFT.append(self.env)
        self.env = None


_LEFT: list[Any] = []
"""Environments of the process that this one is a fork of; to collect one would end its game."""


@functools.cache
def _opened() -> weakref.WeakSet[Any]:
    """Return the environments of this process; what a fork of it ends or collects keeps their files."""
    envs: weakref.WeakSet[Any] = weakref.WeakSet()

    def leave() -> None:
        for env in envs:
            env._close_nethack.detach()
            if env.nethack._tempdir is not None:
                env.nethack._finalizer.detach()
                env.nethack._tempdir._finalizer.detach()

    os.register_at_fork(after_in_child=leave)
    return envs


@functools.lru_cache(maxsize=1)
def _package() -> Any:
    """Import the packages.

    Raises:
        MissingExtra: One is not installed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pkg_resources, which is deprecated
        import_package("minihack", "turngym/MiniHack-v0", "minihack", "nethack")
        return importlib.import_module("minihack.envs")


@functools.lru_cache(maxsize=1)
def tasks() -> Mapping[str, tuple[str, Mapping[str, Any]]]:
    """Return task of MiniHack, such as ``"Room-5x5"`` -> entry point and options.

    Raises:
        MissingExtra: A package is not installed.
    """
    import gymnasium

    _package()
    found = {}
    for env_id, spec in sorted(gymnasium.registry.items()):
        name = re.fullmatch(r"MiniHack-(.*)-v\d+", env_id)
        entry = str(spec.entry_point)
        if name and "Custom" not in name[1] and not entry.startswith(_LEFT_OUT):
            found[name[1]] = (entry, dict(spec.kwargs))
    return found


def _mapped(text: str) -> str:
    """Return the description of a level whose map is known from the start."""
    if re.search(r"^FLAGS:", text, re.MULTILINE):
        return re.sub(r"^FLAGS:[ \t]*", "FLAGS:premapped,", text, count=1, flags=re.MULTILINE)
    return re.sub(r"^((?:MAZE|LEVEL):.*\n)", r"\1FLAGS:premapped\n", text, count=1, flags=re.MULTILINE)


def played(kind: Any, is_mapped: bool = False, **options: Any) -> Any:
    """Open an environment of a class of the package, which keeps no files and stays as it is at the end of a game.

    Args:
        kind: The class.
        is_mapped: Whether the player knows the map of the level; for tasks of MiniHack.
        options: Further options of the class.
    """

    class Played(kind):  # type: ignore[misc]
        def update(self, des_file: str) -> None:
            if is_mapped and des_file.endswith(".des"):
                folder = importlib.import_module("minihack.base").PATH_DAT_DIR
                with open(os.path.join(folder, des_file), encoding="utf-8") as file:
                    des_file = file.read()
            super().update(_mapped(des_file) if is_mapped else des_file)

        def _perform_known_steps(self, observation: Any, done: Any, exceptions: bool = True) -> Any:
            self.read()  # what ended the game, before its page is turned
            return super()._perform_known_steps(observation, done, exceptions)

        def _quit_game(self, observation: Any, done: Any) -> None:
            pass

        def _get_observation(self, observation: Any) -> dict[str, Any]:
            return {}

    return Played(savedir=None, fix_moon_phase=True, **options)


def open_task(task: str, is_mapped: bool = False) -> Any:
    """Open the environment of a task of MiniHack.

    Raises:
        MissingExtra: A package is not installed.
        UnknownName: There is no such task.
    """
    if task not in tasks():
        raise UnknownName(f"MiniHack has no task {task!r}. {nearest(task, tasks())}")
    entry, options = tasks()[task]
    module, _, name = entry.partition(":")
    return played(getattr(importlib.import_module(module), name), is_mapped, **options)


def open_game(character: str) -> Any:
    """Open the environment of the whole game, for a character such as ``"mon-hum-neu-mal"``, ``"@"`` for a drawn one.

    Raises:
        MissingExtra: The package is not installed.
    """
    import_package("nle", "turngym/NetHack-v0", "nle", "nethack")
    keys = ("glyphs", "chars", "blstats", "message", "screen_descriptions", "tty_chars")
    held = ("inv_letters", "inv_strs", "inv_oclasses")
    kind = importlib.import_module("nle.env.base").NLE
    return played(kind, character=character, observation_keys=(*keys, *held))
