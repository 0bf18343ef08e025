"""SmolLM2-135M-Instruct learns from reward on one CPU core: games and a tool task, with supervised controls.

    make .venvs/smollm2
    turngym study run benchmarks/studies/learning/pretrained.toml          # again after an interruption: it goes on
    turngym study run benchmarks/studies/learning/pretrained_again.toml    # what was written down after its results
    python benchmarks/studies/learning/pretrained.py                       # writes what is finished

Arms, seeds and claims are in the plans, which were written down before they ran; how their settings were found is there
too. This script starts nothing: it writes ``benchmarks/results/pretrained-ARM.json`` for each arm with finished runs
here, and a picture of all arms that have such a file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from learning_page import by_arm, stored
from run_queue import RESULTS, ROOT, mean_and_range, summary, write_results

from turngym.benchmarks.study.outcome import read_outcome
from turngym.benchmarks.study.plan import Plan, read_plan
from turngym.benchmarks.study.queue import processor_seconds, state_of
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.report.curve import BLUE, GREEN, VERMILION

PLANS = tuple(Path(__file__).with_name(f"{name}.toml") for name in ("pretrained", "pretrained_again"))
STUDIES = ROOT / "runs" / "studies"
STAGES: Mapping[str, tuple[str, str]] = {
    "warmup": ("warm-up", VERMILION),
    "control": ("control", GREEN),
    "final": ("trained", BLUE),
}
WAYS = ("sampled", "greedy")


def finished(plan: Plan) -> dict[str, list[Path]]:
    """Return arm -> folders of its finished runs."""
    runs = {arm: [STUDIES / plan.name / f"{arm}-seed{seed}" for seed in plan.seeds] for arm in plan.arms}
    return {arm: [run for run in each if state_of(run) == "finished"] for arm, each in runs.items()}


def run_summary(folder: Path) -> dict[str, Any]:
    """Return the figures of one run: evaluations, paired differences, the course of training, its control, its time."""
    file = folder / "control" / "summary.json"
    control = json.loads(file.read_text("utf8")) if file.exists() else {"losses": []}
    records = RunFolder(folder).metrics()
    return {
        **summary(folder),
        "processor_seconds": processor_seconds(folder),
        "success_in_training": [record["rollout/success"] for record in records],
        "entropy": [record["policy/entropy_sampled"] for record in records],
        "mean_logprob_gap": [record["train/logprob_gap_mean"] for record in records],
        "control": {**control, "losses": control["losses"][-1:]},
    }


def successes(runs: Sequence[Mapping[str, Any]], stage: str, way: str) -> list[float]:
    """Return the success of every run in one evaluation."""
    return [float(run["evaluations"][f"{stage}-{way}"]["success"]["value"]) for run in runs]


def draw(arms: Mapping[str, Sequence[Mapping[str, Any]]], target: Path) -> None:
    """Draw the success of every run, before, after and of its control if it has one, sampled."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(4.0, 1.8 * len(arms)), 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for place, runs in enumerate(arms.values()):
        for shift, stage in enumerate(stages(runs)):
            values = [100 * value for value in successes(runs, stage, "sampled")]
            at, colour = place + 0.25 * (shift - 1), STAGES[stage][1]
            axes.plot([at] * len(values), values, "o", color=colour)
            axes.plot([at - 0.09, at + 0.09], [sum(values) / len(values)] * 2, color=colour, linewidth=2)
    for name, colour in STAGES.values():
        axes.plot([], [], "o", color=colour, label=name)
    axes.set_xticks(range(len(arms)), list(arms), fontsize=8)
    axes.set_ylabel("success, %")
    axes.set_ylim(0, 100)
    axes.set_title("SmolLM2-135M-Instruct: one dot a seed, the line is their mean", fontsize=10)
    axes.legend()
    figure.savefig(target, dpi=160)


def stages(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the stages at which all runs of an arm were evaluated."""
    return [stage for stage in STAGES if all(f"{stage}-sampled" in run["evaluations"] for run in runs)]


def written_runs(folder: Path = RESULTS) -> dict[str, list[dict[str, Any]]]:
    """Return arm -> its runs by seed, of the arms that have a result file."""
    arms = [arm for path in PLANS for arm in read_plan(path).arms]
    files = {arm: stored(f"pretrained-{arm}", folder) for arm in arms}
    return {arm: by_arm(found["runs"])[arm] for arm, found in files.items() if found}


def main() -> int:
    """Print the table of the finished runs, and write the result files and the picture."""
    found = 0
    for path in PLANS:
        plan, command = read_plan(path), f"turngym study run {path.relative_to(ROOT).as_posix()}"
        for arm, folders in finished(plan).items():
            if folders:
                runs = {folder.name: run_summary(folder) for folder in folders}
                outcome = read_outcome(plan.part([arm]), STUDIES / plan.name)
                write_results(f"pretrained-{arm}", {"command": command, "study": outcome.as_json(), "runs": runs})
                found += len(runs)
    if not found:
        raise SystemExit(f"no run is finished in {STUDIES}: run one of {', '.join(map(str, PLANS))}.")
    arms = written_runs()
    draw(arms, RESULTS / "pretrained.png")
    for arm, seeds in arms.items():
        for way in WAYS:
            shown = (f"{STAGES[stage][0]} {mean_and_range(successes(seeds, stage, way))}" for stage in stages(seeds))
            print(f"{arm:14} {way:8} {len(seeds)} runs, success %: {', '.join(shown)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
