"""Recording of episodes as JSON lines, which replay byte for byte."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import gymnasium

from turngym.types import StrPath
from turngym.wrappers import WRAPPERS
from turngym.wrappers.core import ResetResult, StepResult, TextWrapper
from turngym.wrappers.recording.episode_log import EpisodeLog
from turngym.wrappers.snapshots import parsed


@WRAPPERS.register("record")
class Record(TextWrapper):
    """Records episodes without changing them.

    Each wrapper has its own file in ``folder``, created with its first episode: the first free name of ``0000.jsonl``,
    ``0001.jsonl`` and so on. An episode is written with one call when it ends, so a kill loses only running episodes;
    one interrupted by ``reset``, ``restore`` or ``close`` is written as incomplete.
    :mod:``turngym.wrappers.recording.replay`` replays a file. Wrappers outside this one are not recorded: use it as the
    outermost one to record what the agent sees.

    Args:
        env: The environment.
        folder: Folder of the files; created if missing.
    """

    name: ClassVar[str] = "record"
    is_transparent: ClassVar[bool] = True

    def __init__(self, env: gymnasium.Env[Any, str], folder: StrPath = "transcripts") -> None:
        super().__init__(env)
        self.folder = Path(folder)
        self.path: Path | None = None
        self._log: EpisodeLog | None = None

    def on_reset(self, result: ResetResult) -> None:
        self._write(complete=False)  # only now, because a rejected reset leaves the episode running
        # without a seed the generator continues, and lasting state is not in seed and options
        needs_state = result.seed is None or self.has_lasting
        snapshot = parsed(self.snapshot()) if needs_state else None
        self._log = EpisodeLog(self.env, *result, snapshot)

    def on_step(self, step: StepResult) -> tuple[float, bool]:
        if self._log is not None:
            self._log.add(step)
        if step.is_over:
            self._write(complete=True)
        return step.reward, False

    def _write(self, *, complete: bool) -> None:
        """Append the running episode to the file, unless it has no turns."""
        log, self._log = self._log, None
        if log is None or not log.num_turns:
            return
        if self.path is None:
            self.path = _free_file(self.folder)
        content = memoryview(log.text(complete=complete).encode())
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            while content:
                content = content[os.write(file, content) :]
        finally:
            os.close(file)

    def snapshot(self) -> bytes:
        """Return the snapshot of the inner environment; recording is not part of the state."""
        return bytes(self._inner("snapshot")())

    def _adopt(self, content: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        observation, info = self._adopt_inside(content)
        self._write(complete=False)
        self._log = EpisodeLog(self.env, observation, info, snapshot=content)  # a recorded episode starts here
        self._is_running = info["success"] < 0
        return observation, info

    def close(self) -> None:
        """Write any running episode and close the environment."""
        self._write(complete=False)
        super().close()


def _free_file(folder: Path) -> Path:
    """Create a new file that no other process uses."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(len(list(folder.glob("*.jsonl")))):
        path = folder / f"{number:04}.jsonl"
        try:
            path.open("x").close()
        except FileExistsError:
            continue
        return path
    raise AssertionError("unreachable: there is always another number")
