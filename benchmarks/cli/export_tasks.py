"""``turngym export-tasks``: instances of an environment as Harbor task folders."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from turngym.benchmarks.cli.options.parsing import Pairs, find_env, key_values, make_text_env, parse
from turngym.envs.tools.harbor.files import Entry
from turngym.errors import ConfigError
from turngym.storage.folders import require_folder
from turngym.terminal.console import Console

USES_OWN_MODULES = True


@dataclass(frozen=True)
class Arguments:
    """Write instances of an environment as Harbor task folders, with the same judge.

    Args:
        env: Id of an environment that can be exported, such as turngym/Terminal-v0.
        out: Folder for the tasks, one folder each; existing ones are kept.
        option: Environment option, such as family=logs.
        tasks: Number of tasks.
        seed: Seed of the first task; the others follow.
    """

    env: Positional[str]
    out: Annotated[Path, arg(aliases=("-o",))]
    option: Pairs = ()
    tasks: int = 10
    seed: int = 0


def main(argv: Sequence[str]) -> int:
    """Write the folders, and say how they are played."""
    arguments = parse(Arguments, argv, "export-tasks")
    if arguments.tasks < 1:
        raise ConfigError(f"--tasks must be at least 1, got {arguments.tasks}.")
    if arguments.seed < 0:
        raise ConfigError(f"--seed must be 0 or more, got {arguments.seed}.")
    require_folder(arguments.out)
    env_id = find_env(arguments.env)
    with closing(make_text_env(env_id, key_values(arguments.option, "--option"))) as env:
        files_of = getattr(env.unwrapped, "harbor_files", None)
        if files_of is None:
            raise ConfigError(
                f"{env_id} cannot be written as Harbor tasks: its judge needs the environment. "
                "turngym/Terminal-v0 and turngym/CodeRepair-v0 can."
            )
        name = env_id.rpartition("/")[2].partition("-v")[0].lower()
        for seed in range(arguments.seed, arguments.seed + arguments.tasks):
            env.reset(seed=seed)
            write_folder(arguments.out / f"{name}-{seed}", files_of())
    console = Console(highlight=False)
    console.print(f"{arguments.tasks} tasks are in {arguments.out}. Play them:", markup=False, soft_wrap=True)
    console.print(f"  turngym eval harbor:{arguments.out} --agent expert", markup=False, soft_wrap=True)
    return 0


def write_folder(target: Path, files: Mapping[str, Entry]) -> None:
    """Write a folder under a temporary name, and rename it.

    Raises:
        ConfigError: It exists.
    """
    if target.exists():
        raise ConfigError(f"{target} exists already: pass another --out or --seed, or remove it.")
    part = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        for name, entry in files.items():
            path = part / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(entry.data)
            path.chmod(entry.mode)
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
