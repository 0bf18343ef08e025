"""Evaluations on several ranks: each plays a share, and all get the result of one process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import rank_evaluations
import rank_processes

from turngym.trainers.engine.ranks import SINGLE

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def found() -> list[dict[str, Any]]:
    """What each of two ranks found."""
    ended = rank_processes.run([str(Path(rank_evaluations.__file__))])
    assert [each.status for each in ended] == [0, 0], ended
    return [json.loads(each.output.splitlines()[-1]) for each in ended]


@pytest.mark.parametrize("name", ["episodes", "fewer than ranks", "games"])
def test_ranks_share_an_evaluation_and_find_what_one_process_finds(name: str, found: list[dict[str, Any]]) -> None:
    alone = json.loads(json.dumps(rank_evaluations.evaluated(rank_evaluations.CONFIGS[name], SINGLE)))
    for each in found:
        assert each[name]["curve"] == alone["curve"] and each[name]["final"] == alone["final"]
    for part in ("played in curve", "played"):
        shares = [each[name][part] for each in found]
        assert sorted(shares[0] + shares[1]) == sorted(alone[part]), "each once"
        assert all(shares) or name == "fewer than ranks"


def test_where_the_first_rank_plays_alone_the_others_get_the_curve(found: list[dict[str, Any]]) -> None:
    first, second = (each["first plays"] for each in found)
    assert first["curve"] == second["curve"] == found[0]["episodes"]["curve"]
    assert first["final"] == found[0]["episodes"]["final"] and second["final"] == []
