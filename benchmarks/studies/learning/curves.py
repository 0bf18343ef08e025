"""One learning curve of every training method and every learnt reward, drawn on its page.

    python benchmarks/studies/learning/curves.py                # every method
    python benchmarks/studies/learning/curves.py gigpo hgpo     # these

Written down before it ran: the command on the method's own page (for a modifier, the first one), the embedded model
after one warm-up with seed 0 that all of them share, 40,000 environment turns (12,000 at first, which showed hardly
any learning), one torch thread, at most eight minutes, success on dev instances every ten iterations. One seed: a curve
shows what a run of the method looks like; which method is better is the matter of ``claims.py``, with three.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

from run_queue import RESULTS, ROOT, RUNS, is_finished, run_all, run_one, summary, with_settings_of_0_1_0, write_results

from turngym.errors import nearest
from turngym.storage.files import write_atomic
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.report.curve import curve_picture
from turngym.trainers.report.findings import read_run

PAGES = (ROOT / "trainers" / "algorithms", ROOT / "trainers" / "reward_models")
NOT_HERE = {
    "otc": "the embedded model answers too few questions by searching for tool calls to matter",
    "mmd": "games won against one player say little about an equilibrium; exploitability takes its place",
}
"""Pages without a curve -> the reason."""
CURVES = RESULTS / "curves"
COMMON = ("--preset", "quickstart", "--seed", "0", "--no-control", "--max-seconds", "480")
LIMITS = ("--max-environment-turns", "40000", "--evaluation.every", "10")
COMMAND = re.compile(r"^    turngym train (.*)$", re.MULTILINE)


def pages() -> dict[str, Path]:
    """Return method or reward model -> its page, without those that have no curve."""
    found = [path for folder in PAGES for path in sorted(folder.glob("*.md"))]
    return {path.stem: path for path in found if path.stem not in {"README", *NOT_HERE}}


def names() -> list[str]:
    """Return the methods and reward models that have a page with a curve."""
    return list(pages())


def options(name: str) -> list[str]:
    """Return the options of the first command on a method's page.

    >>> options("gigpo")
    ['--algorithm', 'gigpo', '--gigpo.omega', '0.8']
    """
    found = COMMAND.search(pages()[name].read_text("utf8"))
    if found is None:
        raise SystemExit(f"the page {name}.md shows no command")
    return shlex.split(found[1])


def environment_of(arguments: list[str]) -> str:
    """Return the environment that options name, or an empty text for the default."""
    return arguments[arguments.index("--env") + 1] if "--env" in arguments else ""


def warmed_up(environment: str) -> Path:
    """Train the warm-up of an environment, once; returns the model folder."""
    name = f"curve-warmup{environment.replace('turngym/', '-').replace('/', '-')}"
    where = ["--env", environment] if environment else []
    words = ["--algorithm", "grpo", "--max-environment-turns", "1", *where, *COMMON]
    folder: Path = run_one(name, with_settings_of_0_1_0(words))
    return folder / "warmup"


def arms(wanted: list[str]) -> dict[str, list[str]]:
    """Return the name of every run with its options."""
    models = {environment: warmed_up(environment) for environment in {environment_of(options(n)) for n in wanted}}
    found = {}
    for name in wanted:
        own = with_settings_of_0_1_0(options(name))
        found[f"curve-{name}"] = [*own, "--model", str(models[environment_of(own)]), *LIMITS, *COMMON]
    return found


def main() -> int:
    """Run the methods named, or all; draw each curve and write ``benchmarks/results/curves.json``."""
    wanted = sys.argv[1:] or names()
    for name in wanted:
        if name not in names():
            print(f"no method {name!r} has a page. {nearest(name, names())}", file=sys.stderr)
            return 2
    CURVES.mkdir(parents=True, exist_ok=True)
    for run, folder in run_all(arms(wanted)).items():
        write_atomic(CURVES / f"{run.removeprefix('curve-')}.png", curve_picture(read_run(RunFolder(folder))))
    done = [name for name in names() if is_finished(RUNS / f"curve-{name}")]
    found: dict[str, Any] = {**published(), **{name: summary(RUNS / f"curve-{name}") for name in done}}
    write_results("curves", {"options": {name: options(name) for name in found}, "runs": found})
    return 0


def published() -> dict[str, Any]:
    """Return the summaries of earlier runs, which may have been made elsewhere, of methods that still have a page."""
    path = RESULTS / "curves.json"
    runs: dict[str, Any] = json.loads(path.read_text("utf8"))["runs"] if path.exists() else {}
    return {name: run for name, run in runs.items() if name in names()}


if __name__ == "__main__":
    sys.exit(main())
