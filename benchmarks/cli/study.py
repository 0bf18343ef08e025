"""``turngym study``: arms and seeds of training written down in a file, run, resumed and compared."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich import box
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from tyro.conf import Positional

from turngym.benchmarks.cli.options.parsing import parse
from turngym.benchmarks.cli.train import parse_train
from turngym.benchmarks.study.plan import Job, Plan, read_plan
from turngym.errors import ConfigError, TurngymError
from turngym.storage.files import write_json
from turngym.storage.folders import require_folder
from turngym.terminal.console import Console
from turngym.terminal.interrupted import INTERRUPTED, acknowledged, termination_interrupts
from turngym.terminal.output import print_json, table_console
from turngym.text import printable
from turngym.trainers.core.wording import UNKNOWN

if TYPE_CHECKING:
    from turngym.benchmarks.study.outcome import Outcome
    from turngym.benchmarks.study.queue import Ended, State
    from turngym.trainers.settings.config import TrainConfig

USES_OWN_MODULES = True
SCHEMA = 1
"""Version of what ``--json`` prints."""
STUDIES = Path("runs", "studies")
_FAILED = 1


@dataclass(frozen=True)
class Arguments:
    """Run, resume and show studies: several arms of `turngym train` with several seeds each.

    A plan is a TOML file: `seeds`, common options in `common`, a table `[arms]` or `[sweep]`, and `claims` such as
    "gigpo > grpo". `run` runs missing and resumes interrupted runs; a failed run does not stop the others, and runs
    taken by another `study run` in the same folder are left to it. `show` prints means with 95 % intervals over seeds,
    and for each claim the paired difference, a verdict, and the number of seeds needed to detect the smallest relevant
    difference with probability 90 %. `list` lists the plans in a folder.

    Args:
        action: Action.
        plan: Plan file; for `list`, the folder to search.
        out: Folder of the study, for `run` and `show` (default: `runs/studies/NAME`).
        arms: Arms to run, for `run` (default: all).
        at_once: Number of parallel runs.
        json: Print the outcome as JSON.
    """

    action: Positional[Literal["list", "run", "show"]]
    plan: Positional[Path] = Path()
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    arms: tuple[str, ...] = ()
    at_once: int = 1
    json: bool = False


def main(argv: Sequence[str]) -> int:
    """List plans, or run or show a study; returns 1 if runs failed."""
    arguments = parse(Arguments, argv, "study")
    if arguments.at_once < 1:
        raise ConfigError(f"--at-once must be at least 1, got {arguments.at_once}.")
    if arguments.arms and arguments.action != "run":
        raise ConfigError(f"--arms chooses what `study run` runs: leave it out of `study {arguments.action}`.")
    if arguments.action == "list":
        return _list(arguments)
    plan = read_plan(arguments.plan)
    folder = arguments.out or STUDIES / plan.name
    require_folder(folder)
    failed: list[Ended] = []
    if arguments.action == "run":
        try:
            with acknowledged("interrupted: the runs in progress finish their iteration and are saved"):
                failed = _run(plan.part(arguments.arms) if arguments.arms else plan, folder, arguments)
        except KeyboardInterrupt:
            print("interrupted: the same command continues", file=sys.stderr)
            return INTERRUPTED
    _show(plan, folder, arguments)
    for each in failed:
        print(
            f"{each.job.name} failed ({each.status}), see {folder / each.job.name}.log: {each.words}", file=sys.stderr
        )
    return _FAILED if failed else 0


def _list(arguments: Arguments) -> int:
    from turngym.benchmarks.study.queue import states

    if not arguments.plan.is_dir():
        raise ConfigError(f"there is no folder {arguments.plan}: pass one that holds plans of studies.")
    if arguments.out is not None:
        raise ConfigError(f"`study list` looks for runs in {STUDIES}: leave --out out, or pass it to `study show`.")
    rows = []
    for path in sorted(arguments.plan.rglob("*.toml")):
        try:
            plan = read_plan(path)
        except ConfigError:
            continue  # other TOML files are not plans
        found = states(plan, STUDIES / plan.name)
        done = sum(state == "finished" for state in found.values())
        rows.append({"plan": str(path), "title": plan.title, "finished": done, "runs": len(found)})
    if arguments.json:
        print_json({"version": SCHEMA, "studies": rows})
        return 0
    console = table_console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("plan", "title"):
        table.add_column(name, overflow="fold")
    table.add_column("finished", justify="right")
    for row in rows:
        finished = f"{row['finished']}/{row['runs']}"
        table.add_row(escape(printable(str(row["plan"]))), escape(printable(str(row["title"]))), finished)
    console.print(table)
    return 0


def _run(plan: Plan, folder: Path, arguments: Arguments) -> list[Ended]:
    """Run what is missing; returns the runs that failed."""
    from turngym.benchmarks.study.queue import Queue, require_planned, states

    def settings(job: Job) -> TrainConfig:
        try:
            return parse_train(plan.options(job))[0]
        except TurngymError as error:
            raise ConfigError(f"{plan.name}: the arm {job.arm}: {error}") from error

    for arm in plan.arms:
        settings(Job(arm, plan.seeds[0]))
    require_planned(plan, folder, settings)
    before: Mapping[Job, State] = states(plan, folder)
    done = sum(state == "finished" for state in before.values())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True, highlight=False, quiet=arguments.json)
    with Progress(*columns, console=console, disable=console.quiet) as progress:
        task = progress.add_task("runs", total=len(before), completed=done)

        def tell(ended: Ended) -> None:
            progress.advance(task)
            word = "finished" if ended.status == 0 else f"failed ({ended.status})"
            how = "by another process" if ended.is_elsewhere else f"after {ended.seconds:.0f} s"
            progress.console.print(f"{ended.job.name}: {word} {how}", markup=False)

        def tell_waiting(left: Sequence[Job]) -> None:
            names = ", ".join(job.name for job in left)
            progress.console.print(f"waiting for other processes, which run {names}", markup=False)

        def tell_begun(job: Job, log: Path) -> None:
            progress.console.print(f"{job.name}: running, output in {log}", markup=False, soft_wrap=True)

        with termination_interrupts():
            ended = Queue(plan, folder, arguments.at_once).run(tell, tell_waiting, tell_begun)
    return [each for each in ended if each.status != 0]


def _show(plan: Plan, folder: Path, arguments: Arguments) -> None:
    """Print the outcome, and write it with the curves into the folder of the study."""
    from turngym.benchmarks.study.outcome import read_outcome
    from turngym.benchmarks.study.queue import state_of
    from turngym.trainers.report.curve import write_curves

    outcome = read_outcome(plan, folder)
    if outcome.arms:
        write_json(folder / "results.json", {"version": SCHEMA, **outcome.as_json()})
        paths = {arm: [folder / Job(arm, seed).name for seed in plan.seeds] for arm in plan.arms}
        finished = {arm: [path for path in each if state_of(path) == "finished"] for arm, each in paths.items()}
        write_curves({arm: each for arm, each in finished.items() if each}, folder / "curves.png", plan.title)
    if arguments.json:
        print_json({"version": SCHEMA, **outcome.as_json()})
        return
    console = table_console()
    for table in _tables(outcome):
        console.print(table)
    if outcome.arms:
        console.print(f"written to {folder / 'results.json'} and {folder / 'curves.png'}", markup=False, soft_wrap=True)


def _tables(outcome: Outcome) -> list[Table]:
    from turngym.benchmarks.statistics.power import FEWEST_PAIRS

    plan = outcome.plan
    arms = Table(title=escape(printable(plan.title)), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    arms.add_column(f"{plan.metric}, {plan.evaluation}", overflow="fold")
    for name in ("runs", "mean", "95 % interval", "minutes"):
        arms.add_column(name, justify="right", no_wrap=True)
    for arm in plan.arms:
        found = outcome.arms.get(arm)
        runs = f"{len(found.values) if found else 0}/{len(plan.seeds)}"
        mean = f"{found.mean:.3f}" if found else ""
        interval = f"{found.interval.low:.3f} to {found.interval.high:.3f}" if found and found.interval else UNKNOWN
        seconds = list(found.processor_seconds.values()) if found else []
        minutes = f"{statistics.fmean(seconds) / 60:.1f}" if seconds else ""
        arms.add_row(escape(arm), runs, mean, interval, minutes)
    arms.caption, arms.caption_justify = "minutes: processor time of a run, with all its processes", "left"
    if not outcome.claims:
        return [arms]
    claims = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    claims.add_column("claim", overflow="fold")
    for name in ("difference", "95 % interval", "verdict", "pairs", "power", "needed"):
        claims.add_column(name, justify="right", no_wrap=True)
    for each in outcome.claims:
        claims.add_row(
            escape(str(each.claim)),
            f"{each.difference:+.3f}",
            f"{each.interval.low:+.3f} to {each.interval.high:+.3f}" if each.interval else UNKNOWN,
            each.verdict,
            str(each.seeds),
            UNKNOWN if each.power is None else f"{100 * each.power:.0f} %",
            UNKNOWN if each.needed is None else str(each.needed),
        )
    claims.caption = f"power: to show a difference of {plan.effect:g}; needed: pairs that show it with 90 %"
    if any(each.interval is None for each in outcome.claims):
        claims.caption += f"\n{UNKNOWN}: fewer than {FEWEST_PAIRS} pairs, or all differences are the same"
    claims.caption_justify = "left"
    return [arms, claims]
