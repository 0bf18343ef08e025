"""Check of the contract of a :class:`TextEnv`, beyond Gymnasium's ``check_env``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from turngym.envs.checks.case import Case
from turngym.envs.checks.elsewhere import elsewhere, stop_processes
from turngym.envs.checks.rule import Finding, Rule, Skipped, raised
from turngym.envs.checks.source import EnvOrMaker, source_of
from turngym.envs.checks.table import RULES, WORTH
from turngym.envs.core import TextEnv
from turngym.errors import ConfigError, TurngymError

SHOWN = 3
"""Maximum number of findings kept per rule."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one rule.

    Args:
        rule: The rule.
        status: Whether it holds, is violated, or could not be judged.
        reason: Reason for a skip.
        findings: Violations found.
        seconds: Duration.
    """

    rule: Rule
    status: Literal["passed", "failed", "skipped"]
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the result as a JSON value; see :func:`Report.as_json`."""
        rule = self.rule
        return {
            "name": rule.name,
            "status": self.status,
            "promise": rule.promise,
            "why": rule.why,
            "fix": rule.fix,
            "reason": self.reason,
            "evidence": [asdict(finding) for finding in self.findings],
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True, slots=True)
class Report:
    """Report of a check.

    Args:
        name: The environment.
        seed: First seed.
        episodes: Episodes that most rules played.
        results: Result of each rule, in order of judgement.
        options: Options of the environment.
        players: Episodes of each compared player; 0 for none.
    """

    name: str
    seed: int
    episodes: int
    results: tuple[Result, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    players: int = 0

    @property
    def label(self) -> str:
        """Name and options of the environment."""
        return " ".join([self.name, *(f"{key}={value}" for key, value in self.options.items())])

    @property
    def passed(self) -> tuple[str, ...]:
        """Names of the rules that hold."""
        return tuple(result.rule.name for result in self.results if result.status == "passed")

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the rules that are violated."""
        return tuple(result.rule.name for result in self.results if result.status == "failed")

    @property
    def skipped(self) -> tuple[tuple[str, str], ...]:
        """Names of the rules that could not be judged, with the reason."""
        return tuple((result.rule.name, result.reason) for result in self.results if result.status == "skipped")

    @property
    def findings(self) -> tuple[str, ...]:
        """Findings, one line each, prefixed by the name of the rule."""
        return tuple(f"{result.rule.name}: {finding}" for result in self.results for finding in result.findings)

    def as_json(self) -> dict[str, Any]:
        """Return the report as a JSON value.

        Keys: ``name``, ``ok`` (no rule is violated), ``seed``, ``episodes``, ``rules``: for each rule ``name``,
        ``status`` (passed, failed, skipped), ``promise``, ``why``, ``fix``, ``reason`` (of a skip), ``seconds`` and
        ``evidence``: for each finding ``seen``, ``seed``, ``turn`` (both null if there is none), ``ours`` and
        ``theirs`` (the differing texts).
        """
        return {
            "name": self.name,
            "ok": not self.failed,
            "seed": self.seed,
            "episodes": self.episodes,
            "rules": [result.as_json() for result in self.results],
        }

    def __str__(self) -> str:
        lines = [self.name]
        for result in self.results:
            rule = result.rule
            if result.status == "passed":
                lines.append(f"ok    {rule.name}: {rule.promise}")
            elif result.status == "skipped":
                lines.append(f"skip  {rule.name}: {result.reason}")
            else:
                lines.append(f"FAIL  {explained(result)}")
        return "\n".join(lines)


def explained(result: Result) -> str:
    """Explain a broken rule: the promise, what was seen, why it matters, how to fix it."""
    rule = result.rule
    seen = "\n".join(f"        seen: {finding}" for finding in result.findings)
    return f"{rule.name}: {rule.promise}\n{seen}\n        why:  {rule.why}\n        fix:  {rule.fix}"


class CheckFailed(TurngymError, AssertionError):
    """An environment violates one or more rules.

    Args:
        report: The full report.
    """

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self.report = report

    def __str__(self) -> str:
        broken = [explained(result) for result in self.report.results if result.status == "failed"]
        return f"{self.report.name} breaks {len(broken)} of its promises:\n" + "\n".join(f"- {text}" for text in broken)


def check(
    env: EnvOrMaker,
    *,
    seed: int = 0,
    episodes: int = 3,
    options: Mapping[str, Any] | None = None,
    in_process: bool = False,
    players: int = 0,
    on_start: Callable[[Rule], None] | None = None,
    on_result: Callable[[Result], None] | None = None,
) -> Report:
    """Check an environment against all rules of the contract.

    Args:
        env: An id (also ``"module:id"``), ``"module:Class"``, ``"path/to/file.py:Class"``, an environment, wrapped or
            not, or a class or function that makes one from keyword arguments. Only fresh copies are played.
        seed: First seed to test; failures are reproducible with their seed.
        episodes: Episodes per rule, for most rules, at least 1.
        options: Options of the constructor.
        in_process: Whether to start no other processes: faster, but misses violations visible only across processes.
        players: Episodes of the expert, of random play and of each player without skill, for the rules that compare
            them; 0 skips these rules. 20 reveal large differences, 200 small ones.
        on_start: Called with each rule before it is judged.
        on_result: Called with each result.

    Raises:
        CheckFailed: A rule is violated; the message lists all findings and how to fix them.
        UnknownName: There is no environment of that name.
        ConfigError: It is not a :class:`TextEnv`, or no copy can be made.

    >>> report = check("turngym/GuessTheNumber-v0", episodes=1, in_process=True)
    >>> report.failed
    ()
    """
    if episodes < 1:
        raise ConfigError(f"episodes must be at least 1, got {episodes}.")
    name, maker = source_of(env, options)
    if players < 0:
        raise ConfigError(f"players must be at least 0, got {players}.")
    case = Case(maker, seed, episodes, in_process=in_process, players=players)
    try:
        broken = _cannot_be_made(case)
        results = _judge(case, broken, on_start or _nothing, on_result or _nothing)
    finally:
        stop_processes(case)
        case.close(kept=True)
    report = Report(name, seed, episodes, results, dict(options or {}), players)
    if report.failed:
        raise CheckFailed(report)
    return report


def rules_of(players: int) -> dict[str, Rule]:
    """Return name -> rule of a check with so many episodes of each player."""
    return {**RULES, **WORTH} if players else RULES


def _nothing(_: Any) -> None:
    """Stand for a callback that nobody wants."""


def _cannot_be_made(case: Case) -> str:
    """Return why no copy can be made, empty if one can; raise for anything but a :class:`TextEnv`."""
    try:
        found = case.env.unwrapped
    except TurngymError:
        raise
    except Exception as error:  # the finding of the first rule
        return raised(error)
    if not isinstance(found, TextEnv):
        raise ConfigError(
            f"check() is for turngym.envs.TextEnv and its wrappers, got {type(found).__name__}: derive your class from "
            f"TextEnv."
        )
    return ""


def _judge(
    case: Case, broken: str, on_start: Callable[[Rule], None], on_result: Callable[[Result], None]
) -> tuple[Result, ...]:
    results: list[Result] = []
    unjudged: dict[str, str] = {}
    for rule in rules_of(case.players).values():
        on_start(rule)
        began = time.monotonic()
        causes = [unjudged[name] for name in ("plays", *rule.after) if name in unjudged]
        if broken and rule.name == "plays":
            found = Result(rule, "failed", findings=(Finding(f"making it raised {broken}"),))
        elif causes:
            unjudged[rule.name] = causes[0]
            found = Result(rule, "skipped", f"judged once {causes[0]} holds")
        else:
            found = _judged(case, rule)
        if found.status == "failed":
            unjudged[rule.name] = rule.name
        elif rule.name == "plays":
            with suppress(Skipped):
                elsewhere(case)  # started early: they play while the next rules are judged
        results.append(Result(rule, found.status, found.reason, found.findings, time.monotonic() - began))
        on_result(results[-1])
    return tuple(results)


def _judged(case: Case, rule: Rule) -> Result:
    """Return the findings of one rule; an exception is a finding too."""
    try:
        found = list(dict.fromkeys(rule.test(case)))
    except Skipped as reason:
        return Result(rule, "skipped", str(reason))
    except Exception as error:  # user code: recorded here
        found = [Finding(f"raised {raised(error)}")]
    finally:
        case.close()
    if len(found) > SHOWN:
        found = [*found[:SHOWN], Finding(f"and {len(found) - SHOWN} more of this kind")]
    return Result(rule, "failed" if found else "passed", findings=tuple(found))
