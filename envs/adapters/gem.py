r"""Any game of GEM (package gem-llm, Liu et al. 2025) as a :class:`TextEnv`.

What the adapter fixes: GEM uses and seeds the global random generators, sets both flags at its turn limit, ends an
episode at an answer that is not in ``\boxed{}``, ignores unknown options, downloads word lists when a game is created,
and configures the root logger on import.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Mapping
from typing import Any

from turngym.arithmetic import as_float
from turngym.envs.adapters.borrowed import import_package, made_for
from turngym.envs.adapters.gem_actions import BOARD_GAMES, legal_actions
from turngym.envs.adapters.replayed import ReplayedEnv, Reply
from turngym.envs.core import MaxTurns
from turngym.envs.settings import worded
from turngym.errors import UnknownName, nearest

_TURN = re.compile(r"At turn \d+, ?")
_FORMAT = "Put your action into \\boxed{}; only the last one of an answer counts."


class _Invalid(float):
    """The reward that GEM gives for an illegal action: equal to the number it was, and recognisable."""


class _Malformed(float):
    """The reward that GEM gives for an answer that it cannot read."""


def _mark_rewards() -> None:
    """Make GEM's two rewards for bad actions recognisable: neither its flags nor its info distinguish them."""
    rewards = importlib.import_module("gem.utils.constants").LanguageGameReward
    if not isinstance(rewards.invalid_action_reward, _Invalid):
        rewards.invalid_action_reward = _Invalid(rewards.invalid_action_reward)
        rewards.format_error_reward = _Malformed(rewards.format_error_reward)


class Gem(ReplayedEnv):
    r"""Adapter of GEM games.

    Rules, rewards and texts are GEM's; an observation is GEM's answer and its suffix (the board, the request for the
    next move), without the history that its wrappers accumulate. As in GEM, an answer that cannot be parsed ends the
    episode: it terminates without success, and ``action_is_valid`` is False. GEM's turn limit truncates. An episode is
        solved if GEM congratulates the player, or in its single-turn question sets if the reward is at least 1. The
        anchor is the board,
    and in games with a memory the board and the sorted answers so far. GEM has no solver: there is no expert.
    """

    class Options(ReplayedEnv.Options):
        game: str = "game:GuessTheNumber-v0-easy"
        """Id in GEM's registry, e.g. ``"game:Sokoban-v0-easy"`` or ``"rg:leg_counting"``."""
        game_options: Mapping[str, Any] | None = None
        """Options that override those of the id, JSON values only."""
        max_turns: MaxTurns = 100
        """Turns after which the episode is truncated, if GEM's own limit does not come first."""

    options: Options

    file_options = worded()
    finds_action = True

    def setup(self) -> None:
        super().setup()
        options = self.options
        self.game, self._options = options.game, dict(options.game_options or {})
        self.source = f"{options.game} {sorted(self._options.items())}" if self._options else options.game
        with self._random.lent():
            self._package = import_package("gem", self.env_id, "gem-llm", "gem")
            _mark_rewards()
            self._check_options()
            self._game = self._made()
            kind = type(self._game)
            self._is_game = kind.__module__.startswith("gem.envs.game_env")
            rules = self._game._get_instructions() if self._is_game and not self._game._is_random else ""
        self._has_memory = kind.__name__ not in BOARD_GAMES
        self.instructions = rules.strip() or f"You play {options.game}. {_FORMAT}"
        self._shows_rules = not rules
        self._board, self._answers = "", set[str]()

    def _check_options(self) -> None:
        registry = importlib.import_module("gem.envs.registration").ENV_REGISTRY
        if self.game not in registry:
            raise UnknownName(f"GEM has no game named {self.game!r}. {nearest(self.game, registry)[:300]}")
        module, _, name = registry[self.game].entry_point.partition(":")
        with made_for("GEM", self.game):
            kind = getattr(importlib.import_module(module), name)
        known = [n for n, p in inspect.signature(kind).parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
        for option in self._options:
            if option not in known:
                raise UnknownName(f"{self.game} has no option {option!r}. {nearest(option, known)}")

    def _made(self) -> Any:
        with made_for("GEM", self.game):
            return self._package.make(self.game, **self._options)

    def foreign_reset(self, seed: int) -> str:
        if not self._is_game:
            self._game = self._made()  # question sets depend on the number of resets
        with made_for("GEM", f"an episode of {self.game}"):
            rules, info = self._game.reset(seed)
        self._answers = set()
        self._board = str(info.get("suffix", "")).strip()
        return f"{rules.strip()}\n{self._board}".strip() if self._shows_rules else self._board

    def foreign_step(self, action: str) -> Reply:
        answer, reward, terminated, truncated, info = self._game.step(action)
        self._board = str(info.get("suffix", "")).strip()
        answer, malformed = answer.strip(), isinstance(reward, _Malformed)
        if self._has_memory and not isinstance(reward, _Invalid | _Malformed):
            self._answers.add(_TURN.sub("", answer))
        limit = self._is_game and bool(truncated) and not malformed
        success = answer.startswith("Congratulations") if self._is_game else as_float(reward) >= 1
        return Reply(
            observation=f"{answer}\n{self._board}".strip(),
            reward=as_float(reward),
            terminated=bool(terminated) and not limit,
            truncated=limit,
            success=success,
            action_is_valid=not isinstance(reward, _Invalid | _Malformed),
        )

    def anchor(self) -> str:
        return "\n".join([self._board, *sorted(self._answers)])

    def legal_actions(self) -> tuple[str, ...]:
        return legal_actions(self._game)
