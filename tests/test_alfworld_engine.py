"""Our engine tells, byte for byte, what TextWorld's own engine tells: on ALFWorld's games and on generated ones."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
from alfworld_engine import State, trace
from household_games import REAL, generated, needs_real

from turngym.envs.household.alfworld_games import open_games
from turngym.envs.household.goals import is_reached
from turngym.envs.household.pddl import read_problem
from turngym.envs.household.rules import NOTHING_HAPPENS, House

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


def ours(states: list[State], house: House, welcome: str) -> list[State]:
    """Return what our engine tells when given the same commands."""
    goal, told = house.world.goals[0], []
    for state in states:
        text = house.act(state.command) if state.command else f"{welcome}{house.look()}\n\n{house.world.task}"
        told.append(State(state.command, text or NOTHING_HAPPENS, house.commands(), is_reached(house, goal)))
    return told


def compare(folder: Path, game: dict[str, Any], number: int) -> None:
    domain, grammar = ((REAL / name).read_text() for name in ("alfred.pddl", "alfred.twl2"))
    follow = number % 3 == 0
    theirs = trace(folder, game, domain, grammar, number, STEPS, follow)
    help_text = re.search(r'action help \{.*?feedback :: "\n(.*?)";', grammar, re.DOTALL)
    assert help_text is not None
    house = House(read_problem(game["pddl_problem"], f"Your task is to: {game['goal_text']}."), help_text[1], False)
    assert ours(theirs, house, "-= Welcome to TextWorld, ALFRED! =-\n\n") == theirs
    assert not follow or len(theirs) > STEPS or theirs[-1].is_won


@pytest.mark.parametrize(("fold", "number"), REAL_GAMES)
def test_a_game_of_alfworld_is_told_alike(fold: str, number: int, tmp_path: Path) -> None:
    games = open_games(REAL, fold)
    compare(tmp_path, games.raw(list(games.kinds)[number]), number)


@pytest.mark.parametrize("number", range(6))
def test_a_generated_household_is_told_alike(number: int, tmp_path: Path) -> None:
    compare(tmp_path, generated(6)[number], number)
