"""The folder of one agent program, with the files of its task."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from turngym.system.scratch import scratch_root


class WorkFolder:
    """A new folder.

    Args:
        files: Name below the folder -> content.
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="program-", dir=scratch_root()))
        for name, content in files.items():
            target = self.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content, "utf8")

    def remove(self) -> None:
        """Remove it with everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)
