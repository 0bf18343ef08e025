"""``turngym leaderboard``: many evaluations on one page."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.markup import escape
from tyro.conf import Positional

from turngym.benchmarks.cli.options.parsing import parse
from turngym.benchmarks.leaderboard.entries import read_entries
from turngym.benchmarks.leaderboard.table import Leaderboard, build_leaderboard
from turngym.benchmarks.pages.leaderboard import leaderboard_page
from turngym.benchmarks.verification.verify import Verification, verify_submission
from turngym.errors import ConfigError
from turngym.storage.files import write_atomic
from turngym.storage.folders import require_file
from turngym.system.limited import LimitedProcess
from turngym.terminal.console import Console
from turngym.terminal.output import print_json
from turngym.text import printable
from turngym.trainers.core.wording import counted

_DEFAULT = Path("leaderboard.html")


@dataclass(frozen=True)
class Arguments:
    """Build a leaderboard from evaluations: one self-contained page with a table per suite and 95 % intervals.

    Each folder comes from `turngym eval ... --out FOLDER`, or contains such folders. All are checked as by
    `turngym verify`; rejected, damaged or unknown ones are listed on the page and in the output. Logs of other suites
    (ATIF, Inspect AI, verifiers, Harbor) are not verified and get separate tables, one per set of task names.

    Args:
        folder: Evaluation folders, or logs.
        out: Output file (default: leaderboard.html).
        title: Heading of the page.
        verify: Skip verification.
        replay: Share of each environment's episodes to replay, at least one each; 0 for none.
        seed: Seed of the replayed sample; random by default.
        baselines: Also replay the random and the expert baseline of the folders. Normalised scores depend on replayed
            baselines only, except with --no-verify.
        json: Print the tables as JSON; the page is written only with --out.
    """

    folder: Positional[tuple[Path, ...]]
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    title: str = "Leaderboard"
    verify: Annotated[bool, tyro.conf.arg(help_behavior_hint="")] = True
    replay: float = 0.05
    seed: int | None = None
    baselines: bool = False
    json: bool = False


def main(argv: Sequence[str]) -> int:
    """Read, check, write the page, and name what could not be shown."""
    arguments = parse(Arguments, argv, "leaderboard")
    if not arguments.folder:
        raise ConfigError("a leaderboard needs one folder at least: `turngym eval ... --out FOLDER` writes one.")
    if not 0 <= arguments.replay <= 1:
        raise ConfigError(f"--replay must be in [0, 1], got {arguments.replay}.")
    if arguments.seed is not None and arguments.seed < 0:
        raise ConfigError(f"--seed must be 0 or more, got {arguments.seed}.")
    target = arguments.out or (None if arguments.json else _DEFAULT)
    if target is not None:
        require_file(target, _DEFAULT.name)
    console = Console(stderr=True, highlight=False)
    with console.status("reading") as status, LimitedProcess() as process:
        checker = _checker(arguments, process)

        def tell(folder: Path) -> None:
            status.update(escape(printable(f"checking {folder}")))

        board = build_leaderboard(*read_entries(arguments.folder, checker, tell))
    for each in board.left_out:
        names = f" ({', '.join(each.findings)})" if each.findings else ""
        print(printable(f"left out: {each.folder}: {each.reason}{names}"), file=sys.stderr)
    if not board.groups:
        raise ConfigError("none of the folders holds an evaluation that can be shown, so no page was written.")
    if target is not None:
        write_atomic(target, leaderboard_page(board, arguments.title))
    if arguments.json:
        print_json(board.as_json())
    else:
        print(summary(board, target))
    return 0


def _checker(arguments: Arguments, process: LimitedProcess) -> Callable[[Path], Verification] | None:
    if not arguments.verify:
        return None
    return lambda folder: verify_submission(
        folder, replay=arguments.replay, seed=arguments.seed, baselines=arguments.baselines, process=process
    )


def summary(board: Leaderboard, target: Path | None) -> str:
    """Return what was written, in a sentence.

    >>> summary(build_leaderboard([]), Path("page.html"))
    '0 submissions in 0 tables: page.html'
    """
    count = sum(len(group.entries) for group in board.groups)
    return f"{counted(count, 'submission')} in {counted(len(board.groups), 'table')}: {target}"
