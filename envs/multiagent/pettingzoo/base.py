"""Common parts of the PettingZoo views of a game."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.hosted import begin_game, whole_seed
from turngym.envs.multiagent.snapshots import from_bytes
from turngym.envs.multiagent.table import Table
from turngym.envs.spaces import Unicode
from turngym.errors import ConfigError, EpisodeOver
from turngym.seeding import restart

_IGNORED_OPTION = "options"
"""A key of reset's options that PettingZoo's own tests pass; no game has it."""


_RENDER_MODES = ("human", "ansi")


class Zoo:
    """Base of both views: one table, its spaces, seeds and rendering.

    Args:
        game: The rules.
        retries: Retries after an invalid answer, before the seat forfeits.
        invalid_penalty: Penalty of a seat per invalid answer.
        render_mode: ``"ansi"`` to return the game as text, ``"human"`` to print it, or None.

    Raises:
        ConfigError: An option is out of its range.
    """

    def __init__(
        self, game: Game, *, retries: int = 1, invalid_penalty: float = 0.0, render_mode: str | None = None
    ) -> None:
        if render_mode not in (None, *_RENDER_MODES):
            raise ConfigError(f"{game.name} cannot render {render_mode!r}: pass 'ansi', 'human' or None.")
        self.table = Table(game, retries=retries, invalid_penalty=invalid_penalty)
        self.game, self.render_mode = game, render_mode
        self.metadata = {"name": f"{game.name}_v0", "render_modes": list(_RENDER_MODES), "is_parallelizable": False}
        self.possible_agents = list(game.seats)
        self.agents: list[str] = []
        self._number = {name: seat for seat, name in enumerate(game.seats)}
        self.observation_spaces = {name: spaces.Dict({"text": Unicode()}) for name in game.seats}
        self.action_spaces = {name: Unicode() for name in game.seats}
        self._seeds: np.random.Generator | None = None
        self._printed = 0
        self._is_valid = dict.fromkeys(game.seats, True)

    def observation_space(self, agent: str) -> spaces.Dict:
        """Return the space of an agent's observations: always the same object."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Unicode:
        """Return the space of an agent's actions, any text: always the same object."""
        return self.action_spaces[agent]

    def begin(self, seed: int | None, options: Mapping[str, Any] | None) -> None:
        """Start a game: the one of ``seed``, or without a seed the next of a series that the last seed started.

        Raises:
            ConfigError: The seed is not a whole number, or the game has no such option.
        """
        seed = None if seed is None else whole_seed(seed)
        if seed is not None or self._seeds is None:
            fresh = np.random.default_rng()
            self._seeds = fresh if seed is None else restart(fresh, "games after", seed)
        number = int(self._seeds.integers(2**62)) if seed is None else seed
        begin_game(self.table, number, {key: value for key, value in (options or {}).items() if key != _IGNORED_OPTION})
        self._printed = 0
        self.agents = list(self.possible_agents)
        self._is_valid = dict.fromkeys(self.possible_agents, True)

    def text(self, agent: str) -> dict[str, str]:
        """Return an agent's observation: the lines since its last answer, and the question if it is asked."""
        return {"text": self.table.views[self._number[agent]].observation}

    def info(self, agent: str) -> dict[str, Any]:
        """Return an agent's info table, keys and types as :class:`turngym.types.Info` has them."""
        return self.table.info(self._number[agent], action_is_valid=self._is_valid[agent])

    @property
    def active_agents(self) -> tuple[str, ...]:
        """The agents that have to answer now, in the order of the game."""
        return tuple([self.game.seats[seat] for seat in self.table.pending])

    def picture(self) -> str | None:
        """Return the game so far as the table sees it, secrets included; in the mode "human" print what is new."""
        if self.render_mode is None:
            return None
        lines = [f"[{self._readers(to)}] {text}" for to, text in self.table.log]
        if self.render_mode == "ansi":
            return "\n".join(lines)
        for line in lines[self._printed :]:
            print(line.encode("utf8", "backslashreplace").decode())  # the terminal may not be able to encode it
        self._printed = len(lines)
        return None

    def _readers(self, to: tuple[int, ...]) -> str:
        return "all" if to == self.game.everyone else ", ".join(self.game.seats[seat] for seat in to)

    # Snapshots.

    def save(self, **more: Any) -> bytes:
        """Return the exact state and what the view adds to it, as JSON.

        Raises:
            EpisodeOver: No game has started.
        """
        if self._seeds is None:
            raise EpisodeOver(f"snapshot() of {self.game.name} before the first reset(): there is no state to save.")
        content = {
            "table": self.table.snapshot().decode(),
            "agents": self.agents,
            "is_valid": self._is_valid,
            "seeds": self._seeds.bit_generator.state,
            **more,
        }
        return json.dumps(content, sort_keys=True).encode()

    def bring_back(self, snapshot: bytes, more: Sequence[str] = ()) -> dict[str, Any]:
        """Bring back what :meth:`save` returned, and return all that it holds.

        Args:
            snapshot: The bytes.
            more: Names of further reward tables that it must contain.

        Raises:
            ConfigError: The bytes are not a snapshot, or one of another game or other options.
        """
        try:
            content: dict[str, Any] = json.loads(snapshot)
            table, agents, is_valid = content["table"].encode(), list(content["agents"]), dict(content["is_valid"])
            if any(set(content[name]) != set(agents) for name in more):
                raise ValueError(f"{more} of {agents}")
            seeds = np.random.default_rng(0)
            seeds.bit_generator.state = content["seeds"]
            from_bytes(self.game, self.table._options, table)
            if not set(agents) <= set(self.possible_agents) or not all(isinstance(v, bool) for v in is_valid.values()):
                raise ValueError(f"the agents {agents} of {self.possible_agents}")
        except ConfigError:
            raise
        except Exception as error:  # untrusted bytes: anything may be raised
            kind = type(self).__name__
            raise ConfigError(
                f"restore() of {self.game.name} got bytes that are not a snapshot of turngym's {kind}."
            ) from error
        self.table.restore(table)
        self.agents, self._is_valid, self._seeds = agents, is_valid, seeds
        return content
