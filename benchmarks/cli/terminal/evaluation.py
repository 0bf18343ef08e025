"""Terminal output of ``turngym eval``: a live table during episodes, and the final numbers."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rich import box
from rich.console import Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table

from turngym.agents.chat_client.agent import ServerAgent
from turngym.agents.chat_client.client import CONTEXT, TOOLS
from turngym.agents.core import Agent
from turngym.agents.episodes.best_of import best_of
from turngym.agents.episodes.evaluate import EvaluationResult
from turngym.agents.episodes.pass_k import repeated_attempts
from turngym.agents.intervals import Estimate
from turngym.agents.players.styled import StyledServerAgent
from turngym.agents.usage import Usage
from turngym.benchmarks.evaluation.plan import Plan
from turngym.benchmarks.evaluation.records import Evaluation, normalised, results
from turngym.benchmarks.evaluation.run import Watcher
from turngym.benchmarks.evaluation.scoring import verifier_usage
from turngym.benchmarks.statistics.normalised import normalised_mean
from turngym.columns import OUTCOME
from turngym.errors import ServerDown
from turngym.terminal.console import Console
from turngym.trainers.loop.time_left import TimeLeft

_SECONDS_BETWEEN_RETRIES = 10.0


class LiveTable(Watcher):
    """A bar for each player and below it one row for each environment: what is done, and what came out so far.

    Args:
        console: Display; nothing is shown without a terminal.
        repeats: Attempts at each task that were asked for.
        is_silent: Show nothing, as for an agent that uses the terminal itself.
        minutes: Time budget of the whole evaluation; None has no limit.
    """

    def __init__(
        self, console: Console, repeats: int = 1, is_silent: bool = False, minutes: float | None = None
    ) -> None:
        self._deadline = math.inf if minutes is None else time.monotonic() + 60 * minutes
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeLeft())
        self._progress = Progress(*columns, console=console, auto_refresh=False)
        self._console = console
        self._repeats = repeats
        self._totals: dict[str, int] = {}
        self._counts: dict[str, list[float]] = {}
        self._usage = Usage()
        self._task = TaskID(0)
        self._live: Live | None = None
        if console.is_terminal and not console.quiet and not is_silent:
            self._live = Live(console=console, transient=True, refresh_per_second=4, get_renderable=self.renderable)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def start(self, plan: Plan) -> None:
        """Note how many episodes there are, and say so where a single instance is played several times."""
        self._totals = {entry.label: plan.repeats * len(seeds) for entry, seeds in plan.entries()}
        if plan.repeats != self._repeats:
            text = f"{plan.suite.name} has a single instance, which is played {plan.repeats} times."
            print(text, file=sys.stderr)

    def begin(self, player: str) -> None:
        """Start the bar of a player."""
        self._task = self._progress.add_task(
            player or "episodes", total=sum(self._totals.values()), deadline=self._deadline
        )
        self._counts = {}
        self._usage = Usage()

    def add(self, row: Mapping[str, Any]) -> None:
        """Count a finished episode."""
        self._progress.advance(self._task)
        counts = self._counts.setdefault(row["label"], [0.0, 0.0, 0.0, 0.0])
        for index, number in enumerate((1, row["success"], row["score"], row["length"])):
            counts[index] += number
        for seat in row["seats"].values():
            self._usage += Usage.from_json(seat)

    def remark(self, text: str) -> None:
        """Show a remark."""
        self._console.print(text, markup=False)

    def renderable(self) -> Group:
        """Return what is shown now."""
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("environment")
        for name in ("episodes", "success %", "score", "turns"):
            table.add_column(name, justify="right")
        for label, (count, success, score, turns) in self._counts.items():
            means = f"{100 * success / count:.1f}", f"{score / count:.3f}", f"{turns / count:.1f}"
            table.add_row(escape(label), f"{count:.0f}/{self._totals.get(label, 0)}", *means)
        return Group(self._progress, table, escape(usage_text(self._usage)) if _is_counted(self._usage) else "")


def _is_counted(usage: Usage) -> bool:
    """Return whether a model played; other agents use nothing worth a line."""
    counts = usage.tokens_in, usage.retries, usage.lost, usage.unmetered, usage.reviews
    return any(counts)


def show_retries(agent: Agent) -> None:
    """Print on standard error that a server is waited for, at the first failure and every few seconds after it."""
    server = getattr(agent, "server", None) if isinstance(agent, StyledServerAgent) else agent
    if not isinstance(server, ServerAgent):
        return
    lock, told = threading.Lock(), [-math.inf]

    def tell(kind: str) -> None:
        if kind == CONTEXT:  # asked again at once, with a shorter prompt
            return
        if kind == TOOLS:  # asked again at once, without tools
            if server.failed[kind] == 1:
                print(f"note: {' '.join(server.problems[kind].split())}", file=sys.stderr, flush=True)
            return
        with lock:
            if time.monotonic() - told[0] < _SECONDS_BETWEEN_RETRIES:
                return
            told[0] = time.monotonic()
            counts = ", ".join(f"{count:,} {name}" for name, count in sorted(server.failed.items()))
        why = " ".join(server.problems[kind].split())
        print(f"server: failed requests so far: {counts}; {kind}: {why}", file=sys.stderr, flush=True)

    server.on_failure = tell


def require_answers(played: Evaluation) -> None:
    """Refuse an evaluation in which no call of the model was answered: 0 would be no score.

    Raises:
        ServerDown: None was.
    """
    usage = played.usage
    if usage.is_unanswered:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(usage.failures.items()))
        first = next(iter(getattr(played.agent, "problems", {}).values()), "")
        raise ServerDown(
            f"no turn of {usage.lost:,} was answered by the model ({kinds}), so there is no score: correct the agent "
            f"or its server, and evaluate again in a new folder. The first failure: {' '.join(first.split())}"
        )


def usage_text(usage: Usage) -> str:
    """Return what was used, as one line.

    >>> usage_text(Usage(tokens_in=1200, tokens_out=30, calls=5, retries=1, failures={"timeout": 1}))
    '1,200 tokens in, 30 out, 5 calls, 1 retries, 1 failed requests (1 timeout)'
    """
    parts = [f"{usage.tokens_in:,} tokens in, {usage.tokens_out:,} out", f"{usage.calls:,} calls"]
    failures = ", ".join(f"{count:,} {kind}" for kind, count in sorted(usage.failures.items()))
    if usage.retries or failures:
        parts.append(f"{usage.retries:,} retries")
    if failures:
        parts.append(f"{sum(usage.failures.values()):,} failed requests ({failures})")
    if usage.lost:
        parts.append(f"{usage.lost:,} turns without an answer")
    if usage.shortened:
        parts.append(f"{usage.shortened:,} prompts without some earlier turns")
    if usage.reviews:
        found = f"{usage.objections:,} objections and {usage.unreadable:,} unreadable verdicts"
        parts.append(f"{usage.reviews:,} reviews of the critic with {found}")
    if usage.cost is not None:
        parts.append(f"cost {usage.cost:.4f} USD")
    return ", ".join(parts)


def remarks(played: Evaluation, out: Path | None) -> Iterator[str]:
    """Yield remarks below the tables: usage, failures, missing episodes, and the folder."""
    if _is_counted(played.usage):
        yield usage_text(played.usage)
    spent = verifier_usage(row for found in played.result.results for row in found.episodes)
    if _is_counted(spent):
        yield f"the verifier: {usage_text(spent)}"
    for kind, detail in sorted(getattr(played.agent, "problems", {}).items()):
        yield f"the first {kind}: {detail}"
    rows = [row for found in played.result.results for row in found.episodes]
    yield from broken_episodes(rows)
    yield from retried_episodes(rows)
    yield from cut_episodes(rows)
    left_out = sum(map(len, played.unplayed.values()))
    if left_out:
        asked = played.repeats * sum(map(len, played.seeds))
        way_out = "" if out is None else f" `--out {out} --resume` plays them."
        yield f"INCOMPLETE: the time budget left {left_out} of {asked} episodes out.{way_out}"
    if out is not None:
        yield f"written to {out}"


def broken_episodes(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield one line for the episodes that ended with a fault, with the most frequent reason.

    >>> row = {"status": "env_error", "env": "my/Lock-v0", "fault": "exception: ValueError: no board"}
    >>> list(broken_episodes([row, {**row, "status": "ok"}]))
    ['my/Lock-v0 broke in 1 of 2 episodes, which count as failures: exception: ValueError: no board']
    """
    for env in dict.fromkeys(row["env"] for row in rows):
        own = [row for row in rows if row["env"] == env]
        faults = Counter(row["fault"] for row in own if row["status"] == "env_error")
        if faults:
            often, kinds = faults.most_common(1)[0][0], len(faults)
            others = f" (and {kinds - 1} other {'reason' if kinds == 2 else 'reasons'})" if kinds > 1 else ""
            count = f"{faults.total()} of {len(own)} episode{'' if len(own) == 1 else 's'}"
            yield f"{env} broke in {count}, which count as failures: {often[:300]}{others}"


def retried_episodes(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield one line for the episodes of an environment that broke once and were repeated, with the first reason.

    >>> row = {"env": "my/Lock-v0", "retried_fault": "exception: OSError: gone"}
    >>> list(retried_episodes([row, {"env": "my/Lock-v0"}]))
    ['my/Lock-v0 broke in 1 of 2 episodes, which were repeated without a fault; the first: exception: OSError: gone']
    """
    for env in dict.fromkeys(row["env"] for row in rows):
        own = [row for row in rows if row["env"] == env]
        if faults := [row["retried_fault"] for row in own if row.get("retried_fault")]:
            count = f"{len(faults)} of {len(own)} episode{'' if len(own) == 1 else 's'}"
            yield f"{env} broke in {count}, which were repeated without a fault; the first: {faults[0][:300]}"


def cut_episodes(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield one line for the episodes of an environment whose next prompt did not fit, with the first reason.

    >>> row = {"status": "context", "env": "my/Lock-v0", "truncation_detail": "9 tokens, more than 5."}
    >>> list(cut_episodes([row, {**row, "status": "ok"}]))
    ['my/Lock-v0: in 1 of 2 episodes a prompt did not fit, which counts as a failure: 9 tokens, more than 5.']
    """
    for env in dict.fromkeys(row["env"] for row in rows):
        own = [row for row in rows if row["env"] == env]
        cut = [row for row in own if row["status"] == "context"]
        if cut:
            why = str(cut[0].get("truncation_detail", "")) or "the records do not say why"
            count = f"{len(cut)} of {len(own)} episode{'' if len(own) == 1 else 's'}"
            yield f"{env}: in {count} a prompt did not fit, which counts as a failure: {why[:300]}"


def results_tables(played: Evaluation) -> Iterator[Table]:
    """Yield one table an environment, and one for the mean of a suite; the baselines have columns of their own."""
    suite, others = played.result.suite, played.baselines
    shares = normalised(played)
    for index, entry in enumerate(suite.entries):
        table = _empty_table(entry.label, played)
        own = _metric_rows(played.result.results[index])
        beside = [_metric_rows(found.results[index]) for found in others.values()]
        for metric, (value, interval) in own.items():
            table.add_row(escape(metric), value, interval, *[column.get(metric, ("", ""))[0] for column in beside])
        if entry.label in shares:
            table.add_row("normalised", f"{shares[entry.label]:.1f}", "", "0.0", "100.0")
        yield table
    if len(suite.entries) > 1:
        table = _empty_table(f"{suite.name}, version {suite.version}: mean with equal weights", played)
        scale, metric = (100, "success %") if suite.metric == "success" else (1, "score")
        table.add_row(
            metric,
            *_numbers(played.result.mean, scale, 1),
            *[_numbers(found.mean, scale, 1)[0] for found in others.values()],
        )
        share = normalised_mean(results(played))
        if share is not None:
            table.add_row("normalised", *_numbers(share, 1, 1), "0.0", "100.0")
        yield table


def _empty_table(title: str, played: Evaluation) -> Table:
    table = Table(title=escape(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("metric", min_width=17)
    for name in (played.agent_name, "95 % interval", *played.baselines):
        table.add_column(escape(name), justify="right", min_width=9)
    return table


def _metric_rows(result: EvaluationResult) -> dict[str, tuple[str, str]]:
    outcomes = {name: _numbers(found, 1, 3) for name, found in result.outcomes.items()}
    rows = {
        "success %": _numbers(result.success, 100, 1),
        "score": _numbers(result.score, 1, 3),
        "return": _numbers(result.reward_sum, 1, 3),
        "turns": _numbers(result.turns, 1, 2),
        "invalid actions %": (f"{100 * result.invalid_actions:.1f}", ""),
        "faults": (f"{result.faults} of {len(result.episodes)}", ""),
        **({"prompt too long": (f"{result.context} of {len(result.episodes)}", "")} if result.context else {}),
        **{f"{name} %": _numbers(found, 100, 1) for name, found in repeated_attempts(result.episodes).items()},
        **{f"{name} %": _numbers(found, 100, 1) for name, found in best_of(result.episodes).items()},
    }
    return {**rows, **{f"{OUTCOME}{name}" if name in rows else name: found for name, found in outcomes.items()}}


def _numbers(estimate: Estimate, scale: float, digits: int) -> tuple[str, str]:
    if math.isnan(estimate.value):
        return "not played", ""
    value, low, high = (f"{scale * number:.{digits}f}" for number in (estimate.value, estimate.low, estimate.high))
    return value, estimate.no_interval or f"{low} to {high}"
