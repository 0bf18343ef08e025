"""Modules that have been moved: their old dotted paths can be imported for one more version, with a warning.

Files written by earlier versions (snapshots, run folders, submissions) name modules, too; what reads them asks
:func:`current`. A module that moves gets one line in ``MOVED``; a package takes its modules along.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from importlib.abc import Loader  # at run time it costs `import turngym` time

MOVED: Mapping[str, str] = {
    "turngym.access": "turngym.web.access",
    "turngym.benchmarks.bradley_terry": "turngym.benchmarks.statistics.bradley_terry",
    "turngym.benchmarks.commands": "turngym.benchmarks.cli",
    "turngym.benchmarks.commands.eval_display": "turngym.benchmarks.cli.terminal.evaluation",
    "turngym.benchmarks.commands.half_blocks": "turngym.benchmarks.cli.terminal.half_blocks",
    "turngym.benchmarks.commands.parsing": "turngym.benchmarks.cli.options.parsing",
    "turngym.benchmarks.commands.play_commands": "turngym.benchmarks.cli.terminal.play_commands",
    "turngym.benchmarks.commands.play_screen": "turngym.benchmarks.cli.terminal.play_screen",
    "turngym.benchmarks.commands.play_session": "turngym.benchmarks.cli.terminal.play_session",
    "turngym.benchmarks.commands.prompt_options": "turngym.benchmarks.cli.options.prompts",
    "turngym.benchmarks.commands.tournament_tables": "turngym.benchmarks.tournaments.tables",
    "turngym.benchmarks.commands.train_closing": "turngym.benchmarks.cli.terminal.training",
    "turngym.benchmarks.commands.trained_models": "turngym.benchmarks.cli.options.trained_models",
    "turngym.benchmarks.commands.usage": "turngym.benchmarks.cli.options.usage",
    "turngym.benchmarks.comparison": "turngym.benchmarks.evaluation.comparison",
    "turngym.benchmarks.evaluation_folder": "turngym.benchmarks.evaluation.folder",
    "turngym.benchmarks.evaluation_run": "turngym.benchmarks.evaluation.run",
    "turngym.benchmarks.evaluation_scoring": "turngym.benchmarks.evaluation.scoring",
    "turngym.benchmarks.evaluation_tries": "turngym.benchmarks.evaluation.tries",
    "turngym.benchmarks.inspect_tasks": "turngym.benchmarks.exports.inspect_tasks",
    "turngym.benchmarks.leaderboard_rows": "turngym.benchmarks.leaderboard.entries",
    "turngym.benchmarks.normalised": "turngym.benchmarks.statistics.normalised",
    "turngym.benchmarks.pages.differences": "turngym.benchmarks.pages.viewer.differences",
    "turngym.benchmarks.pages.episode_forms": "turngym.benchmarks.pages.viewer.forms",
    "turngym.benchmarks.pages.jsonl": "turngym.benchmarks.pages.viewer.jsonl",
    "turngym.benchmarks.pages.recordings": "turngym.benchmarks.pages.viewer.recordings",
    "turngym.benchmarks.pages.replayed": "turngym.benchmarks.pages.viewer.replayed",
    "turngym.benchmarks.pages.runs": "turngym.benchmarks.pages.viewer.runs",
    "turngym.benchmarks.pages.summaries": "turngym.benchmarks.pages.viewer.summaries",
    "turngym.benchmarks.pages.viewer_data": "turngym.benchmarks.pages.viewer.data",
    "turngym.benchmarks.pages.viewer_file": "turngym.benchmarks.pages.viewer.file",
    "turngym.benchmarks.pages.viewer_page": "turngym.benchmarks.pages.viewer.page",
    "turngym.benchmarks.pages.viewer_server": "turngym.benchmarks.pages.viewer.server",
    "turngym.benchmarks.pairings": "turngym.benchmarks.tournaments.pairings",
    "turngym.benchmarks.ratings": "turngym.benchmarks.statistics.ratings",
    "turngym.benchmarks.remade": "turngym.benchmarks.evaluation.remade",
    "turngym.benchmarks.rulesets": "turngym.benchmarks.evaluation.rulesets",
    "turngym.benchmarks.shapes": "turngym.benchmarks.evaluation.shapes",
    "turngym.benchmarks.submission": "turngym.benchmarks.evaluation.records",
    "turngym.benchmarks.submission_read": "turngym.benchmarks.evaluation.submission",
    "turngym.benchmarks.tournament": "turngym.benchmarks.tournaments.run",
    "turngym.benchmarks.tournament_plan": "turngym.benchmarks.tournaments.plan",
    "turngym.benchmarks.tournament_read": "turngym.benchmarks.tournaments.submission",
    "turngym.benchmarks.tournament_results": "turngym.benchmarks.tournaments.results",
    "turngym.benchmarks.tournament_seats": "turngym.benchmarks.tournaments.seats",
    "turngym.benchmarks.tournament_store": "turngym.benchmarks.tournaments.folder",
    "turngym.benchmarks.verify": "turngym.benchmarks.verification.verify",
    "turngym.benchmarks.verify_findings": "turngym.benchmarks.verification.findings",
    "turngym.benchmarks.verify_numbers": "turngym.benchmarks.verification.numbers",
    "turngym.benchmarks.verify_replay": "turngym.benchmarks.verification.replay",
    "turngym.benchmarks.verify_tasks": "turngym.benchmarks.verification.tasks",
    "turngym.benchmarks.verify_tournament": "turngym.benchmarks.verification.tournaments",
    "turngym.bounded": "turngym.storage.bounded",
    "turngym.failures": "turngym.terminal.failures",
    "turngym.files": "turngym.storage.files",
    "turngym.folders": "turngym.storage.folders",
    "turngym.html": "turngym.web.html",
    "turngym.interrupted": "turngym.terminal.interrupted",
    "turngym.limited": "turngym.system.limited",
    "turngym.locks": "turngym.system.locks",
    "turngym.output": "turngym.terminal.output",
    "turngym.page": "turngym.web.page",
    "turngym.printable": "turngym.terminal.printable",
    "turngym.processes": "turngym.system.processes",
}
"""Old dotted path -> new dotted path, of modules and packages."""


def current(path: str) -> str:
    """Return where a module, or something in it, is now; a path that has not moved is returned as it is.

    Args:
        path: A dotted path, with or without ``:name`` behind it.

    >>> current("turngym.envs.core:TextEnv")
    'turngym.envs.core:TextEnv'
    """
    module, colon, name = path.partition(":")
    head = module
    while head:
        if head in MOVED:
            return MOVED[head] + module[len(head) :] + colon + name
        head = head.rpartition(".")[0]
    return path


class _MovedLoader:
    """Hands out the module under its new path, so that a class exists once under both."""

    def __init__(self, path: str) -> None:
        self._path = path

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._path)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has set that of the old path


class _MovedFinder:
    """Finds moved modules. It comes first: below a moved package, others would load a second copy of a module."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("turngym."):
            return None
        found = current(fullname)
        if found == fullname:
            return None
        warnings.warn(
            f"{fullname} has moved to {found}; the old path goes with the next version.",
            DeprecationWarning,
            stacklevel=_level(),
        )
        return ModuleSpec(fullname, cast("Loader", _MovedLoader(found)))


def _level() -> int:
    """Return the stack level of the user's line; the import system's own frames are not counted."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return 3 if frame.f_globals.get("__name__") == "importlib" else 2


def install() -> None:
    """Let old paths be imported."""
    if not any(isinstance(each, _MovedFinder) for each in sys.meta_path):
        sys.meta_path.insert(0, _MovedFinder())
