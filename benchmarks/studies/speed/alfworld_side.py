"""One side of ``alfworld_vs_plain.py``: ALFWorld's games in the plain stack or in turngym, measured in this process.

Runs in ``.venvs/alfworld`` under :mod:`sides`. A command names the side, the folder of the games in the official
layout, and how many slots, resets and steps; the answer holds processor seconds of this process and its children, the
seconds that passed, and the memory of them all.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

sys.path.insert(0, str(Path(__file__).parent))
from sides import Results, serve

_TICKS = os.sysconf("SC_CLK_TCK")
_CONFIG: dict[str, Any] = {
    "env": {
        "goal_desc_human_anns_prob": 0,
        "task_types": [1, 2, 3, 4, 5, 6],
        "domain_randomization": False,
        "expert_type": "handcoded",
    },
    "general": {"training_method": "dqn"},
    "rl": {"training": {"max_nb_steps_per_episode": 50}},
}


class Side(Protocol):
    """What is measured."""

    def reset(self) -> Sequence[Sequence[str]]:
        """Go to the next game in every slot; return the commands of each."""

    def step(self, commands: list[str]) -> Sequence[Sequence[str]]:
        """Take a command in every slot; return the next ones, empty where a game is over."""

    def close(self) -> None:
        """End what was started."""


class Plain:
    """ALFWorld's own environment, as its scripts make it: with more than one slot, a process for each."""

    def __init__(self, folder: str, slots: int) -> None:
        from alfworld.agents.environment.alfred_tw_env import AlfredTWEnv

        dataset = {"eval_ood_data_path": folder, "num_eval_games": -1}
        opened = AlfredTWEnv({**_CONFIG, "dataset": dataset}, train_eval="eval_out_of_distribution")
        self._env = opened.init_env(batch_size=slots)

    def reset(self) -> Sequence[Sequence[str]]:
        """Load the next games."""
        return self._told(self._env.reset()[1], [False])

    def step(self, commands: list[str]) -> Sequence[Sequence[str]]:
        """Step the batch."""
        _, _, dones, infos = self._env.step(commands)
        return self._told(infos, dones)

    def _told(self, infos: dict[str, Any], dones: Sequence[bool]) -> Sequence[Sequence[str]]:
        return [[] if all(dones) else commands for commands in infos["admissible_commands"]]

    def close(self) -> None:
        """End the batch's processes."""
        self._env.close()


class Ours:
    """A vector of turngym in this process."""

    def __init__(self, folder: str, slots: int) -> None:
        import turngym  # noqa: F401  (registers the environments)
        from turngym.envs.vector import make_vec

        self._vector: Any = make_vec("turngym/ALFWorld-v0", slots, data=str(Path(folder).parent), split="test")
        self._seed: int | None = 0

    def reset(self) -> Sequence[Sequence[str]]:
        """Draw the next games."""
        _, info = self._vector.reset(seed=self._seed)
        self._seed = None
        return [list(each) for each in info["legal_actions"]]

    def step(self, commands: list[str]) -> Sequence[Sequence[str]]:
        """Step the vector."""
        *_, info = self._vector.step(commands)
        return [list(each) for each in info["legal_actions"]]

    def close(self) -> None:
        """Close the vector."""
        self._vector.close()


def tree() -> Iterator[Path]:
    """Yield the folders in /proc of this process and of what it has started."""
    waiting = [os.getpid()]
    while waiting:
        folder = Path("/proc", str(waiting.pop()))
        with contextlib.suppress(OSError):  # it has ended meanwhile
            children = [
                child for task in (folder / "task").iterdir() for child in (task / "children").read_text().split()
            ]
            waiting.extend(map(int, children))
            yield folder


def spent() -> tuple[float, float]:
    """Return the processor seconds of the tree so far, children that have ended included, and the time."""
    ended, ticks = os.times(), 0
    for folder in tree():
        if folder.name != str(os.getpid()):
            with contextlib.suppress(OSError):
                ticks += sum(map(int, (folder / "stat").read_text().rpartition(")")[2].split()[11:15]))
    children = ended.children_user + ended.children_system + ticks / _TICKS
    return time.process_time() + children, time.perf_counter()


def memory() -> float:
    """Return the memory of the tree in MiB, what is shared counted once."""
    total = 0
    for folder in tree():
        with contextlib.suppress(OSError):
            lines = (folder / "smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def measure(command: Results) -> Results:
    """Open the games, reset, reset again and step, and return what each has cost."""
    sides: dict[str, Any] = {"plain": Plain, "turngym": Ours}
    slots, resets, steps = command["slots"], command["resets"], command["steps"]
    draw, marks = random.Random(command["seed"]), [spent()]
    side: Side = sides[command["side"]](command["folder"], slots)
    marks.append(spent())
    commands = side.reset()
    marks.append(spent())
    for _ in range(resets):
        commands = side.reset()
    marks.append(spent())
    for _ in range(steps):
        commands = side.step([draw.choice(each) if each else "look" for each in commands])
    marks.append(spent())
    mib = memory()
    side.close()
    cpu, wall = (
        [after - before for before, after in itertools.pairwise(column)] for column in zip(*marks, strict=True)
    )
    return {
        "open_cpu_s": cpu[0],
        "open_s": wall[0],
        "first_reset_cpu_s": cpu[1] / slots,
        "first_reset_s": wall[1] / slots,
        "later_reset_cpu_s": cpu[2] / (slots * resets),
        "later_reset_s": wall[2] / (slots * resets),
        "steps_per_cpu_s": slots * steps / cpu[3],
        "steps_per_s": slots * steps / wall[3],
        "mib_per_slot": mib / slots,
    }


if __name__ == "__main__":
    serve(measure)
