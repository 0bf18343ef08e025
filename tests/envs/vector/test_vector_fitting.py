"""An answer that no batch can hold breaks the slot that gave it, and no other."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from toy_envs import Counter

import turngym
from turngym.envs.spaces import Unicode
from turngym.envs.vector import make_vec
from turngym.envs.vector.slots.fitting import fits

WRONG: dict[str, Any] = {
    "shape": ({"count": np.zeros(3), "text": "a"}, {}),
    "missing key": ({"text": "a"}, {}),
    "nothing": (None, {}),
    "no dict": ("a", {}),
    "info is None": ({"count": np.zeros(2), "text": "a"}, None),
    "info is a list": ({"count": np.zeros(2), "text": "a"}, []),
}


class Odd(gymnasium.Env[Any, Any]):
    """Gives right answers until an action names a wrong one."""

    def __init__(self, first: str = "") -> None:
        self.observation_space = spaces.Dict(count=spaces.Box(0, 9, (2,)), text=Unicode())
        self.action_space = Unicode()
        self.first = first

    def _answer(self, wanted: str) -> Any:
        return WRONG.get(wanted, ({"count": np.ones(2), "text": "fine"}, {}))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        return self._answer(self.first)

    def step(self, action: Any) -> Any:
        observation, info = self._answer(action)
        return observation, 1.0, False, False, info


@pytest.mark.parametrize("backend", ["sync", "thread", "process"])
def test_a_misshapen_step_ends_its_own_episode_only(backend: str) -> None:
    with make_vec(env_fns=[Odd] * 2, backend=backend, autoreset_mode="disabled") as vector:
        for count, wrong in enumerate(WRONG, 1):
            vector.reset(seed=0)
            observations, rewards, terminations, truncations, infos = vector.step([wrong, "go on"])
            assert truncations.tolist() == [True, False] and not terminations.any(), wrong
            assert rewards.tolist() == [0.0, 1.0] and observations["text"][1] == "fine", wrong
            assert infos.rows[0]["fault"].startswith("exception: ") and "fault" not in infos.rows[1], wrong
            assert vector.stats()["faults"] == {"exception": count}, wrong


@pytest.mark.parametrize("wrong", WRONG)
def test_a_misshapen_reset_is_tried_again_and_then_ends_its_own_episode_only(wrong: str) -> None:
    with make_vec(env_fns=[lambda: Odd(wrong), Odd], autoreset_mode="disabled") as vector:
        observations, infos = vector.reset(seed=0)
        assert observations["text"] == ("", "fine") and infos.rows[0]["fault"]
        assert vector.step(["go on"] * 2)[3].tolist() == [True, False]


class Mute(Counter):
    """Says nothing where it should say something."""

    def step(self, action: str) -> Any:
        _, *rest = super().step(action)
        return (None if action == "mute" else 7, *rest)


@pytest.mark.parametrize("action", ["mute", "up"])
def test_an_observation_that_is_no_text_where_text_is_due_is_a_fault(action: str) -> None:
    with make_vec(env_fns=[Mute], autoreset_mode="disabled") as vector:
        vector.reset(seed=0)
        observations, _, _, truncations, infos = vector.step([action])
        assert observations == ("",) and truncations.all() and "does not fit" in infos.rows[0]["fault"]


def test_numbers_are_not_compared_with_their_limits() -> None:
    assert fits(spaces.Box(0, 1, (2,)), np.array([5, 5]))
    assert fits(spaces.Tuple((spaces.Discrete(3), Unicode())), (2, "a"))
    assert not fits(spaces.Tuple((spaces.Discrete(3), Unicode())), (3, "a"))
    assert not fits(spaces.Tuple((spaces.Discrete(3), Unicode())), [2, "a"])


def test_an_option_that_is_refused_leaves_the_running_episode_alone() -> None:
    env = gymnasium.make("turngym/Sokoban-v0")
    env.reset(seed=1)
    state = env.np_random.bit_generator.state
    with pytest.raises(turngym.errors.ConfigError, match="tusk"):
        env.reset(seed=2, options={"tusk": 1})
    assert env.np_random.bit_generator.state == state and not env.step("up")[2]


class Unlucky(Counter):
    """Its second reset breaks."""

    resets = 0

    def begin(self, task: str | int | None) -> str:
        self.resets += 1
        if self.resets == 2:
            raise OSError("no room")
        return super().begin(task)


def test_a_reset_that_breaks_leaves_no_episode_behind() -> None:
    env = Unlucky()
    env.reset(seed=0)
    with pytest.raises(OSError, match="no room"):
        env.reset(seed=0)
    with pytest.raises(turngym.errors.EpisodeOver):
        env.step("up")
    env.reset(seed=0)
    assert env.step("up")[0]


def test_a_restore_that_is_refused_in_one_slot_leaves_its_episode_alone_and_brings_back_the_others() -> None:
    with make_vec("turngym/GuessTheNumber-v0", 2, autoreset_mode="disabled") as vector:
        vector.reset(seed=[1, 2])
        saved = vector.snapshot()
        anchors = [row["anchor"] for row in vector.step(["50", "50"])[4].rows]
        with pytest.raises(turngym.errors.ConfigError):
            vector.restore([saved[0], b"{}"])
        infos = vector.step(["?", "?"])[4].rows
        assert infos[0]["anchor"] == "from 1 to 100" and infos[1]["anchor"] == anchors[1] != "from 1 to 100"


class Stumbling(Counter):
    """The second reset of each copy draws numbers and breaks; a fresh copy goes on."""

    resets = 0

    def begin(self, task: str | int | None) -> str:
        self.resets += 1
        drawn = int(self.np_random.integers(1_000_000))
        if self.resets == 2:
            raise OSError(f"no room after {drawn}")
        return f"{super().begin(task)} {drawn}"


@pytest.mark.parametrize("backend", ["thread", "asyncio", "process"])
def test_a_reset_that_breaks_goes_on_with_the_same_random_numbers_on_every_backend(backend: str) -> None:
    with make_vec(env_fns=[Stumbling] * 2) as sync, make_vec(env_fns=[Stumbling] * 2, backend=backend) as other:
        for vector in (sync, other):
            vector.reset(seed=7)
        seen = [repr(sync.reset()) for _ in range(5)]
        assert [repr(other.reset()) for _ in range(5)] == seen and len(set(seen)) == 5
        assert sync.stats()["faults"] == other.stats()["faults"] != {}
