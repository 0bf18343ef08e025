"""SkyRL: environments as ``skyrl_gym`` 0.4 text environments, registered as ``turngym``. See skyrl.md."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import skyrl_gym
from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

from turngym.trainers.integrations.episode import Episode, Message, Task, task_rows
from turngym.wrappers.actions.action_format import AUTO

__all__ = ["NAME", "TurngymEnv", "register", "skyrl_rows"]

NAME = "turngym"
"""The name of the environment in skyrl_gym's registry, and in the column ``env_class`` of a data set."""


class TurngymEnv(BaseTextEnv):  # type: ignore[misc]  # the package has no types
    """One episode. SkyRL makes an object for each trajectory.

    Args:
        env_config: Entries of SkyRL's ``environment.skyrl_gym.turngym``: ``format`` (name of the action format) and
            ``legal_actions`` (whether they are listed).
        extras: The columns of the row: those of :class:`~turngym.trainers.integrations.episode.Task`.

    Raises:
        ConfigError: The row has no seed, or names no environment.

    >>> env = skyrl_gym.make(NAME, extras={"env_id": "turngym/NumberLine-v0", "seed": 3})
    >>> prompt, info = env.init([{"role": "user", "content": ""}])
    >>> env.step("<action>+</action>")["reward"]
    1.0
    """

    def __init__(self, env_config: Mapping[str, Any] | None = None, extras: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        config = env_config or {}
        self.episode = Episode(str(config.get("format", AUTO)), bool(config.get("legal_actions", False)))
        self.task = Task.of_row(extras or {})

    def init(self, prompt: list[Message]) -> tuple[list[Message], dict[str, Any]]:
        """Start the episode, and return the rules and the first observation after what the row's prompt says."""
        messages = self.episode.begin(self.task, prompt)
        self.turns, self.max_turns = 0, self.episode.max_turns
        return messages, self._facts()

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Take one turn with a whole completion; the last observation of an episode is dropped.

        Raises:
            EpisodeOver: The episode has ended.
        """
        observation = self.episode.step(action)
        self.turns += 1
        rewards = self.episode.result.rewards
        return BaseTextEnvStepOutput(
            observations=[] if self.episode.is_over else [{"role": "user", "content": observation}],
            reward=0.0 if self.episode.result.fault else rewards[-1],
            done=self.episode.is_over,
            metadata={**self._facts(), "final_observation": observation if self.episode.is_over else ""},
        )

    def get_metrics(self) -> dict[str, float]:
        """Return the numbers of the episode, which SkyRL averages over a batch."""
        return self.episode.result.numbers()

    def close(self) -> None:
        """Close the environment; may be called twice."""
        self.episode.close()

    def _facts(self) -> dict[str, Any]:
        """Return the state of the episode: SkyRL's ``done`` does not distinguish terminated from truncated."""
        result = self.episode.result
        return {
            "env_id": self.task.env_id,
            "terminated": result.terminated,
            "truncated": result.truncated,
            "fault": result.fault,
            "success": result.success,
            "score": result.score,
        }


def skyrl_rows(env_id: str, seeds: range, **task: Any) -> list[dict[str, Any]]:
    """Return rows of a data set for SkyRL: those of :func:`task_rows` with the column ``env_class``.

    >>> skyrl_rows("turngym/TowerOfHanoi-v0", range(2))[1]["env_class"]
    'turngym'
    """
    return [{**row, "env_class": NAME} for row in task_rows(env_id, seeds, **task)]


def register() -> None:
    """Add ``turngym`` to skyrl_gym's registry; idempotent, and done when this module is imported."""
    if NAME not in skyrl_gym.envs.registration.registry:
        skyrl_gym.register(NAME, entry_point=f"{__name__}:TurngymEnv")


register()
