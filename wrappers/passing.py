"""A wrapper that forwards the attributes and methods of the contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import gymnasium

from turngym.envs.tools.tool_schema import ToolSet


class Passing(gymnasium.Wrapper[Any, str, Any, str]):
    """Forwards the interface of :class:`turngym.envs.core.TextEnv`, which Gymnasium's wrappers do not.

    Args:
        env: The environment.
    """

    def _inner(self, name: str) -> Any:
        """Return an attribute of the inner environment.

        ``get_wrapper_attr`` looks every property up twice, which is exponential in the number of wrappers.
        """
        return getattr(self.env, name) if isinstance(self.env, Passing) else self.env.get_wrapper_attr(name)

    @property
    def instructions(self) -> str:
        """Rules and answer format."""
        return str(self._inner("instructions"))

    @property
    def finds_action(self) -> bool:
        """True if the action is found in a whole completion, by a notation of the rules."""
        return bool(self._inner("finds_action"))

    @property
    def native_tools(self) -> ToolSet | None:
        """Tools for models with native tool calls."""
        return cast("ToolSet | None", self._inner("native_tools"))

    @property
    def env_id(self) -> str:
        """The registered id of the inner environment."""
        return str(self._inner("env_id"))

    @property
    def settings(self) -> Mapping[str, Any]:
        """The options of the inner environment; those of wrappers are in ``wrappers``."""
        return cast("Mapping[str, Any]", self._inner("settings"))

    @property
    def origin(self) -> tuple[str, Mapping[str, Any]]:
        """Id and options of the innermost environment."""
        if isinstance(self.env, Passing) or self.env.has_wrapper_attr("origin"):
            return cast("tuple[str, Mapping[str, Any]]", self._inner("origin"))
        return self.env_id, self.settings

    @property
    def turn(self) -> int:
        """Number of turns taken in this episode."""
        return int(self._inner("turn"))

    @property
    def max_turns(self) -> int:
        """Turns after which an unfinished episode is truncated."""
        return int(self._inner("max_turns"))

    @property
    def instance_hash(self) -> str:
        """The name of the current instance."""
        return str(self._inner("instance_hash"))

    def expert_action(self) -> str:
        """Return a solver's next action."""
        return str(self._inner("expert_action")())

    def resample_hidden(self) -> bool:
        """Resample hidden facts; return whether anything changed."""
        return bool(self._inner("resample_hidden")())

    def tasks(self) -> tuple[str, ...]:
        """Return the names of the instances if there is a data set."""
        return tuple(self._inner("tasks")())

    def set_wrapper_attr(self, name: str, value: Any, *, force: bool = True) -> bool:
        """Set an attribute on its owner: forwarded ones are set on the inner environment."""
        own = getattr(type(self), name, None)
        if isinstance(own, property) and own.fset is None:
            return self.env.set_wrapper_attr(name, value, force=force)
        return super().set_wrapper_attr(name, value, force=force)
