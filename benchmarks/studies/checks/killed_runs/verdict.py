"""What became of a run that was killed: every episode once, and the same numbers."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from turngym.benchmarks.studies.checks.killed_runs.runs import GROUPS, ITERATIONS, SIZE, Run, tokens
from turngym.storage.files import read_jsonl
from turngym.trainers.loop.asynchronous.history import History
from turngym.trainers.loop.setup import iteration_specs
from turngym.trainers.records.journal import Journal
from turngym.trainers.records.run_folder import RunFolder

_COUNTS = (
    "time/",
    "rollout/restored",
    "rollout/replayed",
    "rollout/server",
    "rollout/weight_",
    "rollout/workers_lost",
    "rollout/prefilled_tokens",
    "rollout/reused_tokens",
)
"""Metrics that count interruptions, or measure."""
_SERVED = 1e-4
"""How far metrics may differ where servers compute in batches of changing sizes."""
_NEVER = (
    "episodes_lost",
    "episodes_trained_twice",
    "finished_episodes_that_changed",
    "batches_trained_again_that_differ",
    "iterations_whose_metrics_differ",
    "faults",
)


def note_finished(run: Run) -> None:
    """Keep the tokens of every episode that the journal calls finished; they may never be played again."""
    settings = run.config.rollout
    journal = Journal(run.run / "journal")
    segments = journal.segments()
    if segments and settings.max_staleness and not run.kind.servers and settings.schedule == "async":
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
    return {name: value for name, value in record.items() if not name.startswith(_COUNTS)}


def _are_same(run: Run, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether metrics of two trainings of an iteration are the same."""
    mine, theirs = without_counts(one), without_counts(other)
    if not run.kind.servers:
        return mine == theirs
    return mine.keys() == theirs.keys() and all(
        math.isclose(mine[name], theirs[name], rel_tol=_SERVED, abs_tol=_SERVED) for name in mine
    )


def _steps_of(run: Run) -> Counter[str]:
    """Return how often each line was written by the environments of training."""
    import watched_env

    env, mine = watched_env.Watched(), set()
    for spec in (spec for iteration in range(ITERATIONS) for spec in iteration_specs(run.config, iteration)):
        env.reset(seed=spec.seed)
        mine.add(env.instance)
    lines = (run.folder / "log").read_text().split("\n")[:-1]
    return Counter(line for line in lines if line.split()[1] in mine)


def judged(run: Run, whole: Run | None) -> dict[str, Any]:
    """Return what became of a finished run.

    Args:
        run: The run.
        whole: The same run in one piece; None where there is none to compare with.
    """
    batches = gathered(run)
    records: dict[int, list[dict[str, Any]]] = {}
    for record in read_jsonl(run.folder / "records.jsonl"):
        records.setdefault(record["iteration"], []).append(record)
    final = RunFolder(run.run).metrics()
    steps = sum(count for line, count in _steps_of(run).items() if line.startswith("step"))
    turns = int(final[-1]["turns_total"])
    found = {
        **{f"{what.lower().replace(' ', '_')}_kills": count for what, count in sorted(run.kills.items())},
        **_episodes(run, batches),
        "iterations_trained_again": sum(len(each) - 1 for each in records.values()),
        "iterations_whose_metrics_differ": sum(
            any(not _are_same(run, other, each[-1]) for other in each) for each in records.values()
        ),
        "faults": int(sum(record["rollout/faults"] for record in final)),
        "turns": turns,
        "steps_taken_again": steps - turns,
        "restored": int(sum(record.get("rollout/restored", 0) for record in final)),
        "replayed_after_worker_death": int(sum(record.get("rollout/replayed", 0) for record in final)),
    }
    for name in ("server_faults", "server_returns", "workers_lost"):
        if f"rollout/{name}" in final[-1]:
            found[name] = int(sum(record[f"rollout/{name}"] for record in final))
    if whole is not None:
        found["equals_the_run_in_one_piece"] = _equals(run, whole, batches, final)
    return found


@dataclass
class Gathered:
    """A batch that was gathered.

    Args:
        episodes: Place in the run -> tokens.
        was_trained: Whether it was trained on, and not only gathered before a kill.
    """

    episodes: dict[str, str]
    was_trained: bool = False


def gathered(run: Run) -> dict[int, list[Gathered]]:
    """Return the batches that were gathered for each iteration, the last one being that of the finished run."""
    found: dict[int, list[Gathered]] = {}
    for line in read_jsonl(run.folder / "batches.jsonl"):
        if "trained" in line:
            found[line["iteration"]][-1].was_trained = True
        else:
            found.setdefault(line["iteration"], []).append(Gathered(line["episodes"]))
    return found


def _episodes(run: Run, batches: Mapping[int, Sequence[Gathered]]) -> dict[str, int]:
    """Return what was lost, trained twice or changed.

    Without staleness every batch of an iteration has the same episodes; else it is made of those that finished first,
    so that one that was not trained on may be another one the next time.
    """
    trained = [name for each in batches.values() for name in each[-1].episodes]
    by_number = {
        int(name.split(".")[0]) * SIZE + int(name.split(".")[1]): found
        for each in batches.values()
        for name, found in each[-1].episodes.items()
    }
    return {
        "episodes": len(trained),
        "episodes_lost": ITERATIONS * GROUPS * SIZE - len(set(trained)) + _strangers(run),
        "episodes_trained_twice": len(trained) - len(set(trained)),
        "finished_episodes_that_changed": sum(by_number.get(n, t) != t for n, t in run.seen.items()),
        "batches_trained_again_that_differ": sum(
            other.episodes != each[-1].episodes
            for each in batches.values()
            for other in each
            if other.was_trained or run.kind.is_reproducible
        ),
    }


def _strangers(run: Run) -> int:
    """Return the number of episodes in lockstep whose place in the batch another one has taken."""
    if run.config.rollout.is_journaled:
        return 0
    planned = {i: [spec.seed for spec in iteration_specs(run.config, i)] for i in range(ITERATIONS)}
    lines = [line for line in read_jsonl(run.folder / "batches.jsonl") if "seeds" in line]
    return sum(
        one != other for line in lines for one, other in zip(planned[line["iteration"]], line["seeds"], strict=True)
    )


def _equals(run: Run, whole: Run, batches: Mapping[int, Sequence[Gathered]], final: Sequence[Any]) -> bool:
    """Return whether a run ended as one in one piece: its episodes and metrics, and its weights to the bit.

    Servers compute in batches of changing sizes, whose last bits differ; their episodes have to be the same.
    """
    has_same = {i: each[-1].episodes for i, each in batches.items()} == {
        i: each[-1].episodes for i, each in gathered(whole).items()
    } and all(_are_same(run, one, other) for one, other in zip(final, RunFolder(whole.run).metrics(), strict=True))
    return has_same and (bool(run.kind.servers) or weights(run.run) == weights(whole.run))


def is_good(found: Mapping[str, Any]) -> bool:
    """Return whether nothing was lost, repeated or changed."""
    return not any(found[name] for name in _NEVER) and found.get("equals_the_run_in_one_piece", True)
