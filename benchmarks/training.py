"""A training run in one call: what ``turngym train`` does, from Python."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from turngym.storage.files import path_of
from turngym.types import StrPath

if TYPE_CHECKING:
    from turngym.trainers.loop.job import JobResult


def train(
    config: StrPath | None = None, *, run_dir: StrPath | None = None, resume: bool = False, **options: Any
) -> JobResult:
    """Train a language model on an environment, with presets and defaults as those of ``turngym train``.

    Args:
        config: File with options, or the folder of a run to repeat, as ``--config`` takes it.
        run_dir: Run folder (default: ``runs/ENVIRONMENT-ALGORITHM-seedSEED``).
        resume: Resume the run in that folder, with its settings.
        **options: Options of ``turngym train``: ``iterations=3``, ``env_options={"view": "grid"}``, and a section as a
            dict, such as ``rollout={"groups": 4}``. They override the file.

    Returns:
        The run folder, its report, and whether the run finished.

    Raises:
        ConfigError: There is no such option, or a value is wrong.
        RunFolderExists: The folder holds a run and ``resume`` is False.
        MissingExtra: The packages that training needs are not installed.

    >>> train(iterations=-1)
    Traceback (most recent call last):
    turngym.options.OptionError: iterations of turngym.train must be a whole number of at least 0, got -1.
    """
    from turngym.benchmarks.cli.options.training_words import words_of  # needs the packages of training
    from turngym.benchmarks.cli.train import parse_train

    given = {name: os.fspath(value) if isinstance(value, os.PathLike) else value for name, value in options.items()}
    words = [] if config is None else ["--config", str(path_of(config, "config"))]
    words += words_of(given, [], "turngym.train")
    words += [] if run_dir is None else [f"--run-dir={path_of(run_dir, 'run_dir')}"]
    settings, folder, is_resumed = parse_train([*words, *(["--resume"] if resume else [])])
    from turngym.trainers.loop.job import train as run

    return run(settings, folder, is_resumed)
