"""Actions by number: what is listed, what reaches the environment, what the expert says, what snapshots keep."""

from typing import Any

import gymnasium
import pytest

from turngym.envs.check import check
from turngym.errors import ConfigError
from turngym.wrappers import wrap

HANOI = "turngym/TowerOfHanoi-v0"


def choosing(env_id: str = HANOI, *more: str, **options: Any) -> gymnasium.Env[Any, str]:
    return wrap(gymnasium.make(env_id, **options), "choices", *more)


def test_a_number_plays_the_action_that_stands_beside_it() -> None:
    plain, env = gymnasium.make(HANOI), choosing()
    (bare, inside), (shown, info) = plain.reset(seed=3), env.reset(seed=3)
    while inside["success"] < 0 and inside["legal_actions"]:
        lines = [f"{number}: {action}" for number, action in enumerate(inside["legal_actions"], 1)]
        assert shown == "\n".join([bare, *lines])
        assert info["legal_actions"] == tuple(str(number + 1) for number in range(len(lines)))
        last = len(lines)
        bare, reward, *ends, inside = plain.step(inside["legal_actions"][last - 1])
        shown, *outer, info = env.step(f" {last}\n")
        assert [reward, *ends] == outer
    assert shown == bare and info["legal_actions"] == ()


@pytest.mark.parametrize("action", ["0", "3", "-1", "1.0", "A B", "", "one", "²", "9" * 5000, "01"])
def test_what_is_no_number_of_the_list_is_answered_by_the_environment(action: str) -> None:
    env = choosing()
    env.reset(seed=0)
    observation, _, terminated, truncated, info = env.step(action)
    assert info["action_is_valid"] is False and not terminated and not truncated
    assert observation.endswith("1: A B\n2: A C") and info["legal_actions"] == ("1", "2")


def test_the_expert_answers_with_numbers_and_wins() -> None:
    env = choosing("turngym/Sokoban-v0")
    _, info = env.reset(seed=1)
    while info["success"] < 0:
        action = env.get_wrapper_attr("expert_action")()
        assert action in info["legal_actions"]
        *_, info = env.step(action)
    assert info["success"] == 1


def test_an_expert_whose_action_is_not_listed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    env = choosing()
    env.reset(seed=0)
    monkeypatch.setattr(type(env.unwrapped), "expert_action", lambda self: "B C")
    with pytest.raises(ConfigError, match="plays 'B C', which is not among the legal actions that are listed"):
        env.get_wrapper_attr("expert_action")()


def test_where_nothing_is_listed_actions_are_passed_on() -> None:
    env = choosing("turngym/GuessTheNumber-v0", low=1, high=1000)
    observation, info = env.reset(seed=0)
    assert info["legal_actions"] == () and ":" not in observation.splitlines()[-1][:3]
    assert env.step("5")[4]["action_is_valid"] is True
    assert env.get_wrapper_attr("expert_action")().isdecimal()


def test_snapshots_keep_the_list_and_other_wrappers_see_numbers() -> None:
    env, other = (choosing(HANOI, "history:k=1") for _ in range(2))
    env.reset(seed=2)
    before = env.step("1")
    saved = env.get_wrapper_attr("snapshot")()
    assert other.get_wrapper_attr("restore")(saved)[0] == before[0]
    assert env.step("2")[:4] == other.step("2")[:4]
    assert "Your action: 1" in before[0]


def test_the_instructions_say_so_and_the_checker_finds_no_broken_promise() -> None:
    env = choosing()
    assert env.get_wrapper_attr("instructions").endswith("answer with the number of one.")
    report = check(choosing, episodes=1, in_process=True)
    assert not report.failed and {"expert-solves", "snapshot-exact", "legal-actions-valid"} <= {*report.passed}
