"""What the command line imports before it has to: help and lists wait for no torch."""

from __future__ import annotations

import pytest
import warm

HEAVY = ("torch", "transformers", "tokenizers", "safetensors", "jaxtyping", "vllm")
SCRIPT = f"""
import sys
from turngym.__main__ import main
status = main(sys.argv[1:])
print("heavy:", *(name for name in {HEAVY!r} if name in sys.modules), file=sys.stderr)
sys.exit(status)
"""


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["list", "algorithms", "--json"],
        ["--help"],
        ["eval", "--help"],
        ["train", "--help"],
        ["train", "--algorithm", "ppo+epo", "--help"],
        ["train", "--algorithm", "archer", "--help"],
        ["train", "--env", "turngym/KuhnPoker-v0", "--help"],
        ["train", "--alogrithm", "ppo"],
    ],
)
def test_help_lists_and_errors_import_no_heavy_package(words: list[str]) -> None:
    found = warm.run("-c", SCRIPT, *words, modules=("turngym.__main__", "tyro", "rich.table"))
    assert found.returncode == (2 if "--alogrithm" in words else 0), found.stderr
    assert found.stderr.splitlines()[-1] == "heavy:", found.stderr
