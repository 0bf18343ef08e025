"""The page of the methods' learning curves, from the runs in ``benchmarks/results/methods.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from statistics import fmean
from typing import Any, TypeAlias

from turngym.benchmarks.statistics.power import interval, is_known
from turngym.benchmarks.studies.harness import RESULTS
from turngym.storage.files import write_atomic

Runs: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Seed -> what is kept of the run."""
REFERENCE = "grpo"
WINDOW, COLUMNS, WIDTH, HEIGHT, TOP, GAP = 5, 6, 150, 84, 34, 14
_STYLE = (
    "text{font:11px sans-serif;fill:#334}.g{stroke:#8893a8;fill:none}.m{stroke:#0072b2;fill:none;stroke-width:1.8}"
    ".b{fill:#0072b2;opacity:.22}.f{stroke:#8893a8;stroke-width:.5;fill:none}"
    "@media (prefers-color-scheme:dark){text{fill:#cdd3e2}.m{stroke:#7fb6f5}.b{fill:#7fb6f5}}"
)
_HEAD = """# Learning curves of the methods

Each method on FrozenLake as in the quickstart: the embedded model imitates 30 solved lakes, then trains for
{iterations} iterations of 128 episodes. A name after a hyphen is a setting of the method before it. Arms and settings
were fixed in advance ([plan](../studies/learning/methods.toml), [figures](methods.json),
`python benchmarks/studies/learning/methods.py`, which runs the seeds that are missing). Runs with the same seed share
the warm start. So far: {counted}.

- **One seed tells little.** In [former studies](README.md#teachers-on-the-quickstarts-lakes) of this task, success
  after training varied between seeds with a standard deviation of 3 to 8 points: single runs that differ by less than
  20 points are not told apart, and the table is not a ranking.
- The task is small, with short prompts, states that recur, and a reward at the goal alone. It shows whether a method
  learns, not which one suits another task.
- A discount matters here: it is what most sets `gigpo` and `reinforce` apart from undiscounted methods, with greedy
  actions above all ([why](README.md#why-ppo-stayed-behind-reinforce-on-these-lakes)).
- Most modifiers correct for stale samples, other rounding or many updates per batch. Here samples are fresh and a batch
  has four updates, so that little is left to correct.

![Training success of each method](methods.svg)

Share of the 128 training episodes of an iteration that reach the goal, mean of {window} iterations; grey: `grpo`. Where
there are several seeds, the line is their mean, and the band reaches from the lowest to the highest run.

Success on 300 held-out lakes in %, means over the seeds, with intervals of Student's t for three seeds or more. *Less
grpo*: sampled success minus that of `grpo` with the same seeds.

| method | options | seeds | warm-up: sampled | greedy | trained: sampled | greedy | less grpo |
|---|---|---|---|---|---|---|---|
"""


def smooth(values: Sequence[float], window: int = WINDOW) -> list[float]:
    """Return the mean of each whole window of values.

    >>> smooth([1.0, 2.0, 3.0], 2)
    [1.5, 2.5]
    """
    return [fmean(values[start : start + window]) for start in range(len(values) - window + 1)]


def _line(values: Sequence[float], x: float, y: float, last: int) -> str:
    """Return the points of a curve in a panel whose first point is after the first window."""
    offset = last - len(values)
    return " ".join(
        f"{x + WIDTH * (offset + index) / max(last - 1, 1):.1f},{y + HEIGHT * (1 - value):.1f}"
        for index, value in enumerate(values)
    )


def _panel(name: str, runs: Runs, reference: Sequence[float], x: float, y: float) -> str:
    curves = [smooth(run["curve"]) for run in runs.values()]
    last = max(len(run["curve"]) for run in runs.values())
    columns = list(zip(*curves, strict=True))
    low, high = [min(each) for each in columns], [max(each) for each in columns]
    band = ""
    if len(curves) > 1:
        back = " ".join(reversed(_line(low, x, y, last).split()))
        band = f'<polygon class="b" points="{_line(high, x, y, last)} {back}"/>'
    seeds = f"{len(runs)} seed{'s'[: len(runs) - 1]}"
    return (
        f'<rect class="f" x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}"/>'
        f'<text x="{x}" y="{y - 5}">{escape(name)}</text>'
        f'<text x="{x + WIDTH}" y="{y - 5}" text-anchor="end" opacity=".7">{seeds}</text>{band}'
        f'<polyline class="g" points="{_line(reference, x, y, last)}"/>'
        f'<polyline class="m" points="{_line([fmean(each) for each in columns], x, y, last)}"/>\n'
    )


def picture(found: Mapping[str, Runs]) -> str:
    """Return small multiples of all methods as SVG, from 0 to 100 % success in each panel."""
    grpo = [smooth(run["curve"]) for run in found[REFERENCE].values()]
    reference = [fmean(each) for each in zip(*grpo, strict=True)]
    rows = -(-len(found) // COLUMNS)
    width, height = COLUMNS * (WIDTH + GAP) + 3 * GAP, rows * (HEIGHT + TOP) + 2 * GAP
    body = ""
    for index, name in enumerate(sorted(found)):
        x, y = 3 * GAP + index % COLUMNS * (WIDTH + GAP), TOP + index // COLUMNS * (HEIGHT + TOP)
        body += _panel(name, found[name], reference, x, y)
        if not index % COLUMNS:
            ends = ((y + 9, "100 %"), (y + HEIGHT, "0"))
            body += "".join(f'<text x="{x - 4}" y="{at}" text-anchor="end">{word}</text>' for at, word in ends) + "\n"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">'
        f"<title>Training success of {len(found)} arms</title><style>{_STYLE}</style>\n{body}</svg>\n"
    )


def _percent(values: Sequence[float], within: tuple[float, float] = (0.0, 1.0), sign: str = "") -> str:
    """Return a mean in percent, with its interval where there are enough values."""
    text = f"{100 * fmean(values):{sign}.1f}"
    if not is_known(values):
        return text
    bounds = interval(values, within=within)
    return f"{text} [{100 * bounds.low:.1f}, {100 * bounds.high:.1f}]"


def success(runs: Runs, evaluation: str) -> list[float]:
    """Return the success of each seed in an evaluation."""
    return [run["success"][evaluation] for run in runs.values()]


def _row(name: str, options: str, runs: Runs, grpo: Runs) -> str:
    pairs = [
        run["success"]["final-sampled"] - grpo[seed]["success"]["final-sampled"]
        for seed, run in runs.items()
        if seed in grpo
    ]
    cells = [_percent(success(runs, key)) for key in ("warmup-sampled", "warmup-greedy")]
    cells += [_percent(success(runs, key)) for key in ("final-sampled", "final-greedy")]
    difference = "" if name == REFERENCE or not pairs else _percent(pairs, (-1.0, 1.0), "+")
    linked = f"[{name}](../../trainers/algorithms/{name.partition('-')[0]}.md)"
    return f"| {linked} | `{options}` | {len(runs)} | {' | '.join(cells)} | {difference} |"


def _counted(found: Mapping[str, Runs]) -> str:
    """Return how many arms have how many seeds."""
    counts = [len(runs) for runs in found.values()]
    parts = [
        f"{counts.count(seeds)} arm{'s'[: counts.count(seeds) - 1]} with {seeds} seed{'s'[: seeds - 1]}"
        for seeds in sorted(set(counts), reverse=True)
    ]
    return ", ".join(parts)


def page(content: Mapping[str, Any]) -> str:
    """Return the page."""
    found, options = content["runs"], content["options"]
    iterations = max(len(run["curve"]) for runs in found.values() for run in runs.values())
    head = _HEAD.format(iterations=iterations, counted=_counted(found), window=WINDOW)
    own = {name: text[text.index("--algorithm") :] for name, text in options.items()}
    return head + "".join(_row(name, own[name], found[name], found[REFERENCE]) + "\n" for name in sorted(found))


def write_page(folder: Path = RESULTS) -> None:
    """Write the page and its picture."""
    content = json.loads((folder / "methods.json").read_text("utf8"))
    write_atomic(folder / "methods.svg", picture(content["runs"]).encode("utf8"))
    write_atomic(folder / "methods.md", page(content).encode("utf8"))
