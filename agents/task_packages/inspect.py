"""Tasks of Inspect AI."""

from __future__ import annotations

from pathlib import Path

from turngym.agents.task_packages import PACKAGES, TaskPackage

_SCRIPT = Path(__file__).parent / "base" / "inspect_tasks.py"
PACKAGES.register("inspect")(TaskPackage(_SCRIPT, "FILE.py@TASK[#SCORER], or PACKAGE/TASK", "inspect-ai openai"))
