"""The base class of environments: what a class declares is checked where it is used."""

import copy
import json
import math
import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from sound_env import Sound

from turngym.envs.instances import split_of
from turngym.errors import BrokenCode
from turngym.types import UNKNOWN


@pytest.mark.parametrize("finite", [True, False, 0, -1, 2.0, "all"])
def test_finite_instances_is_a_number(finite: Any) -> None:
    """True was taken as a number of instances, and switched the splits off."""
    env = Sound(split="test")
    env.finite_instances = finite
    with pytest.raises(BrokenCode, match=r"finite_instances of .* must be None or a number of at least 1"):
        env.reset(seed=0)


@pytest.mark.parametrize(("finite", "is_split"), [(None, True), (64, False), (np.int64(64), False)])
def test_instances_are_drawn_from_their_split_unless_they_are_few(finite: Any, is_split: bool) -> None:
    env = Sound(split="test")
    env.finite_instances = finite
    drawn = set()
    for seed in range(40):
        env.reset(seed=seed)
        drawn.add(split_of(env.instance))
    assert (drawn == {"test"}) == is_split


class Silent(Sound):
    """Has no progress."""

    def progress(self) -> float:
        return float("nan")


def test_gymnasiums_checker_accepts_an_environment_without_progress() -> None:
    """It compares the infos of two equal resets, and NaN does not equal NaN."""
    env = Silent()
    env.spec = gymnasium.envs.registration.EnvSpec("mine/Silent-v0", lambda **options: Silent(**options))
    check_env(env, skip_render_check=True)
    first, second = (Silent().reset(seed=1)[1] for _ in range(2))
    assert first == second and math.isnan(first["progress"])


def test_unknown_progress_is_nan_that_equals_itself() -> None:
    for same in (UNKNOWN, copy.deepcopy(UNKNOWN), pickle.loads(pickle.dumps(UNKNOWN)), math.nan):
        assert same == UNKNOWN and (same != UNKNOWN) is False
    assert math.isnan(UNKNOWN) and UNKNOWN != 0.5 and not UNKNOWN < 0.5
    assert json.dumps(UNKNOWN) == "NaN" and repr(UNKNOWN) == "nan" and np.isnan(np.array([UNKNOWN])).all()
