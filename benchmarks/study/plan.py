"""The plan of a study: which options each arm has, which seeds, and what is claimed, read from a TOML file."""

from __future__ import annotations

import itertools
import math
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from turngym.arithmetic import is_finite
from turngym.benchmarks.cli.options.config_file import as_words, require_plain
from turngym.errors import ConfigError, nearest
from turngym.storage.bounded import require_file

_KEYS = ("title", "about", "seeds", "common", "arms", "sweep", "claims", "evaluation", "metric", "effect")
_OURS = ("--seed", "--run-dir", "--run_dir", "--resume", "--json")
_OPTION = re.compile(r"[a-z][\w.-]*")
_SIGNS = frozenset("+-_.@")
_LARGEST, _MOST_SEEDS, _MOST_ARMS, _LONGEST_NAME = 2**16, 10_000, 1_000, 150


class Side(NamedTuple):
    """Quantity to compare: an arm in the evaluation of the plan, or in another one."""

    arm: str
    evaluation: str = ""

    def __str__(self) -> str:
        return f"{self.arm}:{self.evaluation}" if self.evaluation else self.arm


class Claim(NamedTuple):
    """The first side should do better than the second."""

    better: Side
    worse: Side

    def __str__(self) -> str:
        return f"{self.better} > {self.worse}"


class Job(NamedTuple):
    """One run of a study."""

    arm: str
    seed: int

    @property
    def name(self) -> str:
        """Name of its folder."""
        return f"{self.arm}-seed{self.seed}"


@dataclass(frozen=True)
class Plan:
    """Plan of a study, fixed before it runs.

    Args:
        name: Name of the study, that of its file.
        title: Summary in one line.
        seeds: Seeds that every arm runs with, so that arms are compared in pairs.
        arms: Arm -> options of ``turngym train``, those that all arms share included; ``{seed}`` stands for the seed.
        claims: Pairs of arms, the better one first; ``arm:control-greedy`` compares another evaluation of an arm.
        about: More about it.
        evaluation: Evaluation of a run that is compared: ``final`` or ``control``, ``-greedy`` or ``-sampled``.
        metric: Metric to compare: ``success``, ``score`` or ``reward_sum``.
        effect: Smallest difference that matters; a claim whose interval is below it does not hold.
    """

    name: str
    title: str
    seeds: tuple[int, ...]
    arms: Mapping[str, tuple[str, ...]]
    claims: tuple[Claim, ...] = ()
    about: str = ""
    evaluation: str = "final-greedy"
    metric: str = "success"
    effect: float = 0.05

    @property
    def jobs(self) -> list[Job]:
        """Every run, one seed after the other, so that arms can be compared early."""
        return [Job(arm, seed) for seed in self.seeds for arm in self.arms]

    def options(self, job: Job) -> list[str]:
        """Return the options of ``turngym train`` for one run, with its seed in place of ``{seed}``.

        So an arm can use what another one made with the same seed: ``--teacher runs/teacher-seed{seed}/model``.
        """
        return [*(word.replace("{seed}", str(job.seed)) for word in self.arms[job.arm]), "--seed", str(job.seed)]

    def part(self, arms: Sequence[str]) -> Plan:
        """Return the part of the plan that is about some arms alone.

        Raises:
            ConfigError: An arm is not there.

        >>> content = {"arms": {"a": "", "b": "", "c": ""}, "claims": ["a > b", "b > c", "a:final-sampled > a"]}
        >>> some = plan_of("mine", content).part(["b", "a"])
        >>> list(some.arms), [str(claim) for claim in some.claims]
        (['a', 'b'], ['a > b', 'a:final-sampled > a'])
        """
        for arm in arms:
            if arm not in self.arms:
                raise ConfigError(f"{self.name}: the plan has no arm {arm!r}. {nearest(arm, self.arms)}")
        return replace(
            self,
            arms={arm: options for arm, options in self.arms.items() if arm in arms},
            claims=tuple(claim for claim in self.claims if claim.better.arm in arms and claim.worse.arm in arms),
        )


def read_plan(path: Path) -> Plan:
    """Return the plan in a file.

    Raises:
        ConfigError: It cannot be read, or says something that makes no sense.
    """
    try:
        require_file(path, _LARGEST)
        content = tomllib.loads(path.read_text("utf8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read as the plan of a study ({error}): pass a TOML file.") from error
    require_plain(content, "", str(path))
    return plan_of(path.stem, content)


def plan_of(name: str, content: Mapping[str, Any]) -> Plan:
    """Return the plan that the content of a file describes.

    Raises:
        ConfigError: It says something that makes no sense.

    >>> content = {"seeds": 2, "common": "--iterations 3", "arms": {"a": "--algorithm ppo", "b": "--algorithm grpo"}}
    >>> plan_of("mine", content).options(Job("a", 1))
    ['--iterations', '3', '--algorithm', 'ppo', '--seed', '1']
    """
    for key in content:
        if key not in _KEYS:
            raise ConfigError(f"{name}: a plan has no key {key!r}. {nearest(key, _KEYS)}")
    common = _words(name, "common", content.get("common", ""))
    arms = content.get("arms")
    if "sweep" in content:
        arms = _swept(name, {"": ""} if arms is None else arms, content["sweep"])
    if not isinstance(arms, dict) or not arms:
        raise ConfigError(
            f'{name}: a plan needs a table [arms] with lines such as grpo = "--algorithm grpo", or a table [sweep] '
            "with lines such as update.learning_rate = [1e-5, 1e-4]."
        )
    for arm in arms:
        if not all(letter.isalnum() or letter in _SIGNS for letter in arm) or arm.startswith("."):
            raise ConfigError(f"{name}: an arm names a folder: letters, digits, + - _ . and @, got {arm!r}.")
    return Plan(
        name,
        _text(name, content, "title", name),
        _seeds(name, content.get("seeds", 3)),
        {arm: (*common, *_words(name, f"arm {arm}", options)) for arm, options in arms.items()},
        _claims(name, content.get("claims", []), list(arms)),
        _text(name, content, "about", ""),
        _text(name, content, "evaluation", "final-greedy"),
        _text(name, content, "metric", "success"),
        _effect(name, content.get("effect", 0.05)),
    )


def _flat(sweep: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield dotted name and values: TOML reads a dotted name as tables inside of each other."""
    for option, values in sweep.items():
        if isinstance(values, dict):
            yield from _flat(values, f"{prefix}{option}.")
        else:
            yield prefix + option, values


def _swept(name: str, arms: Any, sweep: Any) -> Any:
    """Return every arm with every combination of the values of a sweep.

    >>> list(_swept("mine", {"": ""}, {"algorithm": ["ppo", "grpo"], "update.learning_rate": [1e-5, 0.001]}))[:2]
    ['algorithm@ppo+learning_rate@1e-05', 'algorithm@ppo+learning_rate@0.001']
    """
    if not isinstance(sweep, dict) or not sweep:
        raise ConfigError(f"{name}: [sweep] needs lines such as update.learning_rate = [1e-5, 1e-4], got {sweep!r}.")
    sweep = dict(_flat(sweep))
    for option, values in sweep.items():
        if (
            not isinstance(values, list)
            or not values
            or not all(isinstance(each, str | int | float) for each in values)
        ):
            raise ConfigError(
                f"{name}: the sweep of {option} must be a list of strings, numbers or booleans, got {values!r}."
            )
        if not _OPTION.fullmatch(option):
            raise ConfigError(
                f"{name}: a sweep is over options of turngym train, without dashes in front, got {option!r}."
            )
    if not isinstance(arms, dict):
        return arms
    count = len(arms) * math.prod(map(len, sweep.values()))
    if count > _MOST_ARMS:
        raise ConfigError(f"{name}: the sweep makes {count:,} arms, more than {_MOST_ARMS:,}: leave out some values.")
    found: dict[str, str] = {}
    for (arm, words), values in itertools.product(arms.items(), itertools.product(*sweep.values())):
        chosen = dict(zip(sweep, values, strict=True))
        parts = [f"{option.rpartition('.')[2]}@{value}" for option, value in chosen.items()]
        whole = re.sub(rf"[^\w{re.escape(''.join(_SIGNS))}]", "-", "+".join([*([arm] if arm else []), *parts]))
        if whole in found or len(whole) > _LONGEST_NAME:
            why = "occurs twice" if whole in found else "has too long a name"
            raise ConfigError(f"{name}: the arm {whole!r} of the sweep {why}: write its arms into [arms] instead.")
        found[whole] = f"{words} {shlex.join(as_words(chosen))}" if isinstance(words, str) else words
    return found


def _text(name: str, content: Mapping[str, Any], key: str, default: str) -> str:
    value = content.get(key, default)
    if not isinstance(value, str):
        raise ConfigError(f"{name}: {key} must be a string, got {value!r}.")
    return value


def _words(name: str, where: str, options: Any) -> tuple[str, ...]:
    """Return the options of ``turngym train`` in a text, without those that a study sets itself."""
    if not isinstance(options, str):
        raise ConfigError(f"{name}: {where} must be options as on the command line, got {options!r}.")
    try:
        words = tuple(shlex.split(options))
    except ValueError as error:
        raise ConfigError(f"{name}: {where} cannot be split into options ({error}): {options!r}.") from error
    for word in words:
        if word.partition("=")[0] in _OURS:
            raise ConfigError(f"{name}: {where} sets {word}, which the study sets for each run: leave it out.")
    return words


def _seeds(name: str, value: Any) -> tuple[int, ...]:
    """Return the seeds: as listed, or as many as a number says."""
    seeds = list(range(min(value, _MOST_SEEDS + 1))) if type(value) is int else value
    if (
        not isinstance(seeds, list)
        or not 1 <= len(seeds) <= _MOST_SEEDS
        or any(type(seed) is not int or seed < 0 for seed in seeds)
        or len(set(seeds)) < len(seeds)
    ):
        told = f"a number from 1 to {_MOST_SEEDS:,}, or a list of different ones"
        raise ConfigError(f"{name}: seeds must be {told}, got {str(value)[:60]}.")
    return tuple(seeds)


def _claims(name: str, value: Any, arms: Sequence[str]) -> tuple[Claim, ...]:
    found = []
    for text in value if isinstance(value, list) else [value]:
        parts = [part.strip().partition(":") for part in text.split(">")] if isinstance(text, str) else []
        if len(parts) != 2:
            raise ConfigError(f'{name}: a claim is written "better > worse", got {text!r}.')
        for arm, _, _ in parts:
            if arm not in arms:
                raise ConfigError(f"{name}: the claim {text!r} is about an arm that is not there. {nearest(arm, arms)}")
        better, worse = (Side(arm, evaluation) for arm, _, evaluation in parts)
        found.append(Claim(better, worse))
    return tuple(found)


def _effect(name: str, value: Any) -> float:
    if type(value) not in (int, float) or not is_finite(value) or value <= 0:
        raise ConfigError(f"{name}: effect must be the smallest difference that matters, above 0, got {value!r}.")
    return float(value)
