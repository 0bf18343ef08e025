"""The study of learning from pictures: its options are ones that train takes, blank pictures show nothing."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks" / "studies" / "learning"))

import pictures

from turngym.benchmarks.cli.train import parse_train
from turngym.envs.vector import make_vec
from turngym.wrappers.wrapping import wrapping

ROOT = Path(__file__).parents[3]


def test_arms_differ_in_the_wrapper_alone() -> None:
    arms = pictures.runs((0,))
    seeing, blind = (parse_train(arms[pictures.run_name(arm, 0)])[0] for arm in pictures.ARMS)
    assert seeing.embedded.vision and seeing.rollout.prompt.pictures_only and seeing.env_options == {"image": True}
    assert (seeing.max_seconds, seeing.max_environment_turns) == (0, pictures.TURNS)
    assert replace(blind, wrappers=()) == seeing and blind.wrappers == (pictures.BLANK,)


def test_blank_pictures_are_all_the_same() -> None:
    vector = make_vec(
        "turngym/FrozenLake-v0", 2, wrappers=wrapping(str(ROOT / pictures.BLANK)), image=True, autoreset_mode="disabled"
    )
    try:
        observations, _ = vector.reset(seed=[1, 2])
    finally:
        vector.close()
    shown = np.asarray(observations["image"])
    assert shown.shape == (2, 64, 64, 3) and (shown == 128).all()
