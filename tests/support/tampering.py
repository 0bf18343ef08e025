"""Ways to forge a submission: each edits the files of a true one, carelessly or with everything else made to fit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from turngym.agents.episodes.evaluate import summarise_records
from turngym.agents.recordings.submission import in_order, key_of
from turngym.agents.usage import Usage, total
from turngym.benchmarks.evaluation.records import metrics
from turngym.benchmarks.evaluation.scoring import verifier_usage
from turngym.benchmarks.statistics.estimates import as_json, equal_weight_mean
from turngym.benchmarks.statistics.normalised import normalised_mean, normalised_results
from turngym.benchmarks.verification.findings import transcript_hash

ENV = "turngym/FrozenLake-v0"
OTHER = "0" * 64


def _text(path: Path) -> str:
    return path.read_text("utf8") if path.exists() else ""


class Files:
    """The files of a copy of a submission, to edit and to write back.

    Args:
        source: The true submission.
        target: Where its copy goes.
    """

    def __init__(self, source: Path, target: Path) -> None:
        shutil.copytree(source, target)
        self.path = target
        self.metadata, self.config, self.results = (
            json.loads((target / f"{name}.json").read_text("utf8")) for name in ("metadata", "config", "results")
        )
        self.episodes, self.transcripts, self.baselines = (
            [json.loads(line) for line in _text(target / f"{name}.jsonl").split("\n") if line]
            for name in ("episodes", "transcripts", "baselines")
        )

    def save(self) -> Path:
        """Write everything back and return the folder."""
        for name in ("metadata", "config", "results"):
            (self.path / f"{name}.json").write_text(json.dumps(getattr(self, name)), "utf8")
        for name in ("episodes", "transcripts", *(["baselines"] if self.baselines else [])):
            lines = [json.dumps(row) + "\n" for row in getattr(self, name)]
            (self.path / f"{name}.jsonl").write_text("".join(lines), "utf8")
        return self.path

    def first(self, success: int) -> int:
        """Return the number of the first episode with that success."""
        return next(number for number, row in enumerate(self.episodes) if row["success"] == success)

    def told(self, number: int) -> Any:
        """Return the transcript of an episode."""
        row = self.episodes[number]
        return next(each for each in self.transcripts if key_of(each) == key_of(row))

    def fit(self) -> None:
        """Make transcripts' hashes, results, usage, baselines and normalised numbers fit the episodes again."""
        for number, row in enumerate(self.episodes):
            row["transcript_sha256"] = transcript_hash(self.told(number)["turns"])
            for key in ("tokens_in", "tokens_out", "illegal"):
                row[key] = sum(seat[key] for seat in row["seats"].values())
        self.results |= self._numbers(self.episodes)
        self.results["usage"] = total(
            Usage.from_json(seat) for row in self.episodes for seat in row["seats"].values()
        ).as_json()
        if "verifier" in self.results:
            self.results["verifier"]["usage"] = verifier_usage(self.episodes).as_json()
        for name, told in self.results.get("baselines", {}).items():
            told |= self._numbers([row for row in self.baselines if row["player"] == name])
        if self.baselines:
            self.results["normalised"] = {k: v.value for k, v in normalised_results(self.results).items()}
            mean = normalised_mean(self.results)
            assert mean is not None
            self.results["normalised_mean"] = as_json(mean)

    def _numbers(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        found = {
            e["label"]: summarise_records(e["env"], in_order(rows, e["label"])) for e in self.config["environments"]
        }
        mean = equal_weight_mean([getattr(each, self.config["suite"]["metric"]) for each in found.values()])
        return {"environments": {label: metrics(each) for label, each in found.items()}, "mean": as_json(mean)}


def _on_row(field: str, change: Callable[[Any], Any], success: int = 0) -> Callable[[Files], None]:
    def tamper(files: Files) -> None:
        row = files.episodes[files.first(success)]
        row[field] = change(row[field])

    return tamper


def _on_result(field: str, change: Callable[[Any], Any], metric: str = "success") -> Callable[[Files], None]:
    def tamper(files: Files) -> None:
        told = files.results["environments"][ENV][metric]
        told[field] = change(told[field])

    return tamper


def _version(files: Files) -> None:
    files.config["suite"]["version"] = files.results["version"] = 1


def _another_seed(files: Files) -> None:
    files.config["environments"][0]["seeds"][3] += 1
    files.episodes[3]["seed"] += 1
    files.told(3)["seed"] += 1
    for row in files.baselines:
        row["seed"] += row["task"] == 3


def _ruleset(files: Files) -> None:
    files.config["environments"][0]["ruleset_hash"] = OTHER
    for row in [*files.episodes, *files.baselines]:
        row["ruleset_hash"] = OTHER


def _prompt(files: Files) -> None:
    files.config["sampling"]["prompt"] = {"history": 3}


def _foreign(files: Files) -> None:
    files.episodes.append({**files.episodes[0], "task": 99})


def _broken(files: Files) -> None:
    files.episodes[files.first(0)] |= {
        **{"status": "env_error", "fault": "it broke", "score": 0.0, "returns": 0.0},
        **{"terminated": False, "truncated": True},
    }


def _usage(files: Files) -> None:
    files.results["usage"]["tokens_out"] += 1


def _baseline(files: Files) -> None:
    files.results["baselines"]["random"]["environments"][ENV]["turns"]["value"] += 1


def _normalised(files: Files) -> None:
    files.results["normalised"][ENV] += 1


def _observation(files: Files) -> None:
    files.told(0)["turns"][0]["observation"] += " "


def _unanswered(files: Files) -> None:
    for row in files.episodes:
        row["status"], seat = "agent_error", row["seats"]["player_0"]
        seat["lost"] = seat["calls"] - seat["retries"]
    files.fit()


CARELESS: dict[str, Callable[[Files], None]] = {
    "schema": lambda files: files.episodes[2].pop("returns"),
    "date": lambda files: files.metadata.update(finished="2999-01-01T00:00:00+00:00"),
    "suite": _version,
    "seeds": _another_seed,
    "options": lambda files: files.config["environments"][0].update(wrappers=["history:k=all"]),
    "ruleset": _ruleset,
    "prompt": _prompt,
    "missing-episode": lambda files: files.episodes.pop(4),
    "duplicate-episode": lambda files: files.episodes.append(files.episodes[files.first(1)]),
    "foreign-episode": _foreign,
    "wrong-seed": _on_row("seed", lambda seed: seed + 1),
    "block": _on_row("block_id", lambda block: "another"),
    "length": _on_row("length", lambda length: length - 1),
    "end": _on_row("terminated", lambda flag: not flag, success=1),
    "missing-transcript": lambda files: files.transcripts.pop(5),
    "transcript": _observation,
    "actions": _on_row("actions", lambda actions: [*actions[:-1], "up" if actions[-1] != "up" else "down"]),
    "reward": _on_row("returns", lambda total: total + 1.0),
    "success": _on_row("success", lambda success: 1),
    "score": _on_row("score", lambda score: 1.0),
    "invalid-actions": _on_row("illegal", lambda illegal: illegal + 1),
    "env-errors": _broken,
    "unanswered": _unanswered,
    "aggregate": _on_result("value", lambda value: value + 1e-6),
    "interval": _on_result("ci_low", lambda low: low + 1e-6),
    "count": _on_result("n_games", lambda count: 100 * count),
    "normalised": _normalised,
    "usage": _usage,
    "verifier": lambda files: files.episodes[0].update(verifier={"score": 1.0, "usage": {}}),
    "results": _on_result("method", lambda method: "exact"),
    "baseline": _baseline,
}
"""Finding -> a tampering that must be found without playing anything again."""


def _better_rewards(files: Files) -> None:
    number = files.first(0)
    files.told(number)["turns"][-1]["reward"] += 1.0
    files.episodes[number]["returns"] += 1.0


def _claimed_success(files: Files) -> None:
    number = files.first(0)
    for each in (files.episodes[number], files.told(number)):
        each |= {"success": 1, "score": 1.0}
    files.episodes[number] |= {"terminated": True, "truncated": False}


def _cut_short(files: Files) -> None:
    number = next(i for i, row in enumerate(files.episodes) if row["length"] > 1)
    row = files.episodes[number]
    del row["actions"][-1], files.told(number)["turns"][-1]
    row |= {"length": row["length"] - 1, "returns": sum(turn["reward"] for turn in files.told(number)["turns"])}


def _easier_task(files: Files) -> None:
    files.episodes[0] |= {"instance": "0123456789abcdef", "block_id": "0123456789abcdef"}


def _fewer_invalid(files: Files) -> None:
    files.told(0)["turns"][0]["action_is_valid"] = False
    files.episodes[0]["illegal"] += 1
    files.episodes[0]["seats"]["player_0"]["illegal"] += 1


def _weaker_baseline(files: Files) -> None:
    for row in files.baselines:
        if row["player"] == "random":
            row |= {"success": 0, "score": 0.0}


CAREFUL: dict[str, Callable[[Files], None]] = {
    "replay-instance": _easier_task,
    "replay-observation": _observation,
    "replay-reward": _better_rewards,
    "replay-success": _claimed_success,
    "replay-end": _cut_short,
    "replay-invalid-actions": _fewer_invalid,
    "baseline": _weaker_baseline,
}
"""Finding -> a tampering after which all files fit together, so that only playing again can find it."""
