"""Kills of runs at random times: no episode is lost, played twice or trained on twice.

    python benchmarks/studies/checks/kills.py [--kills N] [--kinds KIND ...]

Tiny runs are killed (SIGKILL) and resumed until they are done. By default a hundred kills, of the learner's process or
a worker process of its environments, in three kinds of runs with journals: asynchronous with episodes up to 2
iterations old, the same without staleness (which has to end with the numbers and weights of a run in one piece), and
asynchronous with environments in worker processes. Other kinds have two ranks, one of which is killed; two servers of
the policy (``turngym serve-model``), which are killed and started again while the learner goes on, and the learner now
and then; and two rollout workers on Ray, whose processes are killed. Those in lockstep have to end as a run in one
piece. The environments write down every reset and every step that they take.

Writes ``benchmarks/results/kills.json``, where the runs of other kinds are kept; ends with 1 if anything is not as it
has to be.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from turngym.benchmarks.studies.checks.killed_runs.runs import (
    GROUPS,
    ITERATIONS,
    KINDS,
    LONGEST_LIFE,
    SIZE,
    Run,
    add_support,
    run_of,
)
from turngym.benchmarks.studies.checks.killed_runs.verdict import is_good, judged, note_finished
from turngym.benchmarks.studies.checks.killed_runs.victims import Servers, live, start
from turngym.benchmarks.studies.harness import arguments, write_result
from turngym.storage.files import write_json

_FIRST_KINDS = tuple(KINDS)[:3]
_KILLS = tuple(f"{what}_kills" for what in ("learner", "worker", "rank", "server", "ray_worker"))
COMMAND = "python benchmarks/studies/checks/kills.py"


def _killed_run(folder: Path, kind: str, number: int, draw: random.Random, longest_life: int) -> dict[str, Any]:
    """Kill and resume a run until it is done, and return what became of it."""
    servers = _servers(folder, kind)
    with closing(servers):
        run = run_of(folder, kind, number, longest_life)
        while not run.is_done:
            live(run, draw, servers)
            note_finished(run)
            if (run.folder / "error").exists() or (run.is_over and not run.is_done):
                raise SystemExit(f"{kind}: {run.folder}: {_why(run)}")
        whole = _one_piece(run, kind, number, servers) if run.kind.is_reproducible else None
    found = {"kind": kind, **judged(run, whole)}
    return {**found, "is_good": is_good(found)}


def _why(run: Run) -> str:
    found = run.folder / "error"
    return found.read_text() if found.exists() else (run.folder / "errors").read_text()[-2000:]


def _servers(folder: Path, kind: str) -> Servers:
    """Start the servers of a run."""
    from small import small_model

    folder.mkdir()
    count = KINDS[kind].servers
    if count:
        small_model().save(folder / "model")
    servers = Servers(folder, count)
    if count:
        write_json(folder / "servers.json", servers.urls)
        servers.await_answers()
    return servers


def _one_piece(run: Run, kind: str, number: int, servers: Servers) -> Run:
    """Train the same run without a kill."""
    folder = run.folder.with_name(f"{run.folder.name}-whole")
    whole = run_of(folder, kind, number, is_watched=False)
    if servers.ports:
        servers.await_answers()
        whole.config = replace(whole.config, model=run.config.model, rollout=run.config.rollout)
    if os.waitpid(start(whole), 0)[1]:
        raise SystemExit(f"the run in one piece failed: {_why(whole)}")
    return whole


def write(output: Path, runs: Sequence[dict[str, Any]], kept: Sequence[dict[str, Any]]) -> None:
    """Write the runs so far, after those of other kinds."""
    every = [*kept, *runs]
    totals: Counter[str] = Counter(dict.fromkeys(_KILLS, 0))
    for run in every:
        totals.update({name: value for name, value in run.items() if type(value) is int})
    settings = {"iterations": ITERATIONS, "groups": GROUPS, "group_size": SIZE, "longest_life_lines": LONGEST_LIFE}
    content = {
        "command": f"{COMMAND}; {COMMAND} --kinds KIND ... for those that follow",
        "settings": settings,
        "totals": {"runs": len(every), **totals},
        "is_good": all(run["is_good"] for run in every),
        "runs": every,
    }
    write_result(output, content, "torch")


def _kills_of(run: dict[str, Any]) -> int:
    """Return the number of kills of a run."""
    return sum(count for name, count in run.items() if name.endswith("_kills"))


def main() -> int:
    """Kill, resume and judge."""
    parser = arguments(__doc__, "kills.json")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=_FIRST_KINDS, metavar="KIND")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest-life", type=int, default=LONGEST_LIFE, help="most resets and steps before a kill")
    options = parser.parse_args()
    add_support()

    draw, runs = random.Random(options.seed), list[dict[str, Any]]()
    known = json.loads(options.out.read_text("utf8"))["runs"] if options.out.exists() else []
    kept = [run for run in known if run["kind"] not in options.kinds]
    with tempfile.TemporaryDirectory() as scratch:
        while sum(map(_kills_of, runs)) < options.kills:
            kind = options.kinds[len(runs) % len(options.kinds)]
            number = len(runs)
            runs.append(_killed_run(Path(scratch, f"{number:03d}"), kind, number, draw, options.longest_life))
            print(json.dumps(runs[-1]), flush=True)
            write(options.out, runs, kept)
    return 0 if all(run["is_good"] for run in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
