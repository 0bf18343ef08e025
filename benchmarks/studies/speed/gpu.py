"""Checks and measures turngym on one GPU, in one process and a few minutes.

Correctness comes first: log-probabilities, entropies and gradients against float64 on the CPU, kept caches against the
trainer, whole updates and the supervised warm-up against the CPU, a run of the command with its control. Then speed at
the shape of a 0.6 B model with random weights: sampled tokens a second, trained tokens a second, their share of the
measured peak, and memory.

Each piece stands alone: what it finds is printed at once as a line of JSON, a failure is a row of the table, and what
does not fit into ``--seconds`` is skipped and named. Without a GPU: ``--device cpu --shape tiny``.

A bare machine needs Python 3.12, torch, transformers, peft, accelerate, jaxtyping and, if it reaches no package index,
these wheels: gymnasium, farama-notifications, pettingzoo, tyro, docstring-parser, typeguard, wonderwords.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence

import torch

from turngym.benchmarks.studies.harness import arguments, write_result
from turngym.benchmarks.studies.speed import gpu_checks, gpu_speed
from turngym.benchmarks.studies.speed.gpu_lease import Lease
from turngym.benchmarks.studies.speed.gpu_models import SHAPES

PIECES: Mapping[str, tuple[Callable[[Lease], None], float]] = {
    "ceilings": (gpu_speed.ceilings, 10),
    "scores": (gpu_checks.scores, 20),
    "sessions": (gpu_checks.sessions, 15),
    "updates": (gpu_checks.updates, 15),
    "warm-up": (gpu_checks.warm_up, 5),
    "rollout": (gpu_speed.rollouts, 40),
    "update": (gpu_speed.update_arms, 40),
    "workers": (gpu_checks.workers, 10),
    "command": (gpu_checks.command, 50),
}
"""Name of a piece -> its work, and the seconds that must be left."""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    made = arguments(__doc__, "gpu.json")
    made.add_argument("--pieces", nargs="+", choices=list(PIECES), default=list(PIECES))
    made.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    made.add_argument("--shape", choices=list(SHAPES), default="0.6B", help="of the pieces rollout and update")
    made.add_argument("--seconds", type=float, default=420, help="time for everything")
    made.add_argument("--rows", type=int, default=32, help="conversations of an update")
    made.add_argument("--length", type=int, default=2048, help="tokens of a conversation")
    made.add_argument("--micro-batch", type=int, default=16_384, help="tokens of a micro-batch")
    made.add_argument("--updates", type=int, default=2, help="measured updates of each arm")
    made.add_argument("--new-tokens", type=int, default=128, help="sampled tokens a turn")
    return made


def main(words: Sequence[str] | None = None) -> int:
    """Run the pieces, print the table, and write the file; 1 if a check failed."""
    options = parser().parse_args(words)
    lease = Lease(options)
    for name in options.pieces:
        work, needed = PIECES[name]
        if lease.left < needed:
            lease.add(name, "skipped: no time", left=lease.left)
            continue
        start = time.perf_counter()
        lease.attempt(name, "stopped", lambda work=work: work(lease))  # type: ignore[misc]
        print(f"-- {name}: {time.perf_counter() - start:.1f} s, {lease.left:.0f} s left", flush=True)
    print(lease.table())
    device = torch.cuda.get_device_name() if lease.on_gpu else "none"
    given = {key: value for key, value in vars(options).items() if key != "out"}
    write_result(options.out, {"gpu": device, **given, "rows": lease.rows}, "torch", "transformers")
    return int(lease.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
