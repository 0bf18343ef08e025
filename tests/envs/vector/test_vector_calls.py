"""Vectors answer wrong calls in words: order, sizes, options, arguments."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from toy_envs import Counter

import turngym
from turngym.envs.vector import make_vec
from turngym.errors import ConfigError, EpisodeOver, UnknownName

BACKENDS = ["sync", "thread", "asyncio", "process"]


def test_call_order_is_checked() -> None:
    vector = make_vec("toy/Counter-v0", 2, autoreset_mode="disabled")
    with pytest.raises(EpisodeOver, match="slot 0 before its episode has started"):
        vector.step(["up", "up"])
    vector.reset(seed=0, options={"task": 2})
    with pytest.raises(NoAsyncCallError, match="call send"):
        vector.recv()
    vector.send(["up"], [1])
    with pytest.raises(AlreadyPendingCallError, match=r"slots \[1\]"):
        vector.step(["up", "up"])
    assert vector.recv(min_ready=5)[0] == [1]
    with pytest.raises(EpisodeOver, match=r"slot 1 after its episode has ended.*reset_mask"):
        vector.step(["up", "up"])
    assert vector.step(["down"], [0])[0][0].startswith("count 1")  # the refused step has changed nothing
    vector.close()
    vector.close()
    with pytest.raises(ClosedEnvironmentError):
        vector.step(["up"], [0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"actions": "up"}, "sequence of 2 actions"),
        ({"actions": ["up"]}, "got 1"),
        ({"actions": ["up", "up"], "indices": [0, 0]}, "distinct slots below 2"),
        ({"actions": ["up", "up"], "indices": [0, 2]}, "distinct slots below 2"),
        ({"actions": ["up"], "indices": [-1]}, "distinct slots below 2"),
    ],
)
def test_a_malformed_step_is_refused(arguments: dict[str, Any], message: str) -> None:
    vector = make_vec("toy/Counter-v0", 2)
    vector.reset(seed=0)
    with pytest.raises(ConfigError, match=message):
        vector.step(**arguments)


def test_an_action_that_is_no_text_is_the_callers_mistake() -> None:
    vector = make_vec("toy/Counter-v0", 2)
    vector.reset(seed=0)
    with pytest.raises(TypeError, match="slot 1 must be a str, got int"):
        vector.step(["up", 3])
    assert vector.stats()["faults"] == {}


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_wrong_reset_option_is_the_callers_mistake(backend: str) -> None:
    with make_vec("toy/Counter-v0", 2, backend=backend, num_workers=1) as vector:
        with pytest.raises(ConfigError, match=r"'tsk'\. Did you mean 'task'"):
            vector.reset(options={"tsk": 1})
        assert vector.reset(seed=1)[1].rows[0]["fault"] == "" and vector.stats()["faults"] == {}


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"reset_mask": [True, False]}, TypeError),
        ({"reset_mask": np.array([1, 0])}, TypeError),
        ({"reset_mask": np.array([True])}, ValueError),
        ({"reset_mask": np.array([False, False])}, ValueError),
        ({"slot_options": [{}]}, ConfigError),
    ],
)
def test_malformed_reset_options_are_refused(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        make_vec("toy/Counter-v0", 2).reset(options=options)


def test_the_number_of_seeds_is_checked() -> None:
    with pytest.raises(ConfigError, match="2 seeds, one per slot, got 3"):
        make_vec("toy/Counter-v0", 2).reset(seed=[1, 2, 3])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"env_id": "turngym/Socoban-v0"}, UnknownName, "'turngym/Sokoban-v0'"),
        ({"env_id": "toy/Counter-v0", "backend": "proces"}, UnknownName, "'process'"),
        ({"env_id": "toy/Counter-v0", "autoreset_mode": "same"}, ConfigError, "same_step"),
        ({"env_id": "toy/Counter-v0", "num_envs": 0}, ConfigError, "at least 1"),
        ({"env_id": ["toy/Counter-v0"] * 2, "num_envs": 3}, ConfigError, "leave it out"),
        ({"env_id": "toy/Counter-v0", "observation": "picture"}, ConfigError, '"native" or "text"'),
        (
            {"env_id": "toy/Counter-v0", "num_workers": 0},
            ConfigError,
            "num_workers must be a whole",
        ),
        ({"env_id": "toy/Counter-v0", "num_workers": 1.5}, ConfigError, "whole number"),
        ({"env_id": "toy/Counter-v0", "num_workers": True}, ConfigError, "whole number"),
        ({"env_id": "toy/Counter-v0", "step_timeout_seconds": 0}, ConfigError, "step_timeout_seconds must be a number"),
        ({"env_id": "toy/Counter-v0", "reset_timeout_seconds": float("nan")}, ConfigError, "greater than 0, got nan"),
        ({"env_id": "toy/Counter-v0", "reset_timeout_seconds": float("inf")}, ConfigError, "got inf"),
        ({"env_id": "toy/Counter-v0", "step_timeout_seconds": "1"}, ConfigError, "got '1'"),
        ({"env_id": "toy/Counter-v0", "backend": "asyncoi"}, UnknownName, "'asyncio'"),
        ({"env_id": "toy/Counter-v0", "backend": "threads"}, UnknownName, "'thread'"),
        ({"env_id": "toy/Counter-v0", "memory_limit_mib": 9}, ConfigError, 'backend="process"'),
        ({"env_id": "toy/Counter-v0", "memory_limit_mib": 9, "backend": "thread"}, ConfigError, 'backend="process"'),
        ({}, ConfigError, "exactly one"),
        ({"env_fns": [Counter], "goal": 4}, ConfigError, "env_fns take no options"),
    ],
)
def test_wrong_arguments_are_explained(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        turngym.make_vec(**arguments)


SCRIPT = """
import turngym
from turngym.envs import Outcome, TextEnv, register_env

class Coin(TextEnv[str]):
    instructions, finite_instances = "heads or tails", 2
    def initial_state(self, generator): return int(generator.integers(2))
    def observation(self): return f"side {self.state}"
    def apply_action(self, action): return Outcome("over", 1.0, True, True)

register_env("mine/Coin-v0", Coin, summary="A coin.")
if __name__ == "__main__":
    shown = []
    for backend in ("sync", "process"):
        with turngym.make_vec("mine/Coin-v0", 2, backend=backend) as vector:
            shown.append(vector.reset(seed=[1, 2])[0])
    assert shown[0] == shown[1] and shown[0][0].startswith("side "), shown
"""


def test_an_environment_of_the_running_script_is_played_in_other_processes(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("wrappers", "message"),
    [
        ("history", r'pass wrapping\("history"\) of turngym\.wrappers'),
        (["history:k=2"], r'pass wrapping\("history:k=2"\) of turngym\.wrappers'),
        ([[]], r"must be a function of an environment, got \[\]"),
        (3, "must be a list of functions of an environment, got 3"),
    ],
)
def test_wrappers_that_are_no_functions_are_refused(wrappers: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_vec("turngym/FrozenLake-v0", 2, wrappers=wrappers)


def test_a_class_in_place_of_an_id_is_named() -> None:
    with pytest.raises(ConfigError, match=r"env_id must be an id or a list of ids, got <class .*register_env"):
        make_vec(Counter, 3)  # type: ignore[arg-type]
