"""Checks a submission folder: the work of ``turngym verify``.

A submission is *self-reported* when its files agree with one another and with the suite, and *replayed* when besides
episodes of every environment, drawn after it was made, came out the same from their seeds and actions alone. What a
replay cannot show is who chose the actions: only running the agent again shows that.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from turngym.benchmarks.remade import refused
from turngym.benchmarks.submission_read import Submission, read_submission
from turngym.benchmarks.suites import SUITES
from turngym.benchmarks.tournament_read import is_tournament, read_tournament
from turngym.benchmarks.verify_findings import Finding
from turngym.benchmarks.verify_numbers import number_findings, played_baseline_findings
from turngym.benchmarks.verify_replay import replay_sample
from turngym.benchmarks.verify_tasks import (
    episode_findings,
    known_suite,
    prompt_findings,
    ruleset_findings,
    seed_findings,
    suite_findings,
    transcript_findings,
)
from turngym.benchmarks.verify_tournament import (
    plan_of,
    replay_games,
    result_findings,
    ruleset_finding,
    schedule_findings,
)
from turngym.envs.multiagent.registration import GAMES
from turngym.errors import ConfigError

Label = Literal["rejected", "self-reported", "replayed"]

CHECKS: Mapping[str, Callable[[Submission], Iterator[Finding]]] = {
    "suite": suite_findings,
    "seeds": seed_findings,
    "rulesets": ruleset_findings,
    "prompts": prompt_findings,
    "episodes": episode_findings,
    "transcripts": transcript_findings,
    "results": number_findings,
}
"""Name -> check, for all that needs no episode to be played again."""


@dataclass(frozen=True)
class Verification:
    """What a check of a submission found.

    Args:
        path: The folder.
        label: ``rejected``, ``self-reported`` or ``replayed``.
        findings: All that is wrong.
        notes: What a reader of the result should know beside.
        episodes: Episodes in the folder.
        replayed: Episodes that were played again.
        seed: Which episodes were drawn; the same seed draws the same ones.
    """

    path: Path
    label: Label
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    episodes: int = 0
    replayed: int = 0
    seed: int = 0

    @property
    def is_accepted(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {
            "folder": str(self.path),
            "accepted": self.is_accepted,
            "label": self.label,
            "findings": [finding.as_json() for finding in self.findings],
            "notes": list(self.notes),
            "episodes": self.episodes,
            "replayed": self.replayed,
            "seed": self.seed,
        }


def verify(path: str | Path, *, replay: float = 0.05, seed: int | None = None, baselines: bool = False) -> Verification:
    """Check a submission folder.

    Args:
        path: The folder that ``turngym eval ... --out FOLDER`` wrote, or ``turngym tournament``.
        replay: Share of each environment's episodes to play again, at least one of each; 0 for none.
        seed: Which episodes are drawn. The system's own random numbers decide unless it is given: a draw that can be
            foretold would tell a forger which episodes to leave true.
        baselines: Also play the random and the expert baseline again, in full; a tournament has none.

    Raises:
        ConfigError: There is no such folder, it is one of another kind, or the share is not in [0, 1].
    """
    if not 0 <= replay <= 1:
        raise ConfigError(f"the share of episodes to replay must lie in [0, 1], got {replay}.")
    seed = secrets.randbelow(2**32) if seed is None else seed
    folder = Path(path)
    if is_tournament(folder):
        return _verify_tournament(folder, replay, seed)
    submission, problems = read_submission(folder)
    if submission is None:
        findings = [Finding("schema", each.place, each.message) for each in problems]
        return Verification(folder, "rejected", tuple(findings), seed=seed)
    findings = [finding for check in CHECKS.values() for finding in check(submission)]
    notes = list(_notes(submission))
    replayed, is_complete = 0, False
    if findings:  # what is wrong already is not played
        reasons = {each["label"]: refused(each) for each in submission.config["environments"]}
        notes += [f"{label} was not played again: {reason}" for label, reason in reasons.items() if reason]
    elif replay:
        again = replay_sample(submission, replay, seed)
        findings += again.findings
        notes += [f"{label} was not played again: {reason}" for label, reason in again.skipped.items()]
        replayed, is_complete = sum(again.played.values()), not again.skipped
    suite = known_suite(submission)
    if baselines and suite is not None and not findings:
        findings += played_baseline_findings(submission, suite)
    label: Label = "rejected" if findings else "replayed" if is_complete else "self-reported"
    return Verification(folder, label, tuple(findings), tuple(notes), len(submission.episodes), replayed, seed)


def _verify_tournament(path: Path, share: float, seed: int) -> Verification:
    """Check the folder of a tournament."""
    tournament, problems = read_tournament(path)
    if tournament is None:
        return Verification(path, "rejected", tuple(Finding("schema", p.place, p.message) for p in problems), seed=seed)
    findings, replayed = list(result_findings(tournament)), 0
    plan, reason = plan_of(tournament)
    if plan is not None:
        findings += [*ruleset_finding(tournament, plan), *schedule_findings(tournament, plan)]
        if share and not findings:
            replayed, found = replay_games(tournament, plan, share, seed)
            findings += found
    elif tournament.plan["game"] in GAMES:
        findings.append(Finding("plan", "config.json", reason))
    notes = [] if plan is not None else [f"neither schedule nor games were checked: {reason}"]
    errors = sum(game["status"] == "agent_error" for game in tournament.games)
    if errors:
        notes.append(f"in {errors} games a player failed, which counts as played")
    label: Label = "rejected" if findings else "replayed" if replayed else "self-reported"
    return Verification(path, label, tuple(findings), tuple(notes), len(tournament.games), replayed, seed)


def _notes(submission: Submission) -> Iterator[str]:
    config = submission.config
    name = config["suite"]["name"]
    if name in SUITES:
        wanted = {e.label: len(e.seeds) or e.episodes for e in SUITES[name].entries if not e.takes_fewer}
        short = [each for each in config["environments"] if len(each["seeds"]) < wanted.get(each["label"], 0)]
        if short:
            yield f"only the first tasks of {len(short)} environments of the suite were played"
    if submission.transcripts is None:
        yield "there are no transcripts: what the agent wrote cannot be read"
    errors = sum(row["status"] == "agent_error" for row in submission.episodes)
    if errors:
        yield f"in {errors} episodes the agent failed to answer, which counts as played"
    if submission.metadata.get("trained_on_suite") is None:
        yield "metadata.json does not say whether the agent was trained on the suite"
