"""The data of a run folder from which its figure and its report are made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from turngym.agents.episodes.evaluate import EvaluationResult
from turngym.agents.intervals import Estimate, share_difference, wilson
from turngym.agents.models.settings import RUN_MODELS
from turngym.arithmetic import is_finite
from turngym.errors import TurngymError
from turngym.storage.files import read_content
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.mixture import labels_of

Stage: TypeAlias = Literal["before", "after", "control"]
Verdict: TypeAlias = Literal["better", "worse", "unclear"]
Episode: TypeAlias = Mapping[str, Any]
T = TypeVar("T")

MODES = ("sampled", "greedy")
STAGES: Mapping[Stage, str] = {"before": "warmup", "after": "final", "control": "control"}
"""Prefix of a policy's evaluations, by its name in the report."""
_MIN_CHANGED = 6
"""Instances that must come out differently: with fewer, even if all of them point one way, an exact sign test stays
above 5 % (2 * 0.5 ** 5 = 6 %), so a bootstrap interval over them claims more than they can show."""
_DAMAGE = (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, TurngymError)


@dataclass(frozen=True)
class RunData:
    """Everything that could be read of a run.

    Args:
        name: Name of the run's folder.
        config: Its settings as JSON; empty where they could not be read.
        metrics: One record an iteration.
        evaluations: Name -> evaluation, episodes included.
        samples: Name -> whole trajectories.
        instances: Hashes of the instances that training showed; None where that was not recorded.
        missing: Missing or damaged parts, one sentence each.
    """

    name: str
    config: Mapping[str, Any]
    metrics: Sequence[Mapping[str, Any]]
    evaluations: Mapping[str, EvaluationResult]
    samples: Mapping[str, Sequence[Mapping[str, Any]]]
    instances: frozenset[str] | None
    missing: tuple[str, ...]

    def evaluation(self, stage: Stage, mode: str, label: str = "") -> EvaluationResult | None:
        """Return the evaluation of a policy, None if the run has none.

        Args:
            stage: The policy.
            mode: Action selection.
            label: Short name of one of several environments; empty for all together.
        """
        return self.evaluations.get(f"{STAGES[stage]}-{mode}{f'-on-{label}' if label else ''}")

    @property
    def mode(self) -> str | None:
        """Action selection in the headline's evaluations: sampled if both kinds are available."""
        stages: tuple[tuple[Stage, ...], ...] = (("before", "after"), ("after",), ("before",), ("control",))
        for wanted in stages:
            for mode in MODES:
                if all(self.evaluation(stage, mode) for stage in wanted):
                    return mode
        return None


def read_run(folder: RunFolder) -> RunData:
    """Read all of a run that is there; absent or damaged parts are listed, never raised."""
    missing: list[str] = []

    def part(what: str, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except FileNotFoundError:
            missing.append(f"{what}: not in this run.")
        except _DAMAGE as error:
            missing.append(f"{what}: damaged ({type(error).__name__}: {error}).")
        return None

    config = part("config.json, the settings", partial(_settings, folder))
    metrics = part("metrics.jsonl, the metrics of every iteration", partial(_metrics, folder))
    evaluations = {}
    ends = ["", *(f"-on-{label}" for label in environments(config or {}))]
    for name in (f"{stem}-{mode}{end}" for end in ends for stem in STAGES.values() for mode in MODES):
        found = part(f"evaluation {name}", partial(_evaluation, folder, name))
        if found is None:
            continue
        evaluations[name] = found
        if not found.episodes:
            missing.append(f"episodes of evaluation {name}: not in this run, so nothing can be paired with it.")
    samples = part("samples, trajectories to read", partial(_samples, folder))
    instances = part("instances.json, the instances that training showed", partial(_instances, folder))
    name = folder.path.resolve().name
    return RunData(name, config or {}, metrics or [], evaluations, samples or {}, instances, tuple(missing))


def environments(config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the short names of the environments of a mixture, from its settings as JSON; empty for other runs."""
    names = config.get("envs")
    return labels_of([str(name) for name in names]) if isinstance(names, list) else ()


def title_of(config: Mapping[str, Any]) -> str:
    """Return what a run trained, and on what.

    >>> title_of({"algorithm": "grpo", "env": "turngym/FrozenLake-v0"})
    'grpo on turngym/FrozenLake-v0'
    >>> title_of({"algorithm": "grpo", "envs": ["a", "b", "c"], "per_env": {"b": {"algorithm": "ppo"}}})
    'grpo on a, c; ppo on b'
    """
    method = str(config.get("algorithm", "training"))
    labels = environments(config) or (str(config.get("env", "an unknown environment")),)
    own = config.get("per_env")
    found: dict[str, list[str]] = {}
    for label in labels:
        settings = own.get(label) if isinstance(own, Mapping) else None
        name = settings.get("algorithm", method) if isinstance(settings, Mapping) else method
        found.setdefault(str(name), []).append(label)
    return "; ".join(f"{name} on {', '.join(places)}" for name, places in found.items())


def _settings(folder: RunFolder) -> dict[str, Any]:
    return {name: value for name, value in read_content(folder.path / "config.json").items() if name != RUN_MODELS}


def _metrics(folder: RunFolder) -> list[dict[str, Any]]:
    found = folder.metrics()
    if not found:
        raise FileNotFoundError
    return [dict(record) for record in found]


def _samples(folder: RunFolder) -> dict[str, list[dict[str, Any]]]:
    found = {
        name: [{**record, "turns": [_turn(turn) for turn in record["turns"]]} for record in records]
        for name, records in folder.samples().items()
        if records
    }
    if not found:
        raise FileNotFoundError
    return found


def _turn(turn: Mapping[str, Any]) -> dict[str, Any]:
    return {**turn, "logprobs": [float(value) for value in turn.get("logprobs", ())]}


def _instances(folder: RunFolder) -> frozenset[str]:
    if not (folder.path / "instances.json").exists():
        raise FileNotFoundError
    return frozenset(folder.instances())


def _evaluation(folder: RunFolder, name: str) -> EvaluationResult:
    content = read_content(folder.path / "evaluations" / f"{name}.json")
    episodes = tuple(folder.evaluated_episodes(name))
    success_by_instance(episodes)  # a record without what the report needs counts as damage, here and not later
    means = {key: Estimate(**content[key]) for key in ("success", "score", "reward_sum", "turns")}
    return EvaluationResult(
        env_id=str(content["env_id"]),
        success=means["success"],
        score=means["score"],
        reward_sum=means["reward_sum"],
        turns=means["turns"],
        invalid_actions=float(content["invalid_actions"]),
        faults=int(content["faults"]),
        episodes=episodes,
        context=int(content.get("context", 0)),
    )


def success_interval(estimate: Estimate) -> tuple[float, float]:
    """Return the 95 % interval of a share of successes.

    It is the recorded one, unless every episode had the same outcome: resampling then gives an interval of width 0, so
    Wilson's is used instead.

    >>> [round(end, 2) for end in success_interval(Estimate(0.0, 0.0, 0.0, 0.0, 20, 20, "cluster bootstrap"))]
    [0.0, 0.16]
    """
    if estimate.low < estimate.high or estimate.value not in (0.0, 1.0):
        return estimate.low, estimate.high
    low, high = wilson(round(estimate.value * estimate.blocks), estimate.blocks)
    return max(0.0, low), min(1.0, high)


@dataclass(frozen=True)
class Difference:
    """Success of one policy less that of another, over the instances that both played.

    Args:
        estimate: The mean difference with its interval.
        first: Mean success of the first policy over these instances.
        second: Value of the second.
        gained: Instances where the first did better.
        lost: Instances where it did worse.
        unmatched: Instances that only one of them played.
    """

    estimate: Estimate
    first: float
    second: float
    gained: int
    lost: int
    unmatched: int

    @property
    def verdict(self) -> Verdict:
        """Whether the first policy is shown to be better or worse."""
        if self.gained + self.lost < _MIN_CHANGED or self.estimate.low <= 0 <= self.estimate.high:
            return "unclear"
        return "better" if self.estimate.low > 0 else "worse"


def success_by_instance(episodes: Iterable[Episode]) -> dict[str, float]:
    """Return instance -> mean success of its episodes.

    >>> success_by_instance([{"instance": "a", "success": 1}, {"instance": "a", "success": 0}])
    {'a': 0.5}
    """
    found: dict[str, list[float]] = defaultdict(list)
    for record in episodes:
        found[str(record["instance"] or record["block_id"])].append(float(record["success"]))
    return {instance: sum(values) / len(values) for instance, values in found.items()}


def success_difference(first: Sequence[Episode], second: Sequence[Episode]) -> Difference | None:
    """Return the paired difference in success, None where the two share no instance."""
    ours, theirs = success_by_instance(first), success_by_instance(second)
    shared = [instance for instance in ours if instance in theirs]
    if not shared:
        return None
    a, b = [ours[i] for i in shared], [theirs[i] for i in shared]
    return Difference(
        estimate=share_difference(a, b),
        first=sum(a) / len(a),
        second=sum(b) / len(b),
        gained=sum(x > y for x, y in zip(a, b, strict=True)),
        lost=sum(x < y for x, y in zip(a, b, strict=True)),
        unmatched=len(ours.keys() ^ theirs.keys()),
    )


def difference_from(run: RunData, other: Stage, mode: str, label: str = "") -> Difference | None:
    """Return the success after training less that of another policy, None where either was not evaluated."""
    after, base = run.evaluation("after", mode, label), run.evaluation(other, mode, label)
    return success_difference(after.episodes, base.episodes) if after and base else None


class HeldOut(NamedTuple):
    """Relation of the evaluated instances to those of training.

    Args:
        distinct: Distinct instances over all evaluations.
        seen: Those among them that training showed; None where training's were not recorded.
        shown: Instances that training showed.
    """

    distinct: int
    seen: int | None
    shown: int | None


def held_out(run: RunData) -> HeldOut:
    """Compare the evaluated instances with those of training, by hash."""
    evaluated = {
        str(record["instance"])
        for result in run.evaluations.values()
        for record in result.episodes
        if record["instance"]
    }
    if run.instances is None:
        return HeldOut(len(evaluated), None, None)
    return HeldOut(len(evaluated), len(evaluated & run.instances), len(run.instances))


def series(metrics: Sequence[Mapping[str, Any]], key: str) -> list[tuple[int, float]]:
    """Return iteration and value where a metric is recorded and finite.

    >>> series([{"iteration": 0, "a": 1.0}, {"iteration": 1}, {"iteration": 2, "a": float("nan")}], "a")
    [(0, 1.0)]
    """
    found = []
    for position, record in enumerate(metrics):
        value = record.get(key)
        if isinstance(value, int | float) and is_finite(value):
            found.append((int(record.get("iteration", position)), float(value)))
    return found


def turns_per_second(metrics: Sequence[Mapping[str, Any]]) -> list[tuple[int, float]]:
    """Return iteration and environment turns a second, evaluation and updates included in the time.

    >>> turns_per_second([{"iteration": 0, "turns_total": 10, "seconds_total": 5.0}])
    [(0, 2.0)]
    """
    found, turns, seconds = [], 0.0, 0.0
    for position, record in enumerate(metrics):
        if "turns_total" not in record or "seconds_total" not in record:
            continue
        passed = float(record["seconds_total"]) - seconds
        if passed > 0:
            found.append((int(record.get("iteration", position)), (float(record["turns_total"]) - turns) / passed))
        turns, seconds = float(record["turns_total"]), float(record["seconds_total"])
    return found


def as_json(difference: Difference | None) -> dict[str, Any] | None:
    """Return a difference as a value that JSON can hold."""
    return None if difference is None else {**asdict(difference), "verdict": difference.verdict}
