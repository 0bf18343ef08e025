"""WebShop: how fast the text and the real browser are, and on which goals the oracle earns 1.

Speed is that of random legal actions with resets: the text on one core, the browser on all. The oracle plays every goal
of the generated shop, and of the published small setting where its files are given. A published goal counts as
unreachable where no purchase of any product, with any of its options, earns 1; the reason is always an option value
that the published rule reads as a colour.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from turngym.benchmarks.machine import machine
from turngym.envs.web.driver.thread import close_shared_pool, shared_pool
from turngym.envs.webshop.env import WebShop
from turngym.envs.webshop.pages import View
from turngym.envs.webshop.product import Goal, Product
from turngym.envs.webshop.reward import base_colour, has_option, reward
from turngym.system.processes import descendants

TARGET = Path(__file__).parents[2] / "results" / "webshop.json"
DATA = Path(__file__).parents[4] / "shared" / "data" / "webshop"
Result = dict[str, Any]


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """Keep this thread, and what it starts meanwhile, on one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def play(env: WebShop, seeds: Iterable[int]) -> Result:
    """Play random legal actions; return the times of steps and resets in seconds, wall and CPU."""
    draw, resets, steps = random.Random(0), [], []
    began, cpu = time.perf_counter(), time.process_time()
    for seed in seeds:
        start = time.perf_counter()
        _, info = env.reset(seed=seed)
        resets.append(time.perf_counter() - start)
        is_over = False
        while not is_over:
            action = draw.choice(info["legal_actions"])
            start = time.perf_counter()
            _, _, terminated, truncated, info = env.step(action)
            steps.append(time.perf_counter() - start)
            is_over = terminated or truncated
    return {
        "resets": resets,
        "steps": steps,
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - cpu,
    }


def summary(runs: list[Result]) -> Result:
    """Return the medians of several runs."""
    return {
        "steps_per_second": statistics.median(len(run["steps"]) / run["seconds"] for run in runs),
        "steps_per_cpu_second": statistics.median(len(run["steps"]) / run["cpu_seconds"] for run in runs),
        "step_ms": statistics.median(1000 * value for run in runs for value in run["steps"]),
        "reset_ms": statistics.median(1000 * value for run in runs for value in run["resets"]),
        "rates": [len(run["steps"]) / run["seconds"] for run in runs],
        "steps": sum(len(run["steps"]) for run in runs),
        "episodes": sum(len(run["resets"]) for run in runs),
    }


def memory_mib(processes: Iterable[int]) -> float:
    """Return the memory of processes, what they share counted once (PSS)."""
    total = 0
    for process in processes:
        lines = Path("/proc", str(process), "smaps_rollup").read_text().splitlines()
        total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def oracle(env: WebShop) -> tuple[int, list[tuple[Product, Goal]]]:
    """Play every goal of a shop with the oracle; return their number and those on which it earns less than 1."""
    env.reset(seed=0)
    saved, count, short = json.loads(env.snapshot()), 0, []
    for product in env.shop.products:
        for place, goal in enumerate(env.shop.goals(product)):
            saved["state"] = {"asin": product.asin, "goal": place, "view": asdict(View()), "reward": 0.0}
            _, info = env.restore(json.dumps(saved).encode())
            truncated = False
            while info["success"] < 0 and not truncated:
                _, _, _, truncated, info = env.step(env.expert_action())
            count += 1
            if info["score"] < 1:
                short.append((product, goal))
    return count, short


def can_be_met(product: Product, goal: Goal, wanted: Product) -> bool:
    """Return whether some choice of a product's options earns 1."""
    told = reward(product, {}, goal, wanted)
    if told.type_factor < 1 or told.attributes < 1 or told.price < 1:
        return False
    asked = list(goal.options.items())
    found = {frozenset[int]()}
    for values in product.options.values():
        met = {frozenset(k for k, pair in enumerate(asked) if has_option(*pair, [value])) for value in values}
        found |= {before | more for before in found for more in met}
    return frozenset(range(len(asked))) in found


def published(folder: Path) -> Result:
    """Return what the oracle reaches on the goals of the published small setting, and why not the rest."""
    env = WebShop(str(folder), max_turns=30)
    count, short = oracle(env)
    beyond = [(p, goal) for p, goal in short if not any(can_be_met(each, goal, p) for each in env.shop.products)]
    why: Counter[tuple[str, str, str]] = Counter()
    for _, goal in beyond:
        for name, value in goal.options.items():
            if not has_option(name, value, [value]):
                why[name, value, base_colour(value)] += 1
    return {
        "goals": count,
        "solved": count - len(short),
        "reachable": count - len(beyond),
        "unreachable": len(beyond),
        "values": [
            {"option": name, "value": value, "read_as": colour, "goals": goals}
            for (name, value, colour), goals in sorted(why.items(), key=lambda each: (-each[1], each[0]))
        ],
    }


def speeds(repeats: int, episodes: int, browser_episodes: int) -> dict[str, Result]:
    """Return the cells of the speed table; text and browser take turns."""
    started = time.perf_counter()
    text = WebShop()
    text.reset(seed=0)
    text.step(text.expert_action())
    first = time.perf_counter() - started
    memory = memory_mib([os.getpid()])
    browsers = {
        "browser": WebShop(mode="browser"),
        "browser with pictures": WebShop(mode="browser", image=True),
    }
    runs: dict[str, list[Result]] = {"text": [], **{name: [] for name in browsers}}
    try:
        for env in browsers.values():
            env.reset(seed=0)
        for repeat in range(repeats):
            with one_core():
                runs["text"].append(play(text, range(repeat * episodes, (repeat + 1) * episodes)))
            for name, env in browsers.items():
                seeds = range(repeat * browser_episodes, (repeat + 1) * browser_episodes)
                runs[name].append(play(env, seeds))
        cells = {name: summary(each) for name, each in runs.items()}
        cells["text"] |= {"memory_mib": memory, "first_reset_seconds": first}
        cells["browser"]["memory_mib"] = memory_mib(descendants(os.getpid())[1:])
        cells["browser"]["tabs"] = sum(len(host.tabs) for host in shared_pool().pool.browsers)
        del cells["browser"]["steps_per_cpu_second"], cells["browser with pictures"]["steps_per_cpu_second"]
        return cells
    finally:
        for env in browsers.values():
            env.close()
        close_shared_pool()


def main() -> None:
    """Measure, print, write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--episodes", type=int, default=1000, help="episodes of a repeat in the text")
    parser.add_argument("--browser-episodes", type=int, default=10, help="episodes of a repeat in a browser")
    parser.add_argument("--products", type=int, default=1000, help="size of the shop whose goals the oracle plays")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with the published small setting")
    parser.add_argument("--out", type=Path, default=TARGET)
    options = parser.parse_args()
    cells = speeds(options.repeats, options.episodes, options.browser_episodes)
    for name, cell in cells.items():
        print(
            f"{name:22} {cell['steps_per_second']:9.1f} steps/s with resets  step {cell['step_ms']:7.3f} ms  "
            f"reset {cell['reset_ms']:7.3f} ms" + (f"  {cell['memory_mib']:.0f} MiB" if "memory_mib" in cell else "")
        )
    count, short = oracle(WebShop(products=options.products))
    print(f"generated shop: the oracle earns 1 on {count - len(short)} of {count} goals")
    kept: Result = {"machine": machine("turngym", "playwright", "rapidfuzz"), "speed": cells}
    kept["generated"] = {"products": options.products, "goals": count, "solved": count - len(short)}
    if options.data.is_dir():
        kept["published"] = found = published(options.data)
        print(
            f"published small setting: 1 on {found['solved']} of {found['goals']} goals, {found['reachable']} of which "
            f"can be met; {len(found['values'])} option values make the others unreachable"
        )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(kept, indent=1) + "\n", "utf8")


if __name__ == "__main__":
    main()
