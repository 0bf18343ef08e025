"""A game between seats as a PettingZoo environment that takes the answers of all seats at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pettingzoo import ParallelEnv

from turngym.envs.multiagent.pettingzoo.base import Zoo
from turngym.errors import EpisodeOver, UnknownName, nearest


class TableParallel(Zoo, ParallelEnv):  # type: ignore[misc]  # PettingZoo has no type information
    """A PettingZoo environment of any game, with the actions of all agents in one dictionary.

    Only the agents in ``active_agents`` are asked; what others send is ignored. Seats that decide at once are taken
    together: the game continues when every one of them has given a valid answer or has forfeited, so after an invalid
    answer the next step waits for that agent alone. An active agent without a text stays asked. A game whose decisions
    are all simultaneous takes one step per decision; others take one step per answer.

    Args:
        game: The rules.
        retries: Retries after an invalid answer, before the seat forfeits.
        invalid_penalty: Penalty of a seat per invalid answer.
        render_mode: ``"ansi"`` to return the game as text, ``"human"`` to print it, or None.

    Raises:
        ConfigError: An option is out of its range.
    """

    def reset(
        self, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, Any]]]:
        """Start a game.

        Args:
            seed: Names the game; None selects another one.
            options: Fixed facts, as the game's ``begin`` takes them.

        Returns:
            Observation and info table of every agent.
        """
        self.begin(seed, options)
        return self._observations(), self._infos()

    def step(
        self, actions: Mapping[str, str | None]
    ) -> tuple[
        dict[str, dict[str, str]], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
    ]:
        """Take the answers of the active agents.

        Args:
            actions: Text per agent; those of agents that are not active are ignored.

        Returns:
            Observations, rewards, terminations, truncations and infos of every agent.

        Raises:
            EpisodeOver: The game is over or has not started.
            UnknownName: An action is for an agent that the game does not have.
            TypeError: An active agent's answer is neither text nor None.
        """
        if not self.agents:
            raise EpisodeOver(f"step() of {self.game.name} without a game: call reset() first.")
        for agent in actions:
            if agent not in self._number:
                raise UnknownName(f"{self.game.name} has no agent {agent!r}. {nearest(str(agent), self._number)}")
        texts = {agent: actions.get(agent) for agent in self.active_agents}
        for agent, text in texts.items():
            if text is not None and not isinstance(text, str):
                raise TypeError(f"the action of {agent} is {type(text).__name__}: pass a str, or None to wait.")
        rewards = dict.fromkeys(self.agents, 0.0)
        for agent, text in texts.items():
            if text is None:
                continue
            answer = self.table.answer(self._number[agent], text)
            self._is_valid[agent] = answer.is_valid
            if answer.rewards is not self.table.no_rewards:
                rewards = {name: rewards[name] + more for name, more in zip(self.agents, answer.rewards, strict=True)}
        observations, infos = self._observations(), self._infos()
        truncations = {agent: self.table.is_truncated(self._number[agent]) for agent in self.agents}
        terminations = {agent: self.table.is_over and not cut for agent, cut in truncations.items()}
        if self.table.is_over:
            self.agents = []
        return observations, rewards, terminations, truncations, infos

    def _observations(self) -> dict[str, dict[str, str]]:
        return {agent: self.text(agent) for agent in self.agents}

    def _infos(self) -> dict[str, dict[str, Any]]:
        return {agent: self.info(agent) for agent in self.agents}

    def render(self) -> str | None:
        """Return the game so far as the table sees it, secrets included; in the mode "human" print what is new."""
        return self.picture()

    def close(self) -> None:
        """Release what the game holds."""
        self.table.close()

    def snapshot(self) -> bytes:
        """Return the exact state as JSON.

        Raises:
            EpisodeOver: No game has started.
        """
        return self.save()

    def restore(self, snapshot: bytes) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, Any]]]:
        """Bring back what :meth:`snapshot` saved, in this or another process.

        Returns:
            Observation and info table of every agent.

        Raises:
            ConfigError: The bytes are not a snapshot, or one of another game or other options.
        """
        self.bring_back(snapshot)
        return self._observations(), self._infos()
