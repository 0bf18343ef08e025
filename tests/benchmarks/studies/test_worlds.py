"""Figures of the worlds of work: what equal runs show, and the table."""

import pytest

from turngym.benchmarks.studies.checks.world_page import page
from turngym.benchmarks.studies.checks.worlds import digest, played, restored


def test_equal_runs_have_equal_digests() -> None:
    first = digest("turngym/AskEasy-v0", 4)
    assert first == digest("turngym/AskEasy-v0", 4)
    assert first != digest('turngym/AskEasy-v0 {"cost": 0.1}', 4), "options are read"


@pytest.mark.parametrize("player", ["expert", "random"])
def test_players_are_measured(player: str) -> None:
    found = played("turngym/AskEasy-v0", player, 20)
    assert found["episodes"] == 20 and found["low"] <= found["success"] <= found["high"]
    assert (found["success"] == 1) == (player == "expert") and found["steps_per_cpu_second"] > 0


def test_the_table_has_what_was_measured() -> None:
    found = {"expert": played("turngym/AskEasy-v0", "expert", 3), "restored": restored("turngym/AskEasy-v0", 2)}
    row = page({"turngym/AskEasy-v0": found}, {}).splitlines()[-1].split(" | ")
    assert row[1].startswith("3 of 3 [") and row[2:4] == ["", ""] and row[4].endswith(", 0; 2")
