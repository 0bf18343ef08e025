"""Bandits turn by turn: what is shown, what is not, answers that name no arm, options and snapshots."""

from typing import Any, TypeAlias

import numpy as np
import pytest

from turngym.envs.textgames.bandit.env import BernoulliBandit, GaussianBandit
from turngym.envs.textgames.bandit.players import bonus
from turngym.envs.textgames.bandit.scenarios import SCENARIOS
from turngym.errors import ConfigError

Kind: TypeAlias = type[BernoulliBandit] | type[GaussianBandit]
BOTH = pytest.mark.parametrize("kind", [BernoulliBandit, GaussianBandit])


def test_an_answer_that_names_no_arm_is_asked_again() -> None:
    env = BernoulliBandit(horizon=5)
    env.reset(seed=0)
    observation, reward, terminated, _, info = env.step("the blue one")
    assert observation == ("Unknown action: answer with one of blue, green, red, yellow, purple.\nChoose a button.")
    assert (reward, terminated, info["action_is_valid"], env.pulls) == (0.0, False, False, ())
    assert env.max_turns == 10


def test_answers_that_name_no_arm_run_out_of_turns() -> None:
    env = BernoulliBandit(horizon=5)
    env.reset(seed=0)
    for _ in range(9):
        assert not any(env.step("?")[2:4])
    *_, terminated, truncated, info = env.step("?")
    assert (terminated, truncated, info["success"]) == (False, True, 0)


def test_an_answer_that_names_no_arm_can_be_replaced_by_a_random_one() -> None:
    arms = []
    for seed in range(40):
        env, twin = (BernoulliBandit(horizon=5, on_invalid="replace") for _ in range(2))
        assert env.max_turns == 5
        env.reset(seed=seed)
        twin.reset(seed=seed)
        twin.step("red")
        for turn in range(5):
            observation, reward, terminated, truncated, info = env.step("?")
            assert not info["action_is_valid"] and not truncated and terminated == (turn == 4)
            arm = env.pulls[-1]
            assert f"{env.names[arm]} was chosen at random.\n{env.names[arm]}: reward {reward:g}" in observation
            arms.append(arm)
            if turn:
                twin.step("?")
                assert twin.pulls[-1] == arm, "what replaces a turn's answer does not depend on the other turns"
    counts = np.bincount(arms, minlength=5)
    assert counts.min() > 20, counts  # 40 expected, 5.7 standard deviation


@pytest.mark.parametrize("scenario", sorted(SCENARIOS))
def test_every_scenario_names_twenty_arms_that_can_all_be_pulled(scenario: str) -> None:
    env = BernoulliBandit(arms=20, scenario=scenario)
    _, info = env.reset(seed=0)
    assert len(set(env.names)) == 20 and info["legal_actions"] == env.names
    for arm, name in enumerate(env.names):
        assert name == name.lower().strip() and name in env.instructions
        assert env.step(f" {name.upper()}\n")[4]["action_is_valid"] and env.pulls[-1] == arm


def test_views_show_the_reward_the_table_and_the_guide() -> None:
    shown = {}
    for view in ("history", "summary", "guide"):
        env = BernoulliBandit(arms=2, horizon=10, view=view)
        env.reset(seed=0)
        for action in ("blue", "green", "blue"):
            shown[view] = env.step(action)[0].splitlines()
    news = f"blue: reward {env.rewards[-1]:g}"
    mean = (env.rewards[0] + env.rewards[2]) / 2
    assert shown["history"] == [news, "Choose a button."]
    line = f"blue: chosen 2 times, mean reward {mean:.3f}"
    assert shown["summary"] == [
        news,
        line,
        f"green: chosen once, mean reward {env.rewards[1]:.3f}",
        "Choose a button.",
    ]
    extra = bonus(2, 3)
    assert shown["guide"][1] == f"{line}, exploration bonus {extra:.3f}, value {mean + extra:.3f}"


def test_the_guide_tells_what_ucb_takes() -> None:
    env = GaussianBandit(view="guide", spread=3.0)
    for seed in range(5):
        observation = env.reset(seed=seed)[0]
        for _ in range(40):
            lines = observation.splitlines()[-6:-1]
            action = env.expert_action()
            if all("value" in line for line in lines):
                values = {line.split(":")[0]: float(line.split("value ")[1]) for line in lines}
                assert values[action] >= max(values.values()) - 0.0011
            else:
                assert f"{action}: not chosen yet" in lines
            observation = env.step(action)[0]


def test_the_anchor_is_the_same_whatever_the_order() -> None:
    """Counts and means are all that matters: 1, 0 and 0, 1 of one arm are one state."""
    env = BernoulliBandit(arms=2)
    anchors: dict[tuple[tuple[int, ...], tuple[float, ...]], set[str]] = {}
    for seed in range(60):
        env.reset(seed=seed)
        for action in ("blue", "green", "blue", "blue", "green"):
            env.step(action)
            anchors.setdefault((tuple(env.counts), tuple(env.sums)), set()).add(env.anchor())
    assert all(len(texts) == 1 for texts in anchors.values())
    assert len({text for texts in anchors.values() for text in texts}) == len(anchors)


@BOTH
def test_other_hidden_facts_change_only_what_is_not_seen(kind: Kind) -> None:
    env = kind()
    env.reset(seed=2)
    for turn in range(12):
        env.step(env.names[turn % 4])
    before = env._info(), env.pulls, env.rewards, list(env.counts), list(env.sums)
    means = {env.means}
    for _ in range(10):
        assert env.resample_hidden()
        after = env._info(), env.pulls, env.rewards, list(env.counts), list(env.sums)
        assert {**after[0], "score": 0} == {**before[0], "score": 0}
        assert after[1:] == before[1:]
        means.add(env.means)
        assert env.regret == pytest.approx(sum([max(env.means) - env.means[arm] for arm in env.pulls]))
        twin = kind()
        twin.restore(env.snapshot())
        assert twin.step("red")[1] == env.step("red")[1] and twin.instance == env.instance
        before = env._info(), env.pulls, env.rewards, list(env.counts), list(env.sums)
    assert len(means) > 3


def test_nothing_is_left_to_choose_after_the_end() -> None:
    env = BernoulliBandit(horizon=5)
    env.reset(seed=0)
    info = [env.step("blue")[4] for _ in range(5)][-1]
    assert info["progress"] == 1.0 and "Choose" not in str(env._observation)
    with pytest.raises(ConfigError, match="after the episode has ended"):
        env.expert_action()


OPTION_OUT_OF_RANGE_IS_REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"arms": 1}, r"arms of .* \[2, 20\], got 1"),
    ({"arms": 21}, r"arms of .* \[2, 20\], got 21"),
    ({"horizon": 4}, r"horizon of .* \[5, 50000\], got 4"),
    ({"horizon": 50.0}, r"horizon of .* whole number, got 50\.0"),
    ({"gap": 0}, r"gap of .* got 0"),
    ({"gap": 1.0}, r"gap of .* \[1e-06, 0\.9\], got 1\.0"),
    ({"scenario": "button"}, r"Did you mean 'buttons'\?"),
    ({"view": "guided"}, r"Did you mean 'guide'\?"),
    ({"on_invalid": "ask"}, r"on_invalid of .* got 'ask'"),
    ({"expert": "ucb1"}, r"Did you mean 'ucb'\?"),
    ({"success_share": 1.5}, r"success_share of .* got 1\.5"),
    ({"max_turns": 40}, r"is 40, but the episode ends after 50 pulls: pass horizon=40"),
]


def test_option_out_of_range_is_refused() -> None:
    for options, message in OPTION_OUT_OF_RANGE_IS_REFUSED:
        with pytest.raises(ConfigError, match=message):
            BernoulliBandit(**options)


@pytest.mark.parametrize(
    ("options", "message"), [({"spread": 0.0}, r"spread of .* got 0\.0"), ({"noise": -1.0}, r"noise of .* got -1\.0")]
)
def test_a_spread_that_is_not_positive_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        GaussianBandit(**options)
