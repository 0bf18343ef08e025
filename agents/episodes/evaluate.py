"""Evaluation of agents: rollouts, intervals, and a record of every episode."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from turngym.agents.core import Agent
from turngym.agents.episodes.rollout import Schedule, rollout
from turngym.agents.intervals import Estimate, cluster_bootstrap, share
from turngym.agents.trajectory import EpisodeSpec, Trajectory
from turngym.agents.usage import usage_of
from turngym.columns import outcomes_of
from turngym.envs.own import find_spec
from turngym.envs.vector import TextVectorEnv, make_vec
from turngym.envs.vector.backends.base import VECTOR_BACKENDS, Backend, BackendOptions
from turngym.envs.vector.slots.boundary import is_for_program
from turngym.envs.vector.slots.maker import Maker
from turngym.envs.vector.slots.slot import Result
from turngym.errors import ConfigError, TurngymError, error_text
from turngym.seeding import stream_seed
from turngym.storage.files import write_atomic
from turngym.wrappers.wrapping import wrapping

_MAX_TRIES_PER_INSTANCE = 20
_MOST_BROKEN = 5
_BROKEN = "broken "


@dataclass(frozen=True)
class EvaluationResult:
    """Result of an evaluation.

    Args:
        env_id: The environment.
        success: Share of episodes that solved their task.
        score: Mean of the benchmark's number.
        reward_sum: Mean undiscounted return.
        turns: Mean number of turns.
        invalid_actions: Share of invalid actions.
        faults: Number of episodes that faulted twice; they count as failures.
        episodes: One record per episode, in the order requested.
        context: Number of episodes whose next prompt did not fit; they count as failures.
        outcomes: Means of columns such as ``outcome/injected``, over the episodes that have them.
    """

    env_id: str
    success: Estimate
    score: Estimate
    reward_sum: Estimate
    turns: Estimate
    invalid_actions: float
    faults: int
    episodes: tuple[Mapping[str, Any], ...]
    context: int = 0
    outcomes: Mapping[str, Estimate] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        """Return everything but the episodes, as JSON-compatible data."""
        content = asdict(self)
        del content["episodes"]
        return content

    def successes(self) -> list[float]:
        """Return 1.0 or 0.0 for each episode, for paired comparisons."""
        return [float(record["success"]) for record in self.episodes]


class Guarded:
    """The only slot of a backend, called synchronously.

    Args:
        backend: A backend with one environment.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def run(self, *op: Any) -> Any:
        """Run one operation of :class:`turngym.envs.vector.slots.slot.Slot` and return its answer."""
        return self._backend.run([0], [op])[0]

    def reset(self, seed: int) -> Result:
        """Start an episode; the observation is None after a fault."""
        found: Result = self.run("reset", seed, None)
        return found

    def step(self, action: str) -> Result:
        """Take one turn; the observation is None after a fault."""
        found: Result = self.run("step", action)
        return found

    def get(self, name: str) -> Any:
        """Return an attribute of the environment."""
        return self.run("call", name, (), {})

    def close(self) -> None:
        """Close the environment and its process, if it has one."""
        self._backend.close()


@contextmanager
def guarded_slot(env_id: str, env_kwargs: Mapping[str, Any], backend: str = "sync") -> Iterator[Guarded]:
    """Yield one environment whose errors become faults, as in a vector.

    Args:
        env_id: The environment.
        env_kwargs: Options of the environment.
        backend: Vector backend; with ``process`` the environment may crash or hang its own process.

    Raises:
        TurngymError: The environment cannot be created.
    """
    slot = Guarded(VECTOR_BACKENDS[backend]([Maker(find_spec(env_id), env_kwargs, (), False)], BackendOptions()))
    try:
        slot.run("open")
    except BaseException as error:  # user code: any failure becomes one sentence
        if isinstance(error, TurngymError) or is_for_program(error):
            raise
        raise TurngymError(f"{env_id} cannot be made: {error_text(error).rstrip('.')}.") from error
    try:
        yield slot
    finally:
        slot.close()


def distinct_instances(
    env_id: str,
    count: int,
    env_kwargs: Mapping[str, Any],
    seed: int = 0,
    whatever_there_is: bool = False,
    backend: str = "sync",
) -> dict[str, int]:
    """Find seeds that give ``count`` distinct task instances.

    Args:
        env_id: The environment.
        count: Number of instances.
        env_kwargs: Options of the environment, including the split.
        seed: Index of the seed sequence.
        whatever_there_is: Return fewer instances if the environment does not have that many, instead of raising.
        backend: Vector backend used for the search.

    A seed whose reset fails counts as an instance with a faulted episode, so failures of an environment do not make a
    benchmark easier.

    Returns:
        Instance hash -> seed, in the order found.

    Raises:
        ConfigError: The environment does not have that many instances.
        TurngymError: It cannot be created, or consecutive resets fail.
    """
    found: dict[str, int] = {}
    with guarded_slot(env_id, env_kwargs, backend) as slot:
        finite = slot.get("finite_instances")
        if not whatever_there_is and finite is not None and finite < count:
            raise ConfigError(
                f"{env_id} has {finite} instance{'' if finite == 1 else 's'}, fewer than the {count} asked for: ask "
                "for fewer episodes, or for several attempts at each (--repeats)."
            )
        for attempt in range(count * _MAX_TRIES_PER_INSTANCE):
            candidate = stream_seed("evaluation", seed, attempt) % 2**31
            found.setdefault(_instance_of(slot, candidate) or f"{_BROKEN}{candidate}", candidate)
            if len(found) == _MOST_BROKEN and all(name.startswith(_BROKEN) for name in found):
                fault = slot.reset(candidate)[4]["fault"]
                raise TurngymError(f"{env_id} cannot start an episode: {fault.rstrip('.') or 'its resets break'}.")
            if len(found) == count:
                return found
    if whatever_there_is:
        return found
    raise ConfigError(
        f"{env_id} gave only {len(found)} distinct instance{'' if len(found) == 1 else 's'} where {count} were asked "
        "for: ask for fewer, for another split, or for several attempts at each (--repeats)."
    )


def _instance_of(slot: Guarded, seed: int) -> str:
    if slot.reset(seed)[0] is None:
        return ""
    try:
        return str(slot.get("instance_hash"))
    except BaseException as error:  # user code: a property of the environment
        if is_for_program(error):
            raise
        return ""


def play_all(
    vector: TextVectorEnv,
    agent: Agent,
    specs: Sequence[EpisodeSpec],
    schedule: Schedule = "lockstep",
    on_episode: Callable[[Trajectory], None] | None = None,
    may_begin: Callable[[], bool] | None = None,
) -> list[Trajectory]:
    """Play episodes; an episode that faults is retried once, and the retry counts.

    Args:
        vector: A vector with autoreset mode DISABLED.
        agent: Agent.
        specs: The episodes.
        schedule: ``lockstep`` or ``continuous``.
        on_episode: Called once for each episode, with the trajectory that counts.
        may_begin: Called before episodes start; episodes for which it returns False are neither played nor returned.
    """
    tell = on_episode or (lambda trajectory: None)

    def first_try(trajectory: Trajectory) -> None:
        if not trajectory.fault:
            tell(trajectory)

    trajectories = rollout(
        vector, agent, specs, schedule=schedule, on_episode=first_try, may_begin=may_begin, final_prompts=False
    )
    broken = [i for i, trajectory in enumerate(trajectories) if trajectory.fault]
    if broken:
        left = [trajectories[i].spec for i in broken]
        faults = {trajectories[i].spec.episode: trajectories[i].fault for i in broken}

        def second_try(trajectory: Trajectory) -> None:
            trajectory.retried_fault = faults[trajectory.spec.episode]
            tell(trajectory)

        again = rollout(vector, agent, left, schedule=schedule, on_episode=second_try, final_prompts=False)
        for i, trajectory in zip(broken, again, strict=True):
            trajectories[i] = trajectory
    return trajectories


def record_of(trajectory: Trajectory, started: str = "") -> dict[str, Any]:
    """Return an episode's line of ``episodes.jsonl``.

    A faulted episode has success 0, score 0 and a return of at most 0, because a replay cannot confirm more.
    """
    transcript = json.dumps([[t.observation, t.action, t.reward] for t in trajectory.turns])
    used = usage_of(trajectory)
    is_cut = trajectory.truncation_reason == "context"
    is_broken = bool(trajectory.fault)
    outcomes = outcomes_of(trajectory.turns[-1].columns) if trajectory.turns and not is_broken else {}
    status = "env_error" if is_broken else "context" if is_cut else "agent_error" if used.lost else "ok"
    return {
        "env": trajectory.env_id,
        "seed": trajectory.spec.seed,
        "block_id": trajectory.instance or str(trajectory.spec.seed),
        "instance": trajectory.instance,
        "returns": min(0.0, trajectory.reward_sum) if is_broken else trajectory.reward_sum,
        "score": 0.0 if is_broken else trajectory.score,
        "success": int(trajectory.success == 1 and not is_broken),
        "length": len(trajectory.turns),
        "terminated": trajectory.terminated,
        "truncated": trajectory.truncated,
        "illegal": sum(not turn.action_is_valid for turn in trajectory.turns),
        "tokens_in": used.tokens_in,
        "tokens_out": used.tokens_out,
        "actions": [turn.action for turn in trajectory.turns],
        "transcript_sha256": hashlib.sha256(transcript.encode()).hexdigest(),
        "status": status,
        "fault": trajectory.fault,
        **({"retried_fault": trajectory.retried_fault} if trajectory.retried_fault and not is_broken else {}),
        **({"truncation_detail": trajectory.truncation_detail} if is_cut else {}),
        **({"outcomes": outcomes} if outcomes else {}),
    }


def summarise(env_id: str, trajectories: Sequence[Trajectory]) -> EvaluationResult:
    """Return means with intervals; a faulted episode counts as a failure, so n is always the number of episodes."""
    return summarise_records(env_id, [record_of(trajectory) for trajectory in trajectories])


def summarise_records(env_id: str, records: Sequence[Mapping[str, Any]]) -> EvaluationResult:
    """Return the same from the episodes' records; means without episodes are NaN."""
    blocks = [record["block_id"] for record in records]

    def mean(key: str, estimate: Callable[..., Estimate] = cluster_bootstrap) -> Estimate:
        if not records:
            return Estimate(math.nan, math.nan, math.nan, math.nan, 0, 0, "no episodes")
        return estimate([float(record[key]) for record in records], blocks)

    turns = sum(record["length"] for record in records)
    names = dict.fromkeys(name for record in records for name in record.get("outcomes", ()))
    return EvaluationResult(
        env_id,
        mean("success", share),
        mean("score"),
        mean("returns"),
        mean("length"),
        sum(record["illegal"] for record in records) / max(turns, 1),
        sum(record["status"] == "env_error" for record in records),
        tuple(records),
        sum(record["status"] == "context" for record in records),
        {name: _outcome(name, records) for name in names},
    )


def _outcome(name: str, records: Sequence[Mapping[str, Any]]) -> Estimate:
    told = [record for record in records if name in record.get("outcomes", ())]
    return cluster_bootstrap(
        [float(record["outcomes"][name]) for record in told], [record["block_id"] for record in told]
    )


def evaluate(
    env_id: str,
    agent: Agent,
    *,
    episodes: int = 100,
    seeds: Sequence[int] | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
    num_envs: int = 32,
    backend: str = "sync",
    schedule: Schedule = "lockstep",
    seed: int = 0,
    wrappers: Sequence[str] = (),
    on_episode: Callable[[Trajectory], None] | None = None,
) -> tuple[EvaluationResult, list[Trajectory]]:
    """Evaluate an agent on distinct instances of one environment.

    Args:
        env_id: The environment.
        agent: Agent.
        episodes: Number of distinct instances, if ``seeds`` is not given.
        seeds: Seeds of the episodes.
        env_kwargs: Options of the environment; the split is ``"test"`` unless given.
        num_envs: Slots of the vector.
        backend: Backend of the vector.
        schedule: ``lockstep`` or ``continuous``.
        seed: Index of the seed sequence of the instances.
        wrappers: Wrappers, the first innermost, each as in ``history:k=4``.
        on_episode: Called with each trajectory as soon as its episode ends.

    Returns:
        The result, and the trajectories in the order of the seeds.
    """
    options = {"split": "test", **(env_kwargs or {})}
    if seeds is None:
        seeds = list(distinct_instances(env_id, episodes, options, seed, backend=backend).values())
    specs = [EpisodeSpec(i, s, i) for i, s in enumerate(seeds)]
    with open_vector(env_id, options, min(num_envs, len(specs)), backend, wrappers) as vector:
        trajectories = play_all(vector, agent, specs, schedule, on_episode)
    return summarise(env_id, trajectories), trajectories


@contextmanager
def open_vector(
    env_id: str, env_kwargs: Mapping[str, Any], num_envs: int, backend: str, wrappers: Sequence[str] = ()
) -> Iterator[TextVectorEnv]:
    """Context manager for an evaluation's vector.

    Args:
        env_id: The environment.
        env_kwargs: Its options.
        num_envs: Slots.
        backend: Backend of the vector.
        wrappers: Wrappers of the environment, the first innermost.
    """
    vector = make_vec(
        env_id,
        num_envs=num_envs,
        wrappers=wrapping(*wrappers),
        backend=backend,
        autoreset_mode="Disabled",
        **env_kwargs,
    )
    try:
        yield vector
    finally:
        vector.close()


def write_episodes(path: Path, result: EvaluationResult) -> None:
    """Write one JSON line per episode."""
    lines = [json.dumps(record, ensure_ascii=False, sort_keys=True) for record in result.episodes]
    write_atomic(path, "".join(line + "\n" for line in lines))
