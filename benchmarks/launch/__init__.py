"""Files that run a command of turngym on a cluster: one module per scheduler, registered in :data:`LAUNCHERS`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from turngym.errors import ConfigError
from turngym.options import OptionError, Options, between
from turngym.registry import Registry

_NAME = re.compile(r"[a-z]([-a-z0-9]{0,43}[a-z0-9])?")
_GPU = re.compile(r"[A-Za-z0-9_.-]{1,60}")


class ClusterJob(Options):
    """A command and the machines for it."""

    words: tuple[str, ...]
    """The words after ``turngym``."""
    run_dir: str = ""
    """Run folder of a training run, which a restarted job resumes; empty for other commands."""
    nodes: Annotated[int, between(1, 10_000)] = 1
    """Number of machines."""
    gpus: Annotated[int, between(0, 64)] = 1
    """GPUs of each machine; 0 for none."""
    gpu: str = ""
    """GPU type as named by the cluster; empty for any."""
    hours: Annotated[float, between(1 / 60, 10_000)] = 24.0
    """Time limit."""
    setup: str = ""
    """Shell line that runs first on every machine."""
    image: str = ""
    """Container image with turngym; empty for none."""
    volume: str = ""
    """Storage of run folders."""
    name: str = "turngym"
    """Name of the job: lower-case letters, digits and dashes."""

    def check(self) -> None:
        """Refuse several machines for one process, and text that a scheduler or its file refuses."""
        if self.nodes > 1 and not self.run_dir:
            raise OptionError("nodes", f"must be 1 for {self.words[0]}: only train uses several machines.")
        self._check_texts()

    def _check_texts(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise OptionError("name", f"must be lower-case letters, digits and dashes, up to 45, got {self.name!r}.")
        if self.gpu and not _GPU.fullmatch(self.gpu):
            raise OptionError("gpu", f"must be letters, digits, dots, dashes and underscores, got {self.gpu!r}.")
        for word in self.words:
            if not word.translate({9: " ", 10: " "}).isprintable():
                raise OptionError("words", f"must be printable text, got {word[:80]!r}.")
        for option in ("setup", "image", "volume", "run_dir"):
            if not getattr(self, option).isprintable():
                raise OptionError(option, f"must be one line of printable text, got {getattr(self, option)!r}.")

    @property
    def time_limit(self) -> str:
        """Time limit as hours, minutes and seconds.

        >>> ClusterJob(words=("train",), hours=36.5).time_limit
        '36:30:00'
        """
        minutes = max(1, round(self.hours * 60))
        return f"{minutes // 60:02d}:{minutes % 60:02d}:00"

    @property
    def processes(self) -> int:
        """Ranks of the learner on each machine."""
        return max(self.gpus, 1) if self.run_dir else 1


@dataclass(frozen=True)
class Launcher:
    """A scheduler.

    Args:
        file: Name of its file.
        render: Writes the text of the file; raises ConfigError for a job that the scheduler cannot run.
        submit: Command that submits the file, in which ``{file}`` is its path.
        unused: Options of a job that it has no use for.
    """

    file: str
    render: Callable[[ClusterJob], str]
    submit: str
    unused: tuple[str, ...] = ()


LAUNCHERS: Registry[Launcher] = Registry("launcher", "turngym.benchmarks.launch")


def require_kept(job: ClusterJob) -> None:
    """Raise unless what a command writes is stored where it outlives the machine.

    Raises:
        ConfigError: There is no volume, or the output is not in the folder where it is mounted.
    """
    words = [part for word in job.words for part in word.split("=", 1)]
    outputs = [path for option, path in pairwise(words) if option in ("--out", "-o")]
    for path in [job.run_dir, *outputs]:
        if path and not job.volume:
            raise ConfigError("the machines lose their files at the end: pass --volume, where outputs are kept.")
        if path and (not path.startswith("runs/") or ".." in path.split("/")):
            raise ConfigError(f"the volume is mounted as the folder runs: write to runs/NAME, got {path}.")


def script(job: ClusterJob, ranks: Sequence[str] = (), before: str = "") -> str:
    """Return the lines of shell that run a job's command on one machine.

    Args:
        job: The job.
        ranks: Options of ``torchrun`` about the other machines, which the shell expands; without them and with one
            process the command runs alone.
        before: Words in front of the command.

    >>> job = ClusterJob(words=("eval", "turngym-core", "--agent", "random"), setup=". .venv/bin/activate")
    >>> print(script(job))
    set -eu
    . .venv/bin/activate
    python -m turngym eval turngym-core --agent random
    """
    lines = ["set -eu", *([job.setup] if job.setup else [])]
    launcher = f"-m torch.distributed.run {' '.join(ranks)} " if ranks else ""
    command = f"{before}python {launcher}-m turngym"
    words = shlex.join(job.words)
    if job.run_dir:  # the job continues its run when it starts a second time
        lines += ["RESUME=", f"if [ -f {shlex.quote(job.run_dir + '/config.json')} ]; then RESUME=--resume; fi"]
        words += " $RESUME"
    return "\n".join([*lines, f"{command} {words}"])
