"""Plays recorded episodes again: the seed and the actions are enough, no model is needed."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium

from turngym.agents.recordings.remade import CANNOT_BE_MADE, made, refused
from turngym.agents.recordings.submission import BASELINES, Submission, in_order
from turngym.benchmarks.verification.findings import Finding, differs, place_of, transcript_hash
from turngym.columns import outcomes_of
from turngym.envs.vector.slots.boundary import close_quietly
from turngym.seeding import stream

SECONDS, SECONDS_IN_ALL = 30.0, 600.0
"""Time for the episodes of one environment and of all, beyond the drawn share; cheap ones are all played again."""


@dataclass(frozen=True)
class Replay:
    """The outcome of replaying episodes.

    Args:
        played: Label -> episodes that were played again.
        findings: Differences.
        skipped: Label -> why none of its episodes could be played.
        claims: Label -> how many episodes claim something, and how many of those were played again.
        baselines: Episodes of the baselines that did not break, and how many of those were played again.
        lenient: Episodes that broke or whose prompt did not fit, where playing on could have given a score below 0:
            nothing confirms that they ended so, and they count among the claims that were not played again.
    """

    played: Mapping[str, int]
    findings: tuple[Finding, ...]
    skipped: Mapping[str, str]
    claims: Mapping[str, tuple[int, int]]
    baselines: tuple[int, int] = (0, 0)
    lenient: int = 0


def replay_sample(submission: Submission, share: float, seed: int, seconds: float | None = None) -> Replay:
    """Play a drawn share of each environment's episodes again, and the others as far as time allows, claims first.

    Args:
        submission: Content read.
        share: Share of the episodes, in (0, 1]; at least one of each environment.
        seed: Seed of the replayed sample; unpredictable for the submitter.
        seconds: Time for each environment; :data:`SECONDS` unless given. Claims are successes, or all episodes where
            the score counts.
    """
    end = time.monotonic() + SECONDS_IN_ALL
    seconds = SECONDS if seconds is None else seconds
    of_baselines, lenient = (0, 0), 0
    played: dict[str, int] = {}
    skipped: dict[str, str] = {}
    claims: dict[str, tuple[int, int]] = {}
    findings: list[Finding] = []
    for environment in submission.config["environments"]:
        label = environment["label"]
        rows = _sound(submission.of(label))
        reason = refused(environment) or ("" if rows else "it has no episode that did not break")
        try:
            env = None if reason else made(environment)
        except CANNOT_BE_MADE as error:
            env, reason = None, str(error)
        if env is None:
            skipped[label] = reason
            continue
        try:
            draw = _Draw(share, seed, label)
            until = min(time.monotonic() + seconds, end)
            found, again = _replayed(env, submission, rows, draw, until)
            others, count = _replayed_baselines(env, submission, draw, until)
            low, _ = env.get_wrapper_attr("score_range")
        finally:
            close_quietly(env)
        findings += [*found, *others]
        of_baselines = of_baselines[0] + count[0], of_baselines[1] + count[1]
        played[label] = len(again)
        claimed = [index for index, row in enumerate(rows) if _is_claim(submission, row)]
        doubtful = [row for row in submission.of(label) if low < 0 and row["status"] in ("env_error", "context")]
        lenient += len(doubtful)
        unproven = len(doubtful) if submission.config["suite"]["metric"] == "score" else 0
        claims[label] = len(claimed) + unproven, len(again.intersection(claimed))
    return Replay(played, tuple(findings), skipped, claims, of_baselines, lenient)


class _Draw(NamedTuple):
    share: float
    seed: int
    label: str

    def order(self, count: int, name: str = "") -> list[int]:
        """Return the episodes in the order in which they are drawn."""
        label = f"{name} {self.label}" if name else self.label
        return [int(index) for index in stream("verify", self.seed, label).permutation(count)]

    def count(self, total: int) -> int:
        """Return how many are played again whatever they claim."""
        return max(1, math.ceil(self.share * total - 1e-9))


def _sound(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [row for row in rows if row["status"] != "env_error"]


def _is_claim(submission: Submission, row: Mapping[str, Any]) -> bool:
    return bool(row["success"] or row.get("outcomes")) or submission.config["suite"]["metric"] != "success"


def _replayed(
    env: gymnasium.Env[Any, Any], submission: Submission, rows: Sequence[Mapping[str, Any]], draw: _Draw, end: float
) -> tuple[list[Finding], set[int]]:
    """Return what came out otherwise, and which episodes were played: the drawn ones, then claims, then the rest."""
    order, least = draw.order(len(rows)), draw.count(len(rows))
    rest = sorted(order[least:], key=lambda index: not _is_claim(submission, rows[index]))
    findings: list[Finding] = []
    again: set[int] = set()
    for place, index in enumerate([*order[:least], *rest]):
        if place >= least and time.monotonic() >= end:
            break
        findings += replay_findings(env, rows[index])
        again.add(index)
    return findings, again


def _replayed_baselines(
    env: gymnasium.Env[Any, Any], submission: Submission, draw: _Draw, end: float
) -> tuple[list[Finding], tuple[int, int]]:
    """Return what came out otherwise of the baselines, how many episodes could be played, and how many were."""
    findings: list[Finding] = []
    count = played = 0
    for name, others in submission.baselines.items():
        sound = _sound(in_order(others, draw.label))
        least = draw.count(len(sound)) if sound else 0
        count += len(sound)
        for place, index in enumerate(draw.order(len(sound), name)):
            if place >= least and time.monotonic() >= end:
                break
            played += 1
            for finding in replay_findings(env, sound[index]):
                message = f"{finding.place}: {finding.message}"
                findings.append(Finding("baseline", f"{BASELINES}, {name}", message))
    return findings, (count, played)


def chance_unnoticed(total: int, played: int, forged: int) -> float:
    """Return the probability that none of the forged episodes is among those that were drawn and played again.

    >>> chance_unnoticed(20, 20, 1), chance_unnoticed(20, 1, 1), round(chance_unnoticed(20, 1, 5), 3)
    (0.0, 0.95, 0.75)
    """
    if forged > total:
        return 0.0
    return math.comb(total - forged, played) / math.comb(total, played) if played <= total - forged else 0.0


def replay_findings(env: gymnasium.Env[Any, Any], row: Mapping[str, Any]) -> Iterator[Finding]:
    """Play one episode again and yield what comes out otherwise.

    Args:
        env: The environment, with its wrappers.
        row: The record of the episode.
    """
    place = place_of(row)
    observation, info = env.reset(seed=row["seed"])
    instance = env.get_wrapper_attr("instance_hash")
    if instance != row["instance"]:
        yield Finding("replay-instance", place, f"the task is {instance}, but {row['instance']} was recorded")
        return
    turns, illegal, is_terminated, is_truncated = [], 0, False, False
    for action in row["actions"]:
        if is_terminated or is_truncated:
            break
        following, reward, is_terminated, is_truncated, info = env.step(action)
        turns.append({"observation": observation, "action": action, "reward": float(reward)})
        illegal += not info["action_is_valid"]
        observation = following
    was_cut = row["status"] == "context"
    ended = len(turns), bool(is_terminated), bool(is_truncated) or (was_cut and not is_terminated)
    told = len(row["actions"]), row["terminated"], row["truncated"]
    if was_cut and is_truncated:
        yield Finding(
            "replay-end", place, "its turns were over, but a prompt that does not fit was recorded as its end"
        )
    if ended != told:
        message = f"(turns, terminated, truncated) are {ended}, but {told} were recorded"
        yield Finding("replay-end", place, message)
    total = float(sum(turn["reward"] for turn in turns))
    if differs(total, row["returns"]):
        yield Finding("replay-reward", place, f"the return is {total}, but {row['returns']} was recorded")
    outcome, recorded = (int(info["success"] == 1), float(info["score"])), (row["success"], row["score"])
    if was_cut:
        outcome = 0, min(0.0, outcome[1])
    if outcome[0] != recorded[0] or differs(outcome[1], recorded[1]):
        yield Finding("replay-success", place, f"(success, score) are {outcome}, but {recorded} were recorded")
    outcomes, noted = outcomes_of(info.get("columns", {}) if turns else {}), row.get("outcomes", {})
    if outcomes.keys() != noted.keys() or any(differs(outcomes[each], noted[each]) for each in outcomes):
        yield Finding("replay-success", place, f"outcomes are {outcomes}, but {noted} were recorded")
    if illegal != row["illegal"]:
        message = f"{illegal} actions are invalid, but {row['illegal']} were recorded"
        yield Finding("replay-invalid-actions", place, message)
    if transcript_hash(turns) != row["transcript_sha256"]:
        message = "the hash of observations, actions and rewards is another one: " + json.dumps(row["actions"])[:80]
        yield Finding("replay-observation", place, message)
