"""Checks of a submission: are the tasks those of the suite, once each, and do the files agree with one another?"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import gymnasium

from turngym.agents.prompting.styles import prompt_hash
from turngym.agents.recordings.remade import CANNOT_BE_MADE, impossible, made, refused
from turngym.agents.recordings.submission import BASELINES, TRANSCRIPTS, Submission, in_order, key_of, moment
from turngym.benchmarks.evaluation.records import versions
from turngym.benchmarks.evaluation.rulesets import ruleset_hash
from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry
from turngym.benchmarks.verification.findings import TOLERANCE, Finding, differs, place_of, transcript_hash
from turngym.envs.registration import env_refusal, id_problem, is_foreign
from turngym.envs.vector.slots.boundary import close_quietly
from turngym.errors import nearest

_MOST_ERRORS = 0.01
_CLOCKS_DIFFER = timedelta(days=1)
_OF_RULES = frozenset({"python", "turngym", "gymnasium", "numpy"})
_LONGEST_VERSION = 30
_DEFAULT_EPISODES = 100  # of `turngym eval` on a single environment


def suite_findings(submission: Submission) -> Iterator[Finding]:
    """Yield where the suite is not the one that is known by this name."""
    asked, config = submission.config["suite"], submission.config
    name, place = asked["name"], "config.json, suite"
    for each in config["environments"]:
        if problem := id_problem(each["env"]):
            yield Finding("suite", f"config.json, {each['label'][:80]!a}", problem)
    for key, other in (("name", "suite"), ("version", "version"), ("metric", "metric")):
        if submission.results[other] != asked[key]:
            message = f"{other} is {submission.results[other]!r}, but config.json has {asked[key]!r}"
            yield Finding("suite", "results.json", message)
    if submission.results["repeats"] != config["repeats"]:
        message = f"repeats is {submission.results['repeats']}, but config.json has {config['repeats']}"
        yield Finding("suite", "results.json", message)
    if any("state" in row for row in submission.episodes):
        yield Finding("suite", place, "its episodes continue recorded ones, whose turns this agent did not play")
        return
    suite = _named_suite(config)
    if suite is None:
        message = f"no suite or environment named {name[:80]!r} is installed here. {nearest(name, SUITES)}"
        yield Finding("suite", place, message)
        return
    for key in ("version", "metric", "protocol"):
        if asked[key] != getattr(suite, key):
            yield Finding("suite", place, f"{key} is {asked[key]!r}, but {getattr(suite, key)!r} here")
    told = [(each["label"], each["env"], each["options"], each["wrappers"]) for each in config["environments"]]
    expected = [(each.label, each.env_id, _as_json(each.env_kwargs), list(each.wrappers)) for each in suite.entries]
    for mine, theirs in zip(told, expected, strict=False):
        if mine != theirs:
            yield Finding("suite", "config.json, environments", f"there is {mine}, expected {theirs}")
    if len(told) != len(expected):
        yield Finding("suite", "config.json, environments", f"there are {len(told)}, expected {len(expected)}")


def _as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def known_suite(submission: Submission) -> Suite | None:
    """Return the suite as registered here, or that of a single environment that may be made here; None otherwise."""
    config = submission.config
    if config["suite"]["name"] not in SUITES and refused(config["environments"][0]):
        return None
    return _named_suite(config)


def _named_suite(config: Mapping[str, Any]) -> Suite | None:
    """Return the suite of this name, or that of a single environment of this name; None if there is none.

    An environment that is not registered here may have been a file or a class of its author.
    """
    name, first = config["suite"]["name"], config["environments"][0]
    if name in SUITES:
        return SUITES[name]
    if first["env"] != name or not (name in gymnasium.registry or is_foreign(name)):
        return None
    count, wrappers = max(_DEFAULT_EPISODES, len(first["seeds"])), tuple(map(str, first["wrappers"]))
    seed = config["sampling"].get("seed", 0)
    entry = SuiteEntry(name, first["options"], count, seed, takes_fewer=True, wrappers=wrappers)
    return Suite(name, 0, "One environment.", (entry,))


def date_findings(submission: Submission) -> Iterator[Finding]:
    """Yield times that are in the future, and episodes whose evaluation did not start when the others' did."""
    metadata = submission.metadata
    latest = datetime.now(UTC) + _CLOCKS_DIFFER
    for name in ("date", "started", "played", "finished"):
        time = moment(metadata.get(name))
        if time is not None and time > latest:
            yield Finding("date", f"metadata.json, {name}", f"{metadata[name][:60]} is in the future")
    for row in submission.episodes:
        if row["started"] != metadata["started"]:
            message = f"it started {row['started'][:60]!r}, but the evaluation {metadata['started'][:60]!r}"
            yield Finding("date", place_of(row), message)


def option_findings(submission: Submission) -> Iterator[Finding]:
    """Yield environments and wrappers that cannot exist: otherwise they would only keep their episodes from replay."""
    for each in submission.config["environments"]:
        if reason := impossible(each):
            yield Finding("options", f"config.json, {each['label']}", reason)


def score_findings(submission: Submission) -> Iterator[Finding]:
    """Yield scores outside of the range that their environment declares, those of the baselines included."""
    for each in submission.config["environments"]:
        if refused(each):
            continue
        try:
            low, high = score_range(each)
        except CANNOT_BE_MADE:
            continue  # which the rulesets report
        groups = [("", submission.of(each["label"]))]
        groups += [
            (f"{BASELINES}, {name}: ", in_order(rows, each["label"])) for name, rows in submission.baselines.items()
        ]
        for prefix, rows in groups:
            for row in rows:
                if not low - TOLERANCE * abs(low) <= row["score"] <= high + TOLERANCE * abs(high):
                    message = f"it is {row['score']}, but scores of {each['env']} lie in {low:g} to {high:g}"
                    yield Finding("score", prefix + place_of(row), message)


def score_range(environment: Mapping[str, Any]) -> tuple[float, float]:
    """Return the lowest and the highest score of an environment of ``config.json``; call ``refused`` first."""
    env = made(environment)
    try:
        low, high = env.get_wrapper_attr("score_range")
        return float(low), float(high)
    finally:
        close_quietly(env)


def seed_findings(submission: Submission) -> Iterator[Finding]:
    """Yield environments whose tasks are others than the suite's first ones."""
    known = known_entries(submission)
    for each in submission.config["environments"]:
        place = f"config.json, {each['label']}"
        if not each["seeds"]:
            yield Finding("seeds", place, "there is no seed")
        elif each["label"] in known and not env_refusal(each["env"], each["options"]):
            try:
                entry, count = known[each["label"]], len(each["seeds"])
                # where there may be fewer tasks than asked for, how long is searched depends on the number asked for
                expected = entry.find_seeds(None if entry.takes_fewer else count)[:count]
            except CANNOT_BE_MADE as error:
                yield Finding("seeds", place, f"the tasks cannot be drawn: {error}")
                continue
            if list(expected) != each["seeds"]:
                place_number = next(
                    (i for i, (a, b) in enumerate(zip(expected, each["seeds"], strict=False)) if a != b), len(expected)
                )
                wanted = expected[place_number] if place_number < len(expected) else "none"
                message = f"seed number {place_number} is {each['seeds'][place_number]}, expected {wanted}"
                yield Finding("seeds", place, message)


def known_entries(submission: Submission) -> dict[str, SuiteEntry]:
    """Return label -> entry of the suite, or of the single environment."""
    suite = _named_suite(submission.config)
    return {entry.label: entry for entry in suite.entries} if suite else {}


def ruleset_findings(submission: Submission) -> Iterator[Finding]:
    """Yield environments and episodes with another hash of their behaviour than the one found here."""
    told = {}
    for each in submission.config["environments"]:
        told[each["label"]] = each["ruleset_hash"]
        if not env_refusal(each["env"], each["options"]):
            place = f"config.json, {each['label']}"
            try:
                found = ruleset_hash(each["env"], each["options"])
            except CANNOT_BE_MADE as error:
                yield Finding("ruleset", place, f"the environment cannot be made: {error}")
                continue
            if found != each["ruleset_hash"]:
                message = f"the hash is {each['ruleset_hash'][:16]}, but {found[:16]} here"
                yield Finding("ruleset", place, f"{message}: {_cause(submission.config['packages'])}")
    for row in submission.episodes:
        if row["label"] in told and row["ruleset_hash"] != told[row["label"]]:
            message = f"the hash is {row['ruleset_hash'][:16]}, but {told[row['label']][:16]} in config.json"
            yield Finding("ruleset", place_of(row), message)


def _cause(packages: Mapping[str, Any]) -> str:
    """Return which versions differ from those here: rules may depend on them."""
    here = {name: version for name, version in versions().items() if name in _OF_RULES}
    there = {name: str(packages.get(name, "unknown"))[:_LONGEST_VERSION] for name in here}
    differing = [f"{name} {there[name]!r}, here {here[name]}" for name in here if there[name] != here[name]]
    if not differing:
        return "other rules or options, as the versions of Python and packages are the same"
    return f"it was played with other versions ({'; '.join(differing)}): verify it with those"


def prompt_findings(submission: Submission) -> Iterator[Finding]:
    """Yield a hash of prompt settings that does not fit them."""
    sampling, style = submission.config["sampling"], submission.config.get("style")
    if style is not None and not isinstance(style, dict):
        yield Finding("prompt", "config.json, style", f"expected a table, got {str(style)[:60]!r}")
        return
    named = str(sampling.get("style", "plain")).partition(":")[0].strip()
    if named != (style or {"name": "plain"}).get("name"):
        yield Finding(
            "prompt", "config.json, style", f"the sampling names {named!r}, but style describes {style}"[:300]
        )
    expected = prompt_hash(sampling.get("format"), sampling.get("prompt"), style)
    if submission.config["prompt_hash"] != expected:
        message = f"it is {submission.config['prompt_hash'][:16]}, expected {expected[:16]}"
        yield Finding("prompt", "config.json, prompt_hash", message)


def episode_findings(submission: Submission) -> Iterator[Finding]:
    """Yield tasks without an episode or with too many, and episodes that contradict themselves."""
    environments = {each["label"]: each for each in submission.config["environments"]}
    asked = {
        (label, task, attempt): seed
        for label, each in environments.items()
        for task, seed in enumerate(each["seeds"])
        for attempt in range(submission.config["repeats"])
    }
    there = Counter(map(key_of, submission.episodes))
    for label, task, attempt in sorted(asked.keys() - there.keys()):
        yield Finding("missing-episode", f"episodes.jsonl, {label}", f"task {task} has no attempt {attempt}")
    for (label, task, attempt), count in there.items():
        if count > 1:
            message = f"task {task}, attempt {attempt} has {count} episodes"
            yield Finding("duplicate-episode", f"episodes.jsonl, {label}", message)
    for row in submission.episodes:
        if key_of(row) not in asked:
            yield Finding("foreign-episode", place_of(row), "this was not asked for")
            continue
        if row["seed"] != asked[key_of(row)]:
            message = f"the seed is {row['seed']}, expected {asked[key_of(row)]}"
            yield Finding("wrong-seed", place_of(row), message)
        each = environments[row["label"]]
        version = each["env"].rpartition("-v")[2]
        if (row["env"], row["options"], row["env_version"]) != (each["env"], each["options"], version):
            message = f"it is of {row['env']} {row['options']}, expected {each['env']} {each['options']}"
            yield Finding("foreign-episode", place_of(row), message)
        if row["seat_map"] != {"player_0": submission.config["agent"]}:
            message = f"the seats are held by {row['seat_map']}, expected player_0: {submission.config['agent']}"
            yield Finding("foreign-episode", place_of(row), message)
        yield from _row_findings(row)
    errors = sum(row["status"] == "env_error" for row in submission.episodes)
    if errors > _MOST_ERRORS * len(submission.episodes):
        yield Finding("env-errors", "episodes.jsonl", f"{errors} of {len(submission.episodes)} episodes broke")


def _row_findings(row: Mapping[str, Any]) -> Iterator[Finding]:
    if row["block_id"] != (row["instance"] or str(row["seed"])):
        yield Finding("block", place_of(row), f"it is {row['block_id']}, but the task is {row['instance']}")
    if row["length"] != len(row["actions"]):
        message = f"length is {row['length']}, but there are {len(row['actions'])} actions"
        yield Finding("length", place_of(row), message)
    if row["terminated"] == row["truncated"] and row["status"] != "env_error":
        word = "both terminated and truncated" if row["terminated"] else "neither terminated nor truncated"
        yield Finding("end", place_of(row), f"it is {word}")
    if row["status"] == "context" and (row["terminated"] or row["score"] > 0):
        yield Finding(
            "end", place_of(row), "its prompt did not fit, but it is told as ended by the rules or with a score"
        )
    if row["success"] and (row["status"] == "env_error" or not row["terminated"]):
        yield Finding("end", place_of(row), "it is told as solved, but the rules did not end it")
    if (row["status"] == "env_error") != bool(row["fault"]):
        yield Finding("end", place_of(row), f"status is {row['status']!r}, but fault is {row['fault'][:60]!r}")


def transcript_findings(submission: Submission) -> Iterator[Finding]:
    """Yield where episodes and transcripts do not agree; nothing where the folder has no transcripts."""
    if submission.transcripts is None:
        return
    told = Counter(map(key_of, submission.transcripts))
    transcripts = {key_of(each): each for each in submission.transcripts}
    for row in submission.episodes:
        if key_of(row) in transcripts:
            yield from _agreement(row, transcripts[key_of(row)])
        else:
            yield Finding("missing-transcript", place_of(row), f"{TRANSCRIPTS} has none")
    episodes = set(map(key_of, submission.episodes))
    for (label, task, attempt), count in told.items():
        if count > 1 or (label, task, attempt) not in episodes:
            word = f"there are {count}" if count > 1 else "it has no episode"
            yield Finding("missing-transcript", f"{TRANSCRIPTS}, {label}, task {task}, attempt {attempt}", word)


def _agreement(row: Mapping[str, Any], told: Mapping[str, Any]) -> Iterator[Finding]:
    turns, place = told["turns"], place_of(row)
    if (told["env"], told["seed"]) != (row["env"], row["seed"]):
        message = f"its transcript is of {told['env']}, seed {told['seed']}"
        yield Finding("wrong-seed", place, message)
    found = transcript_hash(turns)
    if found != row["transcript_sha256"]:
        message = f"its transcript has the hash {found[:16]}, not {row['transcript_sha256'][:16]}"
        yield Finding("transcript", place, message)
    if [turn["action"] for turn in turns] != row["actions"]:
        yield Finding("actions", place, "they differ from those of the transcript")
    rewards = float(sum(turn["reward"] for turn in turns))
    if row["status"] == "env_error":
        rewards = min(0.0, rewards)
    if differs(rewards, row["returns"]):
        yield Finding("reward", place, f"the return is {row['returns']}, but the rewards sum to {rewards}")
    if told["success"] != row["success"]:
        yield Finding("success", place, f"it is {row['success']}, but {told['success']} in the transcript")
    if differs(told["score"], row["score"]):
        yield Finding("score", place, f"it is {row['score']}, but {told['score']} in the transcript")
    illegal = sum(not turn["action_is_valid"] for turn in turns)
    if illegal != row["illegal"]:
        yield Finding("invalid-actions", place, f"it tells {row['illegal']}, but {illegal} in the transcript")
