"""The runs that are killed: their settings, and the process that trains them.

Run as ``python -m turngym.benchmarks.studies.checks.killed_runs.runs FOLDER`` by each rank of a launcher.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from turngym.agents.models.embedded import EmbeddedConfig
from turngym.agents.models.loading import LanguageModel
from turngym.agents.models.rollout_servers.config import ServedConfig
from turngym.agents.trajectory import Trajectory
from turngym.benchmarks.studies.harness import ROOT
from turngym.storage.files import append_line, write_json
from turngym.terminal.console import Console
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.engine.learner import Learner
from turngym.trainers.engine.ranks.launch import is_first_here
from turngym.trainers.loop.asynchronous.task import AsyncTask
from turngym.trainers.loop.job import train
from turngym.trainers.loop.sft import SupervisedConfig
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig
from turngym.trainers.settings.ray import RayConfig

GROUPS, SIZE, ITERATIONS = 3, 3, 10
LONGEST_LIFE = 120
"""Resets and steps."""
_ASYNC = RolloutConfig(
    groups=GROUPS, group_size=SIZE, num_envs=12, max_new_tokens=4, format="plain", schedule="async", backend="thread"
)
_LOCKSTEP = replace(_ASYNC, schedule="lockstep")
SERVED = ServedConfig(poll=0.25, timeout=60, patience=300)
BASE = TrainConfig(
    env="watched_env:test/Watched-v0",
    algorithm="grpo",
    iterations=ITERATIONS,
    max_seconds=0,
    checkpoint_every=3,
    control=False,
    embedded=EmbeddedConfig(hidden_size=16, layers=1, heads=2, vocabulary=300),
    warmup=SupervisedConfig(demonstrations=0),
    update=UpdateConfig(minibatches=2),
    evaluation=EvaluationConfig(episodes=0, every=0, curve_episodes=1),
)


@dataclass(frozen=True)
class Kind:
    """A kind of runs, and what is killed of them.

    Args:
        rollout: How episodes are played.
        victim: What is killed: ``learner``, ``environment worker`` (and then the learner), ``rank``, ``server`` or
            ``Ray worker``.
        ranks: Processes that train together.
        torchrun: Whether ``torchrun`` starts them, and not a process that imported everything before.
        servers: Servers of the policy beside the run.
    """

    rollout: RolloutConfig
    victim: str = "learner"
    ranks: int = 1
    torchrun: bool = False
    servers: int = 0

    @property
    def is_reproducible(self) -> bool:
        """True if the run has to end with the numbers of one in one piece."""
        return self.rollout.schedule != "async" or self.rollout.max_staleness == 0


KINDS: Mapping[str, Kind] = {
    "async, K = 2": Kind(replace(_ASYNC, max_staleness=2)),
    "async, K = 1, worker processes": Kind(
        replace(_ASYNC, max_staleness=1, backend="process", num_workers=3), "environment worker"
    ),
    "async, K = 0": Kind(replace(_ASYNC, max_staleness=0)),
    "2 ranks, lockstep": Kind(_LOCKSTEP, "rank", ranks=2),
    "2 ranks, async, K = 1": Kind(replace(_ASYNC, max_staleness=1), "rank", ranks=2),
    "2 ranks of torchrun, lockstep": Kind(_LOCKSTEP, "rank", ranks=2, torchrun=True),
    "2 servers, lockstep": Kind(_LOCKSTEP, "server", servers=2),
    "2 servers, async, K = 1": Kind(replace(_ASYNC, max_staleness=1), "server", servers=2),
    "2 Ray workers, lockstep": Kind(replace(_LOCKSTEP, ray=RayConfig(workers=2)), "Ray worker"),
}


@dataclass
class Run:
    """A run that is killed again and again.

    Args:
        folder: Where it lies; its run folder, what its environments wrote, and what it trained on.
        kind: What it is.
        config: Its settings.
        longest_life: Most resets and steps before a kill.
        seen: Episodes that had finished at a kill -> their tokens.
        kills: What was killed how often.
        is_over: Whether its process ended by itself.
    """

    folder: Path
    kind: Kind
    config: TrainConfig
    longest_life: int = LONGEST_LIFE
    seen: dict[int, str] = field(default_factory=dict)
    kills: dict[str, int] = field(default_factory=dict)
    is_over: bool = False

    @property
    def run(self) -> Path:
        return self.folder / "run"

    @property
    def is_done(self) -> bool:
        return (self.run / "done").exists()

    def killed(self, what: str) -> None:
        """Count a kill."""
        self.kills[what] = self.kills.get(what, 0) + 1


def run_of(folder: Path, kind: str, number: int, longest_life: int = LONGEST_LIFE, is_watched: bool = True) -> Run:
    """Return a run in a folder, which is made if it is new.

    Args:
        folder: The folder.
        kind: Name of its kind.
        number: Its seed.
        longest_life: Most resets and steps before a kill.
        is_watched: Whether its environments write down what they do.
    """
    folder.mkdir(exist_ok=True)
    (folder / "log").touch()
    servers = json.loads((folder / "servers.json").read_text()) if (folder / "servers.json").exists() else []
    write_json(folder / "kind.json", {"kind": kind, "number": number, "is_watched": is_watched})
    options = {"log": str(folder / "log") if is_watched else "", "seconds": 0.005, "longest": 10}
    config = replace(BASE, seed=number, env_options=options, rollout=KINDS[kind].rollout)
    if servers:
        served = replace(SERVED, folder=str(folder / "exchange"))
        rollout = replace(config.rollout, sampler="vllm-server", servers=tuple(servers), served=served)
        config = replace(config, model=str(folder / "model"), rollout=rollout)
    return Run(folder, KINDS[kind], config, longest_life)


def tokens(episode: Trajectory) -> str:
    """Return a hash of everything that was sampled in an episode."""
    content = [(t.prompt_ids, t.completion_ids, t.logprobs, t.reward, t.policy_version) for t in episode.turns]
    return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


def texts(episode: Trajectory) -> str:
    """Return the same without log-probabilities, whose last bits depend on what a server computes side by side."""
    content = [(t.prompt_ids, t.completion_ids, t.reward, t.policy_version) for t in episode.turns]
    return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


def child(run: Run) -> None:
    """Train, or go on, and write down every batch and every metric."""
    _note_batches(run)

    def watch(model: LanguageModel, record: Mapping[str, Any]) -> None:
        metrics = {name: value for name, value in record.items() if not name.startswith("time/")}
        append_line(run.folder / "records.jsonl", json.dumps(metrics))
        append_line(run.folder / "batches.jsonl", json.dumps({"iteration": record["iteration"], "trained": True}))

    resume = (run.run / "config.json").exists()
    with (run.folder / "output").open("a") as output:
        train(run.config, run.run, resume=resume, console=Console(file=output), watch=watch)


def _note_batches(run: Run) -> None:
    """Let this process write down the episodes of every batch that it gathers from a journal, or trains on."""
    hashed = texts if run.kind.servers else tokens

    def note(iteration: int, groups: list[int], batch: list[Trajectory]) -> None:
        episodes = {f"{groups[k // SIZE]}.{k % SIZE}": hashed(each) for k, each in enumerate(batch)}
        seeds = [each.spec.seed for each in batch]
        line = {"iteration": iteration, "episodes": episodes, "seeds": seeds}
        append_line(run.folder / "batches.jsonl", json.dumps(line))

    gather, update = AsyncTask.gather, Learner.update

    def gathered(self: AsyncTask, model: LanguageModel, iteration: int, *given: Any, **named: Any) -> list[Trajectory]:
        batch = gather(self, model, iteration, *given, **named)
        note(iteration, self._rounds[-1], batch)
        return batch

    def updated(self: Learner, trajectories: Any, iteration: int) -> Any:
        if is_first_here():
            first = iteration * GROUPS
            note(iteration, list(range(first, first + GROUPS)), trajectories)
        return update(self, trajectories, iteration)

    if run.config.rollout.is_journaled:
        AsyncTask.gather = gathered  # type: ignore[method-assign]
    else:
        Learner.update = updated  # type: ignore[method-assign]


def add_support() -> None:
    """Register the environment that writes down what it does."""
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    importlib.import_module("watched_env")


def main(folder: Path) -> None:
    """Train as one of the ranks of a launcher."""
    add_support()
    settings = json.loads((folder / "kind.json").read_text())
    child(run_of(folder, settings["kind"], settings["number"], is_watched=settings["is_watched"]))


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(Path(sys.argv[1]))
