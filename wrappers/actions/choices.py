"""Numbered legal actions: an answer is a number instead of the action's text."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium

from turngym.envs.settings import worded
from turngym.errors import ConfigError
from turngym.wrappers import WRAPPERS
from turngym.wrappers.core import ResetResult, StepResult, TextWrapper
from turngym.wrappers.observation import text_of, with_text


@WRAPPERS.register("choices")
class Choices(TextWrapper):
    r"""Appends numbered legal actions to the observation, and accepts a number as the action.

    For policies too small to copy words, and for multiple-choice games. Only listed actions can be played; if the list
    is incomplete, as for searches in WebShop, the others are unavailable. A number outside the list, or any other text,
    is an unknown action. Without a list, actions are passed on unchanged.

    Args:
        env: The environment.

    >>> import gymnasium, turngym
    >>> env = Choices(gymnasium.make("turngym/TowerOfHanoi-v0"))
    >>> observation, info = env.reset(seed=0)
    >>> print(*observation.splitlines()[-2:], info["legal_actions"], sep="\n")
    1: A B
    2: A C
    ('1', '2')
    >>> env.step("2")[4]["action_is_valid"]
    True
    """

    file_options = worded()

    name: ClassVar[str] = "choices"

    def __init__(self, env: gymnasium.Env[Any, str]) -> None:
        super().__init__(env)

    def initial_state(self) -> dict[str, Any]:
        return {"legal": []}

    def on_reset(self, result: ResetResult) -> None:
        self.state["legal"] = list(result.info["legal_actions"])

    def on_step(self, step: StepResult) -> tuple[float, bool]:
        self.state["legal"] = list(step.info["legal_actions"])
        return step.reward, False

    def transform_action(self, action: str) -> str:
        legal, text = self.state["legal"], action.strip()
        if not legal:
            return action
        is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(len(legal)))
        if is_number and 1 <= int(text) <= len(legal):
            return str(legal[int(text) - 1])
        return f"(no choice: answer with a number from 1 to {len(legal)})"

    def transform_observation(self, observation: Any, info: dict[str, Any]) -> Any:
        legal = self.state["legal"]
        if not info["legal_actions"]:
            return observation
        info["legal_actions"] = tuple(str(number) for number in range(1, len(legal) + 1))
        lines = [f"{number}: {action}" for number, action in enumerate(legal, 1)]
        return with_text(observation, "\n".join([text_of(observation), *lines]))

    def extra_instructions(self) -> str:
        return "The actions that can be taken are listed under numbers: answer with the number of one."

    def completion(self, action: str) -> str:
        legal = self.state["legal"]
        if not legal:
            return action
        if action not in legal:
            raise ConfigError(
                f"the expert of {self.env_id} plays {action!r}, which is not among the legal actions that are listed: "
                "take the expert without the wrapper choices."
            )
        return str(legal.index(action) + 1)
