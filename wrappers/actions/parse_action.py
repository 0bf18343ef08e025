"""Parsing of actions from completions."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium

from turngym.envs.settings import worded
from turngym.wrappers import WRAPPERS
from turngym.wrappers.actions.action_format import action_format
from turngym.wrappers.core import TextWrapper


@WRAPPERS.register("parse_action")
class ParseAction(TextWrapper):
    r"""Parses the action from a whole completion and passes it on to the environment.

    A completion without an action is an unknown action. Legal actions in ``info`` and the result of ``expert_action``
    are completions as well and can be passed to ``step``.

    Args:
        env: The environment.
        format: Name of the format: ``tag``, ``boxed``, ``json`` or ``plain``.

    >>> import gymnasium, turngym
    >>> env = ParseAction(gymnasium.make("turngym/TowerOfHanoi-v0"), format="boxed")
    >>> env.reset(seed=0)[1]["legal_actions"][0]
    '\\boxed{A B}'
    """

    file_options = worded("format")

    name: ClassVar[str] = "parse_action"

    def __init__(self, env: gymnasium.Env[Any, str], format: str = "tag") -> None:
        super().__init__(env)
        self.format = action_format(format)
        self._legal: tuple[tuple[str, ...], tuple[str, ...]] = (), ()

    def action(self, action: str) -> str:
        """Return the action in a completion."""
        return self.format.action_of(action)

    def transform_action(self, action: str) -> str:
        return self.format.action_of(action)

    def transform_observation(self, observation: Any, info: dict[str, Any]) -> Any:
        plain = info["legal_actions"]
        if plain is not self._legal[0]:  # most games show one tuple again and again
            self._legal = plain, tuple(map(self.format.write, plain))
        info["legal_actions"] = self._legal[1]
        return observation

    @property
    def finds_action(self) -> bool:
        """True: the action is found in a whole completion."""
        return True

    def extra_instructions(self) -> str:
        return self.format.sentence

    def completion(self, action: str) -> str:
        return self.format.write(action)
