"""``turngym check``: does an environment keep its promises?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from tyro.conf import Positional

from turngym.benchmarks.commands.parsing import find_env, parse, text_env_ids
from turngym.envs.check import CheckFailed, check
from turngym.errors import ConfigError, MissingExtra


@dataclass(frozen=True)
class Arguments:
    """Check that an environment keeps every promise of the contract; the exit status is 1 if it does not.

    Args:
        env: Id of the environment, `module:id` to import a module of yours first, or `all`.
        seed: First of the seeds that are tried.
        episodes: Episodes that most checks play.
        json: Print what was found as JSON.
    """

    env: Positional[str]
    seed: int = 0
    episodes: int = 3
    json: bool = False


def main(argv: Sequence[str]) -> int:
    """Check, print, and return 1 if a promise is broken."""
    arguments = parse(Arguments, argv, "check")
    if arguments.episodes < 1:
        raise ConfigError(f"--episodes must be at least 1, got {arguments.episodes}.")
    names = text_env_ids() if arguments.env == "all" else (find_env(arguments.env),)
    console = Console(highlight=False, quiet=arguments.json)
    found = []
    for name in names:
        with console.status(f"checking {name}"):
            found.append(_check(name, arguments, is_skippable=arguments.env == "all"))
        _show(console, found[-1])
    broken = [one["name"] for one in found if one["findings"]]
    if arguments.json:
        print(json.dumps(found, indent=2, ensure_ascii=False))
    elif len(found) > 1:
        console.print(f"\n{len(found) - len(broken)} of {len(found)} environments keep their promises.")
    return 1 if broken else 0


def _check(name: str, arguments: Arguments, *, is_skippable: bool) -> dict[str, Any]:
    """Return what was found; an environment whose extra is absent is left out of ``all``."""
    try:
        report = check(name, seed=arguments.seed, episodes=arguments.episodes)
    except CheckFailed as error:
        report = error.report
    except MissingExtra as error:
        if not is_skippable:
            raise
        return {"name": name, "passed": [], "skipped": [["everything", str(error)]], "findings": []}
    return asdict(report)


def _show(console: Console, found: dict[str, Any]) -> None:
    console.print(found["name"], style="bold", markup=False)
    for promise in found["passed"]:
        console.print(f"  [green]ok[/green]    {escape(promise)}")
    for promise, reason in found["skipped"]:
        console.print(f"  [yellow]skip[/yellow]  {escape(promise)}: {escape(reason)}")
    for finding in found["findings"]:
        console.print(f"  [red]FAIL[/red]  {escape(finding)}")
