"""Success of the expert and of random play on every game and preset.

    python benchmarks/studies/checks/experts.py [ID ...]

Episodes come from the test split, seeds 0 to 199, the same for both players. Writes
``benchmarks/results/experts.json`` and, for readers, ``benchmarks/results/experts.md``.
"""

from __future__ import annotations

import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import gymnasium
from rich.progress import track

import turngym  # noqa: F401  (registers the environments)
from turngym.agents.intervals import wilson
from turngym.benchmarks.studies.harness import RESULTS, arguments, write_result
from turngym.envs.spaces import Unicode
from turngym.envs.textgames import SPECS
from turngym.seeding import stream
from turngym.storage.files import write_atomic

EPISODES = 200
PLAYERS = ("expert", "random")


def play(env_id: str, player: str) -> dict[str, Any]:
    """Play the episodes of one id with one player."""
    env: Any = gymnasium.make(env_id, split="test")
    generator = stream("random baseline", env_id)
    text = Unicode(generator)
    solved, returns, turns, scores, instances = 0, [], [], [], set()
    start = time.process_time()
    for seed in range(EPISODES):
        _, info = env.reset(seed=seed)
        instances.add(env.instance_hash)
        total, over = 0.0, False
        while not over:
            legal = info["legal_actions"]
            if player == "expert":
                action = env.expert_action()
            else:
                action = legal[int(generator.integers(len(legal)))] if legal else text.sample()
            _, reward, terminated, truncated, info = env.step(action)
            total, over = total + reward, terminated or truncated
        solved += info["success"] == 1
        returns.append(total)
        turns.append(env.turn)
        scores.append(info["score"])
    low, high = wilson(solved, EPISODES)
    return {
        "success": solved / EPISODES,
        "low": low,
        "high": high,
        "mean_return": statistics.mean(returns),
        "mean_score": statistics.mean(scores),
        "mean_turns": statistics.mean(turns),
        "max_turns": env.max_turns,
        "distinct_instances": len(instances),
        "cpu_seconds_per_episode": (time.process_time() - start) / EPISODES,
    }


def as_markdown(table: dict[str, dict[str, Any]]) -> str:
    """Return the table for readers."""
    lines = [
        f"Success on {EPISODES} episodes of the test split (seeds 0 to {EPISODES - 1}) with 95 % Wilson intervals.",
        "",
        "| id | instances | expert | random | turns of the expert | turn limit |",
        "|---|---|---|---|---|---|",
    ]
    for env_id, row in table.items():
        expert, random = row["expert"], row["random"]
        cells = [f"{x['success']:.1%} [{x['low']:.1%}, {x['high']:.1%}]" for x in (expert, random)]
        lines.append(
            f"| {env_id} | {expert['distinct_instances']} | {cells[0]} | {cells[1]} | "
            f"{expert['mean_turns']:.1f} | {expert['max_turns']} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Play and print; write the tables if every game was played."""
    parser = arguments(__doc__)
    parser.add_argument("ids", nargs="*", metavar="ID", help="games to play; all unless given")
    env_ids = parser.parse_args().ids
    if unknown := sorted(set(env_ids) - set(SPECS)):
        parser.error(f"no text game named {unknown[0]}; there are: {', '.join(SPECS)}")
    chosen = env_ids or sorted(SPECS)
    jobs = [(env_id, player) for env_id in chosen for player in PLAYERS]
    with ProcessPoolExecutor(2) as pool:
        found = list(track(pool.map(play, *zip(*jobs, strict=True)), "playing", total=len(jobs)))
    table: dict[str, dict[str, Any]] = {env_id: {} for env_id in chosen}
    for (env_id, player), row in zip(jobs, found, strict=True):
        table[env_id][player] = row
    print(as_markdown(table))
    if not env_ids:
        content = {"episodes": EPISODES, "split": "test", "games": table}
        write_result(RESULTS / "experts.json", content, "gymnasium", "numpy")
        write_atomic(RESULTS / "experts.md", as_markdown(table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
