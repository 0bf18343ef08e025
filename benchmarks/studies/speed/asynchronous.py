"""Asynchronous against synchronous rollouts, with environments that take exponentially distributed times.

    python benchmarks/studies/speed/asynchronous.py [--iterations N] [--parts PART ...] [--output FILE]

Runs of the real training loop: 8 groups of 4 episodes, 2 to 12 turns, a step takes Exp(80 ms). In the part
``simulated`` the sampler sleeps 50 ms a call and the update 1 s, so that the figures do not depend on how busy the
processor is; in the part ``served`` two servers sleep an exponential time of the same mean for each completion, and
50 ms to take new weights; in the part ``real`` an embedded model samples and is trained. Figures are taken after the
second iteration; ``served, a call at a time`` is what it would be if a call of the sampler waited for all of its
completions. Writes ``benchmarks/results/asynchronous.json``; ends with 1 if asynchronous rollouts are not 1.8 times as
fast as the better synchronous schedule.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

from turngym.agents.models.completion import Completion
from turngym.agents.models.embedded import EmbeddedConfig
from turngym.agents.models.loading import LanguageModel
from turngym.agents.sampling import Sampling
from turngym.benchmarks.machine import machine
from turngym.benchmarks.studies.speed.asynchronous_servers import sleeping_servers
from turngym.envs.core import Outcome, TextEnv
from turngym.storage.files import write_json
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.loop.setup import build_algorithm, build_embedded, build_learner
from turngym.trainers.loop.task_factory import make_task
from turngym.trainers.loop.trainer import Trainer
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig
from turngym.types import JSONValue

Sampler: TypeAlias = Callable[[LanguageModel], AbstractContextManager[object]]
TARGET = Path(__file__).parents[2] / "results" / "asynchronous.json"
STEP_SECONDS, CALL_SECONDS, UPDATE_SECONDS, FACTOR = 0.08, 0.05, 1.0, 1.8
SKIPPED = 2
PARTS = ("simulated", "served", "served, a call at a time", "real")
ROLLOUT = RolloutConfig(
    groups=8, group_size=4, num_envs=48, backend="thread", num_workers=48, max_new_tokens=4, format="plain"
)
BASE = TrainConfig(
    env="study/Slow-v0",
    env_options={},
    algorithm="grpo",
    max_seconds=0,
    checkpoint_every=1000,
    embedded=EmbeddedConfig(hidden_size=32, layers=2, heads=2, vocabulary=300),
    rollout=ROLLOUT,
    update=UpdateConfig(learning_rate=1e-5, minibatches=1),
    evaluation=EvaluationConfig(0, 0, 1),
)
SYNCHRONOUS: Mapping[str, Mapping[str, Any]] = {
    "lockstep": {"schedule": "lockstep"},
    "continuous": {"schedule": "continuous"},
}
ASYNCHRONOUS: Mapping[str, Mapping[str, Any]] = {
    f"async, K = {staleness}, {on_stale}": {"schedule": "async", "max_staleness": staleness, "on_stale": on_stale}
    for on_stale in ("wait", "drop")
    for staleness in (1, 2, 4)
}


class Slow(TextEnv[str]):
    """Two to twelve turns; every step takes a time of an exponential distribution.

    Args:
        max_turns: Not reached.
        split: Ignored.
        env_id: Registered id.
        render_mode: Ignored.
    """

    instructions = "Say something."

    def __init__(
        self, *, max_turns: int = 50, split: str = "train", env_id: str = "", render_mode: str | None = None
    ) -> None:
        super().__init__(max_turns=max_turns, split=split, env_id=env_id, render_mode=render_mode)

    def begin(self, task: str | int | None) -> str:
        """Draw the length of the episode."""
        self.length, self.count = int(self.np_random.integers(2, 13)), 0
        self.instance = str(int(self.np_random.integers(2**31)))
        return "turn 0"

    def apply_action(self, action: str) -> Outcome[str]:
        """Sleep."""
        time.sleep(float(self.np_random.exponential(STEP_SECONDS)))
        self.count += 1
        is_over = self.count >= self.length
        return Outcome(f"turn {self.count}", len(action) % 5 / 5, is_over, is_over)

    def anchor(self) -> str:
        """Return the turn."""
        return str(self.count)

    def save_state(self) -> JSONValue:
        """Return length and turn."""
        return {"length": self.length, "count": self.count}

    def load_state(self, state: JSONValue) -> None:
        """Restore them."""
        self.length, self.count = state["length"], state["count"]


def slow(**options: Any) -> Slow:
    """Make the environment."""
    return Slow(**options)


gymnasium.register("study/Slow-v0", entry_point=slow, disable_env_checker=True)


def sleeping(
    prompts: Sequence[Sequence[int]], uniforms: Sequence[NDArray[np.float64]], sampling: Sampling
) -> list[Completion]:
    """Sleep as long as a call of a server takes, and return random tokens."""
    time.sleep(CALL_SECONDS)
    tokens = [tuple(int(10 + 200 * number) for number in own[: sampling.max_new_tokens]) for own in uniforms]
    return [Completion(ids, (-5.7,) * len(ids)) for ids in tokens]


@contextmanager
def sleeping_call(model: LanguageModel) -> Iterator[None]:
    """Let a model sample by one sleep for each call."""
    model.generate = sleeping
    yield


def run(settings: Mapping[str, Any], iterations: int, sampler: Sampler, update_seconds: float) -> dict[str, Any]:
    """Train, and return the figures of the iterations after the first ones.

    Args:
        settings: Those of the rollouts.
        iterations: Number of iterations.
        sampler: Context in which a model samples.
        update_seconds: How long each update sleeps.
    """
    config = replace(BASE, iterations=iterations, rollout=replace(ROLLOUT, **settings))
    algorithm = build_algorithm(config)
    task = make_task(config, algorithm)
    model = build_embedded(config, ["turn 1 2 3", "Say something."] * 10)
    records: list[dict[str, Any]] = []

    def after(record: Mapping[str, Any]) -> None:
        time.sleep(update_seconds)
        records.append({**record, "now": time.perf_counter()})

    with tempfile.TemporaryDirectory() as scratch:
        folder = RunFolder.create(Path(scratch, "run"), config)
        sampling: LanguageModel = task.sampling_model(model)
        trainer = Trainer(config, model, build_learner(config, model, algorithm), task, folder)
        with closing(task), sampler(sampling):
            trainer.run(after)
    return figures(records)


def figures(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the figures of a run."""
    kept = records[SKIPPED:]
    seconds = kept[-1]["now"] - records[SKIPPED - 1]["now"]
    turns = kept[-1]["turns_total"] - records[SKIPPED - 1]["turns_total"]
    ages: Counter[str] = Counter()
    for record in kept:
        ages.update({name: value for name, value in record.items() if name.startswith("policy/staleness_")})
    mean = {
        name: sum(record.get(name, 0.0) for record in kept) / len(kept)
        for name in (
            "rollout/turns",
            "rollout/dropped_groups",
            "rollout/dropped_turns",
            "time/learner_wait_seconds",
            "time/player_wait_seconds",
            "time/journal_seconds",
            "time/overlap",
        )
    }
    return {
        "seconds_an_iteration": seconds / len(kept),
        "turns_a_second": turns / seconds,
        **mean,
        **{name: value / len(kept) for name, value in ages.items()},
        "policy/staleness_max": max(record["policy/staleness_max"] for record in kept),
    }


def part(
    arms: Mapping[str, Mapping[str, Any]], iterations: int, sampler: Sampler, update_seconds: float = UPDATE_SECONDS
) -> dict[str, Any]:
    """Run all arms and compare them with the better synchronous one."""
    found = {name: run(settings, iterations, sampler, update_seconds) for name, settings in arms.items()}
    best = max(found[name]["turns_a_second"] for name in SYNCHRONOUS)
    for name, row in found.items():
        row["times_lockstep"] = row["turns_a_second"] / found["lockstep"]["turns_a_second"]
        row["times_best_synchronous"] = row["turns_a_second"] / best
        print(
            f"{name:20} {row['seconds_an_iteration']:5.2f} s, {row['turns_a_second']:6.1f} turns/s, "
            f"{row['times_lockstep']:.2f} x lockstep, {row['times_best_synchronous']:.2f} x the better of both, "
            f"oldest {row['policy/staleness_max']:.0f}",
            flush=True,
        )
    return found


def main() -> int:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=14)
    parser.add_argument("--parts", nargs="+", choices=PARTS, help="default: all")
    parser.add_argument("--output", type=Path, default=TARGET)
    options = parser.parse_args()
    torch.set_num_threads(1)
    few = {name: ASYNCHRONOUS[name] for name in ("async, K = 1, wait", "async, K = 2, wait", "async, K = 2, drop")}
    count = options.iterations
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "simulated": lambda: part({**SYNCHRONOUS, **ASYNCHRONOUS}, count, sleeping_call),
        "served": lambda: part({**SYNCHRONOUS, **ASYNCHRONOUS}, count, partial(sleeping_servers, CALL_SECONDS)),
        "served, a call at a time": lambda: part(
            {**SYNCHRONOUS, **few}, count, partial(sleeping_servers, CALL_SECONDS, in_background=False)
        ),
        "real": lambda: part({**SYNCHRONOUS, **few}, count, nullcontext, update_seconds=0.0),
    }
    known = json.loads(options.output.read_text("utf8")) if options.output.exists() else {}
    found = {
        name: measure() if name in (options.parts or parts) else known[name]
        for name, measure in parts.items()
        if name in (options.parts or parts) or name in known
    }
    fastest = {name: max(row["times_best_synchronous"] for row in rows.values()) for name, rows in found.items()}
    settings = {
        "step_seconds": STEP_SECONDS,
        "call_seconds": CALL_SECONDS,
        "update_seconds": UPDATE_SECONDS,
        "groups": ROLLOUT.groups,
        "group_size": ROLLOUT.group_size,
        "num_envs": ROLLOUT.num_envs,
        "iterations": count,
    }
    content = {
        "command": "python benchmarks/studies/speed/asynchronous.py",
        "machine": machine("torch"),
        "settings": settings,
        "fastest_times_best_synchronous": fastest,
        **found,
    }
    write_json(options.output, content)
    return 0 if all(fastest.get(name, FACTOR) >= FACTOR for name in ("simulated", "served")) else 1


if __name__ == "__main__":
    sys.exit(main())
