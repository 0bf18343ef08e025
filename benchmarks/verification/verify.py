"""Verification of a submission folder: what ``turngym verify`` does.

A submission is *self-reported* when its files agree with one another and with the suite, and *replayed* when besides
all successes and outcomes that it claims came out the same from their seeds and actions alone; *partly replayed* when
only some of them were played again, drawn after it was made. What a replay cannot show is who chose the actions: only
running the agent again shows that.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from turngym.agents.recordings.submission import REQUIRED, Submission, read_submission
from turngym.benchmarks.tournaments.submission import is_tournament, read_tournament
from turngym.benchmarks.verification.arenas import check_arena
from turngym.benchmarks.verification.coverage import not_recomputed
from turngym.benchmarks.verification.findings import Finding
from turngym.benchmarks.verification.notes import notes, replay_notes, task_notes, unnoticed
from turngym.benchmarks.verification.numbers import number_findings, played_baseline_findings
from turngym.benchmarks.verification.replay import Replay, replay_sample
from turngym.benchmarks.verification.tasks import (
    date_findings,
    episode_findings,
    known_suite,
    option_findings,
    prompt_findings,
    ruleset_findings,
    score_findings,
    seed_findings,
    suite_findings,
    transcript_findings,
)
from turngym.benchmarks.verification.tournaments import (
    chosen_scale,
    plan_of,
    replay_games,
    result_findings,
    ruleset_finding,
    schedule_findings,
)
from turngym.envs.multiagent.registration import GAMES
from turngym.envs.registration import id_problem
from turngym.errors import ConfigError
from turngym.storage.folders import folder_kind
from turngym.system.limited import CallLimits, LimitedProcess, LimitReached
from turngym.types import StrPath

Label = Literal["rejected", "self-reported", "partly replayed", "replayed"]

_CHECKS: Mapping[str, Callable[[Submission], Iterator[Finding]]] = {
    "dates": date_findings,
    "suite": suite_findings,
    "seeds": seed_findings,
    "options": option_findings,
    "rulesets": ruleset_findings,
    "prompts": prompt_findings,
    "episodes": episode_findings,
    "scores": score_findings,
    "transcripts": transcript_findings,
    "results": number_findings,
}
"""Name -> check, for all that needs no episode to be played again."""


@dataclass(frozen=True)
class Verification:
    """Findings of the check of a submission.

    Args:
        path: The folder.
        label: ``rejected``, ``self-reported``, ``partly replayed`` or ``replayed`` (all that claim something were).
        findings: All that is wrong.
        notes: Additional remarks on the result.
        episodes: Episodes in the folder.
        replayed: Episodes that were played again.
        seed: Seed of the replayed sample.
        claims: Episodes that claim something: a success or an outcome, or all of them where the score counts.
        claims_replayed: Number of those that were replayed.
        not_recomputed: Published number -> why it was taken as it is: nothing but the submission stands behind it.
    """

    path: Path
    label: Label
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    episodes: int = 0
    replayed: int = 0
    seed: int = 0
    claims: int = 0
    claims_replayed: int = 0
    not_recomputed: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_accepted(self) -> bool:
        """True if nothing is wrong."""
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
            "claims": self.claims,
            "claims_replayed": self.claims_replayed,
            "not_recomputed": dict(self.not_recomputed),
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Verification:
        """Return what :meth:`as_json` returned."""
        findings = tuple(Finding(each["name"], each["place"], each["message"]) for each in told["findings"])
        names = ("label", "episodes", "replayed", "seed", "claims", "claims_replayed", "not_recomputed")
        numbers = {name: told[name] for name in names}
        return cls(Path(told["folder"]), findings=findings, notes=tuple(told["notes"]), **numbers)


def verify(path: StrPath, *, replay: float = 0.05, seed: int | None = None, baselines: bool = False) -> Verification:
    """Check a submission folder.

    Args:
        path: The folder that ``turngym eval ... --out FOLDER`` wrote, or ``turngym tournament``, or that of an arena.
        replay: Share of each environment's episodes to play again, at least one of each; 0 for none. Unless it is 0,
            the others are played again too as far as half a minute an environment allows, first those that claim a
            success.
        seed: Which episodes are drawn. The system's own random numbers decide unless it is given: a draw that can be
            foretold would tell a forger which episodes to leave true.
        baselines: Also play the random and the expert baseline again, in full; a tournament has none.

    Raises:
        ConfigError: There is no such folder, it is one of another kind, or the share is not in [0, 1].
    """
    if not 0 <= replay <= 1:
        raise ConfigError(f"the share of episodes to replay must be in [0, 1], got {replay}.")
    seed = secrets.randbelow(2**32) if seed is None else seed
    folder = Path(path)
    if is_tournament(folder):
        return _verify_tournament(folder, replay, seed)
    if folder_kind(folder) == "arena":
        checked = check_arena(folder, replay, seed)
        return _verdict(folder, seed, checked.findings, checked.games, (checked.sound, checked.replayed), [], {})
    submission, problems = read_submission(folder)
    if submission is None:
        findings = [Finding("schema", each.place, each.message) for each in problems]
        return Verification(folder, "rejected", tuple(findings), seed=seed)
    findings = [finding for check in _CHECKS.values() for finding in check(submission)]
    told = [*notes(submission), *([] if findings else task_notes(submission))]
    label: Label = "self-reported"
    replayed, claims, claims_replayed = 0, 0, 0
    again: Replay | None = None
    if replay and not findings:  # what is wrong already is not played
        again = replay_sample(submission, replay, seed)
        findings += again.findings
        replayed = sum(again.played.values())
        claims, claims_replayed = map(sum, zip(*again.claims.values(), strict=True)) if again.claims else (0, 0)
        if not again.skipped:
            label = "replayed" if claims == claims_replayed else "partly replayed"
    if again is not None or findings:
        told += replay_notes(submission, again)
    suite = known_suite(submission)
    if baselines and suite is not None and not findings:
        findings += played_baseline_findings(submission, suite)
    return Verification(
        folder,
        "rejected" if findings else label,
        tuple(findings),
        tuple(told),
        len(submission.episodes),
        replayed,
        seed,
        claims,
        claims_replayed,
        {} if findings else not_recomputed(submission, again, baselines and suite is not None),
    )


def verify_submission(
    path: StrPath,
    *,
    replay: float = 0.05,
    seed: int | None = None,
    baselines: bool = False,
    seconds: float = 900.0,
    process: LimitedProcess | None = None,
) -> Verification:
    """Check a folder as :func:`verify` does, in a separate process with limits, so that it may be untrusted.

    Args:
        path: The folder.
        replay: As for :func:`verify`.
        seed: As for :func:`verify`.
        baselines: As for :func:`verify`.
        seconds: Time limit of the check in seconds; folders that exceed it are rejected.
        process: Process of the check; a separate one by default.

    Raises:
        ConfigError: There is no such folder, it is one of another kind, or an argument is out of its range.
    """
    if not any((Path(path) / name).exists() for name in REQUIRED):
        return verify(path, replay=replay)  # raises: there is nothing to read
    arguments = {"path": os.fspath(path), "replay": replay, "seed": seed, "baselines": baselines}
    with nullcontext(process) if process is not None else LimitedProcess(CallLimits(seconds)) as where:
        try:
            return Verification.from_json(
                where.call("turngym.benchmarks.verification.verify:verify_as_json", arguments)
            )
        except LimitReached as error:
            finding = Finding("limits", str(path), f"{error}; --seconds allows more time")
            return Verification(Path(path), "rejected", (finding,), seed=seed or 0)


def verify_as_json(**arguments: Any) -> dict[str, Any]:
    """Return what :func:`verify` found, as JSON can hold it."""
    return verify(**arguments).as_json()


def _verify_tournament(path: Path, share: float, seed: int) -> Verification:
    tournament, problems = read_tournament(path)
    if tournament is None:
        return Verification(path, "rejected", tuple(Finding("schema", p.place, p.message) for p in problems), seed=seed)
    findings, sound, replayed = list(result_findings(tournament)), 0, 0
    plan, reason = plan_of(tournament)
    if plan is not None:
        findings += [*ruleset_finding(tournament, plan), *schedule_findings(tournament, plan)]
        if share and not findings:
            sound, replayed, found = replay_games(tournament, plan, share, seed)
            findings += found
    elif problem := id_problem(tournament.plan["game"]):
        findings.append(Finding("plan", "config.json, game", problem))
    elif tournament.plan["game"] in GAMES:
        findings.append(Finding("plan", "config.json", reason))
    notes = [] if plan is not None else [f"neither schedule nor games were checked: {reason}"]
    reported = {} if findings else dict(chosen_scale(tournament))
    return _verdict(path, seed, findings, tournament.games, (sound, replayed), notes, reported)


def _verdict(
    path: Path,
    seed: int,
    findings: Sequence[Finding],
    games: Sequence[Mapping[str, Any]],
    counts: tuple[int, int],
    notes: Sequence[str],
    chosen: Mapping[str, str],
) -> Verification:
    """Return the result for games between players.

    Args:
        path: The folder.
        seed: Seed of the replayed sample.
        findings: All that is wrong.
        games: Records of the games.
        counts: Number of games that can be played again, and of those that were.
        notes: Remarks so far.
        chosen: Settings that follow from no game, each with the reason.
    """
    (sound, replayed), said = counts, list(notes)
    errors = sum(game["status"] == "agent_error" for game in games)
    if errors:
        said.append(f"in {errors} games a player failed, which counts as played")
    broken = sum(game["status"] == "env_error" for game in games)
    if broken:
        said.append(f"{broken} games broke, which no replay confirms: they count as draws")
    forfeits = sum(any(action is None for _, action in game["actions"]) for game in games)
    if forfeits:
        said.append(f"in {forfeits} games a seat forfeited, which no replay confirms")
    claims = sound + broken if replayed else 0
    label: Label = "self-reported" if not replayed else "replayed" if replayed == claims else "partly replayed"
    if told := unnoticed("games", sound, replayed) if replayed else "":
        said.append(told)
    reported = {"usage": "the players report their calls, tokens, times and failures", **chosen}
    if label != "replayed":
        reported["ratings"] = f"{replayed} of {len(games)} games were played again"
    return Verification(
        path,
        "rejected" if findings else label,
        tuple(findings),
        tuple(said),
        len(games),
        replayed,
        seed,
        claims,
        replayed,
        {} if findings else reported,
    )
