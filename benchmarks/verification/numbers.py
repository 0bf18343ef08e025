"""Checks of a submission: does every number of ``results.json`` follow from ``episodes.jsonl``?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import Any

from turngym.agents.core import Agent
from turngym.agents.episodes.evaluate import EvaluationResult, summarise_records
from turngym.agents.players.expert import ExpertAgent
from turngym.agents.players.random import RandomAgent
from turngym.agents.recordings.submission import BASELINES, Submission, in_order, key_of
from turngym.agents.usage import Usage, total
from turngym.benchmarks.evaluation.plan import Plan
from turngym.benchmarks.evaluation.records import metrics
from turngym.benchmarks.evaluation.run import EvaluationRun
from turngym.benchmarks.evaluation.scoring import verifier_usage
from turngym.benchmarks.statistics.estimates import as_json, equal_weight_mean, read_estimate
from turngym.benchmarks.statistics.normalised import HIGH, LOW, normalised_mean, normalised_results
from turngym.benchmarks.suites import Suite
from turngym.benchmarks.verification.findings import Finding, is_same, place_of

FILE = "results.json"
_KINDS = {
    "value": "aggregate",
    "stderr": "interval",
    "ci_low": "interval",
    "ci_high": "interval",
    "n_games": "count",
    "n_blocks": "count",
    "n_turns": "count",
}
_NUMBERS = frozenset({"environments", "mean"})
_KEYS = _NUMBERS | {"suite", "version", "metric", "repeats", "complete", "usage"}
_KEYS |= {"prompts", "unplayed", "verifier", "baselines", "normalised", "normalised_mean"}
_SHOWN = 60
Numbers = Mapping[str, Any]


def number_findings(submission: Submission) -> Iterator[Finding]:
    """Yield every number that does not follow from the episodes, within 1e-9."""
    told, found = submission.results, {}
    environments = dict(told["environments"])
    for environment in submission.config["environments"]:
        label, rows = environment["label"], submission.of(environment["label"])
        if rows:
            found[label] = summarise_records(environment["env"], rows)
        else:  # their absence is another finding
            environments.pop(label, None)
    yield from _table_findings(environments, found, FILE)
    metric = submission.config["suite"]["metric"]
    if metric in ("success", "score") and found:
        mean = equal_weight_mean([getattr(result, metric) for result in found.values()])
        yield from compared(told["mean"], as_json(mean), f"{FILE}, mean")
    yield from _usage_findings(submission)
    yield from _foreign(told, _KEYS, FILE)
    if told.get("prompts") not in (None, submission.config.get("prompts")):
        yield Finding("results", f"{FILE}, prompts", "they are not those of config.json")
    yield from _baseline_shape(told)
    if not list(_baseline_shape(told)):
        yield from _baseline_findings(submission)
        yield from _normalised_findings(told)


def _foreign(told: Numbers, known: Set[str], place: str) -> Iterator[Finding]:
    """Yield names that nothing checks: a reader may take what they hold for a result."""
    for name in sorted(told.keys() - known):
        yield Finding("results", place, f"it holds {name[:_SHOWN]!r}, which follows from no episode")


def _usage_findings(submission: Submission) -> Iterator[Finding]:
    """Yield totals of tokens, calls and costs that are not the sum over the episodes."""
    rows = sorted(submission.episodes, key=key_of)
    try:
        used = total(Usage.from_json(seat) for row in rows for seat in row["seats"].values())
        expected = used.as_json()
    except (TypeError, ValueError, AttributeError) as error:
        yield Finding("usage", "episodes.jsonl", f"what the seats used cannot be added: {error}")
        return
    if used.is_unanswered:
        yield Finding("unanswered", "episodes.jsonl", f"none of its {used.lost} turns has an answer of the agent")
    for row in rows:
        for key in ("tokens_in", "tokens_out", "illegal"):
            seats = [seat.get(key) for seat in row["seats"].values()]
            if not all(type(number) is int for number in seats) or row.get(key) != sum(seats):
                yield Finding("usage", place_of(row), f"{key} is {row.get(key)!r}, but its seats have {seats}")
        lost = sum(seat.get("lost", 0) for seat in row["seats"].values())
        if row["status"] in ("ok", "agent_error") and (row["status"] == "agent_error") != bool(lost):
            yield Finding("usage", place_of(row), f"status is {row['status']!r}, but {lost} answers were lost")
    if len({bool(row.get("in_order")) for row in rows}) > 1:
        yield Finding("results", "episodes.jsonl", "some attempts are marked with in_order, and others are not")
    told = submission.results["usage"]
    for key in sorted(told.keys() | expected.keys()):
        if key not in told or key not in expected or not is_same(told[key], expected[key]):
            message = f"{key} is {told.get(key)!r}, expected {expected.get(key)!r}"
            yield Finding("usage", f"{FILE}, usage", message)
    yield from _verifier_findings(submission)
    is_complete = submission.results["complete"]
    asked = sum(len(each["seeds"]) for each in submission.config["environments"]) * submission.config["repeats"]
    if is_complete != ("unplayed" not in submission.results) or (len(rows) == asked and not is_complete):
        yield Finding("results", FILE, "complete, unplayed and the episodes contradict each other")


def _verifier_findings(submission: Submission) -> Iterator[Finding]:
    """Yield where what a verifier used is not the sum over the episodes, or some have no score of it."""
    named = submission.config.get("verifier")
    told = submission.results.get("verifier")
    scored = sum("verifier" in row for row in submission.episodes)
    if named is None and scored:
        yield Finding("verifier", "config.json", f"{scored} episodes have the score of a verifier, but it names none")
    if named is None and told is None:
        return
    place = f"{FILE}, verifier"
    expected: dict[str, Any]
    try:
        missing = len(submission.episodes) - scored
        expected = verifier_usage(submission.episodes).as_json()
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        yield Finding("usage", "episodes.jsonl", f"what the verifier used cannot be added: {error}")
        return
    if missing:
        yield Finding("verifier", place, f"{missing} episodes have no score of the verifier {named!r}")
    if not isinstance(told, dict) or told.get("name") != named:
        yield Finding("results", place, f"it is {str(told)[:_SHOWN]!r}, but config.json names {named!r}")
    elif not isinstance(told.get("usage"), dict) or any(
        key not in told["usage"] or not is_same(told["usage"][key], value) for key, value in expected.items()
    ):
        yield Finding("usage", place, f"it is {told.get('usage')}, expected {expected}"[:300])


def _table_findings(told: Numbers, found: Mapping[str, EvaluationResult], place: str) -> Iterator[Finding]:
    """Compare a table of environments with what the episodes give."""
    for label in sorted(told.keys() | found.keys()):
        where = f"{place}, {label}"
        if label not in told or label not in found:
            yield Finding("results", where, "it is missing" if label in found else "there are no such episodes")
            continue
        expected = metrics(found[label])
        if not isinstance(told[label], Mapping):
            yield Finding("results", where, f"expected a table of numbers, got {str(told[label])[:_SHOWN]!r}")
            continue
        for name in sorted(told[label].keys() | expected.keys()):
            if name not in told[label] or name not in expected:
                word = "it is missing" if name in expected else "it cannot be computed from the episodes"
                yield Finding("results", f"{where}, {name}", word)
            else:
                yield from compared(told[label][name], expected[name], f"{where}, {name}")


def compared(told: Any, expected: Numbers, place: str) -> Iterator[Finding]:
    """Compare one number and all that describes it."""
    if not isinstance(told, Mapping):
        yield Finding("results", place, f"expected a table with {', '.join(expected)}, got {str(told)[:_SHOWN]!r}")
        return
    for key in sorted(told.keys() | expected.keys()):
        if key not in told or key not in expected:
            yield Finding("results", place, f"{key} is {'missing' if key in expected else 'unknown'}")
        elif not is_same(told[key], expected[key]):
            message = f"{key} is {told[key]!r}, expected {expected[key]!r}"
            yield Finding(_KINDS.get(key, "results"), place, message)


def _baseline_shape(told: Numbers) -> Iterator[Finding]:
    """Yield what would keep the baselines from being read."""
    baselines = told.get("baselines", {})
    tables: Mapping[str, Any] = baselines if isinstance(baselines, Mapping) else {"": None}
    for name, table in tables.items():
        for label in told["environments"]:
            try:
                read_estimate(table["environments"][label][told["metric"]])
                if not isinstance(table["environments"][label][told["metric"]]["value"], int | float):
                    raise TypeError("value")
            except (KeyError, TypeError) as error:
                message = f"{label} cannot be read: {type(error).__name__} {error}"
                yield Finding("results", f"{FILE}, baseline {name}", message)


def _normalised_findings(told: Numbers) -> Iterator[Finding]:
    try:
        expected, mean = normalised_results(told), normalised_mean(told)
    except (KeyError, TypeError):  # the results themselves are misshapen, which has been told
        return
    values = told.get("normalised", {})
    place = f"{FILE}, normalised"
    if not isinstance(values, Mapping) or values.keys() != expected.keys():
        yield Finding("normalised", place, f"expected the environments {sorted(expected)}, got {str(values)[:80]}")
        return
    for label, estimate in expected.items():
        if not is_same(values[label], estimate.value):
            yield Finding("normalised", f"{place}, {label}", f"it is {values[label]}, expected {estimate.value}")
    shown = told.get("normalised_mean")
    if (mean is None) != (shown is None):
        yield Finding("normalised", f"{FILE}, normalised_mean", f"it is {shown}, expected {mean}")
    elif mean is not None:
        for finding in compared(shown, as_json(mean), f"{FILE}, normalised_mean"):
            yield Finding("normalised", finding.place, finding.message)


def _baseline_findings(submission: Submission) -> Iterator[Finding]:
    """Yield numbers of a baseline that do not follow from its episodes, or episodes that it lacks."""
    environments = submission.config["environments"]
    asked = sum(len(each["seeds"]) for each in environments) * submission.config["repeats"]
    wanted = {
        (each["label"], task): (seed, each["env"], each["options"], each["ruleset_hash"])
        for each in environments
        for task, seed in enumerate(each["seeds"])
    }
    for name, told in submission.results.get("baselines", {}).items():
        place = f"{FILE}, baseline {name}"
        yield from _foreign(told, _NUMBERS, place)
        rows = submission.baselines.get(name, ())
        fitting = {
            key_of(row)
            for row in rows
            if wanted.get(key_of(row)[:2]) == (row["seed"], row["env"], row["options"], row["ruleset_hash"])
        }
        if len(rows) != asked or len(fitting) != asked:
            message = f"{BASELINES} has {len(rows)} episodes of it, {len(fitting)} of the {asked} asked for"
            yield Finding("baseline", place, message)
            continue
        found = {each["label"]: summarise_records(each["env"], in_order(rows, each["label"])) for each in environments}
        metric = submission.config["suite"]["metric"]
        mean = as_json(equal_weight_mean([getattr(result, metric) for result in found.values()]))
        numbers = [*_table_findings(told["environments"], found, place)]
        for finding in [*numbers, *compared(told.get("mean"), mean, f"{place}, mean")]:
            yield Finding("baseline", finding.place, finding.message)


def played_baseline_findings(submission: Submission, suite: Suite) -> Iterator[Finding]:
    """Play the random and the expert baseline again and yield where their numbers are others.

    Args:
        submission: Content read.
        suite: Games played.
    """
    seed = submission.config["sampling"].get("seed", 0)
    seeds = tuple(tuple(each["seeds"]) for each in submission.config["environments"])
    plan = Plan(suite, seeds, submission.config["repeats"])
    agents: dict[str, Agent] = {LOW: RandomAgent(seed), HIGH: ExpertAgent()}
    for name, agent in agents.items():
        if name in submission.results.get("baselines", {}):
            again = EvaluationRun(plan, agent, name).run().result
            found = {entry.label: result for entry, result in zip(suite.entries, again.results, strict=True)}
            told = submission.results["baselines"][name]["environments"]
            for finding in _table_findings(told, found, f"{FILE}, baseline {name}, played again"):
                yield Finding("baseline", finding.place, finding.message)
