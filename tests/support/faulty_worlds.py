"""Environments with one planted fault each: in where their randomness comes from, and in what they leave behind."""

import datetime
import os
import random
import subprocess
import tempfile
import threading
import time
from typing import Any

import numpy as np
from sound_env import Sound

from turngym.types import JSONValue

SHARED = np.random.default_rng(5)
WORDS = [f"word{number}" for number in range(40)]


class UsesRandom(Sound):
    def _noise(self) -> int:
        return random.randrange(10**6)


class SeedsNumpy(Sound):
    def _noise(self) -> int:
        np.random.seed(0)
        return 0


class UsesTheModules(Sound):
    def _noise(self) -> int:
        return int(SHARED.integers(10**6))


class UsesTheClasses(Sound):
    dice = random.Random(3)

    def _noise(self) -> int:
        return self.dice.randrange(10**6)


class ShowsTheTime(Sound):
    def begin(self, task: str | int | None) -> str:
        return f"{super().begin(task)} at {time.time()}"


class ShowsTheDate(Sound):
    def begin(self, task: str | int | None) -> str:
        return f"{super().begin(task)} on {datetime.date.today()}"


class SharesAList(Sound):
    turns: list[int] = []  # noqa: RUF012

    def begin(self, task: str | int | None) -> str:
        self.turns.clear()
        return super().begin(task)

    def _noise(self) -> int:
        self.turns.append(0)
        return len(self.turns)


class CountsCopies(Sound):
    played = 0

    def begin(self, task: str | int | None) -> str:
        CountsCopies.played += 1
        return f"{super().begin(task)}, episode {CountsCopies.played}"


class DrawsEntropy(Sound):
    def _noise(self) -> int:
        return int.from_bytes(os.urandom(4), "big")


class SeedsNothing(Sound):
    def begin(self, task: str | int | None) -> str:
        self.own = np.random.default_rng()
        return super().begin(task)

    def _noise(self) -> int:
        return int(self.own.integers(10**6))


class IgnoresTheSeed(Sound):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(seed=1, options=options)


class AlwaysTheSameWithoutASeed(Sound):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return super().reset(seed=4 if seed is None else seed, options=options)


class ObeysTheFirstSeed(Sound):
    """Seeds a generator of its own once, from the first seed."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        if "first" in vars(self):
            return super().reset(options=options)
        self.first = seed
        return super().reset(seed=seed, options=options)


class RemembersTheLastEpisode(Sound):
    episodes = 0

    def begin(self, task: str | int | None) -> str:
        self.episodes += 1
        return super().begin(task) + " again" * (self.episodes > 1)


class KeepsItsNotes(Sound):
    def begin(self, task: str | int | None) -> str:
        if "notes" not in vars(self):
            self.notes: list[str] = []
        return super().begin(task)

    def apply_action(self, action: str) -> Any:
        outcome = super().apply_action(action)
        self.notes.append(outcome.observation)
        return outcome._replace(observation=f"{outcome.observation}, note {len(self.notes)}")


class ListsASet(Sound):
    def begin(self, task: str | int | None) -> str:
        return f"{super().begin(task)}: {' '.join(set(WORDS))}"


class ShowsItsProcess(Sound):
    def begin(self, task: str | int | None) -> str:
        return f"{super().begin(task)}, process {os.getpid()}"


class ReadsAVariable(Sound):
    def begin(self, task: str | int | None) -> str:
        return f"{super().begin(task)}, level {os.environ.get('TOY_LEVEL', '1')}"


class SavesAPlaceInATable(Sound):
    """Keeps states in a table of this process, and saves the place in it."""

    table: list[Any] = []  # noqa: RUF012

    def save_state(self) -> JSONValue:
        state = super().save_state()
        if state not in self.table:
            self.table.append(state)
        return self.table.index(state)

    def load_state(self, state: JSONValue) -> None:
        super().load_state(self.table[state])


class LeavesTemporaryFiles(Sound):
    def begin(self, task: str | int | None) -> str:
        number, self.path = tempfile.mkstemp(prefix="cave")
        os.close(number)
        return super().begin(task)


class LeavesFiles(Sound):
    kept: list[int] = []  # noqa: RUF012

    def begin(self, task: str | int | None) -> str:
        self.kept.append(os.open(os.devnull, os.O_RDONLY))
        return super().begin(task)


class LeavesChildren(Sound):
    kept: list[Any] = []  # noqa: RUF012

    def begin(self, task: str | int | None) -> str:
        if "child" not in vars(self):
            self.child = subprocess.Popen(["sleep", "600"])
            self.kept.append(self.child)
        return super().begin(task)


class LeavesThreads(Sound):
    kept: list[Any] = []  # noqa: RUF012
    gate = threading.Event()

    def begin(self, task: str | int | None) -> str:
        if "thread" not in vars(self):
            self.thread = threading.Thread(target=self.gate.wait, name="the cave's own", daemon=True)
            self.thread.start()
            self.kept.append(self.thread)
        return super().begin(task)


def tidy() -> None:
    """Undo what these environments have left."""
    while LeavesFiles.kept:
        os.close(LeavesFiles.kept.pop())
    while LeavesChildren.kept:
        child = LeavesChildren.kept.pop()
        child.kill()
        child.wait()
    LeavesThreads.gate.set()
    while LeavesThreads.kept:
        LeavesThreads.kept.pop().join()
    LeavesThreads.gate.clear()


HERE: list[tuple[Any, str, str]] = [
    (UsesRandom, "no-global-random", "the shared generator random has moved"),
    (SeedsNumpy, "no-global-random", "the shared generator np.random has moved"),
    (UsesTheModules, "no-global-random", "the shared generator faulty_worlds.SHARED has moved"),
    (UsesTheClasses, "no-global-random", "the shared generator UsesTheClasses.dice has moved"),
    (SharesAList, "copies-isolated", "with another copy playing in between, the episode differs"),
    (DrawsEntropy, "seed-repeats", "two copies differ"),
    (SeedsNothing, "seed-repeats", "two copies differ"),
    (IgnoresTheSeed, "seed-varies", "12 seeds, from 0 on, all lead to the same task"),
    (AlwaysTheSameWithoutASeed, "seed-varies", "12 resets without a seed all lead to the same task"),
    (ObeysTheFirstSeed, "seed-binds", "after a reset with another seed, the seed leads to another task"),
    (RemembersTheLastEpisode, "reset-forgets", "after a whole other episode, the episode differs"),
    (KeepsItsNotes, "reset-forgets", "after a whole other episode, the episode differs"),
    (LeavesFiles, "no-leaked-files", "open files behind: /dev/null"),
    (LeavesChildren, "no-leaked-processes", "3 copies that were closed left 3 processes behind: sleep ("),
    (LeavesThreads, "no-leaked-threads", "3 copies that were closed left 3 threads behind: the cave's own"),
]
"""The class, the one rule that it breaks, and what is said of it."""

ELSEWHERE: list[tuple[Any, str, str]] = [
    (ShowsTheTime, "no-clock", "two copies differ"),
    (ShowsTheDate, "no-clock", "another process differs"),
    (CountsCopies, "copies-isolated", "two copies differ"),
    (ListsASet, "no-hash-order", "another process differs"),
    (ShowsItsProcess, "same-in-other-process", "another process differs"),
    (ReadsAVariable, "no-environment-variables", "with another value of TOY_LEVEL the episode differs"),
    (SavesAPlaceInATable, "snapshot-elsewhere", "in another process, the branch from turn 4 differs"),
    (LeavesTemporaryFiles, "no-temporary-files", "temporary files behind: cave"),
]
"""The same, for faults that only other processes show."""
