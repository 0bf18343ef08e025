"""Our engine tells, byte for byte, what TextWorld's own engine tells: on ALFWorld's games and on generated ones."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from alfworld_engine import ours, trace
from household_games import REAL, generated, needs_real

from turngym.envs.household.alfworld_games import open_games

needs_engine = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("textworld", "alfworld", "fast_downward")),
    reason="textworld and alfworld are not installed here: make test-integration",
)
pytestmark = [
    pytest.mark.integration,
    needs_engine,
    needs_real,
    pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning"),  # its open files
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
REAL_GAMES = ("valid_unseen", 5), ("valid_unseen", 60), ("valid_unseen", 99), ("valid_seen", 30), ("valid_seen", 111)
STEPS = 20


def compare(folder: Path, game: dict[str, Any], number: int) -> None:
    domain, grammar = ((REAL / name).read_text() for name in ("alfred.pddl", "alfred.twl2"))
    follow = number % 3 == 0
    theirs = trace(folder, game, domain, grammar, number, STEPS, follow)
    assert ours(theirs, game, grammar) == theirs
    assert not follow or len(theirs) > STEPS or theirs[-1].is_won


@pytest.mark.parametrize(("fold", "number"), REAL_GAMES)
def test_a_game_of_alfworld_is_told_alike(fold: str, number: int, tmp_path: Path) -> None:
    games = open_games(REAL, fold)
    compare(tmp_path, games.raw(list(games.kinds)[number]), number)


@pytest.mark.parametrize("number", range(6))
def test_a_generated_household_is_told_alike(number: int, tmp_path: Path) -> None:
    compare(tmp_path, generated(6)[number], number)
