"""Files of an evaluation's folder: everything needed to verify and repeat it.

``metadata.json`` (who and when), ``config.json`` (what was asked, with a hash of each environment's behaviour),
``episodes.jsonl`` (one line an episode), ``transcripts.jsonl`` (every turn), ``baselines.jsonl`` (the episodes of the
baselines, where there are any), ``results.json`` (means with intervals, what was used, and what was left out).
``results.json`` is written last: a folder without it is not finished.
"""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from turngym.agents.core import Agent
from turngym.agents.episodes.best_of import best_of
from turngym.agents.episodes.evaluate import EvaluationResult, record_of
from turngym.agents.episodes.pass_k import repeated_attempts
from turngym.agents.intervals import Estimate
from turngym.agents.players import AgentSettings
from turngym.agents.players.styled import StyledAgent
from turngym.agents.prompting.styles import prompt_hash
from turngym.agents.trajectory import Trajectory, Turn
from turngym.agents.usage import Usage, usage_of
from turngym.agents.verifiers import Verdict
from turngym.benchmarks.evaluation.folder import Key
from turngym.benchmarks.evaluation.plan import Plan
from turngym.benchmarks.evaluation.scoring import verifier_usage
from turngym.benchmarks.statistics.estimates import as_json
from turngym.benchmarks.statistics.normalised import normalised_mean
from turngym.benchmarks.suites import SuiteEntry, SuiteResult
from turngym.columns import OUTCOME
from turngym.display import data_frame, html_table, plain

_PACKAGES = ("turngym", "gymnasium", "numpy", "torch", "transformers")
_FORMAT = 1


@dataclass(frozen=True, repr=False)
class Evaluation:
    """A finished evaluation: the result, and everything its folder records about it.

    Args:
        result: Findings.
        seeds: The seeds of each entry.
        agent_name: Specification of the agent.
        agent: The agent.
        settings: Its settings.
        execution: Execution settings of the episodes: vector backend, schedule and so on.
        started: When, in UTC.
        finished: When, in UTC.
        baselines: Results of other agents on the same tasks, by name.
        repeats: Attempts at each task.
        usage: Total usage of the agent over all episodes.
        unplayed: Label -> episodes that were asked for and not started.
        verifier: The verifier that scored the episodes, where one did.
    """

    result: SuiteResult
    seeds: Sequence[Sequence[int]]
    agent_name: str
    agent: Agent
    settings: AgentSettings
    execution: Mapping[str, Any]
    started: str
    finished: str
    baselines: Mapping[str, SuiteResult]
    repeats: int = 1
    usage: Usage = field(default_factory=Usage)
    unplayed: Mapping[str, Sequence[Mapping[str, int]]] = field(default_factory=dict)
    verifier: str = ""

    @property
    def mean(self) -> Estimate:
        """The suite's number: the mean of its metric with equal weight for each environment."""
        return self.result.mean

    def as_json(self) -> dict[str, Any]:
        """Return the content of ``results.json``."""
        return results(self)

    def to_frame(self) -> Any:
        """Return the episodes as a data frame of polars or pandas, one row each."""
        return data_frame(plain(record) for result in self.result.results for record in result.episodes)

    def _estimates(self) -> dict[str, Estimate]:
        """Return the suite's metric on each environment, and its mean over several."""
        entries, metric = self.result.suite.entries, self.result.suite.metric
        found = {entry.label: getattr(each, metric) for entry, each in zip(entries, self.result.results, strict=True)}
        return found | ({"mean": self.mean} if len(found) > 1 else {})

    def __repr__(self) -> str:
        """Return the results, one line for each environment."""
        metric = self.result.suite.metric
        numbers = [
            f"{label}: {metric} {each.value:.3f} [{each.low:.3f}, {each.high:.3f}]"
            for label, each in self._estimates().items()
        ]
        return "\n  ".join([f"Evaluation of {self.agent_name} on {self.result.suite.name}", *numbers])

    def _repr_html_(self) -> str:
        rows = [
            {"environment": label, self.result.suite.metric: each.value, "95 % low": each.low, "95 % high": each.high}
            for label, each in self._estimates().items()
        ]
        return html_table(f"{self.agent_name} on {self.result.suite.name}", rows)


def metadata(agent_name: str, agent: Agent, started: str) -> dict[str, Any]:
    """Return who plays and when; what only the author knows is left null, to be filled in by hand."""
    network = getattr(getattr(agent, "model", None), "network", None)
    return {
        "format": _FORMAT,
        "name": agent_name,
        "contact": None,
        "date": started[:10],
        "started": started,
        "finished": None,
        "open_weights": None,
        "models": {"player_0": {"id": agent_name, "revision": None}},
        "parameters": None if network is None else sum(weight.numel() for weight in network.parameters()),
        "training_data": None,
        "trained_on_suite": None,
        "opponents": [],
    }


def configuration(
    plan: Plan,
    agent_name: str,
    agent: Agent,
    settings: AgentSettings,
    execution: Mapping[str, Any],
    hashes: Sequence[str],
    verifier: str = "",
) -> dict[str, Any]:
    """Return the content of ``config.json``.

    Args:
        plan: The episodes.
        agent_name: Specification of the agent.
        agent: The agent.
        settings: Its settings.
        execution: Execution settings of the episodes.
        hashes: Hash of each environment's behaviour.
        verifier: The verifier that scores the episodes; empty where none does.
    """
    suite = plan.suite
    style = agent.style.describe() if isinstance(agent, StyledAgent) else None
    environments = [
        {
            "label": e.label,
            "env": e.env_id,
            "options": e.env_kwargs,
            "wrappers": list(e.wrappers),
            "ruleset_hash": rules,
            "seeds": list(seeds),
            **({"states": [state.as_json() for state in plan.states[e.label][: len(seeds)]]} if plan.states else {}),
        }
        for (e, seeds), rules in zip(plan.entries(), hashes, strict=True)
    ]
    return {
        "suite": {
            "name": suite.name,
            "version": suite.version,
            "metric": suite.metric,
            "protocol": suite.protocol,
        },
        "environments": environments,
        "repeats": plan.repeats,
        "agent": agent_name,
        "agent_details": agent.details(),
        "sampling": asdict(settings),
        **({} if style is None else {"style": style}),
        **({"prompts": prompts_text} if (prompts_text := getattr(agent, "prompts_text", "")) else {}),
        **({"verifier": verifier} if verifier else {}),
        "prompt_hash": prompt_hash(settings.format, settings.prompt, style),
        "retries_after_fault": 1,
        "execution": dict(execution),
        "hardware": {"machine": platform.machine(), "system": platform.system(), "processors": os.cpu_count()},
        "packages": versions(),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that results may depend on."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def episode_row(
    trajectory: Trajectory,
    key: Key,
    entry: SuiteEntry,
    rules: str,
    agent_name: str,
    started: str,
    verdict: Verdict | None = None,
    in_order: bool = False,
) -> dict[str, Any]:
    """Return an episode's line: the record of the evaluation, the game it belongs to, and what each seat used.

    Args:
        trajectory: The episode.
        key: Index within the evaluation.
        entry: The environment in the suite.
        rules: Hash of its behaviour.
        agent_name: Specification of the agent.
        started: When the evaluation started, in UTC.
        verdict: Verdict of a verifier.
        in_order: Whether it depends on the attempts at its task that came before it.
    """
    record = record_of(trajectory)
    seat = {**usage_of(trajectory).as_json(), "illegal": record["illegal"]}
    return {
        **record,
        "task": key[1],
        "attempt": key[2],
        "env": entry.env_id,
        "env_version": entry.env_id.rpartition("-v")[2],
        "options": entry.env_kwargs,
        "label": entry.label,
        "ruleset_hash": rules,
        "seat_map": {"player_0": agent_name},
        "roles": {},
        "winner": None,
        "seats": {"player_0": seat},
        "started": started,
        **({} if verdict is None else {"verifier": verdict.as_json()}),
        **({"in_order": True} if in_order else {}),
    }


def transcript(trajectory: Trajectory, key: Key, env_id: str) -> dict[str, Any]:
    """Return every turn of an episode, as a person would read it.

    Args:
        trajectory: The episode.
        key: Index within the evaluation.
        env_id: Id of the environment in the suite; that of an environment from a file differs from its own.
    """
    turns = [
        {
            "observation": turn.observation,
            "completion": turn.completion,
            "action": turn.action,
            "reward": turn.reward,
            "action_is_valid": turn.action_is_valid,
            **({"images": turn.image_hashes} if turn.pictures else {}),
            **({"notes": [asdict(note) for note in turn.notes]} if turn.notes else {}),
            **(_sampled(trajectory.turns[number - 1] if number else None, turn) if turn.completion_ids else {}),
        }
        for number, turn in enumerate(trajectory.turns)
    ]
    return {
        "env": env_id,
        "label": key[0],
        "task": key[1],
        "attempt": key[2],
        "seed": trajectory.spec.seed,
        "success": int(trajectory.success == 1 and not trajectory.fault),
        "score": 0.0 if trajectory.fault else trajectory.score,
        **({"instructions": trajectory.instructions} if trajectory.instructions else {}),
        "turns": turns,
        "final_observation": trajectory.final_observation,
    }


def _sampled(before: Turn | None, turn: Turn) -> dict[str, Any]:
    """Return the tokens of a turn; of a prompt that continues the one before and its answer, only what is new."""
    known = () if before is None else before.prompt_ids + before.completion_ids
    continues = bool(known) and turn.prompt_ids[: len(known)] == known
    return {
        "prompt_ids": list(turn.prompt_ids[len(known) :] if continues else turn.prompt_ids),
        **({"prompt_ids_continue": True} if continues else {}),
        "completion_ids": list(turn.completion_ids),
        "completion_logprobs": list(turn.logprobs),
    }


def results(played: Evaluation) -> dict[str, Any]:
    """Return the content of ``results.json``, baselines included."""
    suite = played.result.suite
    content = {**_numbers(played.result), "suite": suite.name, "version": suite.version, "metric": suite.metric}
    content |= {"repeats": played.repeats, "complete": not played.unplayed, "usage": played.usage.as_json()}
    if prompts_text := getattr(played.agent, "prompts_text", ""):
        content["prompts"] = prompts_text
    if played.verifier:
        rows = [row for found in played.result.results for row in found.episodes]
        content["verifier"] = {"name": played.verifier, "usage": verifier_usage(rows).as_json()}
    if played.unplayed:
        content["unplayed"] = {label: list(map(dict, found)) for label, found in played.unplayed.items()}
    if played.baselines:
        content["baselines"] = {name: _numbers(result) for name, result in played.baselines.items()}
        content["normalised"] = normalised(played)
        mean = normalised_mean(content)
        if mean is not None:
            content["normalised_mean"] = as_json(mean)
    return content


def _numbers(result: SuiteResult) -> dict[str, Any]:
    environments = {
        entry.label: metrics(found) for entry, found in zip(result.suite.entries, result.results, strict=True)
    }
    return {"environments": environments, "mean": _estimate(result.mean, True)}


def metrics(result: EvaluationResult) -> dict[str, Any]:
    """Return metric -> number with its interval, for one environment."""
    turns = sum(record["length"] for record in result.episodes)
    repeats = {**repeated_attempts(result.episodes), **best_of(result.episodes)}
    repeated = {name: _estimate(estimate, True) for name, estimate in repeats.items()}
    retried = sum("retried_fault" in record for record in result.episodes)
    counts = [("faults", result.faults)]
    counts += [(name, count) for name, count in (("retried", retried), ("context", result.context)) if count]
    return {
        "success": _estimate(result.success, True),
        "score": _estimate(result.score, True),
        "return": _estimate(result.reward_sum, True),
        "turns": _estimate(result.turns, False),
        "invalid_actions": {"value": result.invalid_actions, "n_turns": turns, "higher_is_better": False},
        **{
            name: {"value": value, "n_games": len(result.episodes), "higher_is_better": False} for name, value in counts
        },
        **repeated,
        **{f"{OUTCOME}{name}": _undirected(estimate) for name, estimate in result.outcomes.items()},
    }


def _undirected(estimate: Estimate) -> dict[str, Any]:
    """Return a number of which nothing says whether higher is better."""
    return {name: each for name, each in _estimate(estimate, True).items() if name != "higher_is_better"}


def _estimate(estimate: Estimate, higher_is_better: bool) -> dict[str, Any]:
    found = as_json(estimate, higher_is_better)
    return {name: None if isinstance(each, float) and math.isnan(each) else each for name, each in found.items()}


def normalised(played: Evaluation) -> dict[str, float]:
    """Return for each entry ``100 * (x - random) / (expert - random)``, where both baselines exist and differ."""
    if not {"random", "expert"} <= played.baselines.keys():
        return {}
    metric = played.result.suite.metric
    found = {}
    own = played.result
    low, high = played.baselines["random"], played.baselines["expert"]
    for entry, mine, random, expert in zip(own.suite.entries, own.results, low.results, high.results, strict=True):
        floor, top = getattr(random, metric).value, getattr(expert, metric).value
        if top != floor:
            found[entry.label] = 100 * (getattr(mine, metric).value - floor) / (top - floor)
    return found
