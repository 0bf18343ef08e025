"""An evaluation from its plan to its folder: play what is missing, keep each episode as it ends, count everything."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from turngym.agents.core import Agent
from turngym.agents.players import AgentSettings
from turngym.agents.players.styled import learns_between_tries
from turngym.agents.trajectory import Trajectory
from turngym.agents.verifiers import Verdict, Verifier
from turngym.benchmarks.evaluation.folder import EvaluationFolder, Key
from turngym.benchmarks.evaluation.plan import Execution, Plan, play_plan, result_of, unplayed, usage_of_rows
from turngym.benchmarks.evaluation.records import Evaluation, configuration, episode_row, metadata, results, transcript
from turngym.benchmarks.evaluation.rulesets import ruleset_hash
from turngym.benchmarks.evaluation.scoring import Scoring
from turngym.benchmarks.evaluation.tries import require_fitting_style
from turngym.benchmarks.suites import SuiteEntry, SuiteResult
from turngym.errors import ConfigError, error_text


class Watcher:
    """Receives the progress of an evaluation; this base class ignores it."""

    def start(self, plan: Plan) -> None:
        """Called once, before anything is played."""

    def begin(self, player: str) -> None:
        """Called before the episodes of a player; the agent itself has the empty name."""

    def add(self, row: Mapping[str, Any]) -> None:
        """Called with each finished episode, those of an earlier run included."""

    def remark(self, text: str) -> None:
        """Called with a remark for the user."""


@dataclass(frozen=True)
class EvaluationRun:
    """An evaluation that can be killed at any moment and resumed.

    Args:
        plan: The episodes.
        agent: Agent.
        agent_name: Specification of the agent.
        settings: Its settings.
        execution: Execution settings of the episodes.
        baselines: Name -> agent that plays the same episodes, for comparison.
        out: The folder; None writes nothing.
        resume: Continue with what the folder holds.
        time_budget: Minutes after which no episode starts; None for no limit.
        watcher: Receives the progress.
        clock: Tells the seconds for the time budget.
        verifier: Scores every episode of the agent, so that the best of its attempts at a task can be chosen.
        verifier_name: Specification of the verifier.
    """

    plan: Plan
    agent: Agent
    agent_name: str
    settings: AgentSettings = field(default_factory=AgentSettings)
    execution: Execution = field(default_factory=Execution)
    baselines: Mapping[str, Agent] = field(default_factory=dict)
    out: Path | None = None
    resume: bool = False
    time_budget: float | None = None
    watcher: Watcher = field(default_factory=Watcher)
    clock: Callable[[], float] = time.monotonic
    verifier: Verifier | None = None
    verifier_name: str = ""

    def run(self) -> Evaluation:
        """Play what is missing, write the folder if there is one, and return what was found.

        Raises:
            RunFolderExists: The folder is not empty and ``resume`` is off, or another process writes it.
            ConfigError: The folder holds another evaluation.
        """
        require_fitting_style(self.agent, [entry.env_id for entry in self.plan.suite.entries], self.plan.repeats)
        self.watcher.start(self.plan)
        began = self.clock()
        entries = self.plan.suite.entries
        hashes = [ruleset_hash(entry.env_id, entry.env_kwargs, self.execution.backend) for entry in entries]
        asked = self.agent_name, self.agent, self.settings, asdict(self.execution)
        config = configuration(self.plan, *asked, hashes, self.verifier_name)
        about = metadata(self.agent_name, self.agent, _now())
        folder = EvaluationFolder(self.out, config, about, self.resume, learns_between_tries(self.agent))
        rules = {entry.label: found for entry, found in zip(entries, hashes, strict=True)}
        try:
            missing = unplayed(self.plan, folder.of(""))
            self._play("", self.agent_name, self.agent, folder, rules, began)
            if missing:
                folder.note_played(_now())
            left_out = unplayed(self.plan, folder.of(""))
            others = {} if left_out else self._play_baselines(folder, rules, began)
            played = self._played(folder, left_out, others)
            folder.finish(list(self.plan.episodes()), {**folder.metadata, "finished": played.finished}, results(played))
        finally:
            folder.close()
        return played

    def _play(
        self,
        player: str,
        name: str,
        agent: Agent,
        folder: EvaluationFolder,
        rules: Mapping[str, str],
        began: float,
    ) -> None:
        """Play a player's missing episodes and keep each as it ends."""
        done = folder.of(player)
        self.watcher.begin(player)
        for row in done.values():
            self.watcher.add(row)

        in_order = learns_between_tries(agent)
        started = folder.metadata["started"]

        def keep(entry: SuiteEntry, key: Key, trajectory: Trajectory) -> None:
            def add(verdict: Verdict | None) -> None:
                row = episode_row(trajectory, key, entry, rules[entry.label], name, started, verdict, in_order)
                row |= self.plan.about(key)
                folder.add(player, row, transcript(trajectory, key, entry.env_id))
                self.watcher.add(row)

            scoring.add(trajectory, add)

        def may_begin() -> bool:
            return self.time_budget is None or self.clock() - began < 60 * self.time_budget

        with Scoring(None if player else self.verifier) as scoring:
            play_plan(self.plan, agent, self.execution, dict(done), keep, may_begin, folder.transcript)

    def _play_baselines(
        self, folder: EvaluationFolder, rules: Mapping[str, str], began: float
    ) -> dict[str, SuiteResult]:
        found = {}
        for name, agent in self.baselines.items():
            try:
                self._play(name, name, agent, folder, rules, began)
            except ConfigError as error:  # no solver: there is no upper baseline
                self.watcher.remark(f"without the {name} baseline: {error}")
                continue
            except Exception as error:  # user code: a failing solver costs its baseline only
                self.watcher.remark(f"without the {name} baseline: {error_text(error)}")
                continue
            missing = sum(map(len, unplayed(self.plan, folder.of(name)).values()))
            if missing:
                self.watcher.remark(f"without the {name} baseline: {missing} of its episodes were not begun in time.")
                continue
            found[name] = result_of(self.plan, folder.of(name))
        return found

    def _played(
        self, folder: EvaluationFolder, left_out: Mapping[str, Any], baselines: Mapping[str, SuiteResult]
    ) -> Evaluation:
        rows = folder.of("")
        return Evaluation(
            result_of(self.plan, rows),
            self.plan.seeds,
            self.agent_name,
            self.agent,
            self.settings,
            asdict(self.execution),
            folder.metadata["started"],
            _now(),
            baselines,
            self.plan.repeats,
            usage_of_rows({key: rows[key] for key in self.plan.episodes() if key in rows}),
            left_out,
            self.verifier_name,
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
