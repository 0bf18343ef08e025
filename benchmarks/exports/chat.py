"""Conversations as JSON Lines, with everything that is known of each episode."""

from __future__ import annotations

from pathlib import Path

from turngym.benchmarks.exports import EXPORTS
from turngym.benchmarks.exports.conversations import conversations, write_jsonl
from turngym.benchmarks.exports.source import Source


@EXPORTS.register("chat")
def export_chat(source: Source, out: Path) -> list[Path]:
    """Write conversations with their rewards.

    Args:
        source: Folder of an evaluation or a training run.
        out: A file that ends with ``.jsonl``.

    Raises:
        ConfigError: It ends otherwise, or there is no episode.
    """
    return write_jsonl(conversations(source), out)
