"""Common parts of the transports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from torch import Tensor

from turngym.agents.models.rollout_servers.client import PolicyClient

Weights = Mapping[str, Tensor]
"""Name, as transformers has it, to tensor; tied output layers under their own name as well."""


class WeightSync(ABC):
    """A way in which servers get new weights.

    Args:
        timeout: Seconds for each step.
    """

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout

    @abstractmethod
    def publish(self, label: str, weights: Weights) -> None:
        """Put weights where servers can get them; those before the last ones need not be kept.

        Args:
            label: Their name.
            weights: The weights.
        """

    @abstractmethod
    def load(self, server: PolicyClient, label: str) -> None:
        """Let a paused server load published weights.

        Raises:
            CallFailed: It does not.
        """

    def deliver(self, server: PolicyClient, label: str) -> None:
        """Let a server load published weights: nothing is sampled meanwhile, and what was computed before is dropped.

        Raises:
            CallFailed: It does not take them.
        """
        server.pause(self.timeout)
        self.load(server, label)
        server.forget_prefixes(self.timeout)
        server.set_version(label, self.timeout)
        server.resume(self.timeout)

    def settle(self) -> None:  # noqa: B027
        """Called when every server in use has been given the weights, before they may change."""

    def close(self) -> None:  # noqa: B027
        """Remove what was published."""
