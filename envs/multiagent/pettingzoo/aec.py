"""A game between seats as a PettingZoo environment that asks one seat after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pettingzoo import AECEnv

from turngym.envs.multiagent.pettingzoo.base import Zoo
from turngym.errors import EpisodeOver


class TableAEC(Zoo, AECEnv):  # type: ignore[misc]  # PettingZoo has no type information
    """A PettingZoo environment of any game. Observations are ``{"text": ...}``, actions are any text.

    An invalid answer is not an error: the same agent is selected again and reads the reason, until it forfeits the
    game.
    Agents that have forfeited or been eliminated stay, are not selected, and share the result: all terminate together.
    ``infos`` holds the whole info table of every agent. Where several seats decide at once they are selected one after
    the other, and nobody sees anything of it before all have answered.

    Args:
        game: The rules.
        retries: Retries after an invalid answer, before the seat forfeits.
        invalid_penalty: Penalty of a seat per invalid answer.
        render_mode: ``"ansi"`` to return the game as text, ``"human"`` to print it, or None.

    Raises:
        ConfigError: An option is out of its range.
    """

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Start a game.

        Args:
            seed: Names the game; None selects another one.
            options: Fixed facts, as the game's ``begin`` takes them.
        """
        self.begin(seed, options)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._skip_agent_selection = None
        self._select()

    def step(self, action: str | None) -> None:
        """Take the selected agent's answer; None takes an agent whose game is over off the list.

        Raises:
            EpisodeOver: The game is over or has not started.
            TypeError: The answer is not text.
        """
        if not self.agents:
            raise EpisodeOver(f"step() of {self.game.name} without a game: call reset() first.")
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        answer = self.table.answer(self._number[agent], action)  # type: ignore[arg-type]  # the table refuses None
        self._is_valid[agent] = answer.is_valid
        self._cumulative_rewards[agent] = 0.0
        self.rewards = dict(zip(self.agents, answer.rewards, strict=True))
        self._accumulate_rewards()
        self._select()

    def _select(self) -> None:
        """Find out who is next, and what everybody is told."""
        if self.table.is_over:
            self.truncations = {agent: self.table.is_truncated(self._number[agent]) for agent in self.agents}
            self.terminations = {agent: not cut for agent, cut in self.truncations.items()}
            self.agent_selection = self.agents[0] if self.agents else ""
        else:
            self.agent_selection = self.active_agents[0]
        self.infos = {agent: self.info(agent) for agent in self.agents}

    def observe(self, agent: str) -> dict[str, str]:
        """Return what an agent has been told since its last answer, and the question if it is asked."""
        return self.text(agent)

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
        return self.save(rewards=getattr(self, "rewards", {}), sums=getattr(self, "_cumulative_rewards", {}))

    def restore(self, snapshot: bytes) -> None:
        """Bring back what :meth:`snapshot` saved, in this or another process.

        Raises:
            ConfigError: The bytes are not a snapshot, or one of another game or other options.
        """
        content = self.bring_back(snapshot, ("rewards", "sums"))
        self.rewards, self._cumulative_rewards = content["rewards"], content["sums"]
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._skip_agent_selection = None
        self._select()
