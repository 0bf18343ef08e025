"""``turngym verify``: does a submission hold what it claims?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape
from tyro.conf import Positional

from turngym.benchmarks.cli.options.parsing import parse
from turngym.benchmarks.verification.findings import MEANINGS
from turngym.benchmarks.verification.verify import Verification, verify_submission
from turngym.errors import ConfigError
from turngym.terminal.console import Console
from turngym.terminal.output import print_json
from turngym.text import printable
from turngym.trainers.core.wording import counted

SCHEMA = 1
"""Version of what ``--json`` prints."""
_SHOWN, _LONGEST, _MOST_SECONDS = 20, 2_000, 10**6


@dataclass(frozen=True)
class Arguments:
    """Verify a folder written by `turngym eval` or `turngym tournament` with `--out`, without a model.

    Files must be well-formed, contain every task of the suite once, and be consistent with each other and the installed
    environments, and every number of results.json must follow from episodes.jsonl. A random share of the episodes is
    then replayed from seed and actions, or all of them if that is cheap. Numbers that were not recomputed, such as
    tokens and costs, are listed. The check runs in a separate process with resource limits and imports nothing named by
    the files. The exit status is 0 if the folder is valid, else 1.

    Tournaments and arenas are verified in the same way: schedule (in an arena, its matchmaking), ratings and all other
    numbers, and a share of the games.

    Args:
        folder: The folder.
        replay: Share of each environment's episodes to replay, at least one each; 0 for none.
        seed: Seed of the replayed sample; random by default, and shown.
        baselines: Also replay the random and the expert baseline completely.
        seconds: Time limit of the check in seconds; folders that exceed it are rejected.
        json: Print the findings as JSON.
    """

    folder: Positional[Path]
    replay: float = 0.05
    seed: int | None = None
    baselines: bool = False
    seconds: float = 900.0
    json: bool = False


def main(argv: Sequence[str]) -> int:
    """Check, print, and return 1 if something is wrong."""
    arguments = parse(Arguments, argv, "verify")
    if not 0 <= arguments.replay <= 1:
        raise ConfigError(f"--replay must be in [0, 1], got {arguments.replay}.")
    if arguments.seed is not None and arguments.seed < 0:
        raise ConfigError(f"--seed must be 0 or more, got {arguments.seed}.")
    if not 0 < arguments.seconds <= _MOST_SECONDS:
        raise ConfigError(f"--seconds must be in 0 to {_MOST_SECONDS:,}, got {arguments.seconds:g}.")
    found = verify_submission(
        arguments.folder,
        replay=arguments.replay,
        seed=arguments.seed,
        baselines=arguments.baselines,
        seconds=arguments.seconds,
    )
    if arguments.json:
        print_json({"version": SCHEMA, **found.as_json()})
    else:
        _show(found, Console(highlight=False))
    return 0 if found.is_accepted else 1


def _show(found: Verification, console: Console) -> None:
    def line(text: str) -> None:
        console.print(text, soft_wrap=True)

    for name, meaning in MEANINGS.items():
        mine = [finding for finding in found.findings if finding.name == name]
        if mine:
            line(f"[red]FAIL[/red]  [bold]{name}[/bold]  {meaning}")
            for finding in mine[:_SHOWN]:
                line(f"      {_shown(finding.place)}: {_shown(finding.message)}")
            if len(mine) > _SHOWN:
                line(f"      and {len(mine) - _SHOWN} more: --json shows all")
    for note in found.notes:
        line(f"[yellow]note[/yellow]  {_shown(note)}")
    reasons: dict[str, list[str]] = {}
    for name, reason in found.not_recomputed.items():
        reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        line(f"[yellow]note[/yellow]  not recomputed: {_shown(', '.join(names))} ({_shown(reason)})")
    if found.is_accepted:
        line(f"[green]{_shown(str(found.path))} is accepted[/green], label: [bold]{found.label}[/bold].")
        claims = f", {found.claims_replayed} of {found.claims} that claim something among them" if found.claims else ""
        line(f"{found.replayed} of {found.episodes} episodes were played again{claims} (--seed {found.seed}).")
    else:
        count = counted(len(found.findings), "finding")
        line(f"[red]{_shown(str(found.path))} is rejected[/red]: {count} (--seed {found.seed}).")


def _shown(text: str) -> str:
    """Return text of the folder as a terminal may show it."""
    return escape(printable(text[:_LONGEST]))
