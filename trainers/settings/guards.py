"""Guards of a run: limits on metrics, and handling of non-finite rewards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from turngym.arithmetic import float_sum
from turngym.errors import DivergenceError
from turngym.options import Amount, Natural, Options, Positive
from turngym.trainers.core.finite import BadReward

FAULTS, DIVERGENCE = "faults", "divergence"


class GuardConfig(Options):
    """Conditions for warnings and for stopping a run.

    Args:
        bad_reward: Handling of non-finite rewards: ``stop`` the run, or ``drop`` the episode as faulted and count it.
        max_faulty_iterations: Stop after this many consecutive iterations without a complete episode; 0 for never.
        on_divergence: Action when a limit below is exceeded: ``warn`` or ``stop``.
        patience: Number of consecutive iterations for which a limit must be exceeded.
        min_entropy: Lower limit of ``policy/entropy_sampled`` in nats per token; 0 for none.
        max_ratio: Upper limit of ``policy/ratio_max``; 0 for none.
        max_kl: Upper limit of ``policy/kl_sampler`` in nats per token; 0 for none.
        reward_drop: Maximum drop of the mean reward over four times ``patience`` iterations below its best, as a share
            of the range over all iterations; 0 for none. Not applied against changing opponents, such as in self-play.
    """

    bad_reward: BadReward = "stop"
    max_faulty_iterations: Natural = 3
    on_divergence: Literal["warn", "stop"] = "warn"
    patience: Positive = 5
    min_entropy: Amount = 0.001
    max_ratio: Amount = 1000.0
    max_kl: Amount = 1.0
    reward_drop: Amount = 0.5


class Watchdog:
    """Monitor of the metrics of each iteration.

    Args:
        config: Conditions for warnings and for stopping.
    """

    def __init__(self, config: GuardConfig) -> None:
        self.config = config
        self._broken: dict[str, int] = {}  # limit -> consecutive iterations
        self._rewards: list[float] = []
        self._best = float("-inf")
        self._faulty = 0

    def look(self, record: Mapping[str, Any]) -> list[str]:
        """Return the warnings of an iteration; each is repeated only after its limit was respected again.

        Raises:
            DivergenceError: A limit that stops the run is exceeded.
        """
        self._count_faults(record)
        found = {}
        for name, words in self._limits(record).items():
            self._broken[name] = self._broken.get(name, 0) + 1 if words else 0
            if words and self._broken[name] == (1 if name == "reward_drop" else self.config.patience):
                found[name] = words
        if found and self.config.on_divergence == "stop":
            raise DivergenceError("; ".join(found.values()) + ".", DIVERGENCE, {"limits": sorted(found)})
        return list(found.values())

    def _count_faults(self, record: Mapping[str, Any]) -> None:
        is_faulty = record.get("rollout/episodes") == 0 and record.get("rollout/faults", 0) > 0
        self._faulty = self._faulty + 1 if is_faulty else 0
        if 0 < self.config.max_faulty_iterations <= self._faulty:
            raise DivergenceError(
                f"every episode of {self._faulty} iterations in a row broke: look at the faults of the environment.",
                FAULTS,
            )

    def _limits(self, record: Mapping[str, Any]) -> dict[str, str]:
        """Return a message for each limit, empty if respected."""
        limits, patience = self.config, self.config.patience
        found = {"min_entropy": "", "max_ratio": "", "max_kl": "", "reward_drop": self._reward_collapse(record)}
        entropy = record.get("policy/entropy_sampled")
        if entropy is not None and entropy < limits.min_entropy:
            found["min_entropy"] = (
                f"the entropy has collapsed: {entropy:.2g} nats a token, below {limits.min_entropy:g} for {patience} "
                "iterations in a row"
            )
        for name, metric, what in (
            ("max_ratio", "policy/ratio_max", "importance ratios explode: the largest is"),
            ("max_kl", "policy/kl_sampler", "the policy diverges from the sampler: the KL is"),
        ):
            limit, value = getattr(limits, name), record.get(metric)
            if limit and value is not None and value > limit:
                found[name] = f"{what} {value:.3g}, above {limit:g} for {patience} iterations in a row"
        return found

    def _reward_collapse(self, record: Mapping[str, Any]) -> str:
        reward = record.get("rollout/reward_sum")
        if reward is None or not self.config.reward_drop or not record.get("rollout/episodes"):
            return ""
        self._rewards.append(float(reward))
        window = 4 * self.config.patience
        recent = self._rewards[-window:]
        if len(recent) < window:
            return ""
        mean = float_sum(recent) / len(recent)
        self._best = max(self._best, mean)
        spread = max(self._rewards) - min(self._rewards)
        if self._best - mean <= self.config.reward_drop * spread or not spread:
            return ""
        return f"the reward has collapsed: {mean:.3g} on average of {len(recent)} iterations, after {self._best:.3g}"
