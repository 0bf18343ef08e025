"""``turngym launch``: the file that runs a command on a cluster."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional

from turngym.benchmarks.cli.options.config_file import is_given
from turngym.benchmarks.cli.options.parsing import parse
from turngym.benchmarks.cli.options.training_words import with_folder
from turngym.benchmarks.cli.train import parse_train
from turngym.benchmarks.launch import LAUNCHERS, ClusterJob
from turngym.errors import ConfigError, UnknownName, nearest
from turngym.storage.files import write_atomic
from turngym.terminal.console import Console

USES_OWN_MODULES = True


@dataclass(frozen=True)
class Arguments:
    """Write the file that runs a command on a cluster; it is not submitted.

    For example `turngym launch slurm --nodes 2 --gpus 8 -- train --env turngym/Sokoban-v0`. Training runs use one rank
    per GPU (on Kubernetes, of the first machine) and resume when their job is restarted.

    Args:
        to: Launcher: `slurm` (batch script), `skypilot` (task), `kubernetes` (RayJob) or `docker` (Dockerfile).
        command: The command and its options, after `--`.
        nodes: Number of machines.
        gpus: GPUs per machine; 0 for none.
        gpu: GPU type as named by the cluster, such as `H100`.
        hours: Time limit, after which Slurm restarts the run's job, and SkyPilot and Kubernetes end it.
        setup: Shell line that runs first, such as `. .venv/bin/activate`.
        image: Container image with turngym; Slurm needs Pyxis for it.
        volume: Storage of the folder `runs`: the name of a PersistentVolumeClaim (Kubernetes), a bucket such as
            `s3://NAME` (SkyPilot).
        name: Name of the job.
        out: File (default: one named after the launcher in the working directory).
        force: Replace the file if it exists.
    """

    to: Positional[str]
    command: Positional[tuple[str, ...]]
    nodes: int = 1
    gpus: int = 1
    gpu: str = ""
    hours: float = 24.0
    setup: str = ""
    image: str = ""
    volume: str = ""
    name: str = "turngym"
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    force: bool = False


def main(argv: Sequence[str]) -> int:
    """Write the file, and print how to submit it.

    Raises:
        ConfigError: The command or an option is wrong, or the file exists.
    """
    arguments = parse(Arguments, argv, "launch")
    launcher = LAUNCHERS[arguments.to]
    job = _job(arguments)
    for field in dataclasses.fields(job):
        if field.name in launcher.unused and getattr(job, field.name) != field.default:
            raise ConfigError(f"{arguments.to} has no use for --{field.name}: leave it out.")
    text = launcher.render(job)
    path = arguments.out or Path(launcher.file)
    if path.exists() and not arguments.force:
        raise ConfigError(f"{path} exists: pass --force to replace it, or --out with another path.")
    write_atomic(path, text)
    if arguments.command[0] == "train" and not is_given(arguments.command, "max-seconds", "config"):
        print("the run ends after the default of --max-seconds; 0 uses the job's time", file=sys.stderr)
    submit = launcher.submit.format(file=shlex.quote(str(path)))
    Console(highlight=False).print(f"written to {path}: `{submit}` runs it", markup=False, soft_wrap=True)
    return 0


def _job(arguments: Arguments) -> ClusterJob:
    from turngym.__main__ import COMMANDS

    words = arguments.command
    if not words:
        raise ConfigError("the command is missing: write it after --, such as turngym launch slurm -- train --seed 1.")
    if words[0] not in COMMANDS or words[0] == "launch":
        raise UnknownName(f"no command named {words[0]!r} runs on a cluster. {nearest(words[0], COMMANDS)}")
    names = {field.name for field in dataclasses.fields(arguments)} & {
        each.name for each in dataclasses.fields(ClusterJob)
    }
    fields = {name: getattr(arguments, name) for name in names}
    run_dir, own = "", list(words)
    if words[0] == "train":
        own = [word for word in with_folder(words) if word != "--resume"]
        run_dir = str(parse_train(own[1:])[1])
        own += (
            [] if any(word.partition("=")[0] in ("--run-dir", "--run_dir") for word in own) else ["--run-dir", run_dir]
        )
    return ClusterJob.build("the job", {**fields, "words": tuple(own), "run_dir": run_dir})
