"""The base class of environments: what a class declares is checked where it is used."""

from typing import Any

import numpy as np
import pytest
from sound_env import Sound

from turngym.envs.instances import split_of
from turngym.errors import BrokenCode


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
