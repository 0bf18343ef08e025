"""The comparison with Kaggle's and TextArena's games: our sides play whole games, and the arithmetic is right."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
SPEED = ROOT / "benchmarks" / "studies" / "speed"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SPEED / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


load("sides")
side, benchmark = load("werewolf_side"), load("werewolf_vs_peers")


def tables_of(played: Any) -> list[Any]:
    return list(played.vector.tables) if hasattr(played, "vector") else [hosted.table for hosted in played.tables]


@pytest.mark.parametrize("name", [name for name in side.MADE if name.startswith("turngym")])
def test_our_sides_play_every_table_to_a_decision(name: str) -> None:
    played = side.MADE[name](4)
    for seed in (1, 2):
        assert played.play(seed) == 4, "no game of these is a draw"
        assert all(table.is_over for table in tables_of(played))
        assert all(counts.forfeits == counts.illegal == 0 for table in tables_of(played) for counts in table.counts)
    assert played.answers > 2 * 4 * 10


def test_our_cheap_players_say_what_the_peers_players_say_and_never_abstain() -> None:
    played = side.MADE["turngym, cheap"](3)
    played.play(1)
    actions = {action for table in tables_of(played) for _, action in table.actions}
    assert f"say {side.SENTENCE}" in actions
    assert not {"say", "abstain"} & actions


def test_ratios_are_taken_run_by_run() -> None:
    def runs(*cpu: float) -> list[dict[str, float]]:
        return [{"cpu": seconds, "answers": 300, "games_per_cpu_second": 10 / seconds} for seconds in cpu]

    sides = {
        "turngym, cheap": {"tables": 10, "runs": runs(1.0, 2.0, 4.0)},
        "kaggle, cheap": {"tables": 10, "runs": runs(20.0, 20.0, 20.0)},
    }
    ratios = benchmark.summarise(sides)
    assert list(ratios) == ["turngym, cheap / kaggle, cheap"]
    ratio = ratios["turngym, cheap / kaggle, cheap"]
    assert (ratio["games"], ratio["lowest"], ratio["highest"], ratio["answers"]) == (10.0, 5.0, 20.0, 10.0)
    assert sides["turngym, cheap"]["answers_per_game"] == 30


def test_a_side_answers_commands_line_by_line() -> None:
    commands = [
        {"do": "prepare", "side": "turngym, rule-based", "tables": 3, "cpus": []},
        {"do": "play", "seed": 1},
        {"do": "play", "seed": 1},
    ]
    text = "".join(json.dumps(command) + "\n" for command in commands)
    script = str(SPEED / "werewolf_side.py")
    done = subprocess.run([sys.executable, script], input=text, capture_output=True, text=True, check=True, timeout=60)
    ready, first, again = (json.loads(line) for line in done.stdout.splitlines())
    assert ready == {}
    assert first["answers"] == again["answers"] > 30, "a seed names the games"


@pytest.mark.integration
@pytest.mark.parametrize("name", [name for name in side.MADE if name.startswith("textarena")])
def test_the_side_of_textarena_plays_games_to_their_end(name: str) -> None:
    pytest.importorskip("textarena", reason="needs the package textarena")
    tables = side.MADE[name](3)
    assert tables.play(1) == 3
