"""One side of ``env_vs_peers.py``, in a process of its own: it prepares one cell and runs it whenever it is told to.

Commands and answers are lines of JSON on standard input and output. What the packages print goes to standard error.
"""

from __future__ import annotations

import gc
import itertools
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from peer_games import Made, Row, Side, actions, row_of
from worker import serve

GARBAGE = "qqqq zzzz"
_POOL, _BATCHES, _CHUNK = 4096, 256, 8
_CHECKED = 2000


class Player(ABC):
    """Plays one game on one side; counts the steps and episodes of all slots."""

    steps = episodes = 0

    @abstractmethod
    def advance(self) -> None:
        """Take a step in every slot, and reset those whose episode has ended."""


class One(Player):
    """A player whose resets and steps can be taken apart: one slot is looked at alone."""

    @abstractmethod
    def reset(self) -> None:
        """Begin an episode."""

    @abstractmethod
    def step_once(self) -> bool:
        """Take one step and no reset; return whether the episode has ended."""

    @abstractmethod
    def is_malformed(self, action: str) -> bool:
        """Take one step, a reset too where needed, and return whether the side could not read the action."""


class Single(One):
    """One environment that follows Gymnasium: ours and GEM's."""

    def __init__(self, make: Callable[[], Any], pool: Sequence[str]) -> None:
        self.env = make()
        self._next = itertools.cycle(pool).__next__
        self.reset()

    def advance(self) -> None:
        """Take a step; reset at the end."""
        *_, terminated, truncated, _ = self.env.step(self._next())
        self.steps += 1
        if terminated or truncated:
            self.episodes += 1
            self.env.reset()

    def reset(self) -> None:
        """Begin an episode."""
        self.env.reset()

    def step_once(self) -> bool:
        """Take one step and no reset."""
        *_, terminated, truncated, _ = self.env.step(self._next())
        return bool(terminated or truncated)

    def is_malformed(self, action: str) -> bool:
        """Tell from what the side answers to an action that it cannot read."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if terminated or truncated:
            self.env.reset()
        return self._complains(observation, float(reward), info)

    @abstractmethod
    def _complains(self, observation: Any, reward: float, info: dict[str, Any]) -> bool:
        """Return whether this is the answer to an action that cannot be read."""


class OurSingle(Single):
    """One environment of turngym, which says so."""

    def _complains(self, observation: Any, reward: float, info: dict[str, Any]) -> bool:
        return not info["action_is_valid"] and "Unknown action" in str(observation)


class GemSingle(Single):
    """One environment of GEM, which gives a reward of its own for it."""

    def _complains(self, observation: Any, reward: float, info: dict[str, Any]) -> bool:
        from gem.utils.constants import LanguageGameReward

        return bool(reward == LanguageGameReward.format_error_reward)


class Vector(Player):
    """A vector that follows Gymnasium and resets in the step: ours and GEM's two."""

    def __init__(self, vector: Any, slots: int, pool: Sequence[str]) -> None:
        self.vector, self.slots = vector, slots
        batches = [tuple(pool[(i * slots + j) % len(pool)] for j in range(slots)) for i in range(_BATCHES)]
        self._next = itertools.cycle(batches).__next__
        vector.reset(seed=0)

    def advance(self) -> None:
        """Take one vector step."""
        _, _, terminations, truncations, _ = self.vector.step(self._next())
        self.steps += self.slots
        self.episodes += int((terminations | truncations).sum())


class Fresh(One):
    """Objects of TextArena, a fresh one for every episode, since one that is reused never forgets its observations."""

    def __init__(self, make: Callable[[], Any], slots: int, pool: Sequence[str]) -> None:
        self._make = make
        self._next = itertools.cycle(pool).__next__
        self.envs = [self._begun() for _ in range(slots)]
        self._complaint = ""

    def _begun(self) -> Any:
        env = self._make()
        env.reset(num_players=1)
        env.get_observation()
        return env

    def advance(self) -> None:
        """Take a step in every slot; make a fresh object where an episode has ended."""
        envs = self.envs
        for slot, env in enumerate(envs):
            done, _ = env.step(action=self._next())
            env.get_observation()
            self.steps += 1
            if done:
                env.close()
                self.episodes += 1
                envs[slot] = self._begun()

    def reset(self) -> None:
        """Make a fresh object and begin an episode."""
        self.envs[0] = self._begun()

    def step_once(self) -> bool:
        """Take one step and no reset."""
        env = self.envs[0]
        done, _ = env.step(action=self._next())
        env.get_observation()
        return bool(done)

    def is_malformed(self, action: str) -> bool:
        """Compare with what the game says to an action that nobody can read, which is asked for first."""
        said = self._said(action)
        if action == GARBAGE:
            self._complaint = next(text for text in said if "invalid move" in text)
        return self._complaint in said

    def _said(self, action: str) -> list[str]:
        """Return what the game says to an action; a second illegal one in a row is told by the result alone."""
        env = self.envs[0]
        env.state.logs.clear()
        done, _ = env.step(action=action)
        env.get_observation()
        said = [text for sender, text in env.state.logs if sender == -1]
        if done:
            reason = str(env.state.game_info[0].get("reason", ""))
            said += [_told(reason.removeprefix(_LOST))] if reason.startswith(_LOST) else []
            self.reset()
        return said


_LOST = "Invalid Move: "


def _told(reason: str) -> str:
    """Return how TextArena words the first of two illegal moves."""
    return (
        f"You attempted an invalid move. Reason: {reason} Please resubmit a valid move and remember to follow the "
        "game rules to avoid penalties."
    )


def prepare(side: Side, row: Row, mode: str, slots: int, words: dict[str, list[str]]) -> Player:
    """Return the player of one cell.

    Args:
        side: The side.
        row: The game.
        mode: ``"single"``, ``"sync"``, ``"async"`` (GEM's thread pool).
        slots: Number of slots.
        words: Words that may be guessed, by length.
    """
    made = getattr(row, side)
    pool = actions(row, side, _POOL, words["5"])
    if side == "turngym":
        return _ours(made, mode, slots, pool)
    _no_downloads()
    if side == "gem":
        return _gem(made, mode, slots, pool)
    import textarena

    return Fresh(lambda: textarena.make(made.env_id, **made.options), slots, pool)


def _ours(made: Made, mode: str, slots: int, pool: Sequence[str]) -> Player:
    import gymnasium

    import turngym

    if mode == "single":
        return OurSingle(lambda: gymnasium.make(made.env_id, **made.options), pool)
    vector = turngym.make_vec(made.env_id, slots, autoreset_mode="same_step", **made.options)
    return Vector(vector, slots, pool)


def _gem(made: Made, mode: str, slots: int, pool: Sequence[str]) -> Player:
    import gem

    logging.getLogger().setLevel(logging.WARNING)
    if mode == "single":
        return GemSingle(lambda: gem.make(made.env_id, **made.options), pool)
    vector = gem.make_vec([made.env_id] * slots, async_mode=mode == "async", **made.options)
    return Vector(vector, slots, pool)


def _no_downloads() -> None:
    """Let NLTK fetch nothing, and let every word be a noun: TextArena asks a tagger that is not at hand."""
    import nltk

    nltk.download = lambda *_, **__: False
    nltk.pos_tag = lambda tokens: [(token, "NN") for token in tokens]


def run(player: Player, seconds: float) -> dict[str, float]:
    """Step for some seconds by the clock, and return what was done and the processor time it took."""
    steps, episodes = player.steps, player.episodes
    advance, clock = player.advance, time.perf_counter
    chunk = range(_CHUNK if isinstance(player, Single) else 1)  # a step of many slots is long enough by itself
    start, spent = clock(), time.process_time()
    end = start + seconds
    while clock() < end or player.steps == steps:  # at least once, however busy the machine is
        for _ in chunk:
            advance()
    cpu, wall = time.process_time() - spent, clock() - start
    return {"steps": player.steps - steps, "episodes": player.episodes - episodes, "cpu": cpu, "wall": wall}


def costs(player: One, seconds: float) -> dict[str, float]:
    """Return the processor time of one reset and of one step apart, in microseconds, of a single environment."""
    clock = time.process_time_ns
    empty = min(_empty(clock) for _ in range(2000))
    resets = reset_ns = steps = step_ns = 0
    end = time.perf_counter() + seconds
    while not steps or time.perf_counter() < end:
        start = clock()
        player.reset()
        reset_ns, resets = reset_ns + clock() - start - empty, resets + 1
        is_over = False
        while not is_over:
            start = clock()
            is_over = player.step_once()
            step_ns, steps = step_ns + clock() - start - empty, steps + 1
    player.reset()
    return {"reset_us": reset_ns / resets / 1e3, "step_us": step_ns / steps / 1e3}


def _empty(clock: Callable[[], int]) -> int:
    start = clock()
    return clock() - start


def format_errors(player: One, pool: Sequence[str]) -> float:
    """Return the share of actions that the side cannot read; raise if it would not notice one."""
    if not player.is_malformed(GARBAGE):
        raise AssertionError(f"{GARBAGE!r} was taken for an action: format errors cannot be counted")
    player.reset()
    return sum(player.is_malformed(action) for action in pool) / len(pool)


class Desk:
    """Does what commands say with the player of one cell."""

    player: Any = None

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        """Prepare the cell, run it, or take its costs apart."""
        if command["do"] == "run":
            gc.collect()
            return run(self.player, command["seconds"])
        if command["do"] == "costs":
            return costs(self.player, command["seconds"])
        row, side, words = row_of(command["game"]), command["side"], command["words"]
        self.player = prepare(side, row, command["mode"], command["slots"], words)
        if command["mode"] != "single":
            return {}
        return {"format_errors": format_errors(self.player, actions(row, side, _CHECKED, words["5"]))}


if __name__ == "__main__":
    serve(Desk().answer)
