"""RLlib: PPO trains on the numeric view of an environment, and on a game whose seats are its agents."""

import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from plugin_examples import code_lines, example

from turngym.envs.multiagent import make_parallel
from turngym.errors import ConfigError, UnknownName
from turngym.seeding import stream

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("ray", "tree", "ormsgpack", "pandas")),
        reason="the package ray[rllib] is not installed: run make test-integration",
    ),
    pytest.mark.filterwarnings("ignore"),
]
GAMES = ["turngym/KuhnPoker-v0", "turngym/TicTacToe-v0", "turngym/PrisonersDilemma-v0"]
VIEW = {"encoding": "characters", "features": 32}


def plugin() -> Any:
    from turngym.trainers.integrations import rllib

    return rllib


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Start Ray in its smallest form, with both kinds of environment registered."""
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, object_store_memory=80 * 1024 * 1024)
        plugin().register_envs()
        yield
        ray.shutdown()


def weights(algorithm: Any, module: str) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return all parameters of one of an algorithm's modules as one vector."""
    state = algorithm.get_module(module).state_dict()
    return np.concatenate([each.detach().cpu().numpy().ravel() for each in state.values()])


@pytest.mark.parametrize("game_id", GAMES)
def test_a_game_is_the_one_that_the_parallel_view_plays(game_id: str) -> None:
    numeric, plain = plugin().NumericGame({"game_id": game_id, **VIEW}), make_parallel(game_id)
    for seed in range(10):
        shown, infos = numeric.reset(seed=seed)
        _, told = plain.reset(seed=seed)
        generator = stream("rllib", seed)
        over = False
        while not over:
            assert list(shown) == list(infos) == list(plain.active_agents)
            for agent, vector in shown.items():
                assert numeric.observation_spaces[agent].contains(vector)
                assert (vector == numeric.view.numbers(None, told[agent])).all()
                allowed = {
                    text for text, legal in zip(numeric.menu.texts, infos[agent]["action_mask"], strict=True) if legal
                }
                assert allowed == set(told[agent]["legal_actions"])
            numbers = {agent: int(generator.integers(numeric.menu.places)) for agent in shown}
            shown, rewards, ends, cuts, infos = numeric.step(numbers)
            texts = {agent: numeric.menu.texts[number] for agent, number in numbers.items()}
            _, paid, done, _, told = plain.step(texts)
            over = ends["__all__"]
            assert rewards == paid and over == all(done.values()) and not cuts["__all__"]
        assert set(shown) == set(numeric.possible_agents) and all(ends.values()) and numeric.agents == []


def test_every_agent_has_the_spaces_that_rllib_asks_for() -> None:
    game = plugin().NumericGame({"game_id": "turngym/Werewolf-v0", "actions": 6, **VIEW})
    assert game.max_num_agents == len(game.possible_agents) > 4
    for agent in game.possible_agents:
        assert game.get_observation_space(agent).shape == (32,) and game.get_action_space(agent).n == 6


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        ({}, ConfigError, "env_config needs 'game_id'"),
        ({"game_id": "turngym/KuhnPokr-v0"}, UnknownName, "KuhnPoker"),
        ({"game_id": GAMES[0], "encoding": "image"}, ConfigError, "multi-agent games show no images"),
        ({"game_id": GAMES[0], "features": 0}, ConfigError, "features must be a whole number"),
    ],
)
def test_a_wrong_configuration_is_explained(config: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        plugin().NumericGame(config)
    assert message in str(caught.value)


def test_ppo_trains_one_iteration_on_an_environment(cluster: None) -> None:
    config = example("rllib_ppo").config_of(plugin().SINGLE, {"env_id": "turngym/FrozenLake-v0", **VIEW}, 128)
    algorithm = config.build_algo()
    before = weights(algorithm, "default_policy")
    result = algorithm.train()
    after = weights(algorithm, "default_policy")
    algorithm.stop()
    assert result["env_runners"]["num_env_steps_sampled_lifetime"] >= 128
    assert not np.array_equal(before, after) and np.isfinite(after).all()


def test_ppo_trains_one_iteration_on_a_game_with_a_policy_for_each_seat(cluster: None) -> None:
    config = example("rllib_ppo").config_of(plugin().GAME, {"game_id": GAMES[0], **VIEW}, 128)
    config = config.multi_agent(policies={"player_0", "player_1"}, policy_mapping_fn=lambda agent, *_, **__: agent)
    paid: list[dict[str, float]] = []

    def keep(episode: Any, **_: Any) -> None:
        paid.append({str(agent): each.get_return() for agent, each in episode.agent_episodes.items()})

    algorithm = config.callbacks(on_episode_end=keep).build_algo()
    before = {name: weights(algorithm, name) for name in ("player_0", "player_1")}
    algorithm.train()
    after = {name: weights(algorithm, name) for name in before}
    algorithm.stop()
    assert all(not np.array_equal(before[name], after[name]) for name in before)
    both = [each for each in paid if len(each) == 2]  # RLlib knows nothing of a seat whose opponent forfeits at once
    assert len(both) > 10 and all(each["player_0"] for each in both)
    assert all(each["player_0"] == -each["player_1"] for each in both), "poker gives one what it takes from the other"


def test_the_example_is_short() -> None:
    assert code_lines("rllib_ppo") < 60
