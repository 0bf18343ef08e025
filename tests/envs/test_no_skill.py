"""No player without skill beats random legal play; ``benchmarks/studies/checks/no_skill.py`` plays more episodes."""

from __future__ import annotations

from contextlib import closing

import gymnasium
import pytest
from kinds import kinds

from turngym.envs.checks.players import LEVEL, PLAYERS, compare_all, compared, explained

SLOW = (
    "Code",
    "MathPython",
    "Search",
    "Web",
    "ScienceWorld",
    "TextWorld",
    "ALFWorld",
    "Household",
    "MiniWoB",
    "Repo",
    "Terminal",
)
"""Worlds that need seconds to start, which the study plays."""
ADAPTERS = (
    *(
        "AgentDojo",
        "BFCL",
        "BabyAI",
        "BrowserGym",
        "Crafter",
        "Desktop",
        "GEM",
        "Gymnasium",
        "Harbor",
        "Jericho",
        "MiniHack",
        "NetHack",
        "OpenEnv",
    ),
    *("Chess", "OpenEnv", "OpenSpiel", "Othello", "PettingZoo", "ReasoningGym", "TextArena"),
)
IDS = sorted(
    env_id
    for env_id in kinds()
    if env_id.startswith("turngym/") and not env_id.removeprefix("turngym/").startswith((*SLOW, *ADAPTERS))
)
FEW, MANY = 3, 60
COMPARISONS = len(IDS) * 2 * len(PLAYERS)


@pytest.mark.parametrize("env_id", IDS)
def test_no_player_without_skill_beats_random_legal_play(env_id: str) -> None:
    """A few seeds for all; whoever is ahead on them plays many fresh ones, which count."""
    with closing(gymnasium.make(env_id)) as env:
        ahead = {row.player for row in compare_all(env, range(FEW)) if row.mean > row.random}
        ahead -= explained(env).keys()
        rows = compare_all(env, range(FEW, FEW + MANY), players=sorted(ahead)) if ahead else []
    assert not [row for row in rows if row.p < LEVEL / COMPARISONS], env_id


def test_a_player_that_always_wins_is_found() -> None:
    wins, chance = [1.0] * MANY, [float(seed % 2) for seed in range(MANY)]
    assert compared("x", "success", wins, chance).p < LEVEL / COMPARISONS
    assert compared("x", "success", chance, chance).p == 1.0


def test_reasons_name_players_that_there_are() -> None:
    for env_id in IDS:
        with closing(gymnasium.make(env_id)) as env:
            assert all(reason.endswith(".") for reason in explained(env).values())
