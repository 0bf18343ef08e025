"""Every regular expression of the package reads a hostile text in time linear in its length.

The texts follow from the expressions themselves, so that a new one is covered as soon as it is written.
"""

import re

import pytest
from pattern_attacks import Use, slow, uses

FOLDERS = ("envs", "wrappers", "agents", "trainers", "turngym", "benchmarks/cli", "benchmarks/pages")
BOUNDED = {
    "turngym.envs.adapters.gymnasium_text._PAINTED": "the text is cut behind the last place where it can end",
    "turngym.envs.household.alfworld_games._HELP": "reads a file of games that the user has named",
    "turngym.envs.tools.math_python.reading._MATRIX": "at most 2,000 characters are read",
    "turngym.envs.web.miniwob.tasks._PICTURE": "reads pages that are part of MiniWoB",
    "turngym.envs.web.miniwob.oracles": "read pages that are part of MiniWoB",
}
"""Expressions that are not linear -> why that costs nothing."""


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_expression_is_worse_than_linear(folder: str) -> None:
    found = {use: slow(use) for use in uses(folder) if not use.where.startswith(tuple(BOUNDED))}
    assert {use.where: text for use, text in found.items() if text} == {}


def test_the_expressions_that_need_not_be_linear_exist() -> None:
    found = [use.where for folder in FOLDERS for use in uses(folder)]
    assert [name for name in BOUNDED if not any(where.startswith(name) for where in found)] == []


@pytest.mark.parametrize("pattern", [r"<(a)>(.*?)</\1>", r"\s*x", r"a\s+\(?\s*1", r"^\s*```(.*?)\n?\s*```\s*$"])
def test_an_expression_that_is_worse_is_found(pattern: str) -> None:
    assert slow(Use("here", re.compile(pattern, re.DOTALL), "search"))
