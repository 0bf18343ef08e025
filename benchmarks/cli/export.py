"""``turngym export``: an evaluation or a training run in the format of another tool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from turngym.benchmarks.cli.options.parsing import parse
from turngym.benchmarks.exports import export
from turngym.terminal.console import Console


@dataclass(frozen=True)
class Arguments:
    """Convert the folder of an evaluation or a training run to the format of another tool.

    Args:
        folder: Folder of `turngym eval ... --out FOLDER`; for chat, sft, preference, parquet and hf also of
            `turngym train` (the episodes saved at each evaluation).
        format: chat (JSON Lines: messages, rewards, advantages where known), sft (JSON Lines: messages alone,
            for TRL's SFTTrainer), preference (JSON Lines: prompt, chosen, rejected, for TRL's DPOTrainer),
            parquet, hf (a folder for Hugging Face's load_dataset), atif (a folder of ATIF-v1.8 trajectories),
            asciicast (a folder of recordings for asciinema), inspect (Inspect AI log; OUT ends with .eval or
            .json) or lm-eval (lm-evaluation-harness results and samples; OUT is a folder).
        out: Output path.
        success: Export solved episodes only (chat, sft, parquet, hf).
    """

    folder: Positional[Path]
    format: str
    out: Annotated[Path, arg(aliases=("-o",))]
    success: bool = False


def main(argv: Sequence[str]) -> int:
    """Export, and print the files."""
    arguments = parse(Arguments, argv, "export")
    for file in export(arguments.folder, arguments.format, arguments.out, arguments.success):
        Console(highlight=False).print(f"written to {file}", markup=False, soft_wrap=True)
    return 0
