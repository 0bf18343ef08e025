"""One page with what every committed learning study found, from its JSON: seeds, minutes, intervals, command.

    python benchmarks/studies/learning/learning_page.py    # writes benchmarks/results/learning.md

Nothing is run. A study without a file has no row in these tables; the last one lists it.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import imitation_rows
import self_play_rows
from run_queue import RESULTS, ROOT

from turngym.benchmarks.statistics.power import FEWEST_PAIRS, interval
from turngym.storage.files import write_atomic

PAGE = "learning.md"
_COLUMNS = (
    *("task", "model", "method", "seeds", "minutes", "warm-up, %", "trained, %", "over warm-up", "control, %"),
    *("over control", "command"),
)
_SEED = re.compile(r"-?seed(\d+)")
_HEAD = """# What was learnt

Every learning study whose figures are committed, from its JSON in this folder; made by
`python benchmarks/studies/learning/learning_page.py`. Success on instances that training never showed, mean over the
seeds; a change is paired by seed, with the 95 % interval of Student's t over seeds, so that three seeds have wide ones.
*Control*: supervised learning instead of reinforcement, from the same warm-up. Minutes are those of the wall clock, on
two cores that mostly did something else as well. The claims of papers about methods have a page of their own:
[claims.md](claims.md).
"""

_WITHOUT_RESULTS = """## Written down, without results

Their settings are in the repository; they were stopped or have not run. [Results](README.md) says why.
"""


class Study(NamedTuple):
    """A result file and how its rows are called.

    Args:
        file: Name of the file without its ending.
        task: What is played.
        model: What is trained.
        arms: How runs are called without their seed -> method; empty for the names themselves.
    """

    file: str
    task: str
    model: str
    arms: Mapping[str, str]


_EMBEDDED = "embedded"
_PRETRAINED = "SmolLM2-135M-Instruct"
STUDIES = (
    Study("quickstart", "FrozenLake, 30 demonstrations", _EMBEDDED, {"quickstart-lake": "gigpo"}),
    Study("sokoban", "Sokoban, 300 demonstrations", _EMBEDDED, {"quickstart": "gigpo"}),
    Study(
        "smollm2",
        "NumberLine, 3 iterations",
        "SmolLM2-135M",
        {"smollm2-full-gigpo": "gigpo, all weights", "smollm2-lora-turn_ppo": "turn_ppo, adapters"},
    ),
    Study("pretrained-numbers", "GuessTheNumber (all 100 numbers), one core", _PRETRAINED, {"numbers": "gigpo"}),
    Study(
        "pretrained-numbers-longer",
        "GuessTheNumber (all 100 numbers), longer, one core",
        _PRETRAINED,
        {"numbers-longer": "gigpo"},
    ),
    Study("pretrained-arithmetic", "MathPython, one core", _PRETRAINED, {"arithmetic": "gigpo"}),
    Study("pretrained-lake", "FrozenLake, one core", _PRETRAINED, {"lake": "gigpo"}),
    Study(
        "pretrained-lake-longer",
        "FrozenLake, warm-up of nine epochs, one core",
        _PRETRAINED,
        {"lake-longer": "gigpo"},
    ),
    Study(
        "pretrained-numbers-fresh",
        "GuessTheNumber (all 100 numbers), fresh seeds, one core",
        _PRETRAINED,
        {"numbers-fresh": "gigpo"},
    ),
    Study("worlds-household", "Household", _EMBEDDED, {}),
    Study("worlds-searchqa", "SearchQA, one hop", _EMBEDDED, {}),
    Study("worlds-webshop", "WebShop, 50 products", _EMBEDDED, {}),
    Study("worlds-website", "WebSite, issues", _EMBEDDED, {}),
    Study("worlds-alfworld", "ALFWorld, pick and place", _EMBEDDED, {}),
    Study("worlds-website-conversation", "WebSite, issues, the conversation shown", _EMBEDDED, {}),
    Study("worlds-household-longer", "Household, longer", _EMBEDDED, {}),
    Study("worlds-alfworld-reading", "ALFWorld, pick and place, reading", _EMBEDDED, {}),
    Study("worlds-webshop-200", "WebShop, 300 products", _EMBEDDED, {}),
    Study("worlds-searchqa-two-hops", "SearchQA, two hops", _EMBEDDED, {}),
    Study("worlds-babyai", "BabyAI, GoToLocal", _EMBEDDED, {}),
    Study("worlds-scienceworld", "ScienceWorld, find-plant", _EMBEDDED, {}),
    Study("compare", "Sokoban, equal turns", _EMBEDDED, {}),
    Study(
        "staleness",
        "Sokoban, samples up to K iterations old",
        _EMBEDDED,
        {f"staleness-{method}-{k}": f"{method}, K = {k}" for method in ("grpo", "grpo+tis", "a3po") for k in (0, 1, 4)},
    ),
    Study("gateway_learning", "NumberLine, native and through the gateway", _EMBEDDED, {}),
    Study("pictures", "FrozenLake from pictures", "embedded, with its vision encoder", {}),
)


def by_arm(runs: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return arm -> its runs in the order of their seeds.

    >>> by_arm({"a-seed1": 1, "a-seed0": 0, "b-seed0": 2})
    {'a': [0, 1], 'b': [2]}
    """
    found: dict[str, list[tuple[int, Any]]] = {}
    for name, run in runs.items():
        seed = _SEED.search(name)
        found.setdefault(_SEED.sub("", name), []).append((int(seed[1]) if seed else 0, run))
    return {arm: [run for _, run in sorted(runs, key=lambda pair: pair[0])] for arm, runs in found.items()}


def shared_start(names: Iterable[str]) -> str:
    """Return what names of arms begin with in common, up to a hyphen.

    >>> shared_start(["world-searchqa-gigpo", "world-searchqa-ppo"]), shared_start(["world-household-gigpo"])
    ('world-searchqa-', 'world-household-')
    """
    parts = [name.split("-")[:-1] for name in names]
    kept = []
    for column in zip(*parts, strict=False):
        if len(set(column)) > 1:
            break
        kept.append(column[0])
    return "".join(f"{part}-" for part in kept)


def success(runs: Sequence[Mapping[str, Any]], stage: str) -> list[float]:
    """Return the success of each run at a stage; nothing if one has not been evaluated there."""
    found = [run["evaluations"].get(stage) for run in runs]
    return [] if None in found else [each["success"]["value"] for each in found]


def change(after: Sequence[float], before: Sequence[float]) -> str:
    """Return a paired difference of shares in points with its interval, from three seeds on.

    >>> change([0.5, 0.6, 0.7], [0.4, 0.5, 0.55]), change([0.5], [0.4]), change([], [])
    ('+11.7 [4.5, 18.8]', '+10.0', '')
    """
    each = [100 * (first - second) for first, second in zip(after, before, strict=True)]
    if len(each) < FEWEST_PAIRS:
        return f"{statistics.fmean(each):+.1f}" if each else ""
    mean, low, high = interval(each)
    return f"{mean:+.1f} [{low:.1f}, {high:.1f}]"


def share(values: Sequence[float]) -> str:
    """Return the mean of shares in percent.

    >>> share([0.5, 0.6]), share([])
    ('55.0', '')
    """
    return f"{100 * statistics.fmean(values):.1f}" if values else ""


def row(study: Study, method: str, runs: Sequence[Mapping[str, Any]], mode: str, command: str) -> str:
    """Return the row of an arm.

    Args:
        study: The study.
        method: What the arm is called.
        runs: Its runs.
        mode: ``sampled`` or ``greedy``.
        command: The command that repeats the study.
    """
    before, after, control = (success(runs, f"{stage}-{mode}") for stage in ("warmup", "final", "control"))
    minutes = statistics.fmean(run["training_seconds"] for run in runs) / 60
    return markdown_row(
        study.task,
        study.model,
        method,
        len(runs),
        f"{minutes:.1f}",
        share(before),
        share(after),
        change(after, before),
        share(control),
        change(after, control) if control else "",
        f"`{command}`",
    )


def markdown_row(*cells: object) -> str:
    """Return a row of a table.

    >>> markdown_row("a", 1)
    '| a | 1 |'
    """
    return f"| {' | '.join(map(str, cells))} |"


def markdown_head(columns: Sequence[str]) -> list[str]:
    """Return the two lines that a table begins with."""
    return [markdown_row(*columns), "|---" * len(columns) + "|"]


def stored(name: str, folder: Path = RESULTS) -> dict[str, Any] | None:
    """Return a result file; None if it is not there."""
    path = folder / f"{name}.json"
    return json.loads(path.read_text("utf8")) if path.exists() else None


def current(command: str) -> str:
    """Return the command of a study as it is called now; files keep that of their day.

    >>> current("python benchmarks/learning/worlds.py household")
    'python benchmarks/studies/learning/worlds.py household'
    """
    return command.replace("benchmarks/learning/", "benchmarks/studies/learning/")


def table(mode: str, folder: Path = RESULTS) -> list[str]:
    """Return the table of all studies that train from a warm-up.

    Args:
        mode: ``sampled`` or ``greedy``.
        folder: Where the result files are.
    """
    lines = markdown_head(_COLUMNS)
    for study in STUDIES:
        if (found := stored(study.file, folder)) is None:
            continue
        arms = by_arm(found["runs"])
        start = shared_start(arms)
        lines += [
            row(study, study.arms.get(arm, arm.removeprefix(start)), runs, mode, current(found["command"]))
            for arm, runs in arms.items()
        ]
    return lines


def self_play_table(folder: Path = RESULTS) -> list[str]:
    """Return the table of all studies of self-play."""
    lines = markdown_head(self_play_rows.COLUMNS)
    for name, rows in self_play_rows.STUDIES.items():
        if found := stored(name, folder):
            lines += [markdown_row(*row, f"`{current(found['command'])}`") for row in rows(found)]
    return lines


def imitation_table(folder: Path = RESULTS) -> list[str]:
    """Return the table of models that only imitated."""
    columns, found = imitation_rows.COLUMNS, stored("alfworld_imitation", folder)
    cells = imitation_rows.rows(found, f"ALFWorld, pick and place, {_PRETRAINED}") if found else ()
    return [
        "| " + " | ".join(columns) + " |",
        "|---" * len(columns) + "|",
        *(f"| {' | '.join(row)} |" for row in cells),
    ]


def own_command(study: Study) -> str:
    """Return the command of a study, which is known before it has run.

    >>> own_command(Study("worlds-searchqa-two-hops", "", "", {}))
    'python benchmarks/studies/learning/worlds.py searchqa-two-hops'
    >>> own_command(Study("pretrained-lake-longer", "", "", {"lake-longer": "gigpo"}))
    'turngym study run benchmarks/studies/learning/pretrained_again.toml --arms lake-longer'
    >>> own_command(Study("sokoban", "", "", {}))
    'python benchmarks/studies/learning/sokoban.py'
    """
    here = Path(__file__).parent
    kind, _, name = study.file.partition("-")
    if kind == "worlds":
        return f"python {(here / 'worlds.py').relative_to(ROOT)} {name}"
    for plan in sorted(here.glob("*.toml")):
        if name in tomllib.loads(plan.read_text("utf8"))["arms"]:
            return f"turngym study run {plan.relative_to(ROOT)} --arms {name}"
    return f"python {(here / study.file).relative_to(ROOT)}.py"


def missing_table(folder: Path = RESULTS) -> list[str]:
    """Return the table of studies that were written down and have no results."""
    missing = [study for study in STUDIES if stored(study.file, folder) is None]
    rows = [markdown_row(study.task, study.model, f"`{own_command(study)}`") for study in missing]
    return [*markdown_head(("task", "model", "command")), *rows]


def page(folder: Path = RESULTS) -> str:
    """Return the page, given the folder of the result files."""
    lines = [_HEAD]
    for mode, meaning in (("sampled", "actions sampled at temperature 1"), ("greedy", "the likeliest tokens")):
        lines += [f"## {mode.capitalize()} play: {meaning}", "", *table(mode, folder), ""]
    lines += ["## Imitation alone", "", *imitation_table(folder), ""]
    lines += ["## Games by self-play", "", *self_play_table(folder), ""]
    return "\n".join([*lines, _WITHOUT_RESULTS, *missing_table(folder), ""])


def main() -> int:
    """Write the page."""
    write_atomic(RESULTS / PAGE, page().encode())
    print((RESULTS / PAGE).relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
