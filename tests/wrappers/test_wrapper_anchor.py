"""Anchors: equal, equal up to how they are written, similar; for one episode and for a group."""

import subprocess
import sys
from difflib import SequenceMatcher
from typing import Any

import gymnasium
import pytest
import toy_envs  # noqa: F401  (registers the toy environments)
from hypothesis import given
from hypothesis import strategies as st

from turngym.errors import ConfigError
from turngym.wrappers import Wrapping, wrap
from turngym.wrappers.observations.anchor import Anchor, cluster, normalised

WORDS = st.lists(st.sampled_from(["a box", "a fox", "a red box", "a red fox", "wall", "walls", ""]), max_size=8)


def counter(**options: Any) -> Any:
    env = wrap(gymnasium.make("toy/Counter-v0", goal=50, max_turns=40), Wrapping("anchor", options))
    env.reset(seed=0)
    return env


@pytest.mark.parametrize(
    ("text", "plain", "without_numbers"),
    [
        ("A  Box\n at 3 ", "a box at 3", "a box at #"),
        ("x=-3.50, y=+2", "x=-3.50, y=+2", "x=#, y=#"),
        ("Straße", "strasse", "strasse"),
        ("", "", ""),
    ],
)
def test_what_is_normalised(text: str, plain: str, without_numbers: str) -> None:
    assert normalised(text) == plain
    assert normalised(text, numbers=True) == without_numbers


@given(st.text())
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    for numbers in (False, True):
        once = normalised(text, numbers=numbers)
        assert normalised(once, numbers=numbers) == once


def test_the_modes_of_the_wrapper() -> None:
    plain = gymnasium.make("toy/Counter-v0", goal=50, max_turns=40)
    plain.reset(seed=0)
    raw = plain.step("up")[-1]["anchor"]
    assert raw == "1 of 50"
    assert counter(mode="exact").step("up")[-1]["anchor"] == raw
    assert counter(numbers=True).step("up")[-1]["anchor"] == "# of #"
    observation, *_, info = counter(mode="exact", source="observation").step("up")
    assert info["anchor"] == observation != raw


def test_the_source_is_the_observation_that_reaches_the_wrapper() -> None:
    env = wrap(gymnasium.make("toy/Counter-v0"), "history", "anchor:source=observation,mode=exact")
    env.reset(seed=0)
    observation, *_, info = env.step("up")
    assert observation.startswith("Turn 1:") and info["anchor"] == observation


def test_a_similar_state_of_the_episode_gives_its_text() -> None:
    env = counter(mode="similarity", threshold=0.8)
    anchors = [env.step("up")[-1]["anchor"] for _ in range(12)]
    texts = ["0 of 50", *[f"{i} of 50" for i in range(1, 13)]]
    expected = [texts[i] for i in cluster(texts, 0.8)]
    assert anchors == expected[1:] and len(set(anchors)) < 12
    env.reset(seed=0)
    assert env.step("down")[-1]["anchor"] == "0 of 50"  # "-1 of 50" against the first state of this episode alone


def test_a_snapshot_keeps_the_clusters() -> None:
    env, other = counter(mode="similarity", threshold=0.8), counter(mode="similarity", threshold=0.8)
    for _ in range(11):
        info = env.step("up")[-1]
    assert other.restore(env.snapshot())[1]["anchor"] == info["anchor"]
    assert other.step("down")[-1]["anchor"] == env.step("down")[-1]["anchor"]


@given(texts=WORDS, threshold=st.sampled_from([0.5, 0.75, 0.9, 1.0]))
def test_clusters_are_those_of_the_plain_walk(texts: list[str], threshold: float) -> None:
    """The definition, word for word: the first cluster whose first member is similar enough, or a new one."""
    firsts: list[int] = []
    expected = []
    for position, text in enumerate(texts):
        for first in firsts:
            if SequenceMatcher(None, texts[first], text, autojunk=False).ratio() >= threshold:
                expected.append(first)
                break
        else:
            firsts.append(position)
            expected.append(position)
    assert cluster(texts, threshold) == expected


def test_with_threshold_one_only_equal_texts_meet() -> None:
    assert cluster(["a", "b", "a", "A", "b", ""], 1.0) == [0, 1, 0, 3, 1, 5]


def test_members_of_a_group_get_one_key_where_wrappers_of_single_episodes_cannot() -> None:
    """Two episodes that begin with slightly different texts: each wrapper keeps its own, the group has one."""
    one, other = ["score 10, at the door", "score 11, at the door"], ["score 12, at the door"]
    assert [one[i] for i in cluster(one, 0.9)] != [other[i] for i in cluster(other, 0.9)]
    assert cluster([*one, *other], 0.9) == [0, 0, 0]


def test_clusters_are_the_same_in_every_process() -> None:
    texts = ["a box", "a fox", "a red box", "wall", "walls"] * 3
    program = f"from turngym.wrappers.observations.anchor import cluster; print(cluster({texts!r}, 0.7))"
    for seed in ("1", "2"):
        said = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        )
        assert said.stdout.strip() == str(cluster(texts, 0.7))


@pytest.mark.parametrize("options", [{"mode": "fuzzy"}, {"source": "state"}, {"threshold": 0}, {"threshold": 1.5}])
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Anchor(gymnasium.make("toy/Counter-v0"), **options)
