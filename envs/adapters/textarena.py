"""Any single-player game of TextArena (Guertler et al. 2025) as a :class:`TextEnv`.

What the adapter fixes: TextArena uses and seeds the global random generators, its observation wrappers accumulate the
history and never clear it at a reset, one flag ``done`` stands for both ends of an episode, the reward comes from
``close`` alone, an unusual action may make a game raise, and word lists are downloaded when a game is imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from turngym.envs.adapters.borrowed import import_package, made_for, mute
from turngym.envs.adapters.replayed import ReplayedEnv, Reply
from turngym.envs.adapters.textarena_actions import BOARD_GAMES, legal_actions
from turngym.envs.core import MaxTurns
from turngym.envs.settings import worded
from turngym.errors import ConfigError, UnknownName, nearest

_PLAYER = 0


class TextArena(ReplayedEnv):
    """Adapter of TextArena's single-player games.

    Rules, rewards and texts are TextArena's; an observation is what the game said since the last turn, without the
    agent's own words and without the history that TextArena's wrappers accumulate. As in TextArena, a second invalid
    action in a row ends the episode. An episode that reaches the game's own turn limit is truncated, any other end
    terminates it. The reward comes with the last turn and every other turn gives 0; an episode is solved if it is at
    least 1. The anchor is the last board, and in games with a memory the board and the sorted answers so far. TextArena
    has no solver: there is no expert.
    """

    class Options(ReplayedEnv.Options):
        game: str = "GuessTheNumber-v0"
        """Id in TextArena's registry, e.g. ``"FrozenLake-v0"``. A suffix such as ``"-train"`` names wrappers only and
        changes nothing here."""
        game_options: Mapping[str, Any] | None = None
        """Options that override those of the id, JSON values only."""
        max_turns: MaxTurns = 100
        """Turns after which the episode is truncated, if the game does not end it before."""

    options: Options

    file_options = worded()
    finds_action = True

    def setup(self) -> None:
        super().setup()
        options = self.options
        self.game, self._options = options.game, dict(options.game_options or {})
        self.source = f"{options.game} {sorted(self._options.items())}" if self._options else options.game
        with self._random.lent():
            self._package = import_package("textarena", self.env_id, "textarena", "textarena")
            self._game, self._brackets = self._made()
            self._has_memory = type(self._game).__name__ not in BOARD_GAMES
            self.instructions = ""
            self.foreign_reset(0)
        self.instructions = self._prompt

    def _made(self) -> tuple[Any, bool]:
        """Return the bare game, and whether TextArena would put missing brackets around an action."""
        registry = importlib.import_module("textarena.envs.registration").ENV_REGISTRY
        if self.game not in registry:
            raise UnknownName(f"TextArena has no game named {self.game!r}. {nearest(self.game, registry)[:300]}")
        with made_for("TextArena", self.game):
            game = self._package.make(self.game, **self._options)
        formats = importlib.import_module("textarena.wrappers").ActionFormattingWrapper
        brackets = False
        while isinstance(game, self._package.Wrapper):
            brackets, game = brackets or isinstance(game, formats), game.env
        mute(type(game).__module__.rpartition(".")[0])
        return game, brackets

    def foreign_reset(self, seed: int) -> str:
        try:
            with made_for("TextArena", f"a single-player episode of {self.game}"):
                self._game.reset(num_players=1, seed=seed)
                state = self._game.state
                if not isinstance(state, self._package.SinglePlayerState) or state.num_players != 1:
                    raise ConfigError(f"{self.game} is a game for several players.")
        except ConfigError as error:
            raise ConfigError(
                f"{str(error).rstrip('.')}. Games for several players are played as turngym/TextArenaGame-v0 with "
                f"rules={self.game}."
            ) from error
        check = state.check_turn_limit

        def watched() -> bool:
            self._is_at_limit = bool(check())
            return self._is_at_limit

        state.check_turn_limit = watched
        self._board, self._answers, self._prompt = "", set[str](), ""
        return self._heard()

    def _heard(self) -> str:
        """Return what the game said since the last call, without the player's own words and the instructions."""
        kinds = self._package.ObservationType
        texts = []
        for _, message, kind in self._messages():
            text = str(message).strip()
            if kind is kinds.PROMPT:
                self._prompt = text
                if text == self.instructions:
                    continue
            elif kind is kinds.PLAYER_ACTION:
                continue
            elif kind is kinds.GAME_BOARD:
                self._board = text
            elif kind is not kinds.GAME_ADMIN:
                self._answers.add(text)
            if text:
                texts.append(text)
        return "\n".join(texts)

    def _messages(self) -> Sequence[Any]:
        _, messages = self._game.get_observation()
        return messages or ()

    def foreign_step(self, action: str) -> Reply:
        self._is_at_limit = False
        if self._brackets and "[" not in action and "]" not in action:
            action = f"[{action}]"
        done, _ = self._game.step(action)
        heard = self._heard()
        invalid = self._game.state.error_count > 0
        if not done:
            return Reply(heard, action_is_valid=not invalid)
        rewards, game_info = self._game.close()
        told = game_info[_PLAYER]
        reward = float((rewards or {}).get(_PLAYER, 0.0))
        reason = str(told.get("reason", "")).strip()
        return Reply(
            observation=f"{heard}\n{reason}".strip(),
            reward=reward,
            terminated=not self._is_at_limit,
            truncated=self._is_at_limit,
            success=reward >= 1,
            action_is_valid=not told.get("invalid_move", False),
        )

    def anchor(self) -> str:
        if not self._has_memory:
            return self._board
        return "\n".join(([self._board] if self._board else []) + sorted(self._answers))

    def legal_actions(self) -> tuple[str, ...]:
        return legal_actions(self._game)
