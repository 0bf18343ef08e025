"""Tic-Tac-Toe and Connect Four by self-play: the share of games drawn against a perfect player, before and after.

    python benchmarks/studies/learning/board_self_play.py                # both games
    python benchmarks/studies/learning/board_self_play.py tic-tac-toe    # one

Arms, written down before they ran, three seeds each: the embedded model imitates a perfect player in few games; then it
plays against itself and its four newest frozen selves for a fixed time, with role-conditioned advantage estimation
and magnetic mirror descent. It never plays against the perfect player. The control goes on imitating the same
games for as long. Evaluations are sampled, each seed of games once from either seat, against the perfect player and
a random one. Both boards (three by three, and four rows by five columns) are draws between perfect players, and the
perfect player never loses: a game is drawn or lost. Finished runs are kept, broken-off ones go on.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from run_queue import RESULTS, RUNS, write_results

from turngym.agents.models.embedded import EmbeddedConfig
from turngym.agents.prompting.prompts import PromptConfig
from turngym.trainers.engine.learner import UpdateConfig
from turngym.trainers.loop.job import train
from turngym.trainers.loop.sft import SupervisedConfig
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.report.curve import BLUE, DASHES, PIXELS_PER_INCH, SIZE, VERMILION
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, SelfPlayConfig, TrainConfig

SEEDS = (0, 1, 2)
ITERATIONS = {"tic-tac-toe": 300, "connect-four": 300}
GAMES = {"tic-tac-toe": "turngym/TicTacToe-v0", "connect-four": "turngym/ConnectFourSmall-v0"}
DEMONSTRATIONS = {"tic-tac-toe": 60, "connect-four": 150}
SIDES = ("0", "1")
STAGES = ("warmup", "control", "final")
PERFECT = {"tic-tac-toe": "minimax", "connect-four": "perfect"}
"""Game -> its perfect player; ``minimax`` of Connect Four looks a few moves ahead."""
OPPONENTS = {"perfect": "", "random": "-vs-random"}
"""Opponent -> what the names of its evaluations end with."""


def config_of(game: str, seed: int) -> TrainConfig:
    """Return the settings of a run."""
    return TrainConfig(
        env=GAMES[game],
        env_options={},
        algorithm="rae+mmd",
        algorithm_options={
            "rae": {"entropy_coef": 0.0, "invalid_penalty": 1.0, "dual_clip": 3.0},
            "mmd": {"magnet_coef": 0.02, "refresh_every": 25},
        },
        iterations=ITERATIONS[game],
        seed=seed,
        control=True,
        checkpoint_every=25,
        embedded=EmbeddedConfig(hidden_size=64, layers=2, heads=4, vocabulary=340),
        warmup=SupervisedConfig(demonstrations=DEMONSTRATIONS[game], epochs=20),
        rollout=RolloutConfig(
            groups=96,
            group_size=1,
            format="plain",
            max_new_tokens=1,
            prompt=PromptConfig(instructions=False, history=0),
        ),
        update=UpdateConfig(learning_rate=1e-3, beta1=0.0, minibatches=2),
        evaluation=EvaluationConfig(episodes=200, every=0, curve_episodes=1),
        self_play=SelfPlayConfig(
            opponents=("self", "self", "past:4"),
            freeze_every=25,
            demonstrator=PERFECT[game],
            evaluation_opponents=(PERFECT[game], "random"),
        ),
    )


def run(game: str, seed: int) -> RunFolder:
    """Train with one seed, or go on with a run that was broken off."""
    path = RUNS / f"board-{game}-seed{seed}"
    if (path / "done").exists():
        return RunFolder(path)
    is_resumable = (path / "warmup" / "done").exists()
    if not is_resumable:
        shutil.rmtree(path, ignore_errors=True)
    train(config_of(game, seed), path, resume=is_resumable)
    return RunFolder(path)


def shares(evaluations: Mapping[str, Any]) -> dict[str, Any]:
    """Return opponent -> stage -> side -> mean result, from -1 for a loss to 1 for a win, with its interval."""
    found: dict[str, Any] = {}
    for opponent, suffix in OPPONENTS.items():
        for stage in STAGES:
            for side in SIDES:
                result = evaluations[f"{stage}-sampled{suffix}-side-{side}"]["reward_sum"]
                found.setdefault(opponent, {}).setdefault(stage, {})[side] = result
    return found


def picture(games: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw the share of games that are not lost to the perfect player, before, with the control and after."""
    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.subplots(1, len(games), sharey=True, squeeze=False)[0]
    for panel, (game, runs) in zip(axes, games.items(), strict=True):
        for side, (colour, dashes) in enumerate(((BLUE, DASHES[0]), (VERMILION, DASHES[3]))):
            for number, each in enumerate(runs.values()):
                results = [each["results"]["perfect"][stage][SIDES[side]] for stage in STAGES]
                values = [100 * (1 + result["value"]) for result in results]
                errors = [[100 * abs(r["value"] - r[end]) for r in results] for end in ("low", "high")]
                label = ("first seat", "second seat")[side] if number == 0 else None
                panel.errorbar(STAGES, values, errors, color=colour, linestyle=dashes, linewidth=1, label=label)
        panel.set(title=game, ylim=(0, 100))
    axes[0].set(ylabel="% of games drawn against a perfect player")
    axes[0].legend(fontsize=8)
    FigureCanvasAgg(figure)
    figure.savefig(RESULTS / "board_self_play.png", dpi=PIXELS_PER_INCH)


def main() -> int:
    """Run the games named, or both; print a table, write ``benchmarks/results/board_self_play.json`` and a picture."""
    wanted = sys.argv[1:] or list(GAMES)
    if unknown := set(wanted) - set(GAMES):
        print(f"no game {', '.join(sorted(unknown))}: choose of {', '.join(GAMES)}.", file=sys.stderr)
        return 2
    games: dict[str, dict[str, Any]] = {}
    for game in wanted:
        for seed in SEEDS:
            folder = run(game, seed)
            last = folder.metrics()[-1]
            results = shares(folder.evaluations())
            games.setdefault(game, {})[f"seed{seed}"] = {
                "results": results,
                "iterations": last["iteration"] + 1,
                "turns": last["turns_total"],
                "training_seconds": last["time/seconds_total"],
            }
            for opponent, side in ((o, s) for o in OPPONENTS for s in SIDES):
                told = (f"{100 * (1 + results[opponent][stage][side]['value']) / 2:5.1f} {stage}" for stage in STAGES)
                print(f"{game} seed {seed} as {side} against {opponent:8}: points of 100 {', '.join(told)}", flush=True)
    arms = {game: config_of(game, 0).as_json() for game in wanted}
    write_results("board_self_play", {"arms": arms, "games": games})
    picture(games)
    return 0


if __name__ == "__main__":
    sys.exit(main())
