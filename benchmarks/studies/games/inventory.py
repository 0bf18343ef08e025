"""Profit of players of inventory environments and the optimum: ``python benchmarks/studies/games/inventory.py``.

Every player has the same demand. Where gym-invmgmt 0.2.1 is installed, the orders of all players for three stages are
also played in its ``Serial-v0`` with that demand, and the largest difference of a reward is recorded.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from turngym.benchmarks.studies.harness import arguments, write_result
from turngym.envs.inventory.chain import ChainState, serial_chain
from turngym.envs.inventory.demand import draw, poisson
from turngym.envs.inventory.env import LARGEST_ORDER, Inventory, best_orders, profit_without_orders
from turngym.seeding import stream

MEAN, PERIODS = 20.0, 30
Player = Callable[[ChainState, int, np.random.Generator], list[int]]


def up_to(levels: Sequence[Sequence[int]], period: Callable[[int], int]) -> Player:
    """Return the player that orders up to the levels of a period."""

    def orders(state: ChainState, now: int, generator: np.random.Generator) -> list[int]:
        wanted = [max(of_stage[period(now)] - state.position(stage), 0) for stage, of_stage in enumerate(levels)]
        return [min(each, LARGEST_ORDER) for each in wanted]

    return orders


def players(stages: int) -> Mapping[str, Player]:
    """Return name -> player."""
    levels = best_orders(stages, MEAN, PERIODS).levels
    return {
        "expert": up_to(levels, lambda now: now),
        "levels of the first period throughout": up_to(levels, lambda now: 0),
        "always 20": lambda state, now, generator: [20] * stages,
        "nothing": lambda state, now, generator: [0] * stages,
        "random": lambda state, now, generator: generator.integers(0, LARGEST_ORDER + 1, stages).tolist(),
    }


def episode(player: Player, stages: int, seed: int) -> tuple[list[float], list[list[int]]]:
    """Return the profit of each period, and the orders."""
    demand = draw(poisson(MEAN), PERIODS, stream("inventory study", seed))
    generator = stream("inventory study player", seed)
    state, profits, ordered = ChainState(serial_chain(stages)), [], []
    for period, wanted in enumerate(demand):
        ordered.append(player(state, period, generator))
        profits.append(state.advance(ordered[-1], wanted).profit / 1000)
    return profits, ordered


def largest_difference(count: int) -> float | None:
    """Return the largest difference from a reward of gym-invmgmt; None where it is not installed."""
    if find_spec("gym_invmgmt") is None:
        return None
    from gym_invmgmt.core_env import CoreEnv

    worst = 0.0
    for player in players(3).values():
        for seed in range(count):
            profits, ordered = episode(player, 3, seed)
            demand = draw(poisson(MEAN), PERIODS, stream("inventory study", seed))
            env = CoreEnv(scenario="serial", user_D={(1, 0): np.array(demand)})
            env.reset(seed=0)
            for orders, profit in zip(ordered, profits, strict=True):
                worst = max(worst, abs(env.step(np.array(orders, dtype=float))[1] - profit))
    return worst


def steps_per_second(stages: int, count: int) -> dict[str, float]:
    """Return steps a second of a processor, with constant orders and with the expert's."""
    found = {}
    for name in ("constant orders", "expert"):
        env, steps, start = Inventory(stages=stages), 0, time.process_time()
        for seed in range(count):
            info = env.reset(seed=seed)[1]
            while info["success"] < 0:
                action = env.expert_action() if name == "expert" else " ".join(["20"] * stages)
                info, steps = env.step(action)[4], steps + 1
        found[name] = steps / (time.process_time() - start)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Play and write the figures."""
    parser = arguments(__doc__, "inventory.json")
    parser.add_argument("--count", type=int, default=1000, help="episodes of each player")
    chosen = parser.parse_args(argv)
    result: dict[str, Any] = {"count": chosen.count, "stages": {}}
    for stages in (1, 2, 3):
        best, lowest = best_orders(stages, MEAN, PERIODS).profit, profit_without_orders(stages, MEAN, PERIODS)
        found: dict[str, Any] = {}
        for name, player in players(stages).items():
            earned = np.array([sum(episode(player, stages, seed)[0]) for seed in range(chosen.count)])
            half = 1.96 * float(earned.std(ddof=1)) / chosen.count**0.5
            mean = float(earned.mean())
            share = (mean - lowest) / (best - lowest)
            found[name] = {"profit": mean, "low": mean - half, "high": mean + half, "share_of_optimum": share}
        speed = steps_per_second(stages, 100)
        result["stages"][str(stages)] = {
            "optimum": best, "without_orders": lowest, "players": found, "steps_per_second": speed
        }  # fmt: skip
    result["largest_difference_from_gym_invmgmt"] = largest_difference(min(chosen.count, 100))
    write_result(chosen.out, result, "numpy")
    return 0


if __name__ == "__main__":
    sys.exit(main())
