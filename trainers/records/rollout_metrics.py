"""Metrics of the episodes of an iteration."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from turngym.agents.models.agent import ModelAgent
from turngym.agents.models.kv_cache import CacheCounts
from turngym.agents.models.sampler import Sampler
from turngym.agents.trajectory import Trajectory
from turngym.trainers.core.context import did_not_fit


def branch_metrics(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Return how many episodes branched off, how many turns they took, and how many broke; empty if there are none."""
    if not trajectories:
        return {}
    return {
        "rollout/branches": float(len(trajectories)),
        "rollout/branch_turns": float(sum(len(trajectory.turns) for trajectory in trajectories)),
        "rollout/branch_faults": float(sum(bool(trajectory.fault) for trajectory in trajectories)),
    }


def timing_metrics(start: float, gathered: float, done: float, turns: int, seconds_total: float) -> dict[str, float]:
    """Return how long the parts of an iteration took, and how many turns a second were played."""
    return {
        "time/rollout_seconds": gathered - start,
        "time/update_seconds": done - gathered,
        "time/turns_per_second": turns / max(done - start, 1e-9),
        "time/seconds_total": seconds_total,
    }


def rollout_metrics(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Return metrics of an iteration's trajectories; faulted ones are counted but left out of the means.

    Where nothing was played there are no means.
    """
    if not trajectories:
        return {"rollout/episodes": 0.0, "rollout/faults": 0.0}
    whole = [trajectory for trajectory in trajectories if not trajectory.fault]
    turns = [turn for trajectory in whole for turn in trajectory.turns]
    count = max(len(whole), 1)
    rewards = [trajectory.reward_sum for trajectory in whole if trajectory.turns]  # a seat may have no turn
    return {
        "rollout/episodes": float(len(whole)),
        "rollout/faults": float(len(trajectories) - len(whole)),
        "rollout/success": sum(trajectory.success == 1 for trajectory in whole) / count,
        "rollout/truncated": sum(trajectory.truncated for trajectory in whole) / count,
        "rollout/context": sum(did_not_fit(trajectory) for trajectory in whole) / count,
        "rollout/context_first": float(sum(did_not_fit(each) and not each.turns for each in whole)),
        "rollout/overlong": sum(turn.cut_off for turn in turns) / max(len(turns), 1),
        "rollout/reward_sum": math.fsum(rewards) / max(len(rewards), 1),
        "rollout/turns": len(turns) / count,
        "rollout/invalid_actions": sum(not turn.action_is_valid for turn in turns) / max(len(turns), 1),
        "rollout/tokens": float(sum(len(turn.completion_ids) for turn in turns)),
    }


def metrics_on(env_id: str, label: str, trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Return the main metrics of the trajectories of one environment of a mixture; only their number if it is 0.

    Args:
        env_id: The environment.
        label: Its short name.
        trajectories: Those of an iteration, of all environments.
    """
    found = rollout_metrics([each for each in trajectories if each.env_id == env_id])
    names = ("episodes", "faults", "success", "reward_sum", "turns") if found["rollout/episodes"] else ("episodes",)
    return {f"rollout/{name}_on_{label}": found[f"rollout/{name}"] for name in names}


def histograms(
    trajectories: Sequence[Trajectory], advantages: ArrayLike, log_ratios: ArrayLike
) -> dict[str, NDArray[np.float64]]:
    """Return name -> finite values of an iteration whose distribution is worth seeing; empty ones are left out.

    Args:
        trajectories: Its episodes; faulted ones are left out.
        advantages: Advantage of each token that was trained on.
        log_ratios: Log-ratio of each token of the last update.
    """
    whole = [trajectory for trajectory in trajectories if not trajectory.fault and trajectory.turns]
    values: dict[str, ArrayLike] = {
        "reward_sum": [trajectory.reward_sum for trajectory in whole],
        "turns": [len(trajectory.turns) for trajectory in whole],
        "completion_tokens": [len(turn.completion_ids) for each in whole for turn in each.turns],
        "advantages": advantages,
        "log_ratios": log_ratios,
    }
    arrays = {name: np.asarray(each, dtype=np.float64) for name, each in values.items()}
    finite = {f"histograms/{name}": each[np.isfinite(each)] for name, each in arrays.items()}
    return {name: each for name, each in finite.items() if len(each)}


class CacheMeter:
    """Adds up what agents count about their caches, from one call of ``metrics`` to the next."""

    def __init__(self) -> None:
        self._counts = CacheCounts()
        self._last: tuple[weakref.ref[Sampler] | None, CacheCounts] = None, CacheCounts()
        """Weak, so that the memory of its keys and values is free while the weights are updated."""

    def note(self, agent: ModelAgent) -> None:
        """Add what an agent has counted since it was noted last; other backends count nothing."""
        sampler = agent.generate
        if isinstance(sampler, Sampler):
            last, counts = self._last
            before = counts if last is not None and last() is sampler else CacheCounts()
            self._last = weakref.ref(sampler), replace(sampler.counts)
            self.add(self._last[1] - before)

    def add(self, counts: CacheCounts) -> None:
        """Add what was counted elsewhere."""
        self._counts += counts

    def metrics(self) -> dict[str, float]:
        """Return the metrics since the last call."""
        found, self._counts = self._counts, CacheCounts()
        return {
            "rollout/prefilled_tokens": float(found.prefilled),
            "rollout/reused_tokens": float(found.reused),
            "rollout/cache_evictions": float(found.evictions),
            "rollout/cache_forks": float(found.forks),
            **({"rollout/accepted_drafts": found.accepted / found.drafted} if found.drafted else {}),
        }
