"""Compare planners of path finding with known optima: ``python benchmarks/studies/games/path_planners.py``.

Fixed grids have optima that search over the states of all agents together confirms. Random grids have 8 rows, walls
with probability 0.2, a first connected part of at least 30 cells, and starts and goals from it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np

from turngym.benchmarks.studies.harness import arguments, write_result
from turngym.envs.multiagent import Table, make_game, make_player
from turngym.envs.pathfinding.grid import FAR, Grid, distances
from turngym.envs.pathfinding.layouts import scattered
from turngym.envs.pathfinding.planning import Plan, Problem, conflict_based_search, costs, lower_bound, prioritized
from turngym.seeding import stream

FIXED = {
    "ring": (Problem(Grid(("....", ".##.", ".##.", "....")), (0, 3), (3, 0)), 12),
    "bay": (Problem(Grid(("#.#", "...", "###")), (3, 5), (5, 3)), 7),
    "corridor": (Problem(Grid((".....",)), (0, 4), (4, 0)), None),
    "circle": (Problem(Grid(("..", "..")), (0, 1, 3, 2), (1, 3, 2, 0)), 4),
}
"""Name -> problem and smallest sum of costs, None where there is no plan."""


def drawn(generator: np.random.Generator, agents: int) -> Problem:
    """Return a random problem."""
    while True:
        grid = scattered(generator, 8, 0.2)
        away = distances(grid, grid.free[0])
        part = [cell for cell in grid.free if away[cell] < FAR]
        if len(part) >= 30:
            starts, goals = [tuple(generator.permutation(part)[:agents].tolist()) for _ in range(2)]
            return Problem(grid, starts, goals)


def cost(plan: Plan | None) -> int | None:
    """Return the sum of costs of a plan."""
    return None if plan is None else costs(plan)[0]


def compare(agents: int, count: int) -> dict[str, float]:
    """Return how often both planners solve random problems, and their mean sums of costs where both do."""
    generator = np.random.default_rng(1)
    problems = [drawn(generator, agents) for _ in range(count)]
    both = [(cost(prioritized(each)), cost(conflict_based_search(each))) for each in problems]
    pairs = [(one, other) for one, other in both if one is not None and other is not None]
    return {
        "lower_bound": fmean(map(lower_bound, problems)),
        "solved_prioritized": fmean(one is not None for one, _ in both),
        "solved_cbs": fmean(other is not None for _, other in both),
        "sum_of_costs_prioritized": fmean(one for one, _ in pairs),
        "sum_of_costs_cbs": fmean(other for _, other in pairs),
    }


def play(game_id: str, player: str, count: int) -> dict[str, float]:
    """Return the mean metrics of games in which one player has all seats."""
    found = [_metrics(game_id, player, seed) for seed in range(count)]
    return {name: fmean(each[name] for each in found) for name in found[0]}


def _metrics(game_id: str, player: str, seed: int) -> dict[str, float]:
    game = make_game(game_id)
    table = Table(game)
    table.reset(stream("path planners", seed))
    seated = [make_player(player, game) for _ in game.seats]
    for seat, each in enumerate(seated):
        each.begin(table.views[seat], stream("player", seed, seat))
    while table.pending:
        seat = table.pending[0]
        table.answer(seat, seated[seat].act(table.views[seat]))
    return game.metrics()


def main(argv: Sequence[str] | None = None) -> int:
    """Compare and write the figures."""
    parser = arguments(__doc__, "path_finding.json")
    parser.add_argument("--count", type=int, default=100, help="random problems, and games of each player")
    chosen = parser.parse_args(argv)
    result: dict[str, Any] = {"count": chosen.count, "fixed": {}, "random": {}, "games": {}}
    for name, (problem, optimum) in FIXED.items():
        found = {"cbs": cost(conflict_based_search(problem)), "prioritized": cost(prioritized(problem))}
        result["fixed"][name] = {"optimum": optimum, **found}
    for agents in (2, 4, 8):
        result["random"][str(agents)] = compare(agents, chosen.count)
    for name in ("PathFinding", "PathFindingEasy", "PathFindingHard", "PathFindingTalk"):
        for player in ("planner", "prioritized", "greedy", "random"):
            figures = play(f"turngym/{name}-v0", player, chosen.count)
            result["games"].setdefault(f"turngym/{name}-v0", {})[player] = figures
    write_result(chosen.out, result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
