"""Tic-Tac-Toe and Connect Four by self-play of a small policy: the share of games not lost to the perfect player.

    python benchmarks/studies/learning/board_population.py                 # both games
    python benchmarks/studies/learning/board_population.py tic-tac-toe     # one

The policy is that of ``board_policy.py``: sums of weights for the lines through the cell that a move fills, from random
play on, trained by the trainer of every run with role-conditioned advantages and magnetic mirror descent. It plays
against itself and its four newest frozen selves alone, and meets neither the perfect nor a random player.

Arms, written down before they ran, three seeds each; the settings were found with seed 100. Both boards (three by
three, and four rows by five columns with four in a row) are draws between perfect players, and the perfect player never
loses: a game is drawn or lost. In Tic-Tac-Toe all figures are exact, also what the best reply wins. In Connect Four 300
games are played from either seat against each player, with intervals by bootstrap over games and training seeds.
Finished runs are kept, broken-off ones go on.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from board_policy import CONNECT_FOUR, TIC_TAC_TOE
from facts_policy import FactsAgent, FactsGame, random_policy, train, trained
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from run_queue import RESULTS, RUNS, write_results
from tic_tac_toe_table import best_reply, boards, evenly, perfect, results
from verdicts import SEEDS
from werewolf_deals import Games, gains

from turngym.agents.trajectory import Trajectory
from turngym.benchmarks.statistics.power import interval
from turngym.envs.tablegames.tic_tac_toe import free_cells, mark_to_move
from turngym.trainers.engine.learner import UpdateConfig
from turngym.trainers.report.curve import BLUE, PIXELS_PER_INCH, SIZE, VERMILION
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, SelfPlayConfig, TrainConfig

GAMES: Mapping[str, FactsGame] = {game.name: game for game in (TIC_TAC_TOE, CONNECT_FOUR)}
IDS = {"tic-tac-toe": "turngym/TicTacToe-v0", "connect-four": "turngym/ConnectFourSmall-v0"}
ITERATIONS = {"tic-tac-toe": 200, "connect-four": 100}
PLAYED = 300
SIDES = ("0", "1")
SEATS = {"0": "first seat", "1": "second seat"}
STAGES = ("before", "after")
SOLVER, OTHERS = "perfect", ("minimax", "random")
"""The perfect player of Connect Four; its ``minimax`` looks a few moves ahead."""


def config_of(game: str, seed: int) -> TrainConfig:
    """Return the settings of a run."""
    return TrainConfig(
        env=IDS[game],
        env_options={},
        algorithm="rae+mmd",
        algorithm_options={
            "rae": {"entropy_coef": 0.0, "dual_clip": 3.0},
            "mmd": {"magnet_coef": 0.05, "refresh_every": 25},
        },
        iterations=ITERATIONS[game],
        max_seconds=0.0,
        seed=seed,
        threads=1,
        control=False,
        checkpoint_every=10,
        rollout=RolloutConfig(groups=128, group_size=1, format="plain"),
        update=UpdateConfig(learning_rate=0.1, minibatches=2, schedule="linear"),
        evaluation=EvaluationConfig(episodes=0, every=0, curve_episodes=1),
        self_play=SelfPlayConfig(opponents=("self", "past:4"), freeze_every=10, matching="squared"),
    )


def folder_of(game: str, seed: int) -> Path:
    """Return the folder of a run."""
    found: Path = RUNS / f"board-policy-{game}-seed{seed}"
    return found


def agent_of(game: str, seed: int, stage: str) -> FactsAgent:
    """Return the policy of a run before or after its training."""
    model = random_policy(GAMES[game]) if stage == "before" else trained(GAMES[game], folder_of(game, seed))
    return FactsAgent(GAMES[game], model, "test", stage, seed)


def exact(agent: FactsAgent) -> dict[str, dict[str, float]]:
    """Return the strength of a policy in Tic-Tac-Toe from either seat, over all boards."""
    known = []
    for board in boards():
        rows = "/".join(board[row : row + 3] for row in (0, 3, 6))
        known.append(agent.game.prompt(f"{rows}; you are {mark_to_move(board)}", [str(c) for c in free_cells(board)]))
    chances = agent.logprobs(known).double().exp().tolist()
    rows_of = dict(zip(boards(), chances, strict=True))

    def own(board: str) -> dict[int, float]:
        return {cell: rows_of[board][cell] for cell in free_cells(board)}

    found = {}
    for seat in (0, 1):
        against_random = results(own, evenly, seat)
        found[str(seat)] = {
            "drawn_against_perfect": 1 - results(own, perfect, seat)[-1.0],
            "won_against_random": against_random[1.0],
            "lost_against_random": against_random[-1.0],
            "best_reply_wins": best_reply(own, seat),
        }
    return found


def of_tic_tac_toe() -> dict[str, Any]:
    """Return stage -> seat -> figure -> mean over seeds with its interval."""
    each = {stage: [exact(agent_of("tic-tac-toe", seed, stage)) for seed in SEEDS] for stage in STAGES}
    names = list(each["before"][0]["0"])
    return {
        stage: {
            side: {
                name: {
                    **interval([of[side][name] for of in found])._asdict(),
                    "seeds": [of[side][name] for of in found],
                }
                for name in names
            }
            for side in SIDES
        }
        for stage, found in each.items()
    }


def is_at_least(least: float, game: Trajectory) -> int:
    """Return whether a game ended with at least a result: 1 for a win, 0 for a draw."""
    return int(game.reward_sum >= least)


def of_connect_four() -> dict[str, Any]:
    """Return opponent -> seat -> gains: games not lost to the perfect player, games won against others."""
    games, found = Games(IDS["connect-four"], {}), dict[str, Any]()
    for opponent in (SOLVER, *OTHERS):
        measure = partial(is_at_least, 0 if opponent == SOLVER else 1)
        won = {
            (stage, seed): games.play(agent_of("connect-four", seed, stage), opponent, range(PLAYED), measure)
            for stage in STAGES
            for seed in SEEDS
        }
        found[opponent] = {
            side: gains(*({seed: won[stage, seed][side] for seed in SEEDS} for stage in STAGES)) for side in SIDES
        }
    return found


def not_lost(of_game: Mapping[str, Any], side: str, stage: str) -> dict[str, float]:
    """Return the share of games not lost to the perfect player with its interval."""
    exactly = stage in of_game
    found: dict[str, float] = of_game[stage][side]["drawn_against_perfect"] if exactly else of_game[SOLVER][side][stage]
    return found


def picture(found: Mapping[str, Any]) -> None:
    """Draw the share of games not lost to the perfect player, before and after."""
    figure = Figure(figsize=SIZE, layout="constrained")
    panels = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    for panel, (game, of_game) in zip(panels, found.items(), strict=True):
        for number, stage in enumerate(STAGES):
            each = [not_lost(of_game, side, stage) for side in SIDES]
            errors = [[100 * abs(value["mean"] - value[end]) for value in each] for end in ("low", "high")]
            places = [index + 0.36 * (number - 0.5) for index in range(len(SIDES))]
            heights = [100 * value["mean"] for value in each]
            panel.bar(places, heights, 0.34, yerr=errors, color=(VERMILION, BLUE)[number], label=f"{stage} training")
        panel.set(title=game, ylim=(0, 100))
        panel.set_xticks(range(len(SIDES)), SEATS.values())
    panels[0].set(ylabel="% of games not lost to the perfect player")
    panels[-1].legend(fontsize=7, loc="upper left")
    FigureCanvasAgg(figure)
    figure.savefig(RESULTS / "board_population.png", dpi=PIXELS_PER_INCH)


def written_games() -> dict[str, Any]:
    """Return what the result file holds of games that have run."""
    path = RESULTS / "board_population.json"
    games: dict[str, Any] = json.loads(path.read_text("utf8"))["games"] if path.exists() else {}
    return games


def main() -> int:
    """Run the games named, or both; print figures, write ``benchmarks/results/board_population.json`` and a picture."""
    wanted = sys.argv[1:] or list(GAMES)
    if unknown := set(wanted) - set(GAMES):
        print(f"no game {', '.join(sorted(unknown))}: choose of {', '.join(GAMES)}.", file=sys.stderr)
        return 2
    found = written_games()
    for game in wanted:
        for seed in SEEDS:
            train(GAMES[game], config_of(game, seed), folder_of(game, seed))
        found[game] = of_tic_tac_toe() if game == "tic-tac-toe" else of_connect_four()
        for side, stage in product(SIDES, STAGES):
            share = not_lost(found[game], side, stage)
            told = f"{100 * share['mean']:.1f} [{100 * share['low']:.1f}, {100 * share['high']:.1f}]"
            print(f"{game}, {SEATS[side]}, {stage}: {told} % not lost to the perfect player", flush=True)
    arms = {game: config_of(game, 0).as_json() for game in found}
    write_results("board_population", {"arms": arms, "games": found})
    picture(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
