"""Kuhn poker by self-play with magnetic mirror descent: how exploitable is the last policy?

    python benchmarks/studies/learning/kuhn_magnet.py             # tables and language models
    python benchmarks/studies/learning/kuhn_magnet.py model-fresh # one of them

``kuhn_self_play.py`` brought the average policy below an exploitability of 0.05, and the last one with one seed of
three. Here it is the last policy that counts. After every iteration its twelve distributions are read, and an exact
best response gives its exploitability: 0.458 for random play, 0 for an equilibrium.

Arms, written down before they ran, three seeds each, step sizes that fall to 0 linearly, no momentum, and no entropy
bonus; the settings were found with seed 100:

- ``magnet that follows``: ``mappo+mmd`` with weight 0.2 on a magnet that becomes the policy every 100 iterations.
- ``magnet that stays``: the same with weight 0.1 on the policy of random play that training began with.
- ``no magnet``: ``mappo`` alone, everything else the same.

``table`` has one logit for each action of an information set, ``model`` is the small language model of
``kuhn_self_play.py``, with the first arm alone. An arm reaches the target if the 95 % interval of its last
exploitability over the seeds (Student's t) lies below 0.05. Finished runs are kept.

``model-fresh`` is ``model`` with five other seeds, which are judged by themselves. It was written down after ``model``
had ended below the target with each of its three seeds, but with an interval that reached to 0.065.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kuhn_self_play import ARMS as OLD_ARMS
from kuhn_self_play import RESULTS, RUNS, TARGET, Watcher, first_below
from kuhn_self_play import config_of as old_config
from kuhn_table import TabularKuhn
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from verdicts import SEEDS

from turngym.benchmarks.machine import machine
from turngym.benchmarks.statistics.power import interval
from turngym.envs.tablegames.kuhn_poker.rules import exploitability
from turngym.storage.files import write_json
from turngym.terminal.console import Console
from turngym.trainers.loop.job import train
from turngym.trainers.report.curve import BLUE, DASHES, PIXELS_PER_INCH, SIZE, VERMILION
from turngym.trainers.settings.config import TrainConfig

ITERATIONS = 600
RATES = {"table": 0.1, "model": 4e-4}
GAMES = 256
EVERY = 10
FOLLOWS = "magnet that follows"
MAGNETS: Mapping[str, Mapping[str, float]] = {
    FOLLOWS: {"magnet_coef": 0.2, "refresh_every": 100},
    "magnet that stays": {"magnet_coef": 0.1},
    "no magnet": {},
}
KINDS: Mapping[str, tuple[str, ...]] = {"table": tuple(MAGNETS), "model": (FOLLOWS,), "model-fresh": (FOLLOWS,)}
SEEDS_OF: Mapping[str, Sequence[int]] = {"table": SEEDS, "model": SEEDS, "model-fresh": range(3, 8)}
STYLES = dict(zip(MAGNETS, ((BLUE, DASHES[0]), ("black", DASHES[3]), (VERMILION, DASHES[1])), strict=True))


def method_of(arm: str) -> tuple[str, dict[str, dict[str, Any]]]:
    """Return the algorithm of an arm and its options."""
    base = {
        "entropy_coef": 0.0,
        "invalid_penalty": 2.0,  # an answer that is no action must cost more than a lost hand
        "dual_clip": 3.0,
        "gamma": 1.0,
        "lam": 1.0,
        "whiten": False,
        "value_clip": 0.0,
    }
    if not MAGNETS[arm]:
        return "mappo", {"mappo": base}
    return "mappo+mmd", {"mappo": base, "mmd": dict(MAGNETS[arm])}


def config_of(arm: str, seed: int) -> TrainConfig:
    """Return the settings of a run of the language model."""
    algorithm, options = method_of(arm)
    old: TrainConfig = old_config(next(iter(OLD_ARMS)), seed)
    return replace(
        old,
        algorithm=algorithm,
        algorithm_options=options,
        iterations=ITERATIONS,
        max_seconds=0.0,
        checkpoint_every=ITERATIONS,
        rollout=replace(old.rollout, groups=GAMES),
        update=replace(old.update, learning_rate=RATES["model"], beta1=0.0, schedule="linear"),
    )


def play_table(arm: str, seed: int) -> dict[str, Any]:
    """Train a table; returns its curve and its last policy."""
    algorithm, options = method_of(arm)
    start, records = time.process_time(), []
    learner = TabularKuhn(
        algorithm, options, seed=seed, learning_rate=RATES["table"], games=GAMES, iterations=ITERATIONS
    )
    for iteration in range(ITERATIONS):
        learner.iterate(iteration)
        if (iteration + 1) % EVERY == 0:
            seconds = time.process_time() - start
            found = {"games": GAMES * (iteration + 1), "last": exploitability(learner.policy), "cpu_seconds": seconds}
            records.append(found)
    return {"records": records, "last": learner.policy}


def play_model(arm: str, seed: int) -> dict[str, Any]:
    """Train the language model; returns its curve and its last policy."""
    folder = RUNS / "kuhn-magnet-model" / f"{arm.replace(' ', '-')}-seed{seed}-training"
    shutil.rmtree(folder, ignore_errors=True)
    watcher = Watcher(config_of(arm, seed))
    train(watcher.config, folder, console=Console(quiet=True), watch=watcher)
    return {"records": watcher.records[EVERY - 1 :: EVERY], "last": watcher.last}


def run(kind: str, arm: str, seed: int) -> dict[str, Any]:
    """Run one arm with one seed, unless its result is there."""
    result = RUNS / f"kuhn-magnet-{kind}" / f"{arm.replace(' ', '-')}-seed{seed}.json"
    if not result.exists():
        result.parent.mkdir(parents=True, exist_ok=True)
        write_json(result, play_table(arm, seed) if kind == "table" else play_model(arm, seed))
    found: dict[str, Any] = json.loads(result.read_text("utf8"))
    final = found["records"][-1]
    print(
        f"{kind}, {arm}, seed {seed}: exploitability {final['last']:.4f} after {final['games']} games, "
        f"{final['cpu_seconds']:.0f} s of one core",
        flush=True,
    )
    return found


def verdict(values: Sequence[float]) -> dict[str, Any]:
    """Return the mean over seeds with its interval, and whether all of it lies below the target.

    >>> verdict([0.02, 0.03, 0.025])["below_target"]
    True
    """
    found = interval(values)
    return {**found._asdict(), "below_target": found.high < TARGET}


def summary(of_arm: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of an arm, given its runs by seed."""
    return {
        "last": verdict([each["records"][-1]["last"] for each in of_arm.values()]),
        "seeds": [
            {
                "seed": seed,
                "final": each["records"][-1],
                "below_target_from": first_below(each["records"], "last"),
                "curve": [[record["games"], record["last"]] for record in each["records"]],
                "last_policy": each["last"],
            }
            for seed, each in of_arm.items()
        ],
    }


def draw(axes: Axes, title: str, arms: Mapping[str, Mapping[str, Any]]) -> None:
    """Draw the curves of a kind, a line for each seed."""
    for arm, found in arms.items():
        colour, dashes = STYLES[arm]
        for number, each in enumerate(found["seeds"]):
            label = arm if number == 0 else None
            axes.plot(*zip(*each["curve"], strict=True), color=colour, linestyle=dashes, linewidth=1, label=label)
    axes.axhline(TARGET, color="black", linewidth=0.8)
    axes.annotate(f"{TARGET}", (0, TARGET), xytext=(2, 3), textcoords="offset points", fontsize=8)
    axes.set(xlabel="games of self-play", yscale="log", title=title)
    axes.legend(fontsize=7)


def main() -> int:
    """Run what is missing, print the figures, write ``benchmarks/results/kuhn_magnet.json`` and the picture."""
    wanted = sys.argv[1:] or list(KINDS)
    if unknown := set(wanted) - set(KINDS):
        print(f"no {', '.join(sorted(unknown))}: choose of {', '.join(KINDS)}.", file=sys.stderr)
        return 2
    target = RESULTS / "kuhn_magnet.json"
    found: dict[str, Any] = json.loads(target.read_text("utf8"))["runs"] if target.exists() else {}
    for kind in wanted:
        found[kind] = {arm: summary({seed: run(kind, arm, seed) for seed in SEEDS_OF[kind]}) for arm in KINDS[kind]}
        for arm, of_arm in found[kind].items():
            last = of_arm["last"]
            print(f"{kind}, {arm}: {last['mean']:.4f} [{last['low']:.4f}, {last['high']:.4f}]", flush=True)
    content = {
        "machine": machine("torch", "transformers"),
        "command": "python benchmarks/studies/learning/kuhn_magnet.py",
        "target": TARGET,
        "arms": {arm: method_of(arm) for arm in MAGNETS},
        "model": config_of(FOLLOWS, 0).as_json(),
        "runs": found,
    }
    write_json(target, content)
    figure = Figure(figsize=(1.6 * SIZE[0], SIZE[1]), layout="constrained")
    panels = figure.subplots(1, len(found), sharey=True, squeeze=False)[0]
    for axes, (kind, arms) in zip(panels, found.items(), strict=True):
        draw(axes, f"Kuhn poker, {kind}", arms)
    panels[0].set(ylabel="exploitability of the last policy, per hand")
    FigureCanvasAgg(figure)
    figure.savefig(target.with_suffix(".png"), dpi=PIXELS_PER_INCH)
    return 0


if __name__ == "__main__":
    sys.exit(main())
