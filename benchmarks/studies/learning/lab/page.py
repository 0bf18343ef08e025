"""The page of the laboratory's claims, and its curves, from the stored runs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.decisions import FAILS, HOLDS, OPEN, PARTLY, RULE, UNTESTED
from lab.experiment import LEAST_SEEDS, MOST_SEEDS, Experiment
from lab.experiments import EXPERIMENTS
from lab.ledger import RESULTS, Ledger
from lab.planning import COMPLETE, summary
from lab.progress import looks_of
from turngym.storage.files import write_atomic

PAGE = "claims.md"
_VERDICTS = (HOLDS, PARTLY, FAILS, OPEN, UNTESTED)
_HEAD = f"""# Claims of papers, tested with power

Each claim that one method beats another under some condition is tested in an environment with this condition, with
policies so small (one hidden layer over one-hot contexts) that a run takes seconds. Turn table, methods, losses,
learner and trainer are those of every training run; only networks and environments are small, so results need not
transfer to language models on text.

- An *arm* is a method with its settings, which a test compares with the method's page; differences have reasons below
  the tables. Compared arms have equal samples (environment turns, or episodes in (d) and (g)) and equal clip ranges,
  and no entropy bonus unless it is under test.
- A *level* is one condition, such as the share of repeated states. Levels at which the paper claims a gain are marked.
- *Seeds*: a pilot with separate seeds chose each arm's learning rate from one grid, and the number of seeds so that
  the smallest relevant difference (10 points unless stated) is detected with a probability, the *power*, of
  90 %; at least {LEAST_SEEDS} seeds, at most {MOST_SEEDS} (fewer where a run costs much), so that the power is less
  where runs vary widely. Runs are compared in pairs of equal seeds, once at the end or at three planned looks. The
  power is that of the last look, and intervals are not corrected for looks.
- *Points* are percentage points of success, mean of the last three of sixteen evaluations, unless the comparison says
  *kept*: the share of runs that did not collapse. Intervals are those of 95 %.

{RULE} *Not tested*: a metric shows that the arm's mechanism was inactive. The tables of comparisons also have the
verdict of each interval *alone*: it holds if the interval is above 0, and does not if it is below the relevant effect.

Made by `python benchmarks/studies/learning/laboratory.py page` from `benchmarks/results/claims/`; `... run LETTER`
repeats an experiment. With the embedded language model on text worlds, and three seeds:
[claims_embedded.md](claims_embedded.md).
"""


def state_of(experiment: Experiment, folder: Path = RESULTS) -> str:
    """Return how far an experiment is."""
    return str(summary(Ledger(experiment, folder))["state"])


def page(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the page, given what each experiment found."""
    lines = [_HEAD, "## Verdicts", "", *_counts(found), ""]
    lines += [
        "| claim | verdict | holds | does not hold | undecided | differences, points | seeds | power |",
        "|---|---|---|---|---|---|---|---|",
        *(_claim_row(name, result) for name, result in found.items()),
    ]
    for name, result in found.items():
        lines += ["", *_section(name, result)]
    return "\n".join(lines) + "\n"


def _counts(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a sentence on how many claims have which verdict."""
    said = [result["decision"]["verdict"] for result in found.values() if result["state"] == COMPLETE]
    counts = ", ".join(_counted(said.count(each), each) for each in _VERDICTS if each in said)
    waiting = len(found) - len(said)
    return [
        f"Of {len(said)} claims: {counts}." if said else "None yet.",
        f"{waiting} {'has' if waiting == 1 else 'have'} not finished." if waiting else "",
    ]


def _counted(count: int, verdict: str) -> str:
    """Return a count and a verdict that agrees with it: "1 holds", "2 hold", "3 do not hold"."""
    plural = verdict.replace("holds", "hold").replace("does not", "do not")
    return f"{count} {verdict if count == 1 else plural}"


def _claim_row(name: str, result: Mapping[str, Any]) -> str:
    claim = f"[({name})](#{_anchor(name, result)}) {result['claim']}"
    if result["state"] != COMPLETE:
        return f"| {claim} | not finished: {result['state']} | | | | | | |"
    tests = result["decision"]["tests"]
    kinds = [[test for test in tests if test["said"].startswith(kind)] for kind in (HOLDS, FAILS, OPEN)]
    cells = ("; ".join(_where(test) for test in kind) for kind in kinds)
    idle = f"{result['decision']['idle']} not tested" if result["decision"]["idle"] else ""
    verdict = ", ".join(filter(None, [f"**{result['decision']['verdict']}**", idle]))
    ranges = (_range([100 * test["mean"] for test in tests], "+.1f"), _range([100 * test["power"] for test in tests]))
    seeds = _range([test["seeds"] for test in tests] or [row["seeds"] for row in result["contrasts"]])
    return f"| {claim} | {verdict} | {' | '.join(cells)} | {ranges[0]} | {seeds} | {ranges[1]} % |"


def _where(test: Mapping[str, Any]) -> str:
    """Return a test in short."""
    name = str(test["contrast"]).removesuffix(" (final)")
    return f"{name} at {test['level']}: {100 * test['mean']:+.1f}" + (" (worse)" if "worse" in test["said"] else "")


def _range(values: Sequence[float], form: str = ".0f") -> str:
    """Return the least and the greatest of some numbers.

    >>> _range([3.0, 1.0, 2.0]), _range([90.2, 90.4]), _range([])
    ('1 to 3', '90', '')
    """
    ends = [format(value, form) for value in (min(values), max(values))] if values else [""]
    return " to ".join(dict.fromkeys(ends))


def _anchor(name: str, result: Mapping[str, Any]) -> str:
    """Return the anchor of a section, as pages are rendered.

    >>> _anchor("a2", {"claim": "It's better, at 5 %."})
    'a2-its-better-at-5-'
    """
    return re.sub(r"[^\w -]", "", f"{name} {result['claim']}".lower()).replace(" ", "-")


def _seeds(result: Mapping[str, Any]) -> str:
    """Return how many seeds were compared, of how many.

    >>> plan = {"seeds": 200, "needed": 240, "looks": [[50, 0.01], [200, 0.04]]}
    >>> _seeds({"contrasts": [{"seeds": 50}, {"seeds": 200}], "plan": plan})
    '50 to 200 seeds (240 needed; looks at 50, 200)'
    """
    plan = result["plan"]
    due = [str(each.seeds) for each in looks_of(plan)]
    looked = f"; looks at {', '.join(due)}" if len(due) > 1 else ""
    return f"{_range([row['seeds'] for row in result['contrasts']])} seeds ({plan['needed']} needed{looked})"


def _power(result: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    for same in result["plan"]["contrasts"]:
        if (same["contrast"], same["level"]) == (row["contrast"], row["level"]):
            return f"{100 * same['power']:.0f} % for {100 * same['effect']:.0f}"
    return ""


def _corrected(result: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    for test in result["decision"]["tests"]:
        if (test["contrast"], test["level"]) == (row["contrast"], row["level"]):
            return str(test["said"])
    return ""


def _points(row: Mapping[str, Any]) -> str:
    """Return a difference of shares in points with its interval.

    >>> _points({"difference": {"mean": 0.1, "low": -0.021, "high": 0.3}})
    '+10.0 [-2.1, 30.0]'
    """
    found = row["difference"]
    return f"{100 * found['mean']:+.1f} [{100 * found['low']:.1f}, {100 * found['high']:.1f}]"


def _section(name: str, result: Mapping[str, Any]) -> list[str]:
    sources = f"Source: {result['source']}. Levels: {result['varied']}."
    head = [f"## ({name}) {result['claim']}", "", result["about"], "", sources]
    if result["state"] != COMPLETE:
        return [*head, "", f"State: {result['state']}; `{result['command']}`."]
    lines = [
        *head,
        f"{result['runs']} runs, {result['hours']} hours of one core; {_seeds(result)}.",
        "",
        f"![curves](claims/{name}.png)",
        "",
        "| comparison | level | claimed there | seeds | first, % | second, % | difference, points [95 %] | power "
        "| alone | corrected |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["contrasts"]:
        shares = f"{100 * row['better']:.1f} | {100 * row['worse']:.1f} | {_points(row)} | {_power(result, row)}"
        claimed = ("yes" if row["primary"] else "secondary") if row["claimed"] else "no"
        said = f"{row['verdict']} | {_corrected(result, row)}"
        lines.append(f"| {row['contrast']} | {row['level']} | {claimed} | {row['seeds']} | {shares} | {said} |")
    metrics = list(dict.fromkeys(each for row in result["arms"] for each in row["metrics"]))
    lines += [
        "",
        "| arm | level | step size | turns | success at the end, % | mean of the run, % | collapsed, % | acted | "
        + " | ".join(f"`{each}`" for each in metrics)
        + " |",
        "|---" * (8 + len(metrics)) + "|",
    ]
    lines += [_arm_row(row, metrics) for row in result["arms"]]
    return [*lines, "", *(f"- `{key}`: {why}." for key, why in EXPERIMENTS[name].reasons.items())]


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
        if result["state"] == COMPLETE:
            write_curves(result, folder / f"{name}.png")
        write_atomic(folder / f"{name}.json", json.dumps(result, indent=1, ensure_ascii=False).encode() + b"\n")
    write_atomic(folder.parent / PAGE, page(found).encode())
