"""A hundred kills of runs with journals: no episode is lost, played twice or trained on twice.

    python benchmarks/studies/checks/kills.py [--kills N]

Tiny runs are killed (SIGKILL) at random times, the learner's process or a worker process of its environments, and
resumed until they are done. Three kinds of runs: asynchronous with episodes up to 2 iterations old, the same without
staleness (which has to end with the numbers and weights of a run in one piece), and asynchronous with environments in
worker processes. The environments write down every reset and every step that they take. Writes
``benchmarks/results/kills.json``; ends with 1 if anything is not as it has to be.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from safetensors.torch import load_file

from turngym.agents.models.embedded import EmbeddedConfig
from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.benchmarks.machine import machine
from turngym.storage.files import append_line, read_jsonl, write_json
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.loop.asynchronous.history import History
from turngym.trainers.loop.asynchronous.task import AsyncTask
from turngym.trainers.loop.job import train
from turngym.trainers.loop.setup import iteration_specs
from turngym.trainers.loop.sft import SupervisedConfig
from turngym.trainers.records.journal import Journal
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig

ROOT = Path(__file__).parents[3]
GROUPS, SIZE, ITERATIONS = 3, 3, 10
LONGEST_LIFE = 120
"""Resets and steps."""
ROLLOUT = RolloutConfig(
    groups=GROUPS, group_size=SIZE, num_envs=12, max_new_tokens=4, format="plain", schedule="async", backend="thread"
)
BASE = TrainConfig(
    env="test/Watched-v0",
    algorithm="grpo",
    iterations=ITERATIONS,
    max_seconds=0,
    checkpoint_every=3,
    control=False,
    embedded=EmbeddedConfig(hidden_size=16, layers=1, heads=2, vocabulary=300),
    warmup=SupervisedConfig(demonstrations=0),
    update=UpdateConfig(minibatches=2),
    evaluation=EvaluationConfig(0, 0, 1),
)
KINDS: Mapping[str, RolloutConfig] = {
    "async, K = 2": replace(ROLLOUT, max_staleness=2),
    "async, K = 1, worker processes": replace(ROLLOUT, max_staleness=1, backend="process", num_workers=3),
    "async, K = 0": replace(ROLLOUT, max_staleness=0),
}


@dataclass
class Run:
    """A run that is killed again and again.

    Args:
        folder: Where it lies; its run folder, what its environments wrote, and what it trained on.
        config: Its settings.
        longest_life: Most resets and steps before a kill.
        seen: Episodes that had finished at a kill -> their tokens.
        learner_kills: Kills of the learner.
        worker_kills: Kills of worker processes.
        is_over: Whether its process ended by itself.
    """

    folder: Path
    config: TrainConfig
    longest_life: int = LONGEST_LIFE
    seen: dict[int, str] = field(default_factory=dict)
    learner_kills: int = 0
    worker_kills: int = 0
    is_over: bool = False

    @property
    def run(self) -> Path:
        return self.folder / "run"

    @property
    def is_done(self) -> bool:
        return (self.run / "done").exists()


def tokens(episode: Trajectory) -> str:
    """Return a hash of everything that was sampled in an episode."""
    content = [(t.prompt_ids, t.completion_ids, t.logprobs, t.reward, t.policy_version) for t in episode.turns]
    return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


def child(run: Run) -> None:
    """Train, or go on, and write down every batch and every metric."""
    gather = AsyncTask.gather

    def noted(self: AsyncTask, model: LanguageModel, iteration: int, *given: Any, **named: Any) -> list[Trajectory]:
        batch = gather(self, model, iteration, *given, **named)
        episodes = {str(self._rounds[-1][k // SIZE]) + f".{k % SIZE}": tokens(each) for k, each in enumerate(batch)}
        append_line(run.folder / "batches.jsonl", json.dumps({"iteration": iteration, "episodes": episodes}))
        return batch

    def watch(model: LanguageModel, record: Mapping[str, Any]) -> None:
        metrics = {name: value for name, value in record.items() if not name.startswith("time/")}
        append_line(run.folder / "records.jsonl", json.dumps(metrics))

    AsyncTask.gather = noted  # type: ignore[method-assign]
    resume = (run.run / "config.json").exists()
    with (run.folder / "output").open("a") as output:
        train(run.config, run.run, resume=resume, console=Console(file=output), watch=watch)


def start(run: Run) -> int:
    """Start a process that trains; returns its id."""
    found = os.fork()
    if found:
        return found
    try:
        os.setsid()
        errors = os.open(run.folder / "errors", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.dup2(errors, 2)  # servers that fork workers complain when their process has gone
        child(run)
    except BaseException as error:
        (run.folder / "error").write_text(f"{type(error).__name__}: {error}")
        os._exit(1)
    os._exit(0)


def workers_of(process: int) -> list[int]:
    """Return the ids of the processes below one, the deepest ones."""
    try:
        below = [
            int(each) for t in Path(f"/proc/{process}/task").iterdir() for each in (t / "children").read_text().split()
        ]
    except OSError:
        return []
    return [leaf for each in below for leaf in (workers_of(each) or [each])]


def lines_of(run: Run) -> int:
    """Return how many lines the environments have written so far."""
    return (run.folder / "log").read_bytes().count(b"\n")


def wait(run: Run, process: int, condition: Callable[[], bool]) -> bool:
    """Wait until a condition holds or the process has ended; returns whether it is still alive."""
    while not run.is_over and not condition():
        run.is_over = bool(os.waitpid(process, os.WNOHANG)[0])
        time.sleep(0.005)
    return not run.is_over


def live(run: Run, draw: random.Random) -> None:
    """Let a run live for a while, and kill its learner, or a worker and then its learner, unless it ends before.

    How long that is depends on what the environments have written, and not on how busy the machine is; one life in
    eight ends at a time of the clock, mostly before anything is played.
    """
    process, began = start(run), time.monotonic()
    if draw.random() < 1 / 8:
        wait(run, process, lambda: time.monotonic() > began + draw.uniform(0.0, 4.0))
    elif wait(run, process, lambda: (run.run / "warmup" / "done").exists()):
        before = lines_of(run)
        ends = before + draw.randrange(1, run.longest_life)
        if run.config.rollout.backend == "process":
            wait(run, process, lambda: lines_of(run) > draw.randrange(before, ends))
            if workers := workers_of(process):
                os.kill(draw.choice(workers), signal.SIGKILL)
                run.worker_kills += 1
        wait(run, process, lambda: lines_of(run) >= ends)
    if run.is_over:
        return
    time.sleep(draw.uniform(0.0, 0.2))
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    run.learner_kills += 1
    note_finished(run)


def note_finished(run: Run) -> None:
    """Keep the tokens of every episode that the journal calls finished; they may never be played again."""
    journal = Journal(run.run / "journal")
    segments = journal.segments()
    if segments and run.config.rollout.max_staleness:
        for group in History.of(journal.read(segments[-1]), segments[-1]).groups.values():
            for number, episode in group.episodes.items():
                if episode.whole is not None:
                    run.seen.setdefault(number, tokens(episode.whole))


def weights(run: Path) -> str:
    """Return a hash of the trained weights."""
    found = hashlib.sha256()
    for name, tensor in sorted(load_file(run / "model" / "model.safetensors").items()):
        found.update(name.encode() + tensor.numpy().tobytes())
    return found.hexdigest()


def without_counts(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return metrics without those that count interruptions."""
    return {name: value for name, value in record.items() if name not in ("rollout/restored", "rollout/replayed")}


def steps_of(run: Run) -> Counter[str]:
    """Return how often each line was written by the environments of training."""
    import watched_env

    env, mine = watched_env.Watched(), set()
    for spec in (spec for iteration in range(ITERATIONS) for spec in iteration_specs(run.config, iteration)):
        env.reset(seed=spec.seed)
        mine.add(env.instance)
    lines = (run.folder / "log").read_text().split("\n")[:-1]
    return Counter(line for line in lines if line.split()[1] in mine)


def judged(run: Run, whole: Path) -> dict[str, Any]:
    """Return what became of a finished run."""
    batches: dict[int, list[dict[str, str]]] = {}
    for line in read_jsonl(run.folder / "batches.jsonl"):
        batches.setdefault(line["iteration"], []).append(line["episodes"])
    trained = [name for each in batches.values() for name in each[-1]]
    by_number = {
        int(n.split(".")[0]) * SIZE + int(n.split(".")[1]): t for e in batches.values() for n, t in e[-1].items()
    }
    records: dict[int, list[dict[str, Any]]] = {}
    for record in read_jsonl(run.folder / "records.jsonl"):
        records.setdefault(record["iteration"], []).append(record)
    final = RunFolder(run.run).metrics()
    settled = {iteration: found[-1] for iteration, found in batches.items()}
    lines = steps_of(run)
    steps = sum(count for line, count in lines.items() if line.startswith("step"))
    turns = int(final[-1]["turns_total"])
    found = {
        "learner_kills": run.learner_kills,
        "worker_kills": run.worker_kills,
        "episodes": len(trained),
        "episodes_lost": ITERATIONS * GROUPS * SIZE - len(set(trained)),
        "episodes_trained_twice": len(trained) - len(set(trained)),
        "finished_episodes_that_changed": sum(by_number.get(n, t) != t for n, t in run.seen.items()),
        "batches_trained_again_that_differ": sum(
            sum(
                other != settled[i]
                for other in each
                if run.config.rollout.max_staleness == 0 or _was_trained(records, i)
            )
            for i, each in batches.items()
        ),
        "iterations_trained_again": sum(len(each) - 1 for each in records.values()),
        "iterations_whose_metrics_differ": sum(
            any(without_counts(other) != without_counts(each[-1]) for other in each) for each in records.values()
        ),
        "faults": int(sum(record["rollout/faults"] for record in final)),
        "turns": turns,
        "steps_taken_again": steps - turns,
        "restored": int(sum(record["rollout/restored"] for record in final)),
        "replayed_after_worker_death": int(sum(record["rollout/replayed"] for record in final)),
    }
    if run.config.rollout.max_staleness == 0:
        one_piece = [_plain(record) for record in RunFolder(whole).metrics()]
        found["equals_the_run_in_one_piece"] = weights(run.run) == weights(whole) and one_piece == [
            _plain(record) for record in final
        ]
    return found


def _was_trained(records: Mapping[int, Sequence[Any]], iteration: int) -> bool:
    """Return whether a batch was trained on, and not only gathered before a kill."""
    return len(records.get(iteration, ())) > 1


def _plain(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in without_counts(record).items() if not name.startswith("time/")}


def run_of(scratch: Path, kind: str, number: int, longest_life: int) -> Run:
    """Return a new run."""
    folder = scratch / f"{number:03d}"
    folder.mkdir()
    (folder / "log").touch()
    options = {"log": str(folder / "log"), "seconds": 0.005, "longest": 10}
    return Run(folder, replace(BASE, seed=number, env_options=options, rollout=KINDS[kind]), longest_life)


def one_piece(run: Run, folder: Path) -> Path:
    """Train the same run without a kill."""
    whole = Run(folder, replace(run.config, env_options={**run.config.env_options, "log": ""}))
    folder.mkdir()
    process = start(whole)
    assert os.waitpid(process, 0)[1] == 0, "the run in one piece failed"
    return whole.run


def is_good(found: Mapping[str, Any]) -> bool:
    """Return whether nothing was lost, repeated or changed."""
    never = (
        "episodes_lost",
        "episodes_trained_twice",
        "finished_episodes_that_changed",
        "batches_trained_again_that_differ",
        "iterations_whose_metrics_differ",
        "faults",
    )
    return not any(found[name] for name in never) and found.get("equals_the_run_in_one_piece", True)


def write(output: Path, runs: Sequence[Mapping[str, Any]]) -> None:
    """Write the runs so far."""
    totals = {
        name: sum(run[name] for run in runs)
        for name, value in runs[0].items()
        if isinstance(value, int) and not isinstance(value, bool)
    }
    content = {
        "command": "python benchmarks/studies/checks/kills.py",
        "machine": machine("torch"),
        "settings": {
            "iterations": ITERATIONS,
            "groups": GROUPS,
            "group_size": SIZE,
            "longest_life_lines": LONGEST_LIFE,
        },
        "totals": {"runs": len(runs), **totals},
        "is_good": all(run["is_good"] for run in runs),
        "runs": runs,
    }
    write_json(output, content)


def main() -> int:
    """Kill, resume and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest-life", type=int, default=LONGEST_LIFE, help="most resets and steps before a kill")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "results" / "kills.json")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    import watched_env  # noqa: F401 - registers the environment

    draw, runs = random.Random(options.seed), list[dict[str, Any]]()
    with tempfile.TemporaryDirectory() as scratch:
        while sum(run["learner_kills"] + run["worker_kills"] for run in runs) < options.kills:
            kind = list(KINDS)[len(runs) % len(KINDS)]
            run = run_of(Path(scratch), kind, len(runs), options.longest_life)
            while not run.is_done:
                live(run, draw)
                if (run.folder / "error").exists():
                    raise SystemExit(f"{kind}: {(run.folder / 'error').read_text()}")
            whole = (
                one_piece(run, Path(scratch, f"whole-{len(runs)}")) if not run.config.rollout.max_staleness else run.run
            )
            runs.append({"kind": kind, **judged(run, whole)})
            runs[-1]["is_good"] = is_good(runs[-1])
            print(json.dumps(runs[-1]), flush=True)
            write(options.output, runs)
    return 0 if all(run["is_good"] for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
