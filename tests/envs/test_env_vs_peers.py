"""The benchmark beside GEM and TextArena: its actions are readable, its arithmetic is right, its processes answer."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import pytest

import turngym  # noqa: F401  (registers the environments)
from turngym.benchmarks.studies.speed import env_vs_peers as benchmark
from turngym.benchmarks.studies.speed.sides.worker import Worker
from turngym.envs.textgames.words import words

ROOT = Path(__file__).parents[2]
SIDES = ROOT / "benchmarks" / "studies" / "speed" / "sides"
WORDS = {"5": list(words(5))}


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SIDES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


load("worker")
games = load("peer_games")
side = load("peer_side")
NAMES = [row.name for row in games.ROWS]


def ours(name: str) -> Any:
    if games.row_of(name).turngym.env_id not in gymnasium.registry:
        pytest.skip(f"{name} is not registered")
    return side.prepare("turngym", games.row_of(name), "single", 1, WORDS)


@pytest.mark.parametrize("name", NAMES)
def test_our_side_reads_every_action_and_notices_what_it_cannot_read(name: str) -> None:
    pool = games.actions(games.row_of(name), "turngym", 300, WORDS["5"], seed=1)
    assert side.format_errors(ours(name), pool) == 0


def test_actions_in_another_format_are_counted_as_errors() -> None:
    """Negative oracle: GEM's boxes are not actions of ours."""
    pool = games.actions(games.row_of("Sokoban"), "gem", 50, WORDS["5"])
    assert side.format_errors(ours("Sokoban"), pool) == 1


@pytest.mark.parametrize("name", NAMES)
def test_every_side_draws_the_same_moves(name: str) -> None:
    row = games.row_of(name)
    drawn = {which: games.actions(row, which, 40, WORDS["5"], seed=3) for which in games.SIDES}
    bare = {
        which: [text.removeprefix("\\boxed{").strip("[]}").removeprefix("reveal ") for text in texts]
        for which, texts in drawn.items()
    }
    assert bare["gem"] == bare["textarena"] == bare["turngym"]
    assert all(text.startswith("\\boxed{") for text in drawn["gem"])


def test_each_row_has_a_peer_and_names_are_distinct() -> None:
    assert len(set(NAMES)) == len(NAMES) >= 13
    assert all(row.gem or row.textarena for row in games.ROWS)
    with pytest.raises(ValueError, match="GuessTheNumber"):
        games.row_of("Chess")


def test_a_run_counts_steps_and_episodes() -> None:
    player = ours("GuessTheNumber")
    done = side.run(player, 0.5)
    assert done["steps"] % 8 == 0 and 0 < done["cpu"] <= done["wall"] * 1.5
    assert 1 <= done["steps"] / done["episodes"] <= 4.5
    vector = side.prepare("turngym", games.row_of("GuessTheNumber"), "sync", 16, WORDS)
    done = side.run(vector, 0.5)
    assert done["steps"] % 16 == 0 and 1 <= done["steps"] / done["episodes"] <= 4.5


def test_resets_and_steps_are_timed_apart() -> None:
    found = side.costs(ours("Sokoban"), 0.3)
    assert found["reset_us"] > found["step_us"] > 0


def cell(*rates: float) -> dict[str, Any]:
    return {"runs": [{"steps": rate * 2, "cpu": 2.0, "wall": 3.0, "episodes": 10} for rate in rates]}


def measured() -> dict[str, Any]:
    cells = {
        "turngym single 1": cell(300, 200, 100),
        "gem single 1": cell(100, 100, 50),
        "textarena single 1": cell(10, 500, 20),  # one lucky run does not make it the better peer
        "turngym sync 64": cell(80, 80, 80),
        "gem sync 64": cell(20, 20, 20),
        "gem async 64": cell(40, 40, 40),
        "turngym sync 16": cell(100, 100, 100),
        "turngym sync 1024": cell(75, 75, 75),
    }
    return {**benchmark.summary(cells), "cells": cells}


def test_ratios_are_of_medians_over_the_better_peer() -> None:
    found = measured()
    assert found["single"] == {"ratio": 2.0, "lowest": 2.0, "highest": 3.0, "better_peer": "gem single 1"}
    assert found["many"]["ratio"] == 2.0 and found["many"]["better_peer"] == "gem async 64"
    assert found["loss_16_to_1024"] == pytest.approx(0.25)
    assert found["cells"]["turngym single 1"]["turns_per_episode"] == pytest.approx(1200 / 30)


def test_the_overall_figures_are_the_geometric_mean_and_the_worst() -> None:
    good = measured()
    bad = {**good, "single": {**good["single"], "ratio": 0.5}, "loss_16_to_1024": 0.4}
    found = benchmark.overall({"good": good, "bad": bad})
    assert found["single"] == {"geometric_mean": pytest.approx(1.0), "worst_game": "bad", "worst_ratio": 0.5}
    assert found["largest_loss"] == {"game": "bad", "loss": 0.4}


def test_every_cell_is_in_the_tables() -> None:
    found = measured()
    for name in ("turngym single 1", "gem single 1", "textarena single 1"):
        found["cells"][name]["apart"] = {"reset_us": 12.34, "step_us": 5.678}
    tables = benchmark.rates_table({"Game": found}), benchmark.costs_table({"Game": found})
    shown = [[next(iter(column.cells)) for column in table.columns] for table in tables]
    assert shown[0] == ["Game", "200", "100", "20", "2.0x", "80", "20", "40", "-", "2.0x", "100", "75", "25%"]
    assert str(shown[1][1]).startswith("12.3 / 5.68 (")


@pytest.fixture
def worker() -> Iterator[Any]:
    made = Worker(sys.executable, benchmark.SCRIPT, os.environ)
    yield made
    made.close()


def test_a_process_prepares_runs_and_is_ended(worker: Any) -> None:
    ready = worker.ask(
        do="prepare", game="GuessTheNumber", side="turngym", mode="single", slots=1, words=WORDS, cpus=None
    )
    assert ready == {"format_errors": 0.0}
    assert worker.ask(do="run", seconds=0.05)["steps"] > 0
    worker.close()
    with pytest.raises((RuntimeError, ValueError)):
        worker.ask(do="run", seconds=0.05)


def test_a_process_that_fails_is_noticed(worker: Any) -> None:
    with pytest.raises(RuntimeError, match="ended with status 1"):
        worker.ask(do="prepare", game="Chess", side="turngym", mode="single", slots=1, words=WORDS, cpus=None)


@pytest.mark.integration
def test_it_measures_every_side_and_writes_every_cell(tmp_path: Path) -> None:
    if not (ROOT / ".venvs" / "peers" / "bin" / "python").exists():
        pytest.skip("there is no .venvs/peers: run make peers")
    target = tmp_path / "found.json"
    command = [sys.executable, str(SIDES.parent / "env_vs_peers.py"), "--seconds", "0.05", "--repeats", "2"]
    command += ["--games", "TowerOfHanoi", "FrozenLake", "--out", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=True)
    found = json.loads(target.read_text("utf8"))
    assert found["versions"]["gem-llm"] == "0.1.0" and "geometric mean" in done.stdout
    hanoi, lake = (found["games"][name]["cells"] for name in ("TowerOfHanoi", "FrozenLake"))
    assert len(hanoi) == 9 and len(lake) == 6
    for cells in (hanoi, lake):
        for name, measured_cell in cells.items():
            assert len(measured_cell["runs"]) == 2 and measured_cell["rate"] > 0
            assert measured_cell.get("format_errors", 0) == 0
            assert (" 1" in name[-2:]) == ("apart" in measured_cell)
