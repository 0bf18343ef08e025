"""Environments of verifiers."""

from __future__ import annotations

from pathlib import Path

from turngym.agents.task_packages import PACKAGES, TaskPackage

_SCRIPT = Path(__file__).parent / "base" / "verifiers_tasks.py"
PACKAGES.register("verifiers")(TaskPackage(_SCRIPT, "TASKSET", "verifiers"))
