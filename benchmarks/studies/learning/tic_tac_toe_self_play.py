"""Tic-Tac-Toe by self-play with a table: is the perfect player held to a draw, and what does a best reply win?

    python benchmarks/studies/learning/tic_tac_toe_self_play.py

Random play learns from games against itself alone, with ``mappo+mmd``: one logit for each cell of each board, a magnet
that becomes the policy every 50 iterations, steps that fall to 0 linearly. All figures are exact: chances against the
perfect player and a random one from either seat, and what the best reply wins. Between perfect players every game is a
draw, and the perfect player never loses. Three seeds; the settings were found with seed 100. Finished runs are kept.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from run_queue import RESULTS, RUNS, write_results
from tic_tac_toe_table import TabularTicTacToe
from verdicts import SEEDS

from turngym.benchmarks.statistics.power import interval
from turngym.storage.files import write_json
from turngym.trainers.report.curve import BLUE, DASHES, PIXELS_PER_INCH, SIZE, VERMILION

ITERATIONS = 400
GAMES = 128
RATE = 0.2
EVERY = 40
SEATS = {"0": "first seat", "1": "second seat"}
ALGORITHM = "mappo+mmd"
OPTIONS: dict[str, dict[str, Any]] = {
    "mappo": {
        "entropy_coef": 0.0,
        "dual_clip": 3.0,
        "gamma": 1.0,
        "lam": 0.9,
        "whiten": False,
        "value_clip": 0.0,
        "buckets": 32_768,
    },
    "mmd": {"magnet_coef": 0.1, "refresh_every": 50},
}


def play(seed: int) -> list[dict[str, Any]]:
    """Train with one seed; returns the strength of the policy over the run."""
    start = time.process_time()
    learner = TabularTicTacToe(ALGORITHM, OPTIONS, seed=seed, learning_rate=RATE, games=GAMES, iterations=ITERATIONS)
    records = [{"games": 0, "seats": learner.strength(), "cpu_seconds": 0.0}]
    for iteration in range(ITERATIONS):
        learner.iterate(iteration)
        if (iteration + 1) % EVERY == 0:
            seconds = time.process_time() - start
            records.append({"games": GAMES * (iteration + 1), "seats": learner.strength(), "cpu_seconds": seconds})
    return records


def run(seed: int) -> list[dict[str, Any]]:
    """Train with one seed, unless its result is there."""
    result = RUNS / "tic-tac-toe-table" / f"seed{seed}.json"
    if not result.exists():
        result.parent.mkdir(parents=True, exist_ok=True)
        write_json(result, {"records": play(seed)})
    records: list[dict[str, Any]] = json.loads(result.read_text("utf8"))["records"]
    for seat, found in records[-1]["seats"].items():
        told = ", ".join(f"{name} {value:.3f}" for name, value in found.items())
        print(f"seed {seed}, {SEATS[seat]}: {told}; {records[-1]['cpu_seconds']:.0f} s of one core", flush=True)
    return records


def picture(runs: dict[str, list[dict[str, Any]]]) -> None:
    """Draw the share of games drawn against the perfect player, a line for each seed and seat."""
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.subplots()
    for seat, colour, dashes in (("0", BLUE, DASHES[0]), ("1", VERMILION, DASHES[3])):
        for number, records in enumerate(runs.values()):
            games = [record["games"] for record in records]
            values = [100 * record["seats"][seat]["drawn_against_perfect"] for record in records]
            axes.plot(games, values, color=colour, linestyle=dashes, label=SEATS[seat] if number == 0 else None)
    axes.set(xlabel="games of self-play", ylabel="% of games drawn against a perfect player", ylim=(0, 100))
    axes.set(title="Tic-Tac-Toe, self-play of a table")
    axes.legend(fontsize=8)
    FigureCanvasAgg(figure)
    figure.savefig(RESULTS / "tic_tac_toe_self_play.png", dpi=PIXELS_PER_INCH)


def main() -> int:
    """Run what is missing, write ``benchmarks/results/tic_tac_toe_self_play.json`` and the picture."""
    runs = {f"seed{seed}": run(seed) for seed in SEEDS}
    last = [records[-1]["seats"] for records in runs.values()]
    final = {
        seat: {name: interval([each[seat][name] for each in last])._asdict() for name in last[0][seat]}
        for seat in SEATS
    }
    arm = {"algorithm": ALGORITHM, "options": OPTIONS, "games": GAMES, "iterations": ITERATIONS, "learning_rate": RATE}
    write_results("tic_tac_toe_self_play", {"arm": arm, "final": final, "runs": runs})
    picture(runs)
    for seat, found in final.items():
        told = (f"{name} {each['mean']:.3f} [{each['low']:.3f}, {each['high']:.3f}]" for name, each in found.items())
        print(f"{SEATS[seat]}: {', '.join(told)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
