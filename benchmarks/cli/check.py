"""``turngym check``: does an environment keep its promises?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.markup import escape
from tyro.conf import Positional

from turngym.benchmarks.cli.options.parsing import Pairs, key_values, parse, text_env_ids
from turngym.benchmarks.cli.options.sources import with_source
from turngym.envs.check import CheckFailed, Report, Result, check, rules_of
from turngym.envs.checks.page import page
from turngym.envs.checks.rule import Rule
from turngym.envs.checks.table import RULES, WORTH
from turngym.errors import ConfigError, MissingExtra
from turngym.storage.files import write_atomic
from turngym.storage.folders import require_file
from turngym.terminal.console import Console
from turngym.terminal.output import print_json

SCHEMA = 1
"""Version of what ``--json`` prints."""

USES_OWN_MODULES = True


@dataclass(frozen=True)
class Arguments:
    """Check that an environment fulfils its contract.

    The exit status is 0 if it does, 1 on a violation, and 2 if there is nothing to check.

    Args:
        env: Id of the environment, `module:id`, `module:Class`, `path/to/file.py:Class`, or `all`.
        option: Environment option, such as max_turns=20.
        seed: First seed to test; failures are reproducible with their seed.
        episodes: Episodes per rule, for most rules; 1 suffices for a quick check of a slow environment.
        in_process: Do not start other processes: faster, but does not detect dependence on set order, clock and
            environment variables.
        players: Episodes of each of a dozen players without skill, and of the expert and random play, to check that
            skill pays; 0 for none. 20 reveal large differences, 200 small ones.
        out: Markdown file for the verdict.
        rules: Show all rules with reason and remedy, without checking.
        json: Print the findings as JSON.
    """

    env: Positional[str] = ""
    option: Pairs = ()
    seed: int = 0
    episodes: int = 3
    in_process: bool = False
    players: int = 0
    out: Path | None = None
    rules: bool = False
    json: bool = False


def main(argv: Sequence[str]) -> int:
    """Check, print, and return 1 if a promise is broken."""
    arguments = parse(Arguments, with_source(argv), "check")
    console = Console(highlight=False, quiet=arguments.json)
    if arguments.rules:
        return _show_rules(console, is_json=arguments.json)
    if not arguments.env:
        raise ConfigError("check needs an environment: an id, `module:Class`, `path/to/file.py:Class`, or `all`.")
    if arguments.episodes < 1:
        raise ConfigError(f"--episodes must be at least 1, got {arguments.episodes}.")
    if arguments.players < 0:
        raise ConfigError(f"--players must be at least 0, got {arguments.players}.")
    if arguments.out is not None:
        require_file(arguments.out, "verdict.md")
    if arguments.env == "all":
        return _check_all(arguments, console)
    report = _check(arguments.env, arguments, console, is_one=True)
    _write_page(arguments, [report])
    if arguments.json:
        _print_json([report.as_json()])
    else:
        console.print(_verdict(report), soft_wrap=True)
    return 1 if report.failed else 0


def _check_all(arguments: Arguments, console: Console) -> int:
    """Check every registered environment; one whose extra is absent is left out."""
    reports, absent = [], []
    for name in text_env_ids():
        try:
            reports.append(_check(name, arguments, console, is_one=False))
        except MissingExtra as error:
            absent.append({"name": name, "reason": str(error)})
            console.print(f"[yellow]skip[/yellow]  {escape(name)}: {escape(str(error))}", soft_wrap=True)
    broken = [report for report in reports if report.failed]
    _write_page(arguments, reports)
    if arguments.json:
        _print_json([report.as_json() for report in reports], absent)
    else:
        console.print(f"\n{len(reports) - len(broken)} of {len(reports)} environments pass.")
    return 1 if broken else 0


def _write_page(arguments: Arguments, reports: Sequence[Report]) -> None:
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(arguments.out, page(reports))


def _check(name: str, arguments: Arguments, console: Console, *, is_one: bool) -> Report:
    """Return the report; show each result as soon as there is one, all of them or the broken ones."""
    number = 0
    with console.status(f"checking {name}") as status:

        def started(rule: Rule) -> None:
            nonlocal number
            if is_one and not number:  # now it is known that there is one
                console.print(escape(name), style="bold", soft_wrap=True)
            number += 1
            status.update(f"checking {escape(name)}: {rule.name} ({number} of {len(rules_of(arguments.players))})")

        def judged(result: Result) -> None:
            if is_one or result.status == "failed":
                _show(console, result)

        try:
            report = check(
                name,
                seed=arguments.seed,
                episodes=arguments.episodes,
                options=key_values(arguments.option, "--option"),
                in_process=arguments.in_process,
                players=arguments.players,
                on_start=started,
                on_result=judged,
            )
        except CheckFailed as error:
            report = error.report
    if not is_one:
        word = "[red]FAIL[/red]" if report.failed else "[green]ok[/green]  "
        console.print(f"{word}  {escape(name)}", soft_wrap=True)
    return report


def _show(console: Console, result: Result) -> None:
    """Show one result: a line, or for a broken promise everything that helps to fix it."""
    rule = result.rule

    def line(text: str) -> None:
        console.print(text, soft_wrap=True)

    if result.status == "passed":
        line(f"  [green]ok[/green]    {rule.name}  [dim]{escape(rule.promise)}[/dim]")
    elif result.status == "skipped":
        line(f"  [yellow]skip[/yellow]  {rule.name}  [dim]{escape(result.reason)}[/dim]")
    else:
        line(f"  [red]FAIL[/red]  [bold]{rule.name}[/bold]  {escape(rule.promise)}")
        for finding in result.findings:
            line(f"        [bold]seen[/bold]  {escape(finding.place())}")
            if finding.ours or finding.theirs:
                line(f"              expected  [green]{escape(repr(finding.ours))}[/green]")
                line(f"              got       [red]{escape(repr(finding.theirs))}[/red]")
        line(f"        [bold]why[/bold]   {escape(rule.why)}")
        line(f"        [bold]fix[/bold]   {escape(rule.fix)}")


def _verdict(report: Report) -> str:
    counts = f"{len(report.passed)} rules hold, {len(report.skipped)} do not apply"
    if not report.failed:
        return f"[green]{escape(report.label)} passes[/green]: {counts}."
    return f"[red]{escape(report.label)} fails {', '.join(report.failed)}[/red]; {counts} or could not be judged."


def _show_rules(console: Console, *, is_json: bool) -> int:
    if is_json:
        fields = ("name", "promise", "why", "fix", "after")
        table = [{field: getattr(rule, field) for field in fields} for rule in {**RULES, **WORTH}.values()]
        print_json({"version": SCHEMA, "rules": table})
        return 0
    for rule in {**RULES, **WORTH}.values():
        console.print(f"[bold]{rule.name}[/bold]  {escape(rule.promise)}", soft_wrap=True)
        console.print(f"    why   {escape(rule.why)}\n    fix   {escape(rule.fix)}", style="dim", soft_wrap=True)
    return 0


def _print_json(reports: Sequence[Mapping[str, Any]], absent: Sequence[Mapping[str, str]] = ()) -> None:
    """Print ``{"version", "environments", "absent"}``; :meth:`turngym.envs.check.Report.as_json` documents a report."""
    found = {"version": SCHEMA, "environments": reports, "absent": absent}
    print_json(found)
