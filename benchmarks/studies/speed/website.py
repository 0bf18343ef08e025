"""The three sites with and without a browser: steps and resets, memory per slot, how often the oracle succeeds.

Text and browser play the same seeds and the same actions, by turns; medians over the rounds.

    .venv/bin/python benchmarks/studies/speed/website.py
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from turngym.benchmarks.machine import machine
from turngym.envs.web.driver.thread import close_shared_pool, shared_pool
from turngym.envs.website.env import MODES, WebSite
from turngym.envs.website.sites import KINDS
from turngym.storage.files import write_json

RESULTS = Path(__file__).parents[2] / "results" / "website.json"
_TEXT_FACTOR = 20
"""How many times the episodes of the browser text plays in one round: it is that much faster, and more."""


def play(env: WebSite, seeds: Sequence[int]) -> dict[str, float]:
    """Play at random from the listed actions, and return what it took.

    Args:
        env: The environment.
        seeds: One episode each.
    """
    steps, resetting, stepping, used, reset_used = 0, 0.0, 0.0, time.process_time(), 0.0
    for seed in seeds:
        draw = random.Random(seed)
        begin, before = time.perf_counter(), time.process_time()
        _, info = env.reset(seed=seed)
        resetting, reset_used = resetting + time.perf_counter() - begin, reset_used + time.process_time() - before
        is_over = False
        begin = time.perf_counter()
        while not is_over:
            *_, terminated, truncated, info = env.step(draw.choice(info["legal_actions"]))
            is_over, steps = terminated or truncated, steps + 1
        stepping += time.perf_counter() - begin
    used = time.process_time() - used
    return {
        "steps_per_second": steps / (stepping + resetting),
        "steps_per_processor_second": steps / used,
        "step_ms": 1000 * stepping / steps,
        "reset_ms": 1000 * resetting / len(seeds),
        "reset_processor_ms": 1000 * reset_used / len(seeds),
    }


def speed(rounds: int, episodes: int) -> dict[str, Any]:
    """Return the medians over the rounds for each site and mode."""
    sites = sorted(KINDS)
    envs = {(site, mode): WebSite(site=site, mode=mode) for site in sites for mode in MODES}
    found: dict[tuple[str, str], list[dict[str, float]]] = {key: [] for key in envs}
    for env in envs.values():
        play(env, [0])
    for number in range(rounds):
        for (site, mode), env in envs.items():
            count = episodes * (_TEXT_FACTOR if mode == "text" else 1)
            found[site, mode].append(play(env, range(number * count, (number + 1) * count)))
            print(site, mode, {name: round(value, 2) for name, value in found[site, mode][-1].items()}, flush=True)
    for env in envs.values():
        env.close()
    return {
        mode: {
            site: {name: _middle([each[name] for each in found[site, mode]]) for name in found[site, mode][0]}
            for site in sites
        }
        for mode in MODES
    }


def _middle(values: Sequence[float]) -> float:
    return round(statistics.median(values), 3)


def resident_mib() -> float:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def memory(slots: int, tabs: int) -> dict[str, float]:
    """Return the memory that one more slot takes, in both modes.

    Args:
        slots: Environments without a browser.
        tabs: Environments in a browser.
    """
    first = WebSite()
    for seed in range(300):
        first.reset(seed=seed)  # what all slots share is there before
    before, envs = resident_mib(), []
    for seed in range(slots):
        envs.append(WebSite())
        envs[-1].reset(seed=seed)
    plain = (resident_mib() - before) / slots
    live = [WebSite(mode="browser") for _ in range(tabs)]
    live[0].reset(seed=0)
    one = shared_pool().pool.memory_mib()
    for seed, env in enumerate(live[1:], 1):
        env.reset(seed=seed)
    many = shared_pool().pool.memory_mib()
    for env in live:
        env.close()
    return {
        "text_mib_per_slot": round(plain, 3),
        "browser_mib_with_one_slot": round(one, 1),
        "browser_mib_per_further_slot": round((many - one) / (tabs - 1), 1),
    }


def oracle(seeds: int) -> dict[str, Any]:
    """Return how often the oracle succeeds on goals of the test split, for each kind, in text."""
    found: dict[str, Any] = {}
    for site, kinds in KINDS.items():
        for kind in kinds:
            env, turns, solved = WebSite(site=site, kind=kind, split="test"), [], 0
            for seed in range(seeds):
                _, info = env.reset(seed=seed)
                while info["success"] < 0:
                    *_, info = env.step(env.expert_action())
                solved += info["success"]
                turns.append(env.turn)
            found[f"{site} {kind}"] = {
                "episodes": seeds,
                "success": solved / seeds,
                "turns": {"least": min(turns), "mean": round(statistics.mean(turns), 1), "most": max(turns)},
            }
    return found


def summary(report: Mapping[str, Any]) -> str:
    """Return the figures in a few lines."""
    lines = [
        f"{mode:8} {site:7} " + ", ".join(f"{name} {value:g}" for name, value in figures.items())
        for mode in MODES
        for site, figures in report["speed"][mode].items()
    ]
    rates = [each["success"] for each in report["oracle"].values()]
    return "\n".join(
        [*lines, str(report["memory"]), f"oracle: {min(rates):.0%} to {max(rates):.0%} of {len(rates)} kinds"]
    )


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--episodes", type=int, default=5, help="episodes of 40 random steps in the browser, each round"
    )
    parser.add_argument("--oracle-seeds", type=int, default=50)
    parser.add_argument("--slots", type=int, default=400)
    parser.add_argument("--tabs", type=int, default=5)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    arguments = parser.parse_args()
    load = round(os.getloadavg()[0], 1)
    report = {
        "machine": machine("turngym", "playwright", "starlette", "uvicorn"),
        "load_average_before": load,
        "policy": "random from the listed actions, 40 turns; text and browser with the same seeds, by turns",
        "speed": speed(arguments.rounds, arguments.episodes),
        "memory": memory(arguments.slots, arguments.tabs),
        "oracle": oracle(arguments.oracle_seeds),
    }
    close_shared_pool()
    print(summary(report))
    if arguments.write:
        write_json(RESULTS, report)


if __name__ == "__main__":
    main()
