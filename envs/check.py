"""A check of everything an environment promises, beyond Gymnasium's ``check_env``; for any :class:`TextEnv`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import gymnasium

from turngym.envs.check_case import Case, Skipped
from turngym.envs.check_rules import RULES
from turngym.envs.core import TextEnv
from turngym.envs.vector.maker import find_spec
from turngym.errors import ConfigError, TurngymError

_SHOWN = 5

EnvOrMaker: TypeAlias = str | gymnasium.Env[Any, Any] | Callable[..., gymnasium.Env[Any, Any]]


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found.

    Args:
        name: The environment.
        passed: The promises that hold.
        skipped: Promises that do not apply, with the reason.
        findings: What is wrong, one sentence each.
    """

    name: str
    passed: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...]
    findings: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"ok    {promise}" for promise in self.passed]
        lines += [f"skip  {promise}: {reason}" for promise, reason in self.skipped]
        lines += [f"FAIL  {finding}" for finding in self.findings]
        return "\n".join([self.name, *lines])


class CheckFailed(TurngymError, AssertionError):
    """An environment breaks its promises.

    Args:
        report: All that was found.
    """

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self.report = report

    def __str__(self) -> str:
        count = len(self.report.findings)
        return f"{self.report.name} breaks {count} of its promises:\n" + "\n".join(
            f"- {finding}" for finding in self.report.findings
        )


def check(env: EnvOrMaker, *, seed: int = 0, episodes: int = 3) -> Report:
    """Check every promise of an environment and return what holds.

    Args:
        env: A registered id (``"module:id"`` works), an environment, or a function that makes one and passes its
            keyword arguments on. Fresh copies are made of it; a given environment is not touched.
        seed: First of the seeds that are tried; a failure repeats with the same seed.
        episodes: How many episodes most checks play, at least 1.

    Raises:
        CheckFailed: Something is wrong; the message lists everything that was found.
        ConfigError: It is no :class:`TextEnv`, or it cannot be made again.

    >>> report = check("turngym/GuessTheNumber-v0")
    >>> report.findings
    ()
    """
    if episodes < 1:
        raise ConfigError(f"episodes must be at least 1, got {episodes}.")
    case = Case(maker_of(env), seed, episodes)
    report = _run(_name_of(env, case), case)
    if report.findings:
        raise CheckFailed(report)
    return report


def _run(name: str, case: Case) -> Report:
    passed: list[str] = []
    skipped: list[tuple[str, str]] = []
    findings: list[str] = []
    for promise, rule in RULES.items():
        try:
            found = list(rule(case))
        except Skipped as reason:
            skipped.append((promise, str(reason)))
            continue
        except Exception as error:  # the boundary that records it
            found = [f"raised {type(error).__name__}: {error}"]
        finally:
            case.close()
        distinct = list(dict.fromkeys(found))
        findings += [f"{promise}: {text}" for text in distinct[:_SHOWN]]
        if len(distinct) > _SHOWN:
            findings.append(f"{promise}: {len(distinct) - _SHOWN} more of this kind")
        if not found:
            passed.append(promise)
    return Report(name, tuple(passed), tuple(skipped), tuple(findings))


def maker_of(env: EnvOrMaker) -> Callable[..., gymnasium.Env[Any, Any]]:
    """Return a function that makes copies of an environment, with other options if they are passed.

    Raises:
        ConfigError: A wrapped environment does not know how it was made.
    """
    if isinstance(env, str):
        spec = find_spec(env)
        return lambda **options: gymnasium.make(spec, **options)
    if not isinstance(env, gymnasium.Env):
        return env
    if env.spec is not None:
        spec = env.spec
        return lambda **options: gymnasium.make(spec, **options)
    if isinstance(env, TextEnv):
        kind, settings = type(env), dict(env.settings)
        return lambda **options: kind(**{**settings, **options})
    raise ConfigError(f"{env} does not know how it was made: pass its id or a function that makes it.")


def _name_of(env: EnvOrMaker, case: Case) -> str:
    """Return the environment's id, and refuse what is no :class:`TextEnv`."""
    first = case.make()
    if not isinstance(first.unwrapped, TextEnv):
        raise ConfigError(
            f"check() is for turngym.envs.TextEnv and its wrappers, got {type(first.unwrapped).__name__}."
        )
    name = env if isinstance(env, str) else first.unwrapped.env_id
    case.close()
    return name
