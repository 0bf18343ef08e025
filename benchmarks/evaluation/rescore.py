"""Recorded episodes judged again: their actions are played in the present environment, with changed options or not.

No model is asked but a verifier's. The folder is untrusted: only what is registered is made, with options that files
may ask for; options that the caller changes may be any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.players import AgentSettings
from turngym.agents.recordings.remade import refused
from turngym.agents.recordings.submission import Submission, key_of, load_submission
from turngym.agents.trajectory import Trajectory
from turngym.agents.usage import Usage
from turngym.agents.verifiers import make_verifier
from turngym.benchmarks.evaluation.folder import Key
from turngym.benchmarks.evaluation.plan import Execution, Plan
from turngym.benchmarks.evaluation.records import Evaluation
from turngym.benchmarks.evaluation.run import EvaluationRun, Watcher
from turngym.benchmarks.suites import Suite, SuiteEntry
from turngym.errors import ConfigError
from turngym.storage.files import path_of
from turngym.types import StrPath

NUMBERS = ("success", "score", "returns", "length", "illegal")
"""Numbers of an episode that are compared."""
_UNFINISHED = "the recorded episode ends here, and the environment waits for another turn"
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Change:
    """An episode that came out otherwise.

    Args:
        key: The episode: label of the recorded environment, task and attempt.
        before: Number -> its recorded value, for those that differ; ``verifier`` is the score of a verdict.
        after: The same as judged again.
        note: What else is different: other observations, or another end.
    """

    key: Key
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    note: str = ""


@dataclass(frozen=True)
class Rescored:
    """A folder judged again.

    Args:
        before: The folder.
        after: The evaluation with the new numbers.
        changes: The episodes that differ, in order.
    """

    before: Submission
    after: Evaluation
    changes: tuple[Change, ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        changes = [
            {"label": each.key[0], "task": each.key[1], "attempt": each.key[2]}
            | {"before": dict(each.before), "after": dict(each.after), "note": each.note}
            for each in self.changes
        ]
        return {"folder": str(self.before.path), "results": self.after.as_json(), "changes": changes}


def rescore(
    folder: StrPath,
    *,
    options: Mapping[str, Any] | None = None,
    verifier: str = "",
    out: StrPath | None = None,
    num_envs: int = 32,
    backend: str = "sync",
    watcher: Watcher | None = None,
) -> Rescored:
    """Play the recorded actions of an evaluation again and judge them by what is installed now.

    Tokens, cost and completions stay as recorded. An episode that the changed environment would have continued is cut
    where its actions end: it has no success and a score of 0 at most.

    Args:
        folder: Folder of ``turngym eval --out``; it is not changed.
        options: Changed options of every environment, such as ``{"reward": "numeric"}``.
        verifier: Verifier whose verdicts replace the recorded ones, as ``turngym eval --verifier`` takes it.
        out: New folder for the evaluation; nothing is written unless given.
        num_envs: Number of parallel environments.
        backend: Backend of the vector.
        watcher: Receives the progress.

    Raises:
        ConfigError: The folder is none of an evaluation, an environment may not be made from a file, an option is
            wrong, or changes the tasks.
        RunFolderExists: ``out`` is not empty.

    >>> import tempfile, turngym
    >>> folder = tempfile.mkdtemp() + "/base"
    >>> _ = turngym.evaluate("turngym/Questions-v0", "expert", episodes=2, out=folder)
    >>> rescore(folder).changes
    ()
    """
    submission = load_submission(folder)
    suite = _suite(submission, dict(options or {}))
    agent = Recorded(submission, {"rescored": {"folder": str(submission.path), "options": dict(options or {})}})
    known = {each.name for each in fields(AgentSettings)}
    settings = AgentSettings(**{name: each for name, each in submission.config["sampling"].items() if name in known})
    name = str(submission.config["agent"])
    plan = _plan(submission, suite, keeps_verdicts=not verifier)
    played = EvaluationRun(
        plan,
        agent,
        name,
        settings,
        Execution(num_envs, backend),
        out=None if out is None else path_of(out, "out"),
        watcher=watcher or Watcher(),
        verifier=make_verifier(verifier, settings, agent) if verifier else None,
        verifier_name=verifier or str(submission.config.get("verifier", "")),
    ).run()
    return Rescored(submission, played, _changes(submission, suite, played))


def _suite(submission: Submission, options: Mapping[str, Any]) -> Suite:
    entries = []
    for environment in submission.config["environments"]:
        kept = {name: value for name, value in environment["options"].items() if name not in options}
        if reason := refused({**environment, "options": kept}):
            raise ConfigError(
                f"{submission.path} cannot be judged again: {reason}. An option that names a file is taken from the "
                "command line only: pass it as --option."
            )
        wrappers, seeds = tuple(map(str, environment["wrappers"])), tuple(environment["seeds"])
        entries.append(SuiteEntry(environment["env"], {**kept, **options}, seeds=seeds, wrappers=wrappers))
    asked = submission.config["suite"]
    return Suite(asked["name"], asked["version"], "", tuple(entries), asked["metric"], asked["protocol"])


def _plan(submission: Submission, suite: Suite, *, keeps_verdicts: bool) -> _Replays:
    """Return the recorded episodes under the labels of the suite that they are judged by."""
    labels = _labels(submission, suite)
    told = {key_of(each): each["turns"] for each in submission.transcripts or ()}
    episodes = {}
    for row in submission.episodes:
        texts = [turn["completion"] for turn in told.get(key_of(row), ())]
        seat = row["seats"].get("player_0", {})
        kept = ("state", "verifier", "in_order") if keeps_verdicts else ("state", "in_order")
        about = {name: row[name] for name in kept if name in row}
        key = (labels[row["label"]], row["task"], row["attempt"])
        episodes[key] = _Episode(row, texts, Usage.from_json(seat), about)
    return _Replays(suite, tuple(entry.seeds for entry in suite.entries), submission.config["repeats"], {}, episodes)


def _labels(submission: Submission, suite: Suite) -> dict[str, str]:
    environments = submission.config["environments"]
    return {each["label"]: entry.label for each, entry in zip(environments, suite.entries, strict=True)}


@dataclass(frozen=True)
class _Episode:
    row: Mapping[str, Any]
    completions: Sequence[str]
    usage: Usage
    about: dict[str, Any]

    def decision(self, turn: int) -> Decision:
        actions: Sequence[str] = self.row["actions"]
        usage = Usage() if turn else self.usage
        if turn < len(actions):
            text = self.completions[turn] if turn < len(self.completions) else ""
            return Decision(actions[turn], text, usage=usage)
        if self.row["status"] == "env_error":
            return Decision("", fault=self.row["fault"] or "a recorded fault", usage=usage)
        return Decision("", too_long=str(self.row.get("truncation_detail", _UNFINISHED)), usage=usage)


@dataclass(frozen=True)
class _Replays(Plan):
    """A plan whose episodes are recorded."""

    episodes_of: Mapping[Key, _Episode] = field(default_factory=dict)

    def specs(self, entry: SuiteEntry, seeds: Sequence[int], done: Mapping[Key, Any]) -> dict[int, tuple[Key, int]]:
        """Return the recorded episodes that are not done: others were not played."""
        found = super().specs(entry, seeds, done)
        return {number: each for number, each in found.items() if each[0] in self.episodes_of}

    def about(self, key: Key) -> dict[str, Any]:
        return self.episodes_of[key].about

    def require_sound(self, key: Key, played: Trajectory) -> None:
        recorded = self.episodes_of[key].row["instance"]
        if not played.fault and played.instance != recorded:
            raise ConfigError(
                f"{key[0]}, task {key[1]} is now the task {played.instance}, recorded was {recorded}: its actions "
                "cannot be judged on it. Keep the options that decide which tasks there are."
            )

    def player(self, agent: Agent, keys: Mapping[int, Key]) -> Agent:
        return _Repeating({number: self.episodes_of[key] for number, key in keys.items()})


class _Repeating(Agent):
    """Plays recorded actions, whatever it sees."""

    def __init__(self, episodes: Mapping[int, _Episode]) -> None:
        self.episodes = episodes

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        return [self.episodes[request.episode].decision(request.turn) for request in requests]


class Recorded(Agent):
    """Stands for the agent of a folder in the records of what is judged again.

    Args:
        submission: The folder.
        about: What is added to the details of the agent.
    """

    def __init__(self, submission: Submission, about: Mapping[str, Any]) -> None:
        config = submission.config
        details = config.get("agent_details")
        self._details = {**(details if isinstance(details, dict) else {}), **about}
        self.prompts_text = str(config.get("prompts", ""))

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Raise: recorded episodes are played by others.

        Raises:
            ConfigError: Always.
        """
        raise ConfigError(
            "the agent of a folder cannot be asked: pass a verifier that names its agent, as model:AGENT."
        )

    def details(self) -> dict[str, Any]:
        """Return the recorded details, and what was changed."""
        return self._details


def _changes(submission: Submission, suite: Suite, played: Evaluation) -> tuple[Change, ...]:
    labels = _labels(submission, suite)
    found = {key_of(row): row for result in played.result.results for row in result.episodes}
    changes = []
    for environment in submission.config["environments"]:
        for before in submission.of(environment["label"]):
            after = found[labels[before["label"]], before["task"], before["attempt"]]
            first, second = _numbers(before), _numbers(after)
            differing = [name for name in {**first, **second} if _differs(first.get(name), second.get(name))]
            note = _note(before, after, is_equal=not differing)
            if differing or note:
                old, new = ({name: each.get(name) for name in differing} for each in (first, second))
                changes.append(Change(key_of(before), old, new, note))
    return tuple(changes)


def _numbers(row: Mapping[str, Any]) -> dict[str, Any]:
    verdict = {"verifier": row["verifier"]["score"]} if "verifier" in row else {}
    return {**{name: row[name] for name in NUMBERS}, **verdict}


def _differs(first: float | None, second: float | None) -> bool:
    if first is None or second is None:
        return first is not second
    return abs(first - second) > _TOLERANCE * (1 + abs(first))


def _note(before: Mapping[str, Any], after: Mapping[str, Any], is_equal: bool) -> str:
    if after["status"] != before["status"]:
        detail = after["fault"] or after.get("truncation_detail", "")
        return f"{after['status']} instead of {before['status']}" + (f": {detail}" if detail else "")
    if is_equal and before["transcript_sha256"] != after["transcript_sha256"]:
        return "other observations or rewards"
    return ""
