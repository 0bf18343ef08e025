"""Stable-Baselines3: train its policies on text games seen as numbers, and evaluate them like any other agent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium
import numpy as np
import stable_baselines3  # noqa: F401  (absent, it is named here and not in the middle of a run)
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import BasePolicy

from turngym.agents.core import Agent, Decision, Request
from turngym.envs.adapters.numeric import Actions, Encoding, Menu, NumericEnv, NumericView, Source
from turngym.envs.own import find_spec
from turngym.wrappers import wrap

PACKAGE = "stable-baselines3"
"""The distribution to install."""


def numeric_env(
    env_id: str,
    *,
    encoding: Encoding = "ngrams",
    features: int = 256,
    source: Source = "anchor",
    actions: Actions = None,
    wrappers: Iterable[str] = (),
    **options: Any,
) -> NumericEnv:
    """Return an environment that Stable-Baselines3 can train on.

    Args:
        env_id: Its id.
        encoding: Encoding of text as numbers: see :class:`turngym.envs.adapters.numeric.NumericView`.
        features: Length of the vector.
        source: Text to encode.
        actions: The menu: see :meth:`turngym.envs.adapters.numeric.Menu.of`.
        wrappers: Wrappers, the first innermost, each as in ``history:k=4``.
        **options: Options of the environment; ``image=True`` goes with ``encoding="image"`` and ``CnnPolicy``.

    Raises:
        UnknownName: There is no such environment.
        ConfigError: An option is wrong.

    >>> env = numeric_env("turngym/FrozenLake-v0", encoding="characters", features=64)
    >>> from stable_baselines3.common.env_checker import check_env
    >>> check_env(env)
    """
    env = wrap(gymnasium.make(find_spec(env_id), **options), *wrappers)
    return NumericEnv(env, encoding=encoding, features=features, source=source, actions=actions)


class PolicyAgent(Agent):
    """A policy of Stable-Baselines3 as an agent, for :func:`turngym.agents.episodes.evaluate.evaluate` and suites.

    Args:
        model: A trained model, or its policy.
        view: Encodes observations; ``env.view`` of the environment that it was trained on.
        menu: Maps its actions to texts; ``env.menu`` of that environment.
        greedy: Whether it takes its best action instead of sampling one with PyTorch's generator.
    """

    def __init__(
        self, model: BaseAlgorithm | BasePolicy, view: NumericView, menu: Menu, *, greedy: bool = True
    ) -> None:
        self.model, self.view, self.menu, self.greedy = model, view, menu, greedy

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        """Return the policy's action for each request; all requests in one batch."""
        seen = [{"text": request.observation, "image": request.image} for request in requests]
        shown = [self.view.numbers(each, request.info) for each, request in zip(seen, requests, strict=True)]
        numbers, _ = self.model.predict(np.stack(shown), deterministic=self.greedy)
        legal = [request.info["legal_actions"] for request in requests]
        return [Decision(self.menu.text(int(number), here)) for number, here in zip(numbers, legal, strict=True)]
