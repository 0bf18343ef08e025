"""The settings of arms beside those on the pages of their methods."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from lab.experiment import Arm, Contrast, Experiment
from lab.runs import Method
from turngym.benchmarks.studies.harness import ROOT
from turngym.trainers.algorithms import parts

PAGES = ROOT / "trainers" / "algorithms"
_ROW = re.compile(r"^\| `(\w+)` \| (\S+) \|", re.MULTILINE)


def page_settings(part: str) -> dict[str, str]:
    """Return setting -> default, as the table on a method's page has it.

    >>> page_settings("gigpo")["gamma"]
    '0.95'
    """
    return dict(_ROW.findall((PAGES / f"{part}.md").read_text("utf8")))


def as_on_page(value: Any) -> str:
    """Return a value as pages write it.

    >>> as_on_page(True), as_on_page(1.0), as_on_page(1e-6), as_on_page("token")
    ('true', '1', '1e-06', 'token')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _used_settings(method: Method) -> dict[str, str]:
    """Return ``part.setting`` -> value for every setting of a method as an arm runs it."""
    found = {}
    for part, kind in parts(method.name):
        given = kind(**method.settings.get(part, {}))
        for field in dataclasses.fields(given):
            found[f"{part}.{field.name}"] = as_on_page(getattr(given, field.name))
    return found


def page_of(part: str) -> str:
    """Return the page of a part; a method of the laboratory itself has that of the registered one it varies."""
    return OWN.get(part, part)


OWN = {"PlainReinforce": "reinforce"}
"""Methods of the laboratory -> the registered method that they are a variant of."""


def deviations(arm: Arm) -> dict[str, tuple[str, str]]:
    """Return ``part.setting`` -> value on the page and value of the arm, where they differ."""
    found = {}
    for name, value in _used_settings(arm.method).items():
        part, _, setting = name.partition(".")
        default = page_settings(page_of(part))[setting]
        if default != value:
            found[name] = (default, value)
    return found


def unexplained(experiment: Experiment) -> set[str]:
    """Return the settings of an experiment's arms that differ from their pages without a reason."""
    return {name for arm in experiment.arms.values() for name in deviations(arm)} - set(experiment.reasons)


def confounds(experiment: Experiment, contrast: Contrast) -> dict[str, tuple[str, str]]:
    """Return the settings that both arms of a contrast have, with different values, and that are not under test."""
    sides = [_common(experiment.arms[arm].method) for arm in (contrast.better, contrast.worse)]
    return {
        name: (sides[0][name], sides[1][name])
        for name in sides[0].keys() & sides[1].keys()
        if sides[0][name] != sides[1][name] and name not in experiment.under_test
    }


def _common(method: Method) -> dict[str, str]:
    """Return setting -> value over all parts, without the names of the parts."""
    return {name.rpartition(".")[2]: value for name, value in _used_settings(method).items()}
