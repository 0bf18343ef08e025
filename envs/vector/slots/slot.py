"""One slot of a vector: it owns one environment, runs one operation at a time and turns faults into data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, ClassVar, TypeAlias

import gymnasium
import numpy as np
from gymnasium.utils.env_checker import data_equivalence

from turngym.envs.spaces import Unicode
from turngym.envs.vector.info import fault_info
from turngym.envs.vector.slots.boundary import close_quietly, describe, is_for_program
from turngym.envs.vector.slots.fitting import finite_reward, flag, require_fitting, valid_observation, valid_table
from turngym.envs.vector.slots.maker import Maker
from turngym.errors import ConfigError, MissingExtra, SnapshotUnsupported, TurngymError, UnknownName

Op: TypeAlias = tuple[Any, ...]
"""A method name of :class:`Slot` and its arguments."""

Result: TypeAlias = tuple[Any, float, bool, bool, dict[str, Any], tuple[str, ...]]
"""Observation (None after a fault), reward, terminated, truncated, info, and the faults met on the way."""

READ_ONLY = frozenset(
    {
        "action_space",
        "expert_action",
        "finds_action",
        "instance_hash",
        "instructions",
        "metadata",
        "native_tools",
        "np_random",
        "np_random_seed",
        "observation_space",
        "render",
        "spec",
        "tasks",
    }
)
"""Names that ``call`` may use without changing an environment, so that a rebuild need not repeat them."""

REFUSALS = (ConfigError, UnknownName, MissingExtra)
"""Errors that a reset raises instead of recording, because the caller must fix them."""

_UNKNOWN = ("unknown", None)


def fault_result(fault: str, *, counted: bool = True) -> Result:
    """Return the result of a step with a fault: the episode is truncated with reward 0."""
    return None, 0.0, False, True, fault_info(fault, running=False), (fault,) if counted else ()


def failed_reset(faults: Sequence[str]) -> Result:
    """Return the result of a reset that also failed in a fresh environment: the next step ends that episode."""
    return None, 0.0, False, False, fault_info(faults[-1], running=True), tuple(faults)


@dataclass(slots=True)
class Journal:
    """Everything needed to rebuild a slot in another worker.

    Args:
        start: ``("seed", int)``, ``("generator", state)`` or ``("snapshot", bytes)``; None before the first episode.
        options: The options of the reset.
        log: Operations that changed the environment since.
        last: The last observation, which the rebuilt environment must show again.
        attributes: Values set by ``set_attr`` in earlier episodes.
    """

    start: tuple[str, Any] | None = None
    options: dict[str, Any] | None = None
    log: list[Op] = field(default_factory=list)
    last: Any = None
    attributes: dict[str, Any] = field(default_factory=dict)

    def begin(self, start: tuple[str, Any] | None, options: dict[str, Any] | None, last: Any) -> None:
        """Discard the last episode and record how a new one started."""
        self.attributes.update(op[1:] for op in self.log if op[0] == "set")
        self.start, self.options, self.log, self.last = start, options, [], last

    def heading(self) -> Journal:
        """Return what must be repeated before a reset with a seed: the attributes alone."""
        journal = Journal(attributes=dict(self.attributes))
        journal.attributes.update(op[1:] for op in self.log if op[0] == "set")
        return journal


class Slot:
    """One environment and its operations.

    An exception in the environment ends only its own episode, and so does a result that breaks the contract:
    a reward that is not finite, an info value of a wrong type. A :class:`~turngym.errors.ConfigError` in a reset is
    the caller's mistake and is raised.

    Args:
        maker: Makes the environment, and a fresh one after a fault.
    """

    __slots__ = ("_attributes", "_env", "_maker", "_shows_text", "_takes_text", "start")

    is_journaled: ClassVar[bool] = True
    """True if the episode may have to be rebuilt elsewhere, for which its beginning is noted at every reset."""
    start: tuple[str, Any] | None
    """Start of the running episode, for the journal."""

    def __init__(self, maker: Maker) -> None:
        self._maker = maker
        self._env: gymnasium.Env[Any, Any] | None = None
        self._attributes: dict[str, Any] = {}
        self._shows_text = False
        self._takes_text = False
        self.start = None

    def run(self, op: Op) -> Any:
        """Run one operation."""
        return getattr(self, op[0])(*op[1:])

    def open(self) -> dict[str, Any]:
        """Make the environment and return what the vector must know about it."""
        env = self._living()
        return {
            "observation_space": env.observation_space,
            "action_space": env.action_space,
            "metadata": env.metadata,
            "render_mode": env.render_mode,
        }

    def reset(self, seed: int | None, options: dict[str, Any] | None) -> Result:
        """Start an episode; retry once in a fresh environment if that fails."""
        start: tuple[str, Any] | None = None if seed is None else ("seed", seed)
        faults: list[str] = []
        for attempt in range(2):
            env = None
            try:
                env = self._living()
                if start is None and self.is_journaled:
                    start = _generator_of(env)
                observation, info = self._checked(env, *_begin(env, start, options, fresh=attempt > 0))
                self.start = _repeatable(env, start or _UNKNOWN)
                return observation, 0.0, False, False, info, tuple(faults)
            except REFUSALS:
                raise
            except BaseException as error:  # user code: recorded here
                if is_for_program(error):
                    raise
                faults.append(describe(error))
                start = start if seed is not None else stopped_at(env) or start
                self.close()
        return failed_reset(faults)

    def step(self, action: Any) -> Result:
        """Take one turn."""
        try:
            env = self._env if self._env is not None else self._living()
            observation, reward, terminated, truncated, info = env.step(action)
            if type(observation) is not str or type(info) is not dict or not self._shows_text:
                info = require_fitting(env, observation, info)
            if self._takes_text:
                observation, info = valid_observation(observation), valid_table(info)
            if type(reward) is not float or not isfinite(reward):
                reward = finite_reward(reward)
            if type(terminated) is not bool or type(truncated) is not bool:
                terminated, truncated = flag("terminated", terminated), flag("truncated", truncated)
            return observation, reward, terminated, truncated, info, ()
        except BaseException as error:  # user code: recorded here
            if is_for_program(error):
                raise
            self.close()
            return fault_result(describe(error))

    def _checked(self, env: gymnasium.Env[Any, Any], observation: Any, info: Any) -> tuple[Any, dict[str, Any]]:
        """Return an observation and an info, after having made sure that they keep to the contract."""
        info = require_fitting(env, observation, info)
        if self._takes_text:
            return valid_observation(observation), valid_table(info)
        return observation, info

    def fail(self, fault: str) -> Result:
        """End an episode whose reset had failed, which was counted then."""
        return fault_result(fault, counted=False)

    def call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the method ``name``, or return the attribute."""
        value = self._living().get_wrapper_attr(name)
        return value(*args, **kwargs) if callable(value) else value

    def set(self, name: str, value: Any) -> None:
        """Set an attribute, also on the environments that may follow after a fault."""
        self._living().set_wrapper_attr(name, value)
        self._attributes[name] = value

    def snapshot(self) -> bytes:
        """Return the environment's snapshot."""
        return bytes(self._method("snapshot")())

    def restore(self, snapshot: bytes) -> Result:
        """Bring back a snapshot; the result is the one of a reset."""
        env = self._living()
        if self.start is None and env is not env.unwrapped:
            env.reset()  # wrappers need a reset first
        observation, info = self._checked(env, *self._method("restore")(snapshot))
        self.start = ("snapshot", snapshot)
        return observation, 0.0, False, False, info, ()

    def rebuild(self, journal: Journal, on_part: Callable[[], None]) -> None:
        """Rebuild the slot from its journal.

        Args:
            journal: Start of the episode and operations since.
            on_part: Called before the reset, and before each operation that is repeated after it.

        Raises:
            TurngymError: The replay shows another observation than the original.
        """
        on_part()
        self.close()
        self._attributes = dict(journal.attributes)
        env = self._living()
        if journal.start is None:
            return
        if journal.start[0] == "snapshot":
            observation = self.restore(journal.start[1])[0]
        else:
            observation, _ = _begin(env, journal.start, journal.options, fresh=True)
        self.start = journal.start
        for op in journal.log:
            on_part()
            if op[0] == "step":
                observation = env.step(op[1])[0]
            else:
                self.run(op)
        require_same(valid_observation(observation) if self._takes_text else observation, journal.last)

    def close(self) -> None:
        """Close the environment, if there is one; a fresh one is made when it is needed."""
        env, self._env, self.start = self._env, None, None
        if env is not None:
            close_quietly(env)

    def _living(self) -> gymnasium.Env[Any, Any]:
        if self._env is None:
            env = self._maker()
            for name, value in self._attributes.items():
                env.set_wrapper_attr(name, value)
            self._env = env
            self._shows_text = isinstance(env.observation_space, Unicode)
            self._takes_text = isinstance(env.action_space, Unicode)
        return self._env

    def _method(self, name: str) -> Any:
        env = self._living()
        if not env.has_wrapper_attr(name):
            raise SnapshotUnsupported(f"{env} has no {name}(): only environments of turngym save their state.")
        return env.get_wrapper_attr(name)


def require_same(observation: Any, original: Any) -> None:
    """Raise unless a replay has ended with the observation of the original."""
    if not data_equivalence(observation, original, exact=True):
        raise TurngymError("the environment is not deterministic: its replay shows another observation")


def _generator_of(env: gymnasium.Env[Any, Any]) -> tuple[str, Any]:
    return "generator", env.unwrapped.np_random.bit_generator.state


def stopped_at(env: gymnasium.Env[Any, Any] | None) -> tuple[str, Any] | None:
    """Return the state of a broken environment's generator, for the fresh one to continue from."""
    try:
        return None if env is None else _generator_of(env)
    except Exception:  # user code: it is broken
        return None


def _begin(
    env: gymnasium.Env[Any, Any], start: tuple[str, Any] | None, options: dict[str, Any] | None, *, fresh: bool
) -> tuple[Any, dict[str, Any]]:
    """Reset from a seed, or continue with a generator, which a fresh environment must be given first."""
    return env.reset(seed=seed_for(env, start, fresh=fresh), options=options)


def _repeatable(env: gymnasium.Env[Any, Any], start: tuple[str, Any]) -> tuple[str, Any]:
    """Return how to start the episode again: from its state where a wrapper keeps something over resets."""
    if env is env.unwrapped or not env.has_wrapper_attr("has_lasting") or not env.get_wrapper_attr("has_lasting"):
        return start
    try:
        return "snapshot", bytes(env.get_wrapper_attr("snapshot")())
    except SnapshotUnsupported:
        return start


def seed_for(env: gymnasium.Env[Any, Any], start: tuple[str, Any] | None, *, fresh: bool) -> int | None:
    """Return the seed to reset with; None after having given a fresh environment the generator to continue with."""
    if start is None:
        return None
    kind, value = start
    if kind == "seed":
        return int(value)
    if fresh:
        generator = np.random.Generator(getattr(np.random, value["bit_generator"])(0))
        generator.bit_generator.state = value
        env.unwrapped.np_random = generator
    return None
