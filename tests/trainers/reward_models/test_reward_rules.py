"""Reward models that are rules, and how rewards of a model enter trajectories."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from reward_games import walk

from turngym.agents.trajectory import Branch, EpisodeSpec, Trajectory, Turn
from turngym.errors import CheckpointError, ConfigError, DivergenceError, UnknownName
from turngym.trainers.reward_models import REWARD_MODELS, load_reward_model, make_reward_model
from turngym.trainers.reward_models.base.model import RewardConfig, RewardModel, rewarded
from turngym.trainers.reward_models.base.shaping import differences


class Counting(RewardModel[RewardConfig]):
    """Gives every turn its number."""

    name: ClassVar[str] = "counting"
    Config = RewardConfig

    def rewards(self, trajectories: Sequence[Trajectory]) -> list[list[float]]:
        return [[float(k) for k in range(len(each.turns))] for each in trajectories]


class Replacing(Counting):
    replaces: ClassVar[bool] = True


def searches(calls: int, success: int, group: int = 0) -> Trajectory:
    turns = [Turn("q", "q", "<search>x</search>")] * calls + [Turn("q", "q", "<answer>y</answer>", reward=1.0)]
    return Trajectory(EpisodeSpec(0, 0, group), turns=turns, success=success, terminated=True)


def test_four_models_are_registered() -> None:
    assert set(REWARD_MODELS) >= {"milestones", "otc", "progrm", "shepherd", "spa"}
    assert {name for name, kind in REWARD_MODELS.items() if kind.is_trainable} >= {"progrm", "shepherd", "spa"}
    assert all(kind.name == name for name, kind in REWARD_MODELS.items())


# How rewards enter.


def test_rewards_are_added_and_named_among_the_components() -> None:
    before = walk("rrr", 1)
    [after] = rewarded(Counting(RewardConfig(weight=0.5)), [before])
    assert [turn.reward for turn in after.turns] == [0.0, 0.5, 2.0]
    assert after.turns[2].columns == {"reward/reward": 1.0, "reward/counting": 1.0}
    assert before.reward_sum == 1.0 and not before.turns[0].columns, "what was passed stays"


def test_replacing_rewards_take_the_place_of_the_environments() -> None:
    [after] = rewarded(Replacing(RewardConfig()), [walk("rrr", 1)])
    assert [turn.reward for turn in after.turns] == [0.0, 1.0, 2.0]
    assert after.turns[2].columns == {"reward/counting": 2.0}


def test_components_of_the_environment_stay() -> None:
    episode = walk("r", 1)
    episode.turns[0] = replace(episode.turns[0], columns={"room": "hall", "reward/form": 0.25, "reward/goal": 0.75})
    [after] = rewarded(Counting(RewardConfig()), [episode])
    assert after.turns[0].columns == {
        "room": "hall",
        "reward/form": 0.25,
        "reward/goal": 0.75,
        "reward/counting": 0.0,
    }
    [after] = rewarded(Replacing(RewardConfig()), [episode])
    assert after.turns[0].columns == {"room": "hall", "reward/counting": 0.0}


def test_faulted_and_empty_trajectories_are_handed_through() -> None:
    broken, empty, whole = walk("rr", fault="worker died"), walk(""), walk("rr")
    found = rewarded(Counting(RewardConfig()), [broken, whole, empty])
    assert found[0] is broken and found[2] is empty and found[1].reward_sum == 1.0
    assert rewarded(Counting(RewardConfig()), [broken, empty]) == [broken, empty]


def test_a_reward_that_is_not_finite_stops_with_its_action() -> None:
    class Broken(Counting):
        def rewards(self, trajectories: Sequence[Trajectory]) -> list[list[float]]:
            return [[math.nan] for _ in trajectories]

    with pytest.raises(DivergenceError, match=r"'counting' gave nan for the action 'r'"):
        rewarded(Broken(RewardConfig()), [walk("r")])


# Milestones.


def test_differences_add_up_to_what_was_gained() -> None:
    values = [0.1, 0.7, 0.2, 0.9]
    assert math.fsum(differences(values)) == pytest.approx(0.8)
    discounted = differences(values, gamma=0.5, last_is_zero=True)
    assert math.fsum(0.5**k * each for k, each in enumerate(discounted)) == pytest.approx(-0.1)


@pytest.mark.parametrize(
    ("zero_when", "success", "expected"),
    [
        ("never", 1, [0.5, -0.25, 0.75]),
        ("terminated", 1, [0.5, -0.25, -0.25]),
        ("terminated", 0, [0.5, -0.25, 0.75]),
        ("over", 0, [0.5, -0.25, -0.25]),
    ],
)
def test_milestones_pay_the_change_of_progress(zero_when: str, success: int, expected: list[float]) -> None:
    model = make_reward_model(f"milestones:zero_when={zero_when}")
    assert model.rewards([walk("rrr", success, progress=[0.0, 0.5, 0.25, 1.0])]) == [expected]


def test_loops_earn_nothing_net() -> None:
    model = make_reward_model("milestones:zero_when=never")
    straight = walk("rr", progress=[0.0, 0.5, 1.0])
    circling = walk("rlrlrr", progress=[0.0, 0.5, 0.0, 0.5, 0.0, 0.5, 1.0])
    assert [math.fsum(own) for own in model.rewards([straight, circling])] == [1.0, 1.0]


def test_unknown_progress_earns_nothing() -> None:
    assert make_reward_model("milestones").rewards([walk("rr")]) == [[0.0, 0.0]]


def test_patterns_pay_once_each() -> None:
    model = make_reward_model('milestones:patterns=["at 1$", "at 2$"],zero_when=never')
    assert model.rewards([walk("rlrrl")]) == [[0.5, 0.0, 0.0, 0.5, 0.0]]
    assert model.score(walk("rlr")) == 0.5 and model.score(walk("rr")) == 1.0


def test_a_branch_is_paid_for_its_own_turns_only() -> None:
    parent = walk("rrr", progress=[0.0, 0.25, 0.5, 0.75])
    branch = walk("xr", progress=[0.5, 0.5, 1.0])
    branch.spec = EpisodeSpec(9, 0, 0, branch=Branch(parent, 2))
    assert make_reward_model("milestones:zero_when=never").rewards([branch]) == [[0.0, 0.5]]


# Tool efficiency.


@pytest.mark.parametrize(("calls", "expected"), [(0, 1.0), (1, 0.866025), (2, 0.707107), (4, 0.5)])
def test_single_efficiency_has_the_worked_numbers(calls: int, expected: float) -> None:
    [own] = make_reward_model("otc:form=single,most_calls=4").rewards([searches(calls, 1)])
    assert own[-1] == pytest.approx(expected, abs=1e-6) and not any(own[:-1])


@pytest.mark.parametrize(
    ("calls", "fewest", "expected"), [(0, 0, 1.0), (2, 0, 0.707107), (2, 2, 1.0), (4, 2, 0.866025)]
)
def test_group_efficiency_has_the_worked_numbers(calls: int, fewest: int, expected: float) -> None:
    model = make_reward_model("otc:most_calls=4")
    found = model.rewards([searches(calls, 1), searches(fewest, 1), searches(0, 0)])
    assert math.fsum(found[0]) == pytest.approx(expected, abs=1e-6)


def test_a_wrong_answer_earns_nothing_for_few_calls() -> None:
    [own] = rewarded(make_reward_model("otc"), [searches(0, 0)])
    assert own.reward_sum == 0.0


def test_groups_are_compared_apart_and_a_group_of_one_with_itself() -> None:
    found = make_reward_model("otc").rewards([searches(4, 1, group=0), searches(2, 1, group=1)])
    assert [math.fsum(own) for own in found] == pytest.approx([1.0, 1.0])


def test_alpha_multiplies() -> None:
    [own] = rewarded(make_reward_model("otc:weight=2,form=single"), [searches(1, 1)])
    assert own.reward_sum == pytest.approx(2 * 0.866025, abs=1e-6)


# Specifications.


WRONG_OPTIONS_ARE_NAMED: list[tuple[str, str]] = [
    ("milestones:gama=0.5", "Did you mean 'gamma'"),
    ("milestones:gamma=2", "gamma must be in"),
    ("milestones:gamma=high", "must be like 1.0"),
    ("milestones:zero_when=often", "no zero_when 'often'"),
    ('milestones:patterns=["("]', "not a regular expression"),
    ("otc:form=pair", "'group' or 'single'"),
    ("otc:most_calls=0", "most_calls must be in"),
    ("otc:most_calls=1.5", "must be like 4"),
    ("spa:outcome=luck", "outcome must be one of"),
    ("progrm:labels=people", "labels must be"),
    ("progrm:epochs=0", "epochs must be in"),
    ("shepherd:baseline=2", "baseline must be in"),
]


def test_wrong_options_are_named() -> None:
    for text, message in WRONG_OPTIONS_ARE_NAMED:
        with pytest.raises(ConfigError, match=message):
            make_reward_model(text)


def test_unknown_names_and_missing_folders_are_named(tmp_path: Any) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'progrm'"):
        make_reward_model("program")
    with pytest.raises(CheckpointError, match="holds no reward model"):
        make_reward_model(f"spa:path={tmp_path}")
    with pytest.raises(CheckpointError, match="holds no reward model"):
        load_reward_model(tmp_path / "nothing")


@pytest.mark.parametrize("call", [lambda m, p: m.fit([]), lambda m, p: m.save(p), lambda m, p: m.load(p, {})])
def test_a_rule_cannot_be_fitted(call: Any, tmp_path: Any) -> None:
    with pytest.raises(ConfigError, match="is a rule"):
        call(make_reward_model("otc"), tmp_path)
