"""Plays recorded episodes again: the seed and the actions are enough, no model is needed."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import gymnasium

from turngym.benchmarks.evaluation.remade import CANNOT_BE_MADE, made, refused
from turngym.benchmarks.evaluation.submission import BASELINES, Submission, in_order
from turngym.benchmarks.verification.findings import Finding, differs, place_of, transcript_hash
from turngym.seeding import stream

SECONDS = 30.0
"""Time for claims of one environment, beyond the drawn share: all of them where playing is cheap."""


@dataclass(frozen=True)
class Replay:
    """The outcome of replaying episodes.

    Args:
        played: Label -> episodes that were played again.
        findings: What came out otherwise.
        skipped: Label -> why none of its episodes could be played.
        claims: Label -> how many episodes claim something, and how many of those were played again.
    """

    played: Mapping[str, int]
    findings: tuple[Finding, ...]
    skipped: Mapping[str, str]
    claims: Mapping[str, tuple[int, int]]


def replay_sample(submission: Submission, share: float, seed: int, seconds: float | None = None) -> Replay:
    """Play a drawn share of each environment's episodes again, and all that claim something as far as time allows.

    Args:
        submission: What was read.
        share: Share of the episodes, in (0, 1]; at least one of each environment.
        seed: Which episodes are drawn; who made the submission must not know it beforehand.
        seconds: Time for the claims of each environment: its successes, or all episodes where the score counts;
            :data:`SECONDS` unless given.
    """
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
            found, again = _replayed(
                env, submission, rows, _Draw(share, seed, label), SECONDS if seconds is None else seconds
            )
        finally:
            env.close()
        findings += found
        played[label] = len(again)
        claimed = [index for index, row in enumerate(rows) if _is_claim(submission, row)]
        claims[label] = len(claimed), len(again.intersection(claimed))
    return Replay(played, tuple(findings), skipped, claims)


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
    return bool(row["success"]) or submission.config["suite"]["metric"] != "success"


def _replayed(
    env: gymnasium.Env[Any, Any], submission: Submission, rows: Sequence[Mapping[str, Any]], draw: _Draw, seconds: float
) -> tuple[list[Finding], set[int]]:
    """Return what came out otherwise, and which episodes were played."""
    end = time.monotonic() + seconds
    findings: list[Finding] = []
    again: set[int] = set()
    order, least = draw.order(len(rows)), draw.count(len(rows))
    for place, index in enumerate(order):
        if place < least or (_is_claim(submission, rows[index]) and time.monotonic() < end):
            findings += replay_findings(env, rows[index])
            again.add(index)
    for name, others in submission.baselines.items():
        sound = _sound(in_order(others, draw.label))
        least = draw.count(len(sound))
        for place, index in enumerate(draw.order(len(sound), name)):
            if place >= least and time.monotonic() >= end:
                break
            for finding in replay_findings(env, sound[index]):
                message = f"{finding.place}: {finding.message}"
                findings.append(Finding("baseline", f"{BASELINES}, {name}", message))
    return findings, again


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
    if ended != told and row["status"] in ("ok", "context"):
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
    if illegal != row["illegal"]:
        message = f"{illegal} actions are invalid, but {row['illegal']} were recorded"
        yield Finding("replay-invalid-actions", place, message)
    if transcript_hash(turns) != row["transcript_sha256"]:
        message = "the hash of observations, actions and rewards is another one: " + json.dumps(row["actions"])[:80]
        yield Finding("replay-observation", place, message)
