"""``turngym rescore``: recorded episodes judged again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from rich import box
from rich.markup import escape
from rich.table import Table
from tyro.conf import Positional, arg

from turngym.benchmarks.cli.options.parsing import Pairs, key_values, parse
from turngym.benchmarks.evaluation.folder import require_free
from turngym.benchmarks.evaluation.rescore import Change, Rescored, rescore
from turngym.errors import ConfigError
from turngym.terminal.console import Console
from turngym.terminal.output import print_json
from turngym.text import printable

USES_OWN_MODULES = True
SCHEMA = 1
"""Version of what ``--json`` prints."""


@dataclass(frozen=True)
class Arguments:
    """Replay the actions of an evaluation and judge its episodes again, without a model.

    Every change is listed. The folder is not modified.

    Args:
        folder: Folder of `turngym eval --out`.
        judge: New judge of answers: the option `reward` of the environments, such as numeric or
            `path/to/file.py:function`.
        option: Changed option of the environments, such as max_turns=20; all others are as recorded.
        verifier: Verifier whose verdicts replace the recorded ones, as in `turngym eval`.
        out: New folder for the evaluation with the new numbers.
        changes: Number of changed episodes to show.
        num_envs: Number of parallel environments.
        backend: Backend of the vector: sync or process.
        json: Print the results and all changes as JSON.
    """

    folder: Positional[Path]
    judge: str = ""
    option: Pairs = ()
    verifier: str = ""
    out: Annotated[Path | None, arg(aliases=("-o",))] = None
    changes: int = 10
    num_envs: int = 32
    backend: str = "sync"
    json: bool = False


def main(argv: Sequence[str]) -> int:
    """Judge again, and print what changed."""
    arguments = parse(Arguments, argv, "rescore")
    options = key_values(arguments.option, "--option")
    if arguments.judge and "reward" in options:
        raise ConfigError("--judge is the option reward: leave out --option reward=.")
    if arguments.num_envs < 1 or arguments.changes < 0:
        raise ConfigError("--num-envs must be at least 1, and --changes at least 0.")
    if arguments.out is not None:
        require_free(arguments.out)
    found = rescore(
        arguments.folder,
        options={**options, **({"reward": arguments.judge} if arguments.judge else {})},
        verifier=arguments.verifier,
        out=arguments.out,
        num_envs=arguments.num_envs,
        backend=arguments.backend,
    )
    if arguments.json:
        print_json({"version": SCHEMA, **found.as_json()})
        return 0
    console = Console(highlight=False)
    console.print(_table(found))
    for change in found.changes[: arguments.changes]:
        console.print(printable(_line(change)), markup=False, soft_wrap=True)
    count, shown = len(found.changes), min(arguments.changes, len(found.changes))
    told = f"{count} of {len(found.before.episodes)} episodes came out otherwise"
    console.print(f"{told}{f', {shown} are shown' if shown < count else ''}.", markup=False)
    if arguments.out is not None:
        console.print(f"written to {arguments.out}", markup=False, soft_wrap=True)
    return 0


def _table(found: Rescored) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("environment", "number"):
        table.add_column(name, overflow="fold")
    for name in ("recorded", "judged again", "changed"):
        table.add_column(name, justify="right")
    for environment, result in zip(found.before.config["environments"], found.after.result.results, strict=True):
        label = environment["label"]
        before = found.before.of(label)
        changed = [each for each in found.changes if each.key[0] == label]
        for name in ("success", "score", "returns"):
            means = [sum(float(row[name]) for row in rows) / max(len(rows), 1) for rows in (before, result.episodes)]
            count = sum(name in each.after for each in changed)
            shown = escape(printable(label.removeprefix("turngym/"))) if name == "success" else ""
            table.add_row(shown, name, *(f"{mean:.3f}" for mean in means), str(count))
    return table


def _line(change: Change) -> str:
    label, task, attempt = change.key
    values = [f"{name} {_shown(change.before[name])} -> {_shown(change.after[name])}" for name in change.after]
    parts = [", ".join(values), change.note]
    return f"{label}, task {task}, attempt {attempt}: {'; '.join(filter(None, parts))}"


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, int | float) else "none"
