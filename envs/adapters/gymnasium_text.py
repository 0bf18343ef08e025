"""Any Gymnasium environment whose actions are text or a short list of names, as a :class:`TextEnv`."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from turngym.arithmetic import as_float
from turngym.envs.adapters.replayed import ReplayedEnv, Reply
from turngym.envs.core import MaxTurns, Reward
from turngym.envs.settings import worded
from turngym.envs.spaces import Unicode
from turngym.errors import ConfigError, TurngymError, UnknownName, nearest
from turngym.options import between

UNKNOWN_ACTION = "That is no action you can take now."
_MAX_ACTIONS = 1000
_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_PAINTED = re.compile(r"\x1b\[([0-9;]*)m(.*?)\x1b\[0m", re.DOTALL)
_PLAIN = "\x1b[0m"
_ESCAPE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class Words(NamedTuple):
    """Meaning of the numbers of a Gymnasium environment.

    Args:
        goal: Task text for the instructions.
        actions: Name of each action.
        values: Name of each number of an observation that is a tuple.
        solved_above: Last reward above which a terminated episode counts as solved; None where rewards do not show it.
        unreadable_reward: Reward of an action that cannot be read.
    """

    goal: str
    actions: tuple[str, ...]
    values: tuple[str, ...] = ()
    solved_above: float | None = None
    unreadable_reward: float = 0.0


_LAKE = Words(
    "Walk over the frozen lake from S to G. F is ice, H is a hole that ends the episode. You are at the mark [ ].",
    ("left", "down", "right", "up"),
    solved_above=0.0,
)
_CLIFF = Words(
    "Walk from the lower left corner to T. x is you, C is the cliff: who steps on it is put back to the start.",
    ("up", "right", "down", "left"),
    solved_above=-1.5,
    unreadable_reward=-1.0,  # of a step against the wall
)
KNOWN: dict[str, Words] = {
    "Blackjack-v1": Words(
        "Come closer to 21 than the dealer without going over it. An ace counts 1 or 11.",
        ("stick", "hit"),
        ("your sum", "the dealer shows", "you hold an ace that counts 11"),
        solved_above=0.0,
    ),
    "CliffWalking-v1": _CLIFF,
    "CliffWalkingSlippery-v1": _CLIFF,
    "FrozenLake-v1": _LAKE,
    "FrozenLake8x8-v1": _LAKE,
    "Taxi-v4": Words(
        "Drive to the passenger, who waits at the blue letter, take the passenger along and drop the passenger at the "
        "magenta letter. You are at the mark [ ].",
        ("south", "north", "east", "west", "pickup", "dropoff"),
        solved_above=0.0,
        unreadable_reward=-10.0,  # of an illegal pickup or dropoff
    ),
}
"""Words for Gymnasium's own text environments, used where the options name no others."""


def plain_picture(text: str) -> str:
    r"""Return a text image with its ANSI colours written out: a background as brackets, coloured letters by name.

    >>> plain_picture("\x1b[41mS\x1b[0mFF \x1b[34;1mY\x1b[0m")
    '[S]FF Y(blue)'
    """

    def written(match: re.Match[str]) -> str:
        codes = [int(code) for code in match[1].split(";") if code]
        if any(40 <= code <= 47 or 100 <= code <= 107 for code in codes):
            return f"[{match[2]}]"
        return match[2] + "".join(f"({_COLOURS[code % 10]})" for code in codes if 30 <= code <= 37)

    end = text.rfind(_PLAIN) + len(_PLAIN)  # nothing is coloured after it, and searching there is quadratic
    shown = _PAINTED.sub(written, text[:end]) + text[end:] if end >= len(_PLAIN) else text
    lines = _ESCAPE.sub("", shown).strip("\n").split("\n")
    return "\n".join(line.rstrip() for line in lines)


def value_text(value: Any, names: Sequence[str] = ()) -> str:
    """Return an observation of numbers as text: a mapping by its keys, a tuple by ``names``.

    >>> value_text((14, 10, 0), ["sum", "dealer", "ace"])
    'sum: 14, dealer: 10, ace: 0'
    >>> value_text({"place": np.array([1, 2])})
    'place: 1 2'
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {value_text(item)}" for key, item in value.items())
    if isinstance(value, tuple):
        parts = [value_text(item) for item in value]
        if len(names) != len(parts):
            return ", ".join(parts)
        return ", ".join(f"{name}: {part}" for name, part in zip(names, parts, strict=True))
    if isinstance(value, np.ndarray):
        return " ".join(f"{item:.6g}" if isinstance(item, float) else str(item) for item in value.ravel().tolist())
    return str(value)


class GymnasiumText(ReplayedEnv):
    """Adapter of Gymnasium environments.

    Actions: a space that contains text passes text on; a ``Discrete`` space takes the actions' names. Observations:
    text as it is, else the image of render mode ``"ansi"`` with its colours written out, else the values. Both flags at
    once count as terminated. An episode is solved if its last info says so (``is_success`` or ``success``), and without
    such an entry if it terminated with a last reward above ``solved_above``; where neither is known, no episode counts
    as solved, and a warning is issued when the first one ends. ``info["action_mask"]`` and ``info["legal_actions"]`` of
    the inner environment narrow the legal actions. The anchor is the last observation. An action that cannot be read
    is not passed on; it takes a turn, of the inner environment's time limit too, and brings ``unreadable_reward``.

    >>> env = GymnasiumText(inner="FrozenLake-v1", inner_options={"is_slippery": False})
    >>> print(env.reset(seed=0)[0])
    [S]FFF
    FHFH
    FFFH
    HFFG
    >>> env.step("down")[-1]["legal_actions"]
    ('left', 'down', 'right', 'up')
    """

    class Options(ReplayedEnv.Options):
        inner: str = "FrozenLake-v1"
        """Id of a registered environment. An environment of your own module is found if the module is imported with
        the id, as in ``"my_module:turngym/Gymnasium-v0"``, which works in worker processes too."""
        inner_options: Mapping[str, Any] | None = None
        """Options for ``gymnasium.make`` of the inner environment, JSON values only."""
        actions: tuple[str, ...] = ()
        """Names of the actions of a ``Discrete`` space in order, empty for known ones or the numbers."""
        view: Literal["auto", "text", "picture", "values"] = "auto"
        """``"auto"``, or one of ``"text"``, ``"picture"``, ``"values"``."""
        solved_above: Annotated[float, between(-1e9, 1e9)] | None = None
        """See above; None for the value of a known environment, if it is one."""
        unreadable_reward: Reward | None = None
        """Reward of an action that cannot be read: where steps cost something, at most what a step costs. None for the
        value of a known environment, or 0."""
        goal: str = ""
        """Task text for the instructions; empty for known words."""
        max_turns: MaxTurns = 100
        """Turns after which the episode is truncated; the inner time limit, if it is lower."""

    options: Options

    file_options = worded("view")

    def setup(self) -> None:
        super().setup()
        options = self.options
        known = KNOWN.get(options.inner, Words("", ()))
        self.inner, self._view = options.inner, options.view
        self._inner_options = dict(options.inner_options or {})
        self.source = f"{options.inner} {sorted(self._inner_options.items())}" if self._inner_options else options.inner
        self._solved_above = known.solved_above if options.solved_above is None else options.solved_above
        self._unreadable = Reply(UNKNOWN_ACTION, known.unreadable_reward, action_is_valid=False)
        if options.unreadable_reward is not None:
            self._unreadable = self._unreadable._replace(reward=options.unreadable_reward)
        self._value_names = known.values
        self._env: gymnasium.Env[Any, Any] | None = None
        env = self._opened()
        limit = None if env.spec is None else env.spec.max_episode_steps
        self.max_turns = min(self.max_turns, limit or self.max_turns)
        self._names = self._action_names(env, options.actions or known.actions)
        self._numbers = {name.casefold(): number for number, name in enumerate(self._names)}
        self._legal: tuple[str, ...] = ()
        self._place = ""
        self.instructions = self._rules(options.goal or known.goal or f"You play {options.inner}.")

    # Create the inner environment.

    def _opened(self) -> gymnasium.Env[Any, Any]:
        if self._env is None:
            with self._random.lent():
                self._env = self._made()
        return self._env

    def _made(self) -> gymnasium.Env[Any, Any]:
        if ":" in self.inner:
            raise ConfigError(
                f"inner of {self.env_id} must be a registered id, got {self.inner!r}: import the module first, or "
                f'make "{self.inner.partition(":")[0]}:{self.env_id}" with inner={self.inner.partition(":")[2]!r}.'
            )
        if self.inner not in gymnasium.registry:
            raise UnknownName(f"no environment named {self.inner!r} is registered. {self._hint()}")
        env = self._make()
        modes = env.metadata.get("render_modes") or ()
        view = self._view
        if view == "auto":
            reads = isinstance(env.observation_space, Unicode | spaces.Text)
            view = "text" if reads else "picture" if "ansi" in modes else "values"
        if view == "picture":
            if "ansi" not in modes:
                raise ConfigError(f"{self.inner} has no text rendering, it renders {list(modes)}: pass view='values'.")
            env.close()
            env = self._make(render_mode="ansi")
        self._shows = view
        return env

    def _hint(self) -> str:
        return nearest(self.inner, gymnasium.registry).replace("Known:", "Some:")[:300]

    def _make(self, **options: Any) -> gymnasium.Env[Any, Any]:
        try:
            return gymnasium.make(self.inner, disable_env_checker=True, **self._inner_options, **options)
        except (TypeError, ValueError, gymnasium.error.Error) as error:
            raise ConfigError(
                f"{self.env_id} cannot make {self.inner} with the options {self._inner_options}: {error}"
            ) from error

    def _action_names(self, env: gymnasium.Env[Any, Any], names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of the actions of a ``Discrete`` space, empty for a space of text."""
        space = env.action_space
        if isinstance(space, Unicode | spaces.Text):
            return ()
        if not isinstance(space, spaces.Discrete) or space.n > _MAX_ACTIONS:
            raise ConfigError(
                f"{self.env_id} needs an inner environment whose actions are text or at most {_MAX_ACTIONS} numbered "
                f"ones, but those of {self.inner} are {space}: put a gymnasium.ActionWrapper around it and register "
                "the result."
            )
        count = int(space.n)
        names = names or tuple(str(int(space.start) + number) for number in range(count))
        if len(names) != count or len({name.casefold().strip() for name in names}) != count or not all(names):
            raise ConfigError(f"actions of {self.env_id} must be {count} different names, got {list(names)}.")
        return tuple(name.strip() for name in names)

    def _rules(self, goal: str) -> str:
        if not self._names:
            return f"{goal}\nAnswer with one action a turn."
        return f"{goal}\nAnswer with one action a turn, exactly as it is written here: {', '.join(self._names)}."

    # The contract.

    def foreign_reset(self, seed: int) -> str:
        observation, info = self._opened().reset(seed=seed)
        return self._show(observation, info)

    def _show(self, observation: Any, info: Mapping[str, Any]) -> str:
        self._legal = self._narrowed(info)
        if self._shows == "picture":
            self._place = plain_picture(str(self._opened().render()))
        else:
            if self._shows == "text" and not isinstance(observation, str):
                raise TurngymError(f"{self.inner} showed {observation!r:.60}, which is not text: it is broken.")
            self._place = observation if isinstance(observation, str) else value_text(observation, self._value_names)
        return self._place

    def _narrowed(self, info: Mapping[str, Any]) -> tuple[str, ...]:
        mask, listed = info.get("action_mask"), info.get("legal_actions", ())
        if self._names and mask is not None and len(mask) == len(self._names):
            return tuple(name for name, is_legal in zip(self._names, mask, strict=True) if is_legal)
        if not self._names and isinstance(listed, Sequence) and not isinstance(listed, str):
            return tuple(map(str, listed))
        return self._names

    def foreign_step(self, action: str) -> Reply:
        env = self._opened()
        known = self._read(env, action)
        if known is None:
            return self._unreadable
        observation, reward, terminated, truncated, info = env.step(known)
        text, terminated = self._show(observation, info), bool(terminated)
        success = self._is_solved(info, as_float(reward), terminated)
        valid = bool(info.get("action_is_valid", True))
        return Reply(text, as_float(reward), terminated, bool(truncated) and not terminated, success, valid)

    def _is_solved(self, info: Mapping[str, Any], reward: float, is_over: bool) -> bool:
        told = info.get("is_success", info.get("success"))
        if told is not None and told >= 0:  # negative or nan where the inner environment does not know it
            return bool(told)
        if self._solved_above is not None:
            return reward > self._solved_above
        if is_over:
            warnings.warn(
                f"{self.inner} does not report whether an episode is solved, so none counts as solved: pass "
                "solved_above=REWARD, or put is_success into the last info.",
                stacklevel=2,
            )
        return False

    def _read(self, env: gymnasium.Env[Any, Any], action: str) -> Any:
        """Return the inner action named by a text, or None."""
        if not self._names:
            return action if env.action_space.contains(action) else None
        number = self._numbers.get(" ".join(action.split()).casefold())
        if number is None:
            return None
        space = env.action_space
        assert isinstance(space, spaces.Discrete)
        return int(space.start) + number

    def anchor(self) -> str:
        return self._place

    def legal_actions(self) -> tuple[str, ...]:
        return self._legal

    def close(self) -> None:
        """Close the inner environment; a later reset creates it again."""
        if self._env is not None:
            self._env.close()
            self._env = None
        super().close()
