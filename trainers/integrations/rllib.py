"""RLlib: text environments and games between seats, seen as numbers, under names that its configurations can use.

Call :func:`register_envs` once. Then ``.environment("turngym", env_config={"env_id": ...})`` is an environment with one
agent, and ``.environment("turngym-game", env_config={"game_id": ...})`` a game, each seat of which is an agent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from ray import tune
from ray.rllib.env.multi_agent_env import MultiAgentEnv

from turngym.envs.adapters.numeric import Menu, NumericEnv, NumericView
from turngym.envs.multiagent import TableParallel, make_parallel
from turngym.envs.own import find_spec
from turngym.errors import ConfigError
from turngym.seeding import stream
from turngym.wrappers import wrap

PACKAGE = "ray"
"""The distribution to install, ``ray[rllib]``."""
SINGLE, GAME = "turngym", "turngym-game"
"""The names that are registered."""
_VIEW = ("encoding", "features", "source")
_TRIED_GAMES = 20

Answers = dict[str, Any]


def register_envs() -> None:
    """Register both kinds of environment with Ray's ``tune``, under :data:`SINGLE` and :data:`GAME`."""
    tune.register_env(SINGLE, numeric_env)
    tune.register_env(GAME, NumericGame)


def numeric_env(config: Mapping[str, Any]) -> NumericEnv:
    """Return an environment with one agent.

    Args:
        config: ``env_id``; the options ``encoding``, ``features``, ``source`` and ``actions`` of
            :class:`turngym.envs.adapters.numeric.NumericEnv`; ``wrappers``, a list; all others go to the environment.

    Raises:
        UnknownName: There is no such environment.
        ConfigError: An option is wrong, or ``env_id`` is absent.

    >>> numeric_env({"env_id": "turngym/FrozenLake-v0", "features": 64, "max_turns": 9}).observation_space.shape
    (64,)
    """
    options = dict(config)
    env_id, wrappers = _taken(options, "env_id"), options.pop("wrappers", ())
    shown = {key: options.pop(key) for key in (*_VIEW, "actions") if key in options}
    return NumericEnv(wrap(gymnasium.make(find_spec(env_id), **options), *wrappers), **shown)


class NumericGame(MultiAgentEnv):  # type: ignore[misc]  # RLlib has no type information here
    """A game between seats: only the agents to act get an observation, and at the end all of them.

    Rewards are reported as they occur, also for other agents. A number that is not a legal action is passed on as its
    text: the agent may retry as often as the table allows, and then it forfeits the game.

    Args:
        config: ``game_id``, an id of :data:`turngym.envs.multiagent.GAMES` or ``"module:Class"``; the options
            ``encoding``, ``features``, ``source``, ``actions`` as for :func:`numeric_env`; all others go to the game.

    Raises:
        UnknownName: There is no such game.
        ConfigError: An option is wrong, or ``game_id`` is absent.

    >>> game = NumericGame({"game_id": "turngym/KuhnPoker-v0", "features": 32})
    >>> game.menu.texts, list(game.reset(seed=0)[0])
    (('bet', 'call', 'check', 'fold'), ['player_0'])
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        options = dict(config)
        game_id = _taken(options, "game_id")
        self.view = NumericView(**{key: options.pop(key) for key in _VIEW if key in options})
        if self.view.encoding == "image":
            raise ConfigError('multi-agent games show no images: pass encoding="ngrams" or "characters".')
        actions = options.pop("actions", None)
        self.table = make_parallel(game_id, **options)
        self.menu = Menu.of(actions, lambda: _seen_answers(self.table))
        self.possible_agents = list(self.table.possible_agents)
        self.agents = list(self.possible_agents)
        shown, answer = self.view.space(gymnasium.spaces.Dict()), gymnasium.spaces.Discrete(self.menu.places)
        self.observation_spaces = dict.fromkeys(self.possible_agents, shown)
        self.action_spaces = dict.fromkeys(self.possible_agents, answer)

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Answers, Answers]:
        """Start a game; return observation and info of the agents to act."""
        observations, infos = self.table.reset(seed=seed, options=options)
        self.agents = list(self.possible_agents)
        return self._shown(self.table.active_agents, observations, infos)

    def step(self, action_dict: Mapping[str, Any]) -> tuple[Answers, Answers, Answers, Answers, Answers]:
        """Take actions; return observations, rewards, terminations, truncations and infos."""
        legal = {agent: self.table.info(agent)["legal_actions"] for agent in action_dict}
        texts = {agent: self.menu.text(int(number), legal[agent]) for agent, number in action_dict.items()}
        observations, rewards, _, _, infos = self.table.step(texts)
        is_over = self.table.table.is_over
        asked = self.possible_agents if is_over else self.table.active_agents
        shown, told = self._shown(asked, observations, infos)
        ends = {"__all__": is_over, **dict.fromkeys(shown, is_over)}
        self.agents = [] if is_over else self.agents
        return shown, rewards, ends, {"__all__": False, **dict.fromkeys(shown, False)}, told

    def _shown(self, agents: Sequence[str], observations: Answers, infos: Answers) -> tuple[Answers, Answers]:
        shown: dict[str, NDArray[Any]] = {a: self.view.numbers(observations[a], infos[a]) for a in agents}
        masks: dict[str, NDArray[np.bool_]] = {a: self.menu.mask(infos[a]["legal_actions"]) for a in agents}
        return shown, {a: {**infos[a], "action_mask": masks[a]} for a in agents}


def _seen_answers(game: TableParallel) -> Iterator[Sequence[str]]:
    """Play random games of fixed seeds, and yield the legal actions of every answer."""
    for seed in range(_TRIED_GAMES):
        game.reset(seed=seed)
        generator = stream("menu", seed)
        while game.agents:
            legal = {agent: game.info(agent)["legal_actions"] for agent in game.active_agents}
            if not all(legal.values()):
                break
            yield from legal.values()
            game.step({agent: here[int(generator.integers(len(here)))] for agent, here in legal.items()})


def _taken(options: dict[str, Any], key: str) -> str:
    """Take the name of what is to be made out of a configuration."""
    if not isinstance(options.get(key), str):
        raise ConfigError(f'env_config needs {key!r}, such as "turngym/KuhnPoker-v0", got {options.get(key)!r}.')
    return str(options.pop(key))
