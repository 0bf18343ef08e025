"""Conversations as JSON Lines for supervised trainers, such as TRL's ``SFTTrainer``: messages and nothing else."""

from __future__ import annotations

from pathlib import Path

from turngym.benchmarks.exports import EXPORTS
from turngym.benchmarks.exports.conversations import conversations, write_jsonl
from turngym.benchmarks.exports.source import Source


@EXPORTS.register("sft")
def export_sft(source: Source, out: Path) -> list[Path]:
    """Write the messages of conversations.

    Args:
        source: Folder of an evaluation or a training run.
        out: A file that ends with ``.jsonl``.

    Raises:
        ConfigError: It ends otherwise, or there is no episode.
    """
    return write_jsonl(({"messages": each["messages"]} for each in conversations(source)), out)
