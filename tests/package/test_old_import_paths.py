"""Public names of version 0.1 are found where they were, for one more version."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from turngym.envs.textgames.bandit.contextual import ContextualBandit
from turngym.envs.textgames.sokoban.env import Sokoban
from turngym.moved import MOVED, current

ROOMS = ("turngym.envs.", "turngym.wrappers.")
PACKAGES = [
    ("turngym.envs.textgames.sokoban", "Sokoban"),
    ("turngym.envs.textgames.bandit", "BernoulliBandit"),
    ("turngym.envs.textgames.ez_points", "EZPoints"),
    ("turngym.envs.tablegames.kuhn_poker", "KuhnPoker"),
    ("turngym.envs.tablegames.matrix_games", "PrisonersDilemma"),
    ("turngym.envs.textworlds.textworld_express", "TextWorldExpress"),
    ("turngym.envs.tools.math_python", "MathPython"),
    ("turngym.envs.tools.code_repair", "CodeRepair"),
    ("turngym.envs.web.miniwob", "MiniWoB"),
]
"""Modules that have become packages, with a class that is still imported from there."""

RENAMED = [
    ("turngym.wrappers", "Begun", "ResetResult"),
    ("turngym.wrappers.core", "Played", "StepResult"),
    ("turngym.envs.tools.sandbox", "Session", "SandboxSession"),
    ("turngym.envs.desktop.session", "Session", "DesktopSession"),
    ("turngym.envs.website.session", "Session", "WebSiteSession"),
    ("turngym.agents.players", "BACKENDS", "AGENTS"),
    ("turngym.agents.prompting.styles", "Told", "ChatTurn"),
    ("turngym.trainers.loop.task", "Task", "TaskSource"),
]

SCRIPT = """
import importlib, sys, warnings
for old, new in {pairs!r}:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            module = importlib.import_module(old)
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("turngym"):
                raise
            continue  # the extra of that family is absent
    assert module is sys.modules[new], old
    assert any(f"{{old}} has moved to {{new}}" in str(each.message) for each in found), old
print("all")
"""


def test_every_old_path_of_environments_and_wrappers_is_imported_with_a_warning() -> None:
    pairs = sorted((old, new) for old, new in MOVED.items() if old.startswith(ROOMS))
    assert len(pairs) > 120
    words = [sys.executable, "-c", SCRIPT.format(pairs=pairs)]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    assert found.returncode == 0 and found.stdout == "all\n", found.stderr


@pytest.mark.parametrize(("module", "name"), PACKAGES)
def test_a_module_that_is_a_package_now_exports_its_class(module: str, name: str) -> None:
    kind = getattr(importlib.import_module(module), name)
    assert kind.__module__.startswith(f"{module}.") and current(f"{module}:{name}") == f"{module}:{name}"


@pytest.mark.parametrize(("module", "old", "new"), RENAMED)
def test_a_renamed_class_is_found_under_its_old_name(module: str, old: str, new: str) -> None:
    loaded = importlib.import_module(module)
    with pytest.warns(DeprecationWarning, match=f"is now {new}"):
        assert getattr(loaded, old) is getattr(loaded, new)


def test_a_snapshot_that_names_a_module_that_has_moved_is_restored() -> None:
    env = ContextualBandit()
    env.reset(seed=1)
    place = "turngym.envs.textgames.bandit.contextual"
    old = place.replace("bandit.", "bandit_")
    saved = env.snapshot()
    assert f'"{place}:ContextualBandit"'.encode() in saved
    written_before = saved.replace(place.encode(), old.encode())
    again = ContextualBandit()
    assert again.restore(written_before)[1]["anchor"] == env.anchor() and again.snapshot() == saved
    assert Sokoban().env_id == "turngym.envs.textgames.sokoban:Sokoban", "as snapshots of 0.1 name it"
