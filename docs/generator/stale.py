"""Comparing generated pages with those in the repository."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path


def stale(texts: Mapping[Path, str], script: str, folder: Path | None = None) -> int:
    """Print how the pages differ from what would be written; return the exit status.

    Args:
        texts: Page -> what it must hold.
        script: What writes the pages.
        folder: Where no other pages may be; None where they may.
    """
    wrong = [path for path, text in texts.items() if not path.is_file() or path.read_text("utf8") != text]
    for path in wrong:
        before = path.read_text("utf8").splitlines() if path.is_file() else []
        print(
            "\n".join(difflib.unified_diff(before, texts[path].splitlines(), str(path), "generated", lineterm="", n=1))
        )
    left = [path for path in folder.glob("*.md") if path not in texts] if folder else []
    for path in left:
        print(f"{path} belongs to nothing")
    if wrong or left:
        print(f"run: python {script}")
    return int(bool(wrong or left))
