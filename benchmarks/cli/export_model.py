"""``turngym export-model``: the trained model of a run, for transformers, peft and inference servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from turngym.benchmarks.cli.options.parsing import parse
from turngym.errors import missing_extra
from turngym.terminal.console import Console


@dataclass(frozen=True)
class Arguments:
    """Export the trained model of a run, finished or not, as a transformers folder.

    The folder contains safetensors weights with merged adapters, tokenizer and generation config. It is written
    atomically.

    Args:
        run: Folder of a run, whose newest checkpoint is used, or of one checkpoint.
        out: New folder (default: `exported` in the run folder).
        adapters: Write only the adapters, in the format of peft.
        dtype: Format of the weights; auto is that of the training.
    """

    run: Positional[Path]
    out: Annotated[Path | None, arg(aliases=("-o",))] = None
    adapters: bool = False
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"


def main(argv: Sequence[str]) -> int:
    """Export, and print what the folder holds and how it is loaded."""
    arguments = parse(Arguments, argv, "export-model")
    try:
        from turngym.trainers.loop.checkpoints.exporting import export_model
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "turngym"):
            raise
        raise missing_extra("exporting a model", package, "train") from error
    found = export_model(arguments.run, arguments.out, adapters=arguments.adapters, dtype=arguments.dtype)
    console = Console(highlight=False)
    what = f"low-rank adapters of {found.base}" if found.base else "the whole model"
    console.print(
        f"written to {found.folder}: {what} after {found.iteration} iterations, {found.dtype}",
        markup=False,
        soft_wrap=True,
    )
    return 0
