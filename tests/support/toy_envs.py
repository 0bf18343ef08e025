"""Small environments for tests: a counter that uses its generator in every turn, and one that breaks on demand."""

import fcntl
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from turngym.envs.core import Outcome, TextEnv
from turngym.envs.settings import worded
from turngym.types import JSONValue


class Counter(TextEnv[str]):
    """Reach the goal; every turn also draws a number, so that a generator that is out of step shows at once."""

    file_options = worded()
    instructions = "Say up or down until the number is the goal."

    def __init__(
        self,
        goal: int = 3,
        *,
        max_turns: int = 8,
        split: str = "train",
        env_id: str = "",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_turns=max_turns, split=split, env_id=env_id, render_mode=render_mode)
        self.goal = goal
        self.bonus = 0
        self.finite_instances = 1000

    def begin(self, task: str | int | None) -> str:
        self.count = int(task or 0)
        self.instance = str(self._noise())
        return f"count {self.count}, instance {self.instance}"

    def _noise(self) -> int:
        return int(self.np_random.integers(1000))

    def apply_action(self, action: str) -> Outcome[str]:
        change = {"up": 1, "down": -1}.get(action)
        self.count += (change or 0) + self.bonus
        solved = self.count >= self.goal
        text = f"count {self.count}, noise {self._noise()}"
        return Outcome(text, float(solved), solved, solved, change is not None)

    def anchor(self) -> str:
        return f"{self.count} of {self.goal}"

    def legal_actions(self) -> tuple[str, ...]:
        return ("up", "down")

    def progress(self) -> float:
        return min(1.0, max(0.0, self.count / self.goal))

    def save_state(self) -> JSONValue:
        return {"count": self.count}

    def load_state(self, state: JSONValue) -> None:
        self.count = state["count"]

    def add(self, amount: int) -> int:
        """Change the state from outside."""
        self.count += amount
        return self.count

    def expert_action(self) -> str:
        return "up"


class Faulty(Counter):
    """A counter that breaks its process when it is told to.

    Args:
        marker: A file; while it exists, the next reset deletes one character of it and breaks as ``reset_fault`` says.
        reset_fault: What breaks the reset.
        delay: Seconds that every step takes.
        close_fault: What breaks ``close``.
    """

    def __init__(
        self,
        goal: int = 3,
        marker: str = "",
        reset_fault: str = "raise",
        delay: float = 0.0,
        close_fault: str = "",
        *,
        max_turns: int = 8,
        split: str = "train",
        env_id: str = "",
        render_mode: str | None = None,
    ) -> None:
        super().__init__(goal, max_turns=max_turns, split=split, env_id=env_id, render_mode=render_mode)
        self.marker, self.reset_fault, self.delay, self.close_fault = marker, reset_fault, delay, close_fault

    def begin(self, task: str | int | None) -> str:
        if self.marker and take_mark(Path(self.marker)):
            breakdown(self.reset_fault)
        return super().begin(task)

    def apply_action(self, action: str) -> Outcome[str]:
        time.sleep(self.delay)
        if action.startswith("once "):
            _, kind, path = action.split(" ", 2)
            if not Path(path).exists():
                Path(path).touch()
                breakdown(kind)
        breakdown(action)
        return super().apply_action(action)

    def close(self) -> None:
        breakdown(self.close_fault)

    def explode(self, kind: str) -> None:
        """Break outside of an episode's turns."""
        breakdown(kind)


def take_mark(marker: Path) -> bool:
    """Remove one character of the file, whoever else does the same at this moment; False where none is left."""
    if not marker.exists():
        return False
    with marker.open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        left = file.read()
        file.seek(0)
        file.truncate()
        file.write(left[1:])
    return bool(left)


def breakdown(kind: str) -> None:
    """Break the process in one of several ways; any other text does nothing."""
    if kind == "raise":
        raise ValueError("no such door")
    if kind == "hang":
        time.sleep(600)
    elif kind == "exit":
        sys.exit(3)
    elif kind == "quit":
        os._exit(3)
    elif kind == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif kind == "garbage":
        for file in range(3, 64):
            try:
                if stat.S_ISSOCK(os.fstat(file).st_mode):
                    os.write(file, b"Exception in thread main\n")
            except OSError:
                continue
    elif kind == "print":
        print("noise on the standard output")
        print("noise on the standard error", file=sys.stderr)
    elif kind == "eat":
        hoard = []
        while True:
            hoard.append(bytearray(512 * 1024 * 1024))
    elif kind == "child":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        Path(os.environ["TOY_CHILD_PID"]).write_text(str(child.pid))


class Picture(gymnasium.Env[dict[str, Any], str]):
    """A foreign environment that shows text and a picture and has no snapshot."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self) -> None:
        from turngym.envs.spaces import Unicode

        box = gymnasium.spaces.Box(0, 255, (2, 2), np.uint8)
        self.observation_space = gymnasium.spaces.Dict(text=Unicode(), image=box)
        self.action_space = Unicode()

    def _look(self) -> dict[str, Any]:
        return {"text": f"turn {self.turn}", "image": np.full((2, 2), self.turn, np.uint8)}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed)
        self.turn = 0
        return self._look(), {"level": {"depth": 1, "name": "cave"}}

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        self.turn += 1
        if action == "raise":
            raise ValueError("no such door")
        return (
            self._look(),
            0.5,
            self.turn == 3,
            False,
            {"level": {"depth": self.turn}, "odd": self.turn} if self.turn % 2 else {},
        )


class Reused(gymnasium.Env[dict[str, Any], Any]):
    """A foreign environment that writes each observation and info into the same objects; three turns an episode."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(self) -> None:
        box = gymnasium.spaces.Box(0, 255, (2,), np.int64)
        self.observation_space = gymnasium.spaces.Dict(board=box, parts=gymnasium.spaces.Tuple((box,)))
        self.action_space = gymnasium.spaces.Discrete(2)
        board, seen = np.zeros(2, np.int64), np.zeros(2, np.int64)
        self.shown: dict[str, Any] = {"board": board, "parts": (board,)}
        self.info: dict[str, Any] = {"turn": 0, "seen": seen, "nested": {"seen": seen}}

    def _look(self) -> tuple[dict[str, Any], dict[str, Any]]:
        self.shown["board"][:] = self.turn
        self.info["turn"] = self.turn
        self.info["seen"][:] = self.turn
        return self.shown, self.info

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        super().reset(seed=seed)
        self.turn = 0
        return self._look()

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        self.turn += 1
        shown, info = self._look()
        return shown, 0.5, self.turn == 3, False, info


for name in ("Counter", "Faulty", "Picture"):
    gymnasium.register(
        f"toy/{name}-v0",
        entry_point=f"toy_envs:{name}",
        order_enforce=False,
        disable_env_checker=True,
        kwargs={} if name == "Picture" else {"env_id": f"toy/{name}-v0"},
    )
