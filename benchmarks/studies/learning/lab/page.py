"""The page of the laboratory's claims, and its curves, from the stored runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.experiment import Experiment
from lab.experiments import EXPERIMENTS
from lab.queue import RESULTS, Ledger, summary
from turngym.storage.files import write_atomic

PAGE = "claims.md"
_HEAD = """# Claims of papers, tested with power

Tiny policies (one hidden layer over one-hot contexts) over small worlds; turn table, methods, losses, learner and
trainer are those of every training run. All arms of an experiment have equal environment turns (equal episodes in (d)
and most of (g)), equal clip widths and no entropy bonus unless it is under test; a test compares each arm's settings
with its method's page. A pilot on seeds of its own chose each arm's step size from the same grid and set the number of
seeds for 90 % power (at least 20, at most 200); comparisons are paired by seed and made once, after the last run.

*Holds*: the 95 % interval of the difference lies above 0. *Does not hold*: it lies below the effect that the experiment
was made for. *Undecided*: neither. *Not tested*: a metric says that what the arm is named for did nothing. Made by
`python benchmarks/studies/learning/laboratory.py page` from `benchmarks/results/claims/`; `... run LETTER` repeats an
experiment. The embedded model on text worlds, with three seeds: [claims_embedded.md](claims_embedded.md).
"""


def state_of(experiment: Experiment, folder: Path = RESULTS) -> str:
    """Return how far an experiment is."""
    return str(summary(Ledger(experiment, folder))["state"])


def page(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page, given what each experiment found."""
    lines = [_HEAD, "| claim | at | seeds | power | difference, points [95 %] | verdict |", "|---|---|---|---|---|---|"]
    for name, result in found.items():
        for row in result.get("contrasts", ()):
            if row["claimed"]:
                cells = (row["contrast"], row["level"], row["seeds"], _power(result, row), _points(row), row["verdict"])
                lines.append(f"| ({name}) " + " | ".join(str(cell) for cell in cells) + " |")
        if result["state"] != "complete":
            lines.append(f"| ({name}) {result['claim']} | | | | | not yet run: {result['state']} |")
    for name, result in found.items():
        lines += ["", *_section(name, result)]
    return "\n".join(lines) + "\n"


def _power(result: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    planned = result["plan"]["contrasts"]
    [same] = [each for each in planned if (each["contrast"], each["level"]) == (row["contrast"], row["level"])]
    return f"{100 * same['power']:.0f} % for {100 * same['effect']:.0f}"


def _points(row: Mapping[str, Any]) -> str:
    """Return a difference of shares in points with its interval.

    >>> _points({"difference": {"mean": 0.1, "low": -0.021, "high": 0.3}})
    '+10.0 [-2.1, 30.0]'
    """
    found = row["difference"]
    return f"{100 * found['mean']:+.1f} [{100 * found['low']:.1f}, {100 * found['high']:.1f}]"


def _section(name: str, result: Mapping[str, Any]) -> list[str]:
    head = [f"## ({name}) {result['claim']}", "", f"{result['source']}. Levels: {result['varied']}."]
    if result["state"] != "complete":
        return [*head, "", f"State: {result['state']}; `{result['command']}`."]
    plan, experiment = result["plan"], EXPERIMENTS[name]
    lines = [
        *head,
        f"{result['runs']} runs, {result['hours']} hours of one core; {plan['seeds']} seeds ({plan['needed']} needed).",
        "",
        f"![curves](claims/{name}.png)",
        "",
        "| contrast | level | claimed there | better, % | worse, % | difference, points [95 %] | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in result["contrasts"]:
        shares = f"{100 * row['better']:.1f} | {100 * row['worse']:.1f}"
        claimed = "yes" if row["claimed"] else "no"
        lines.append(
            f"| {row['contrast']} | {row['level']} | {claimed} | {shares} | {_points(row)} | {row['verdict']} |"
        )
    metrics = list(dict.fromkeys(each for row in result["arms"] for each in row["metrics"]))
    lines += [
        "",
        "| arm | level | step size | turns | success at the end, % | mean of the run, % | collapsed, % | acted | "
        + " | ".join(f"`{each}`" for each in metrics)
        + " |",
        "|---" * (8 + len(metrics)) + "|",
    ]
    lines += [_arm_row(row, metrics) for row in result["arms"]]
    return [*lines, "", *(f"- `{key}`: {why}." for key, why in experiment.reasons.items())]


def _arm_row(row: Mapping[str, Any], metrics: Sequence[str]) -> str:
    shares = " | ".join(f"{100 * row[key]:.1f}" for key in ("final", "mean", "collapsed"))
    acted = ("yes" if all(row["acted"].values()) else "NO") if row["acted"] else ""
    values = " | ".join(f"{row['metrics'][each]:g}" if each in row["metrics"] else "" for each in metrics)
    head = f"{row['arm']} | {row['level']} | {row['rate']:g} | {row['turns']}"
    return f"| {head} | {shares} | {acted} | {values} |"


def write_curves(result: Mapping[str, Any], target: Path) -> None:
    """Draw the mean curve of every arm, a panel a level."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    levels = list(dict.fromkeys(row["level"] for row in result["contrasts"]))
    figure, panels = pyplot.subplots(1, len(levels), figsize=(3.2 * len(levels), 3), sharey=True, squeeze=False)
    for panel, level in zip(panels[0], levels, strict=True):
        for row in result["arms"]:
            if row["level"] == level or sum(each["arm"] == row["arm"] for each in result["arms"]) == 1:
                panel.plot(
                    [k / (len(row["curve"]) - 1) for k in range(len(row["curve"]))], row["curve"], label=row["arm"]
                )
        panel.set_title(level, fontsize=9)
        panel.set_xlabel("share of the turns")
    panels[0][0].set_ylabel("success")
    panels[0][-1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(target, dpi=90, metadata={"Software": ""})
    pyplot.close(figure)


def write_page(folder: Path = RESULTS) -> None:
    """Write the page beside a folder of runs, and into it summaries, and curves of the experiments that are complete.

    Args:
        folder: Where the runs are.
    """
    found = {name: summary(Ledger(experiment, folder)) for name, experiment in EXPERIMENTS.items()}
    folder.mkdir(parents=True, exist_ok=True)
    for name, result in found.items():
        if result["state"] == "complete":
            write_curves(result, folder / f"{name}.png")
        write_atomic(folder / f"{name}.json", json.dumps(result, indent=1, ensure_ascii=False).encode() + b"\n")
    write_atomic(folder.parent / PAGE, page(found).encode())
