"""A hash of an environment's behaviour: two versions of a game with equal hashes played alike where it was tried."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from turngym.agents.episodes.evaluate import Guarded, guarded_slot
from turngym.envs.multiagent.game import Game
from turngym.envs.multiagent.hosted import begin_game
from turngym.envs.multiagent.table import Table
from turngym.envs.spaces import Unicode
from turngym.seeding import stream

_EPISODES, _MAX_TURNS = 3, 20


def ruleset_hash(env_id: str, options: Mapping[str, Any], backend: str = "sync") -> str:
    """Return a hash of what the environment says in a few short episodes of fixed random actions.

    It covers rules text, observations, rewards, ends and legal actions, so that a refactoring keeps it and a changed
    rule, prompt or generator of instances does not. A fault is part of what an environment does: its kind is hashed,
    and the episodes that are played later meet and count it.

    Args:
        env_id: The environment.
        options: Its options.
        backend: Backend of a vector in which it is played; the hash is the same unless the environment ends its
            process.

    Raises:
        TurngymError: The environment cannot be made.
    """
    with guarded_slot(env_id, options, backend) as slot:
        seen: list[Any] = [env_id, slot.get("settings"), slot.get("instructions")]
        for episode in range(_EPISODES):
            seen += _play(slot, episode)
    return hashlib.sha256(json.dumps(seen, ensure_ascii=False, sort_keys=True).encode()).hexdigest()


def _play(slot: Guarded, episode: int) -> list[Any]:
    observation, _, _, _, info, _ = slot.reset(episode)
    if observation is None:
        return [_kind_of(info["fault"])]
    seen: list[Any] = [str(observation)]
    for turn in range(_MAX_TURNS):
        generator = stream("ruleset", episode, turn)
        legal = info["legal_actions"]
        action = legal[generator.integers(len(legal))] if legal else Unicode(generator).sample()
        observation, reward, terminated, truncated, info, _ = slot.step(action)
        if observation is None:
            return [*seen, _kind_of(info["fault"])]
        seen.append([str(observation), reward, terminated, truncated, info["action_is_valid"], info["success"]])
        seen.append([info["score"], list(info["legal_actions"])])
        if terminated or truncated:
            break
    return seen


def _kind_of(fault: str) -> str:
    """Return the first words of a fault; the rest may hold addresses and times, which are never the same."""
    return ":".join(fault.split(":")[:2])


def game_ruleset_hash(game_id: str, game: Game) -> str:
    """Return a hash of what a game between seats says in a few short games of fixed random actions.

    Args:
        game_id: Its id, part of the hash.
        game: The rules; what they hold of a game is lost.
    """
    seen: list[Any] = [game_id, dict(game.settings)]
    for episode in range(_EPISODES):
        try:
            seen += _play_game(game, episode)
        except Exception as error:  # what the rules raise is what they do: games deal with it when they are played
            seen.append(repr(error))
    return hashlib.sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()


def _play_game(game: Game, episode: int) -> list[Any]:
    table = Table(game)
    begin_game(table, episode)
    seen: list[Any] = [[table.instructions(seat), table.info(seat)] for seat in game.everyone]
    for turn in range(_MAX_TURNS):
        if table.is_over:
            break
        seat = table.pending[0]
        legal, generator = table.views[seat].legal_actions, stream("ruleset", episode, turn)
        question = table.views[seat].observation
        action = legal[generator.integers(len(legal))] if legal else Unicode(generator).sample()
        seen.append([question, legal, table.answer(seat, action), table.log[-1:]])
    return [*seen, table.returns, table.winners(), [table.info(seat) for seat in game.everyone]]
