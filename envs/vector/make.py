"""``make_vec``: from ids to a vector."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal

from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

from turngym.envs.own import find_spec
from turngym.envs.vector.backends.base import VECTOR_BACKENDS, BackendOptions
from turngym.envs.vector.base import TextVectorEnv
from turngym.envs.vector.slots.maker import EnvFn, EnvWrapper, Maker
from turngym.errors import ConfigError, nearest


def make_vec(
    env_id: str | Sequence[str] | None = None,
    num_envs: int | None = None,
    *,
    env_fns: Sequence[EnvFn] | None = None,
    wrappers: Sequence[EnvWrapper] = (),
    observation: Literal["native", "text"] = "native",
    backend: str = "sync",
    autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    num_workers: int | None = None,
    step_timeout_seconds: float | None = 60.0,
    reset_timeout_seconds: float | None = 120.0,
    memory_limit_mib: int | None = None,
    backend_options: Mapping[str, Any] | None = None,
    **env_kwargs: Any,
) -> TextVectorEnv:
    """Make a vector of environments.

    Args:
        env_id: A registered id, ``"module:id"``, or a list of ids, one per slot.
        num_envs: Number of slots, at least 1 (the default with one id); with a list it follows from the list.
        env_fns: Functions that make one environment each, instead of ids.
        wrappers: Names with options such as ``"history:k=4"``, or functions of an environment, applied to every one;
            the first is the innermost.
        observation: ``"text"`` shows only the text, so that environments with images and without fit together.
        backend: ``"sync"`` runs in this process, one slot after the other; ``"thread"`` in a thread for each slot, for
            environments that wait; ``"asyncio"`` on one event loop, for environments that offer coroutines
            (:class:`~turngym.envs.vector.backends.lanes.aio.AsyncEnv`); ``"process"`` in worker processes, which
            survives anything; ``"ray"`` in such processes all over a cluster. :mod:`turngym.envs.vector` has a table.
        autoreset_mode: Gymnasium's ``AutoresetMode`` or its value, or the lower-case name, e.g. ``"disabled"``.
        num_workers: Number of worker processes or actors; the default is the number of slots or of processors,
            whichever is less. With ``"thread"`` and ``"asyncio"`` the number of threads that may be at work at once;
            the default is one for each slot. ``"sync"`` has none.
        step_timeout_seconds: A step that takes longer is a fault; None waits. ``"sync"`` cannot interrupt a step.
        reset_timeout_seconds: The same for a reset, which includes making the environment.
        memory_limit_mib: Memory that each worker process may allocate, in MiB.
        backend_options: What only this backend knows, e.g. ``{"address": "auto"}``: see
            :class:`~turngym.envs.vector.backends.remote.ray_session.RayOptions`.
        **env_kwargs: Options of the environments.

    Raises:
        UnknownName: There is no such environment or backend.
        ConfigError: The arguments contradict each other, or the environments do not fit into one vector.

    >>> vector = make_vec("CartPole-v1", 2)
    >>> vector.reset(seed=[7, 7])[0].shape
    (2, 4)
    """
    sources, name = _sources(env_id, num_envs, env_fns, env_kwargs)
    if observation not in ("native", "text"):
        raise ConfigError(f'observation must be "native" or "text", got {observation!r}.')
    _require_functions(wrappers)
    makers = [Maker(source, env_kwargs, tuple(wrappers), observation == "text") for source in sources]
    limits = BackendOptions(
        num_workers, step_timeout_seconds, reset_timeout_seconds, memory_limit_mib, backend_options or {}
    )
    mode = _mode(autoreset_mode)
    return TextVectorEnv(VECTOR_BACKENDS[backend](makers, limits), mode, name)


def _sources(
    env_id: str | Sequence[str] | None,
    num_envs: int | None,
    env_fns: Sequence[EnvFn] | None,
    env_kwargs: dict[str, Any],
) -> tuple[list[Any], str]:
    """Return what makes the environment of each slot, and a name for all of them."""
    if (env_id is None) == (env_fns is None):
        raise ConfigError("make_vec needs either ids or env_fns: pass exactly one of them.")
    if not isinstance(env_id, str | Sequence | None):
        raise ConfigError(
            f"env_id must be an id or a list of ids, got {env_id!r}: register the class with register_env, or pass "
            "functions that make one as env_fns."
        )
    if isinstance(env_id, str):
        count = 1 if num_envs is None else num_envs
        if count < 1:
            raise ConfigError(f"num_envs must be at least 1, got {count}.")
        return [_with_class(find_spec(env_id))] * count, env_id
    sources = [_with_class(find_spec(each)) for each in env_id] if env_id is not None else list(env_fns or ())
    if not sources or num_envs not in (None, len(sources)):
        raise ConfigError(f"num_envs={num_envs} does not fit {len(sources)} environments: leave it out.")
    if env_fns is not None and env_kwargs:
        raise ConfigError(f"env_fns take no options, got {sorted(env_kwargs)}: bind them inside of the functions.")
    return sources, "env_fns" if env_id is None else ", ".join(dict.fromkeys(env_id))


def _with_class(spec: EnvSpec) -> EnvSpec:
    """Return a spec whose class other processes receive by value if it is defined in the running script."""
    place, _, name = spec.entry_point.partition(":") if isinstance(spec.entry_point, str) else ("", "", "")
    if place != "__main__":
        return spec
    return dataclasses.replace(spec, entry_point=attrgetter(name)(sys.modules[place]))


def _require_functions(wrappers: object) -> None:
    """Raise unless wrappers are functions of an environment.

    Raises:
        ConfigError: They are not.
    """
    names = [wrappers] if isinstance(wrappers, str) else wrappers
    if not isinstance(names, Sequence):
        raise ConfigError(f"wrappers must be a list of functions of an environment, got {wrappers!r}.")
    for each in names:
        if isinstance(each, str):
            raise ConfigError(f'a vector takes wrappers as objects: pass wrapping("{each}") of turngym.wrappers.')
        if not callable(each):
            raise ConfigError(f"a wrapper must be a function of an environment, got {each!r}.")


def _mode(mode: AutoresetMode | str) -> AutoresetMode:
    """Return Gymnasium's mode for its value or its lower-case name."""
    if isinstance(mode, AutoresetMode):
        return mode
    named = {each.value: each for each in AutoresetMode} | {each.name.lower(): each for each in AutoresetMode}
    if mode not in named:
        raise ConfigError(f"autoreset_mode {mode!r} is unknown. {nearest(mode, named)}")
    return named[mode]
