"""Trajectories that go to other ranks arrive whole."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from typing import Any

from small import play, small_model

from turngym.agents.chat import Note
from turngym.agents.trajectory import Branch, EpisodeSpec, Trajectory, Turn
from turngym.agents.usage import Usage
from turngym.trainers.core.trajectory_packing import packed, unpacked


def everything() -> Trajectory:
    """An episode with something in every field, whose second turn continues the first and whose third does not."""
    turn = Turn(
        "sees \ud800 \u2603",
        "anchor",
        "go",
        completion="<action>go</action>",
        prompt_ids=(1, 2, 3),
        completion_ids=(4, 5),
        logprobs=(-0.1, -1 / 3),
        reward=0.1 + 0.2,
        action_is_valid=False,
        agent="player_1",
        usage=Usage(tokens_in=3, latency=0.25, cost=None, failures={"timeout": 2}),
        notes=(Note("summary", "a wall"), Note("plan", "")),
        staleness=2,
        policy_version=7,
        entropies=(0.5, 0.25),
        snapshot=bytes(range(256)),
        progress=0.5,
        columns={"reward/step": -0.1, "name": "text", "each": (0.1, 0.2)},
        cut_off=True,
        restricted=True,
        pictures=(b"one", b"two"),
    )
    return Trajectory(
        EpisodeSpec(3, 7, 1, {"level": 2}),
        env_id="turngym/Sokoban-v0",
        instance="hash",
        turns=[turn, replace(turn, prompt_ids=(1, 2, 3, 4, 5, 6)), replace(turn, prompt_ids=(9,), pictures=(b"two",))],
        terminated=True,
        truncated=True,
        success=1,
        score=-0.0,
        fault="broke",
        final_observation="end",
        final_prompt_ids=(1, 2),
        role="wolf",
        policy="learner",
        progress=1 / 3,
        final_anchor="last",
        truncation_reason="context",
        truncation_detail="too long",
        columns={"judge": 0.7, "why": "good"},
        final_pictures=(b"last",),
    )


def sent(trajectory: Trajectory, branch: Branch | None = None) -> Trajectory:
    return unpacked(json.loads(json.dumps(packed(trajectory)).encode()), branch)


def assert_equal(found: Trajectory, expected: Trajectory) -> None:
    """Compare every field, those that equality leaves out as well."""
    assert len(found.turns) == len(expected.turns)
    pairs: list[tuple[Any, Any]] = [(found, expected), *zip(found.turns, expected.turns, strict=True)]
    for one, two in pairs:
        for field in fields(one):
            if field.name != "turns":
                before, after = getattr(two, field.name), getattr(one, field.name)
                both_nan = isinstance(before, float) and math.isnan(before) and math.isnan(after)
                assert after == before or both_nan, field.name
                assert type(after) is type(before), field.name


def test_every_field_arrives_exactly() -> None:
    assert_equal(sent(everything()), everything())


def test_what_follows_a_prompt_is_sent_once() -> None:
    turns = packed(everything())["turns"]
    assert [turn["prompt_ids"] for turn in turns] == [[1, 2, 3], [6], [9]]
    assert packed(everything())["packed_pictures"] == ["b25l", "dHdv"]


def test_a_branch_is_put_back() -> None:
    whole = everything()
    branch = Branch(whole, 1)
    branched = replace(whole, spec=replace(whole.spec, branch=branch))
    found = sent(branched, branch)
    assert found.spec.branch is branch
    assert found.reward_sum == branched.reward_sum


def test_episodes_that_a_model_played() -> None:
    for mode in ("conversation", "window"):
        for trajectory in play(small_model(), mode):
            assert_equal(sent(trajectory), trajectory)


def test_an_episode_without_a_turn() -> None:
    assert_equal(sent(Trajectory(EpisodeSpec(0, 0), fault="broke")), Trajectory(EpisodeSpec(0, 0), fault="broke"))
