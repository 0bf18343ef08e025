"""Plays recorded episodes again: the seed and the actions are enough, no model is needed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium

from turngym.benchmarks.remade import CANNOT_BE_MADE, made, refused
from turngym.benchmarks.submission_read import BASELINES, Submission, in_order
from turngym.benchmarks.verify_findings import Finding, differs, place_of, transcript_hash
from turngym.seeding import stream


@dataclass(frozen=True)
class Replay:
    """What playing episodes again showed.

    Args:
        played: Label -> episodes that were played again.
        findings: What came out otherwise.
        skipped: Label -> why none of its episodes could be played.
    """

    played: Mapping[str, int]
    findings: tuple[Finding, ...]
    skipped: Mapping[str, str]


def replay_sample(submission: Submission, share: float, seed: int) -> Replay:
    """Play a drawn share of each environment's episodes again.

    Args:
        submission: What was read.
        share: Share of the episodes, in (0, 1]; at least one of each environment.
        seed: Which episodes are drawn; who made the submission must not know it beforehand.
    """
    played: dict[str, int] = {}
    skipped: dict[str, str] = {}
    findings: list[Finding] = []
    for environment in submission.config["environments"]:
        label = environment["label"]
        rows = _drawn(submission.of(label), share, seed, label)
        reason = refused(environment) or ("" if rows else "it has no episode that did not break")
        if reason:
            skipped[label] = reason
            continue
        try:
            env = made(environment)
        except CANNOT_BE_MADE as error:
            skipped[label] = str(error)
            continue
        try:
            findings += [finding for row in rows for finding in replay_findings(env, row)]
            played[label] = len(rows)
            for name, others in submission.baselines.items():
                for row in _drawn(in_order(others, label), share, seed, f"{name} {label}"):
                    for finding in replay_findings(env, row):
                        message = f"{finding.place}: {finding.message}"
                        findings.append(Finding("baseline", f"{BASELINES}, {name}", message))
        finally:
            env.close()
    return Replay(played, tuple(findings), skipped)


def _drawn(rows: Sequence[Mapping[str, Any]], share: float, seed: int, name: str) -> list[Mapping[str, Any]]:
    """Return a drawn share of the episodes that did not break, at least one of them if there are any."""
    sound = [row for row in rows if row["status"] != "env_error"]
    count = max(1, math.ceil(share * len(sound) - 1e-9))
    return [sound[index] for index in sorted(stream("verify", seed, name).permutation(len(sound))[:count])]


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
    ended = len(turns), bool(is_terminated), bool(is_truncated)
    told = len(row["actions"]), row["terminated"], row["truncated"]
    if ended != told and row["status"] == "ok":
        message = f"(turns, terminated, truncated) are {ended}, but {told} were recorded"
        yield Finding("replay-end", place, message)
    total = float(sum(turn["reward"] for turn in turns))
    if differs(total, row["returns"]):
        yield Finding("replay-reward", place, f"the return is {total}, but {row['returns']} was recorded")
    outcome, recorded = (int(info["success"] == 1), float(info["score"])), (row["success"], row["score"])
    if outcome[0] != recorded[0] or differs(outcome[1], recorded[1]):
        yield Finding("replay-success", place, f"(success, score) are {outcome}, but {recorded} were recorded")
    if illegal != row["illegal"]:
        message = f"{illegal} actions are invalid, but {row['illegal']} were recorded"
        yield Finding("replay-invalid-actions", place, message)
    if transcript_hash(turns) != row["transcript_sha256"]:
        message = "the hash of observations, actions and rewards is another one: " + json.dumps(row["actions"])[:80]
        yield Finding("replay-observation", place, message)
