"""``turngym report``: the page of a training run, an evaluation, a tournament or an arena."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional

from turngym.benchmarks.cli.options.parsing import parse
from turngym.benchmarks.evaluation.imported import as_folder
from turngym.errors import ConfigError
from turngym.storage.files import write_atomic
from turngym.storage.folders import Kind, folder_kind, require_file


@dataclass(frozen=True)
class Arguments:
    """Write the report of a folder as one self-contained HTML file.

    The folder comes from a training run (`turngym train`), an evaluation (`turngym eval ... --out FOLDER`), a
    tournament (`turngym tournament ... --out FOLDER`) or an arena; or a log of another suite, which needs --out.

    Args:
        folder: The folder.
        out: Output file (default: report.html in the folder, or page.html for a tournament or an arena).
    """

    folder: Positional[Path]
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None


def main(argv: Sequence[str]) -> int:
    """Write the page of the folder and print its path."""
    arguments = parse(Arguments, argv, "report")
    with as_folder(arguments.folder) as folder:
        if folder != arguments.folder and arguments.out is None:
            raise ConfigError(f"{arguments.folder} is a log of another suite: pass --out FILE for its page.")
        return _report(folder, arguments)


def _report(folder: Path, arguments: Arguments) -> int:
    kind = kind_of(folder)
    target = arguments.out or folder / ("page.html" if kind in ("tournament", "arena") else "report.html")
    require_file(target, "report.html")
    _WRITERS[kind](folder, target)
    print(f"written to {target}")
    return 0


def kind_of(folder: Path) -> Kind:
    """Return what a folder holds.

    Raises:
        ConfigError: There is no such folder, or it holds none of them.
    """
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}: pass that of a training run, an evaluation or a tournament.")
    kind = folder_kind(folder)
    if kind is not None:
        return kind
    inner = sorted(each.name for each in folder.iterdir() if (each / "config.json").is_file())
    hint = f" There are such folders in it: {', '.join(inner[:5])}." if inner else ""
    raise ConfigError(
        f"{folder} is not the folder of a training run, evaluation or tournament: its config.json is missing, damaged "
        f"or of something else.{hint}"
    )


def _write_run(folder: Path, target: Path) -> None:
    try:
        from turngym.trainers.records.run_folder import RunFolder
        from turngym.trainers.report.findings import read_run
        from turngym.trainers.report.run import write_report
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"the report of a run draws a curve, which needs {error.name}: pip install 'turngym[train]'."
        ) from error
    run = read_run(RunFolder(folder))
    if not (run.config or run.metrics or run.evaluations or run.samples):
        raise ConfigError(f"{folder} holds nothing of a training run that can be read: {run.missing[0]}")
    write_report(RunFolder(folder), target)


def _write_evaluation(folder: Path, target: Path) -> None:
    from turngym.benchmarks.pages.evaluation import write_evaluation_page

    write_evaluation_page(folder, target)


def _write_tournament(folder: Path, target: Path) -> None:
    from turngym.benchmarks.pages.tournament import sound_tournament, tournament_page

    write_atomic(target, tournament_page(sound_tournament(folder)))


def _write_arena(folder: Path, target: Path) -> None:
    from turngym.benchmarks.pages.arena import arena_page

    write_atomic(target, arena_page(folder))


_WRITERS: Mapping[Kind, Callable[[Path, Path], None]] = {
    "training run": _write_run,
    "evaluation": _write_evaluation,
    "tournament": _write_tournament,
    "arena": _write_arena,
}
"""Writer of the page, by kind of folder."""
