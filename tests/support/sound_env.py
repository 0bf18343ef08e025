"""An environment that keeps every promise, and neighbours of it that do odd things without breaking one."""

import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

import numpy as np

from turngym.envs.core import Outcome, TextEnv
from turngym.types import JSONValue

BOXES = 64
OPEN = re.compile(r"open ([0-9]{1,2})")


class Sound(TextEnv[str]):
    """A coin lies in one of many boxes; a wrong box tells the direction, and a wind blows at random."""

    instructions = "Open boxes until you find the coin. Answer with: open N"

    def __init__(
        self, *, max_turns: int = 9, split: str = "train", env_id: str = "", render_mode: str | None = None
    ) -> None:
        super().__init__(max_turns=max_turns, split=split, env_id=env_id, render_mode=render_mode)

    def begin(self, task: str | int | None) -> str:
        self.place = self.draw(lambda generator: int(generator.integers(BOXES)), lambda place: f"coin in {place}")
        self.low, self.high = 0, BOXES - 1
        return f"{BOXES} boxes"

    def _noise(self) -> int:
        return int(self.np_random.integers(100))

    def apply_action(self, action: str) -> Outcome[str]:
        match = OPEN.fullmatch(action)
        box = int(match[1]) if match else BOXES
        if box >= BOXES:
            return Outcome(f"No such box, wind {self._noise()}", action_is_valid=False)
        if box == self.place:
            self.low = self.high = box
            return Outcome("the coin", 1.0, terminated=True, success=True)
        self.low, self.high = (max(self.low, box + 1), self.high) if box < self.place else (self.low, box - 1)
        self.high = max(self.low, min(self.high, BOXES - 1))
        return Outcome(f"{'right' if box < self.place else 'left'}, wind {self._noise()}")

    def anchor(self) -> str:
        return f"{self.low} to {self.high}"

    def legal_actions(self) -> tuple[str, ...]:
        return tuple(f"open {box}" for box in range(BOXES))

    def progress(self) -> float:
        return 1 - (self.high - self.low) / BOXES

    def save_state(self) -> JSONValue:
        return [self.place, self.low, self.high]

    def load_state(self, state: JSONValue) -> None:
        self.place, self.low, self.high = state

    def resample_hidden(self) -> bool:
        if self.low == self.high:
            return False
        others = [place for place in range(self.low, self.high + 1) if place != self.place]
        self.place = others[int(self.np_random.integers(len(others)))]
        self.instance = f"coin in {self.place}"
        return True

    def expert_action(self) -> str:
        return f"open {(self.low + self.high) // 2}"


class SortsItsSet(Sound):
    """Holds a set and shows it in order."""

    def begin(self, task: str | int | None) -> str:
        return super().begin(task) + " of " + " ".join(sorted({"oak", "elm", "ash", "fir", "yew"}))


class TimesItself(Sound):
    """Measures how long it takes and shows nothing of it."""

    def begin(self, task: str | int | None) -> str:
        self.began = time.time()
        return super().begin(task)


class ReadsAVariableInVain(Sound):
    """Looks at an environment variable that changes nothing."""

    def begin(self, task: str | int | None) -> str:
        self.label = os.environ.get("TOY_LABEL", "")
        return super().begin(task)


class SavesItsGenerator(Sound):
    """Has a generator of its own, seeded from the task's and saved with the state."""

    def begin(self, task: str | int | None) -> str:
        text = super().begin(task)
        self.own = np.random.default_rng(int(self.np_random.integers(2**32)))
        return text

    def _noise(self) -> int:
        return int(self.own.integers(100))

    def save_state(self) -> JSONValue:
        return [super().save_state(), self.own.bit_generator.state]

    def load_state(self, state: JSONValue) -> None:
        super().load_state(state[0])
        self.own = np.random.default_rng()
        self.own.bit_generator.state = state[1]


class LeavesNothing(Sound):
    """Holds a process, a thread, a file and a folder, and lets go of all of them."""

    def begin(self, task: str | int | None) -> str:
        self.close()
        self.gate = threading.Event()
        self.thread = threading.Thread(target=self.gate.wait)
        self.thread.start()
        self.folder = tempfile.TemporaryDirectory()
        self.file = open(os.path.join(self.folder.name, "notes"), "w")  # noqa: SIM115
        self.child = subprocess.Popen(["sleep", "600"])
        return super().begin(task)

    def close(self) -> None:
        if "child" in vars(self):
            self.gate.set()
            self.thread.join()
            self.file.close()
            self.folder.cleanup()
            self.child.kill()
            self.child.wait()
            del self.child


class KeepsOneServer(Sound):
    """Starts one process that all copies share, and keeps it."""

    server: subprocess.Popen[bytes] | None = None

    def begin(self, task: str | int | None) -> str:
        if KeepsOneServer.server is None:
            program = "import sys; sys.stdin.read()"  # ends with the process that started it
            KeepsOneServer.server = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)
        return super().begin(task)


class DrawsAndPutsBack(Sound):
    """Uses the global generator and leaves it as it was."""

    def begin(self, task: str | int | None) -> str:
        state = random.getstate()
        random.seed(0)
        random.random()
        random.setstate(state)
        return super().begin(task)


class CountsStrikes(Sound):
    """Tells in the anchor how many answers were no action: no counter of turns."""

    def begin(self, task: str | int | None) -> str:
        self.strikes = 0
        return super().begin(task)

    def apply_action(self, action: str) -> Outcome[str]:
        outcome = super().apply_action(action)
        self.strikes += not outcome.action_is_valid
        return outcome

    def anchor(self) -> str:
        return f"{super().anchor()}, strike {self.strikes}"

    def save_state(self) -> JSONValue:
        return [super().save_state(), self.strikes]

    def load_state(self, state: JSONValue) -> None:
        super().load_state(state[0])
        self.strikes = state[1]


class OneTask(Sound):
    """Has one single task, and says so."""

    def __init__(self, *, split: str = "train", env_id: str = "", render_mode: str | None = None) -> None:
        super().__init__(split=split, env_id=env_id, render_mode=render_mode)
        self.finite_instances = 1

    def begin(self, task: str | int | None) -> str:
        text = super().begin(task)
        self.place, self.instance = 5, "coin in 5"
        return text

    def resample_hidden(self) -> bool:
        return False

    def legal_actions(self) -> tuple[str, ...]:
        return ()


class Optional(Sound):
    """Has an option, which its name tells."""

    def __init__(
        self, prize: str = "coin", *, split: str = "train", env_id: str = "", render_mode: str | None = None
    ) -> None:
        super().__init__(split=split, env_id=env_id, render_mode=render_mode)
        if prize not in ("coin", "ring"):
            raise ValueError(f"no prize {prize}")
        self.prize = prize

    def begin(self, task: str | int | None) -> str:
        return f"{super().begin(task)}, find the {self.prize}"


HARMLESS: list[Any] = [
    SortsItsSet,
    TimesItself,
    ReadsAVariableInVain,
    SavesItsGenerator,
    LeavesNothing,
    KeepsOneServer,
    DrawsAndPutsBack,
    CountsStrikes,
    OneTask,
]
