"""Progress computed from the common steps of solved episodes, for any environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import gymnasium

from turngym.envs.settings import worded
from turngym.wrappers import WRAPPERS
from turngym.wrappers.core import ResetResult, StepResult, TextWrapper
from turngym.wrappers.observation import text_of
from turngym.wrappers.rewards.recipes import RecipeBook, canonical_action, next_row


@WRAPPERS.register("recipe_progress")
class RecipeProgress(TextWrapper):
    """Sets ``info["progress"]`` to the completed share of a recipe: the largest over the task's recipes.

    ``turngym label-progress`` creates recipes from recorded episodes. The progress equals its labels, but is below 1
    until the task is solved: at most n / (n + 1) for a recipe of n steps. It never falls. A task without a recipe keeps
    the environment's progress. Outer wrappers, such as ``progress_reward``, use this progress.

    Args:
        env: The environment.
        path: The file with the recipes; empty for none.

    Raises:
        ConfigError: The file is missing or is not a recipe file.

    >>> import gymnasium, turngym
    >>> from turngym.wrappers.rewards.recipes import Recipe
    >>> env = RecipeProgress(gymnasium.make("turngym/TowerOfHanoi-v0"))
    >>> env.book = RecipeBook(scope="environment", known={env.env_id: [Recipe(("a c", "a b"), 1)]})
    >>> _ = env.reset(seed=0)
    >>> [env.step(action)[4]["progress"] for action in ("A C", "nonsense", "A B")]
    [0.5, 0.5, 0.6666666666666666]
    """

    file_options = worded()

    name: ClassVar[str] = "recipe_progress"

    def __init__(self, env: gymnasium.Env[Any, str], path: str = "") -> None:
        super().__init__(env)
        self.book = RecipeBook.read(Path(path)) if path else RecipeBook()

    def initial_state(self) -> dict[str, Any]:
        return {"goal": "", "seen": "", "recipes": [], "rows": [], "is_solved": False}

    def on_reset(self, result: ResetResult) -> None:
        goal = text_of(result.observation)
        known = self.book.of(self.env_id, self._instance(), goal) if self.book.known else ()
        self.state.update(
            goal=goal,
            seen=goal,
            recipes=[list(recipe.steps) for recipe in known],
            rows=[[0] * (len(recipe.steps) + 1) for recipe in known],
        )

    def _instance(self) -> str:
        return str(self._inner("instance_hash")) if self.env.has_wrapper_attr("instance_hash") else ""

    def on_step(self, step: StepResult) -> tuple[float, bool]:
        episode, seen = self.state, text_of(step.observation)
        if episode["recipes"]:
            if self.book.match == "state":
                reached = str(step.info["anchor"]) or seen
            else:
                reached = canonical_action(episode["goal"], episode["seen"], step.action)
            pairs = zip(episode["rows"], episode["recipes"], strict=True)
            episode["rows"] = [next_row(row, reached, recipe) for row, recipe in pairs]
        episode["seen"] = seen
        episode["is_solved"] = step.info["success"] == 1
        return step.reward, False

    def transform_observation(self, observation: Any, info: dict[str, Any]) -> Any:
        if self.state["recipes"]:
            info["progress"] = progress(self.state)
        return observation


def progress(episode: Mapping[str, Any]) -> float:
    """Return the progress in a wrapper's state."""
    if episode["is_solved"]:
        return 1.0
    return max(_share(row) for row in episode["rows"])


def _share(row: Sequence[int]) -> float:
    """Return the completed share of a recipe, below 1, from the last row of its table."""
    size = len(row) - 1
    return min(row[-1] / size, size / (size + 1))
