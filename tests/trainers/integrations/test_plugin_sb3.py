"""Stable-Baselines3: its checker accepts the numeric view, PPO trains on it, and turngym evaluates what it trained."""

import importlib.util
import sys
from typing import Any

import numpy as np
import pytest
from plugin_examples import code_lines, example

from turngym.agents.episodes.evaluate import evaluate
from turngym.errors import UnknownName

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        importlib.util.find_spec("stable_baselines3") is None or importlib.util.find_spec("sb3_contrib") is None,
        reason="the packages stable-baselines3 and sb3-contrib are not installed: run make test-integration",
    ),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
GAME = "turngym/TicTacToeSeat-v0"
SMALL: dict[str, Any] = {"n_steps": 16, "batch_size": 16, "device": "cpu", "seed": 0}


def plugin() -> Any:
    from turngym.trainers.integrations import sb3

    return sb3


def weights(model: Any) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return all parameters of a policy as one vector."""
    return np.concatenate([each.detach().numpy().ravel() for each in model.policy.parameters()])


@pytest.mark.parametrize(
    "env_id", [GAME, "turngym/FrozenLake-v0", "turngym/GuessTheNumber-v0", "turngym/Mastermind-v0"]
)
@pytest.mark.parametrize("encoding", ["ngrams", "characters"])
@pytest.mark.filterwarnings("error")
def test_its_checker_passes_without_a_warning(env_id: str, encoding: str) -> None:
    from stable_baselines3.common.env_checker import check_env

    env = plugin().numeric_env(
        env_id, encoding=encoding, features=32, actions=None if "Master" not in env_id else ["1234"]
    )
    check_env(env)


def test_its_checker_passes_on_pictures() -> None:
    from stable_baselines3.common.env_checker import check_env

    check_env(plugin().numeric_env("turngym/FrozenLake-v0", encoding="image", image=True))


def test_ppo_trains_and_its_policy_is_evaluated_as_an_agent() -> None:
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    def make() -> Any:
        return plugin().numeric_env(GAME, encoding="characters", features=32, wrappers=["turn_limit:limit=9"])

    vector = make_vec_env(make, n_envs=4, seed=0)
    model = PPO("MlpPolicy", vector, n_epochs=2, **SMALL)
    before = weights(model)
    model.learn(256)
    after = weights(model)
    assert model.num_timesteps == 256 and not np.array_equal(before, after) and np.isfinite(after).all()
    env = make()
    agent = plugin().PolicyAgent(model, env.view, env.menu)
    results = [evaluate(GAME, agent, seeds=range(6), env_kwargs={"split": "test"}) for _ in range(2)]
    assert results[0][0].episodes == results[1][0].episodes, "greedy: the same every time"
    (result, trajectories), _ = results
    assert len(trajectories) == 6 and result.faults == 0
    for trajectory in trajectories:
        assert {turn.action for turn in trajectory.turns} <= set("012345678")


def test_the_agent_takes_what_the_policy_would_take_in_the_environment() -> None:
    from stable_baselines3 import PPO

    env = plugin().numeric_env(GAME, encoding="characters", features=32, split="test")
    model = PPO("MlpPolicy", env, **SMALL)
    agent = plugin().PolicyAgent(model, env.view, env.menu)
    _, (trajectory,) = evaluate(GAME, agent, seeds=[5], env_kwargs={})
    shown, _ = env.reset(seed=5)
    for turn in trajectory.turns:
        number, _ = model.predict(shown, deterministic=True)
        assert turn.action == env.menu.texts[int(number)]
        shown, *_ = env.step(number)


def test_masked_ppo_never_takes_what_is_illegal() -> None:
    from sb3_contrib import MaskablePPO

    env = plugin().numeric_env(GAME, encoding="characters", features=32)
    model = MaskablePPO("MlpPolicy", env, **SMALL)
    model.learn(64)
    for seed in range(5):
        shown, info = env.reset(seed=seed)
        is_over = False
        while not is_over:
            number, _ = model.predict(shown, action_masks=env.action_masks())
            shown, _, terminated, truncated, info = env.step(number)
            assert info["action_is_valid"]
            is_over = terminated or truncated


def test_an_unknown_environment_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="no environment named 'turngym/FrozenLak-v0'"):
        plugin().numeric_env("turngym/FrozenLak-v0")


def test_the_example_runs_and_is_short(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_lines("sb3_ppo") < 60
    monkeypatch.setattr(sys, "argv", ["sb3_ppo.py", "--steps", "64", "--num-envs", "1"])
    example("sb3_ppo").main()
    shown = capsys.readouterr().out
    assert shown.startswith("turngym/TowerOfHanoi-v0 {'discs': 2}, 1 tasks: success 0.00 before, "), shown
    assert shown.endswith("after 64 steps\n")
