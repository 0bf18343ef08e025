"""The verdict of a check as a page in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turngym.envs.check import Report, Result


def page(reports: Sequence[Report]) -> str:
    """Return the reports of some environments as one page: broken rules with evidence and remedy, then the others."""
    return "\n".join(line for report in reports for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    counts = f"{len(report.passed)} rules hold, {len(report.failed)} are broken, {len(report.skipped)} do not apply"
    verdict = "fails" if report.failed else "passes"
    yield from (
        f"# {_plain(report.label)} {verdict}",
        "",
        f"{counts}. Seeds from {report.seed}, {_episodes(report)}.",
        "",
    )
    for result in report.results:
        if result.status == "failed":
            yield from _broken(result)
    yield from ("| rule | verdict | |", "| --- | --- | --- |")
    for result in report.results:
        told = result.reason if result.status == "skipped" else result.rule.promise
        yield f"| `{result.rule.name}` | {result.status} | {_plain(told)} |"
    yield ""


def _episodes(report: Report) -> str:
    players = f", {report.players} of each player" if report.players else ""
    return f"episodes per rule: {report.episodes}{players}"


def _broken(result: Result) -> Iterator[str]:
    rule = result.rule
    yield from (f"## {rule.name}", "", _plain(rule.promise), "")
    yield from (f"- seen: {_plain(str(finding))}" for finding in result.findings)
    yield from (f"- why: {_plain(rule.why)}", f"- fix: {_plain(rule.fix)}", "")


def _plain(text: str) -> str:
    r"""Return text on one line that Markdown shows as it is.

    >>> print(_plain("a|b <i>\n*c*"))
    a\|b \<i> \*c\*
    """
    return "".join(f"\\{letter}" if letter in "\\|<*_`#[" else letter for letter in " ".join(text.split()))
