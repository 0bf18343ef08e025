"""BabyAI's levels and its bot, from the package minigrid."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

import gymnasium

from turngym.errors import ExpertLost, UnknownName, missing_extra, nearest

_PREFIX = "BabyAI-"
_SAMPLE = 16
_GREETING = "PYGAME_HIDE_SUPPORT_PROMPT"
_LOST = (AssertionError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError)


def _silent(*_: object) -> None:
    """Stand for ``print`` in the package's generator, which tells of every draw that it rejects."""


@lru_cache(maxsize=1)
def _ids() -> dict[str, str]:
    """Return level -> id in Gymnasium's registry."""
    hides = _GREETING in os.environ
    os.environ.setdefault(_GREETING, "1")
    try:
        import minigrid  # noqa: F401  (registers the levels)
        from minigrid.envs.babyai.core import roomgrid_level
    except ImportError as error:
        raise missing_extra("BabyAI", "minigrid", "babyai") from error
    finally:
        if not hides:
            del os.environ[_GREETING]
    vars(roomgrid_level)["print"] = _silent
    return {spec.name.removeprefix(_PREFIX): env_id for env_id, spec in _registered().items()}


def _registered() -> dict[str, Any]:
    found = sorted((env_id, spec) for env_id, spec in gymnasium.registry.items() if env_id.startswith(_PREFIX))
    return dict(found)


def levels() -> tuple[str, ...]:
    """Return the names of the levels, such as ``"GoToLocal"``.

    Raises:
        MissingExtra: The package is not installed.
    """
    return tuple(sorted(_ids()))


def make_level(level: str) -> Any:
    """Return a level of the package.

    Raises:
        MissingExtra: The package is not installed.
        UnknownName: It has no such level.
    """
    if level not in _ids():
        raise UnknownName(f"BabyAI has no level {level!r}. {nearest(level, _ids())}")
    found: Any = gymnasium.make(_ids()[level], disable_env_checker=True).unwrapped
    found.gen_obs = dict  # its own observations, which are not read here, are half the cost of a step
    return found


@lru_cache(maxsize=256)
def own_limit(level: str) -> int:
    """Return the turns that the package allows in a level, the most among some of its missions."""
    env = make_level(level)
    limits = []
    for seed in range(_SAMPLE):
        env.reset(seed=seed)
        limits.append(int(env.max_steps))
    return max(limits)


def parts_done(instruction: Any) -> tuple[int, int]:
    """Return how many parts of an instruction have been carried out in order, and how many there are."""
    first, second = getattr(instruction, "instr_a", None), getattr(instruction, "instr_b", None)
    if first is None or second is None:
        return 0, 1
    kind = type(instruction).__name__
    if kind == "AfterInstr":
        first, second = second, first
    is_first_done = (instruction.b_done if kind == "AfterInstr" else instruction.a_done) == "success"
    done, total = parts_done(first)
    done = total if is_first_done else done
    more, others = parts_done(second)
    if kind == "AndInstr":
        more = others if instruction.b_done == "success" else 0
    elif not is_first_done:
        more = 0
    return done + more, total + others


class Bot:
    """The package's bot in a copy of a level, told what was done in the original.

    Args:
        level: Name of the level.
        seed: Seed of the mission.
    """

    def __init__(self, level: str, seed: int) -> None:
        from minigrid.utils.baby_ai_bot import BabyAIBot

        self._level = make_level(level)
        self._level.reset(seed=seed)
        self._done = 0
        self._lost = ""
        self._bot = BabyAIBot(self._level)
        self._next = self._plan(None)

    def advice(self, actions: list[int]) -> int:
        """Return the bot's next action after all these actions.

        Args:
            actions: Those of the episode so far; the ones of the last call are their beginning.

        Raises:
            ExpertLost: The bot is lost, as after the opening of a box.
        """
        for action in actions[self._done :]:
            self._level.step(action)
            self._done += 1
            if not self._lost:
                self._next = self._plan(action)
        if self._lost or self._next == self._level.actions.done:
            raise ExpertLost(f"BabyAI's bot knows no way on: {self._lost or 'it takes the mission for done'}.")
        return int(self._next)

    def _plan(self, action: int | None) -> Any:
        from minigrid.utils.baby_ai_bot import DisappearedBoxError

        try:
            return self._bot.replan(action)
        except (*_LOST, DisappearedBoxError) as error:
            self._lost = f"{type(error).__name__} {error}".strip()
            return self._level.actions.done
