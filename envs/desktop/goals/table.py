"""All goals, by name."""

from __future__ import annotations

from collections.abc import Mapping

from turngym.envs.desktop.goals.base import Builder
from turngym.envs.desktop.goals.editor import EDITOR_GOALS
from turngym.envs.desktop.goals.sheet import SHEET_GOALS

GOALS: Mapping[str, Builder] = {**EDITOR_GOALS, **SHEET_GOALS}
