"""The same game learnt in the native loop and by an agent program through the gateway, three seeds each.

Arms, written down before they ran: GRPO on NumberLine, where each episode is one conversation; the same warm start,
batch, and number of iterations for equal seeds. In the arm ``native`` the built-in agent plays, in ``gateway`` a
scripted program (``gateway_player.py``) that is started for each episode with ``--agent.command`` and asks the model
over HTTP. Both show the model the same tokens; the random numbers of sampling differ, because the gateway makes them
from the prompt. What is compared is success in training over the last ten iterations and over all, with 95 % intervals
of the difference over the seeds (Student's t).
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from run_queue import RESULTS, mean_and_range, run_all, summary, write_results

from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.report.curve import write_curves

WAYS = ("native", "gateway")
SEEDS = (0, 1, 2)
ITERATIONS = 50
LAST = 10
PLAYER = Path(__file__).with_name("gateway_player.py")
COMMAND = f"{sys.executable} -I -S {PLAYER} {{base_url}} {{env_url}} {{key}}"
_SHOWN = "python -I -S gateway_player.py {base_url} {env_url} {key}"
COMMON = [
    *("--env", "turngym/NumberLine-v0", "--env-options", "highest=5", "max_turns=5"),
    *("--algorithm", "grpo", "--no-control", "--max-seconds", "0", "--iterations", str(ITERATIONS)),
    *("--rollout.prompt.mode", "conversation", "--rollout.groups", "8", "--rollout.group-size", "8"),
    *("--embedded.hidden-size", "64", "--embedded.layers", "2", "--update.learning-rate", "1e-3"),
    *("--warmup.demonstrations", "40", "--warmup.epochs", "8", "--evaluation.every", "10"),
]
_T_OF_TWO = 4.303
"""97.5 % quantile of Student's t with two degrees of freedom."""


def name_of(way: str, seed: int) -> str:
    """Return the name of an arm."""
    return f"gateway-learning-{way}-seed{seed}"


ARMS = {
    name_of(way, seed): [
        *COMMON,
        *("--seed", str(seed)),
        *(("--agent.command", COMMAND) if way == "gateway" else ()),
    ]
    for seed in SEEDS
    for way in WAYS
}


def difference(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Return the mean of the second less the first, and its 95 % interval over three pairs."""
    pairs = [b - a for a, b in zip(first, second, strict=True)]
    mean, half = statistics.fmean(pairs), _T_OF_TWO * statistics.stdev(pairs) / len(pairs) ** 0.5
    return [round(mean, 4), round(mean - half, 4), round(mean + half, 4)]


def main() -> int:
    """Run what is missing, print the table, write ``benchmarks/results/gateway_learning.json`` and the picture."""
    folders = run_all(ARMS)
    runs = {name: summary(folder) for name, folder in folders.items()}
    for name, folder in folders.items():
        success = [record["rollout/success"] for record in RunFolder(folder).metrics()]
        runs[name] |= {"success": success, "last": statistics.fmean(success[-LAST:]), "all": statistics.fmean(success)}
    table = {
        what: {way: [runs[name_of(way, seed)][what] for seed in SEEDS] for way in WAYS} for what in ("last", "all")
    }
    differences = {what: difference(each["native"], each["gateway"]) for what, each in table.items()}
    arms = {name: [_SHOWN if word == COMMAND else word for word in words] for name, words in ARMS.items()}
    write_results("gateway_learning", {"arms": arms, "runs": runs, "gateway less native": differences})
    curves = {way: [folders[name_of(way, seed)] for seed in SEEDS] for way in WAYS}
    write_curves(curves, RESULTS / "gateway_learning.png", f"NumberLine, {ITERATIONS} iterations of 64 episodes")
    for way in WAYS:
        print(way, *(f"{what} {mean_and_range(table[what][way])}" for what in table))
    print("gateway less native", differences)
    return 0


if __name__ == "__main__":
    sys.exit(main())
