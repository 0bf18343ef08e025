"""EZ Points and the 24 game: every hand can be solved, tokens that lead nowhere are refused, formulas count exactly."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.envs.instances import split_of
from turngym.envs.textgames.ez_points.env import EZPoints
from turngym.envs.textgames.ez_points.formula import evaluate, tokenize
from turngym.errors import ConfigError

POINTS24: dict[str, Any] = {"cards": 4, "target": 24, "operators": "+-*/"}


def holding(env: EZPoints, *ranks: int) -> EZPoints:
    """Deal given cards, through the snapshot."""
    env.reset(seed=0)
    content = json.loads(env.snapshot())
    content["state"] = {"ranks": list(ranks), "tokens": []}
    env.restore(json.dumps(content).encode())
    return env


def play(env: EZPoints, tokens: str) -> list[tuple[str, float, bool, bool, dict[str, Any]]]:
    return [env.step(token) for token in tokens.split()]


@pytest.mark.parametrize("options", [{}, POINTS24, {**POINTS24, "faces": "rank"}, {"cards": 3, "operators": "+-*"}])
def test_expert_solves_200_tasks_token_by_token(options: dict[str, Any]) -> None:
    env = EZPoints(**options, max_turns=14)
    for seed in range(200):
        env.reset(seed=seed)
        terminated = False
        while not terminated:
            _, _, terminated, truncated, info = env.step(env.expert_action())
            assert not truncated and info["action_is_valid"]
        assert info["success"] == 1


@pytest.mark.parametrize("options", [{}, POINTS24])
def test_expert_gives_a_whole_formula_that_is_right_at_once(options: dict[str, Any]) -> None:
    env = EZPoints(**options, entry="formula", max_turns=1)
    for seed in range(100):
        env.reset(seed=seed)
        formula = env.expert_action()
        assert evaluate(tokenize(formula) or []) == env.target
        assert env.step(formula)[4]["success"] == 1


def test_a_formula_grows_token_by_token() -> None:
    env = holding(EZPoints(), 4, 8)
    steps = play(env, "8 + 4 =")
    assert [step[0] for step in steps] == [
        "Cards: 4, 8. Target: 12. Formula: 8",
        "Cards: 4, 8. Target: 12. Formula: 8 +",
        "Cards: 4, 8. Target: 12. Formula: 8 + 4",
        "Cards: 4, 8. Target: 12. Formula: 8 + 4 = 12",
    ]
    assert [step[1] for step in steps] == [0.0, 0.0, 0.0, 1.0]
    assert [sorted(step[4]["legal_actions"]) for step in steps] == [["*", "+"], ["4"], ["="], []]
    assert [step[4]["progress"] for step in steps] == [1 / 3, 1 / 3, 2 / 3, 1.0]


def test_a_wrong_formula_ends_the_episode_without_success() -> None:
    env = holding(EZPoints(step_reward=-0.25), 4, 8)
    observation, reward, terminated, _, info = play(env, "8 * 4 =")[-1]
    assert observation == "Cards: 4, 8. Target: 12. Formula: 8 * 4 = 32, not 12"
    assert (reward, terminated, info["success"], info["score"]) == (-0.25, True, 0, 0.0)


def test_a_division_by_zero_is_a_wrong_formula() -> None:
    env = holding(EZPoints(**POINTS24), 8, 3, 5, 5)
    observation, _, terminated, _, info = play(env, "8 * 3 / ( 5 - 5 ) =")[-1]
    assert observation.endswith("= no number, because it divides by zero, not 24")
    assert terminated and info["success"] == 0


def test_pictures_count_ten_or_their_rank() -> None:
    assert play(holding(EZPoints(), 13, 2), "10 + 2 =")[-1][4]["success"] == 1
    env = holding(EZPoints(faces="rank", target=15), 13, 2)
    assert env.reset(seed=0)[1]["action_is_valid"]
    assert play(holding(EZPoints(faces="rank", target=15), 13, 2), "13 + 2 =")[-1][4]["success"] == 1


LEGAL_TOKENS_KEEP_A_FORMULA_WITHIN_REACH: list[tuple[str, tuple[str, ...]]] = [
    ("", ("3", "8", "10", "(")),
    ("(", ("3", "8", "10", "(")),
    ("( ( (", ("3", "8", "10")),
    ("8", ("+", "-", "*", "/")),
    ("( 8", ("+", "-", "*", "/", ")")),
    ("( 8 )", ("+", "-", "*", "/")),
    ("8 -", ("3", "8", "10", "(")),
    ("8 - 8 - 3 -", ("10",)),
    ("8 - 8 - ( 3 - 10", (")",)),
    ("8 - 8 - ( 3 - 10 )", ("=",)),
]


def test_legal_tokens_keep_a_formula_within_reach() -> None:
    for tokens, legal in LEGAL_TOKENS_KEEP_A_FORMULA_WITHIN_REACH:
        env = holding(EZPoints(**POINTS24), 8, 13, 3, 8)
        play(env, tokens)
        assert sorted(env._info()["legal_actions"]) == sorted(legal)


def test_a_token_that_does_not_fit_is_answered_and_changes_nothing() -> None:
    for action in ["", "12", "9", "+", "(", "=", "8 +", "eight", "8.0", "8" * 500, "J"]:
        env = holding(EZPoints(), 4, 8)
        before = env._info()
        observation, _, terminated, _, info = env.step(action)
        listed = " ".join(before["legal_actions"])
        assert observation == f"Unknown action: answer with one of {listed}. Cards: 4, 8. Target: 12. Formula:"
        assert not terminated and info == {**before, "action_is_valid": False}


def test_typographic_signs_are_tokens() -> None:
    assert play(holding(EZPoints(), 3, 4), "3 × 4 =")[-1][4]["success"] == 1


@settings(max_examples=60)
@given(st.integers(0, 1000), st.randoms(use_true_random=False))
def test_legal_tokens_alone_always_end_the_episode(seed: int, choice: Any) -> None:
    env = EZPoints(**POINTS24, max_turns=14)
    _, info = env.reset(seed=seed)
    shares, terminated = [info["progress"]], False
    while not terminated:
        tokens = list(env._tokens)
        _, _, terminated, truncated, info = env.step(choice.choice(info["legal_actions"]))
        assert not truncated and info["action_is_valid"]
        shares.append(info["progress"])
        tokens.append(env._tokens[-1])
    assert all(later >= earlier for earlier, later in pairwise(shares[:-1]))
    assert info["success"] == (evaluate(tokens[:-1]) == 24) == (info["progress"] == 1.0)


def test_expert_goes_on_from_any_beginning_that_can_succeed() -> None:
    """Where it says that nothing can succeed, no formula from there does; small enough to try all with three cards."""

    def can_succeed(env: EZPoints) -> bool:
        snapshot = env.snapshot()
        for token in env._info()["legal_actions"]:
            _, _, terminated, _, info = env.step(token)
            found = info["success"] == 1 if terminated else can_succeed(env)
            env.restore(snapshot)
            if found:
                return True
        return False

    env = EZPoints(cards=3, target=6, operators="+-*")
    generator = np.random.Generator(np.random.Philox(3))
    outcomes = []
    for seed in range(40):
        _, info = env.reset(seed=seed)
        for _ in range(3):
            legal = info["legal_actions"]
            info = env.step(legal[int(generator.integers(len(legal)))])[4]
        try:
            action = env.expert_action()
        except ConfigError:
            assert not can_succeed(env), env._board
            outcomes.append(False)
            continue
        assert action in info["legal_actions"]
        while info["success"] < 0:
            info = env.step(env.expert_action())[4]
        assert info["success"] == 1
        outcomes.append(True)
    assert 5 < sum(outcomes) < 35, "both cases must occur"


@pytest.mark.parametrize("tokens", ["8 *", "8 * 4"])
def test_without_any_way_on_the_expert_says_so(tokens: str) -> None:
    env = holding(EZPoints(), 4, 8)
    play(env, tokens)
    with pytest.raises(ConfigError, match=r"no formula that starts with '8 \*.* makes 12\. Call reset\(\)"):
        env.expert_action()


def test_whole_formulas_are_answered_with_their_value_and_may_be_tried_again() -> None:
    env = holding(EZPoints(**POINTS24, entry="formula", max_turns=4), 3, 8, 3, 8)
    assert env._observation is not None and env._info()["legal_actions"] == ()
    assert env.step("3 * 3 + 8 + 8")[0] == "The value is 25, not 24. Cards: 3, 8, 3, 8. Target: 24."
    assert env.step("8/(3-3)*8")[0].startswith("The value is no number, because it divides by zero")
    assert env.step("(3 + 8)/(3*8)")[0].startswith("The value is 11/24, not 24.")
    observation, reward, terminated, truncated, info = env.step("8/(3 - 8/3) = 24")
    assert (observation, reward, terminated, truncated) == ("24: correct", 1.0, True, False)
    assert info["success"] == 1 and info["progress"] == 1.0


def test_tries_run_out() -> None:
    env = holding(EZPoints(entry="formula", max_turns=2), 4, 8)
    env.step("4*8")
    *_, terminated, truncated, info = env.step("8*4")
    assert (terminated, truncated, info["success"]) == (False, True, 0)


TEXT_THAT_IS_NO_FORMULA_OF_THE_CARDS_IS: list[tuple[str, str]] = [
    ("", "answer with one formula of the cards with + *"),
    ("4 - 8", "answer with one formula of the cards with + *"),
    ("4 +", "answer with one formula of the cards with + *"),
    ("4 + 8 = 13", "answer with one formula of the cards with + *"),
    ("12", "use each of 4, 8 exactly once"),
    ("4 + 4 + 4", "use each of 4, 8 exactly once"),
    ("4 + 4", "use each of 4, 8 exactly once"),
    ("4 + 8 " + " " * 300, "answer with one formula of the cards with + *"),
    ("__import__('os')", "answer with one formula of the cards with + *"),
    ("(" * 150, "answer with one formula of the cards with + *"),
]


def test_text_that_is_no_formula_of_the_cards_is_answered() -> None:
    for action, note in TEXT_THAT_IS_NO_FORMULA_OF_THE_CARDS_IS:
        env = holding(EZPoints(entry="formula"), 4, 8)
        observation, _, terminated, _, info = env.step(action)
        assert observation == f"Unknown action: {note}. Cards: 4, 8. Target: 12."
        assert not terminated and not info["action_is_valid"]


def test_formulas_of_two_cards_are_listed_and_all_valid() -> None:
    env = holding(EZPoints(entry="formula"), 6, 6)
    assert sorted(env._info()["legal_actions"]) == ["6 * 6", "6 + 6"]
    env = holding(EZPoints(entry="formula"), 8, 4)
    assert set(env._info()["legal_actions"]) == {"4 + 8", "8 + 4", "4 * 8", "8 * 4"}
    right = 0
    for formula in env._info()["legal_actions"]:
        snapshot = env.snapshot()
        info = env.step(formula)[4]
        right += info["success"] == 1
        assert info["action_is_valid"]
        env.restore(snapshot)
    assert right == 2


def test_every_deal_of_two_cards_is_drawn() -> None:
    env = EZPoints()
    deals = set()
    for seed in range(300):
        env.reset(seed=seed)
        deals.add(env.instance)
    assert len(deals) == env.finite_instances == 19
    assert {"10, 2 for 12", "2, K for 12", "6, 6 for 12"} <= deals


def test_hands_of_four_cards_are_held_out_by_their_values() -> None:
    """The same values with other pictures, or in another order, never come in another split."""
    hands: dict[str, set[tuple[int, ...]]] = {}
    for split in ("train", "dev", "test"):
        env = EZPoints(**POINTS24, split=split)
        hands[split] = set()
        for seed in range(150):
            env.reset(seed=seed)
            hands[split].add(env._hand(env._ranks))
            assert split_of(env.instance) == split
    assert not hands["train"] & hands["dev"] and not hands["train"] & hands["test"] and not hands["dev"] & hands["test"]
    assert len(hands["test"]) > 25


def test_instructions_name_cards_target_operators_and_pictures() -> None:
    two, four = EZPoints().instructions, EZPoints(**POINTS24, faces="rank").instructions
    assert "2 cards" in two and "exactly 12" in two and "+ *" in two and "bracket" not in two
    assert "4 cards" in four and "exactly 24" in four and "+ - * / and brackets" in four and "K 13" in four
    assert "whole formula" in EZPoints(entry="formula").instructions


OPTION_OUT_OF_RANGE_IS_REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"cards": 5}, r"cards of .* \[2, 4\], got 5"),
    ({"target": 0}, r"target of .* \[1, 1000\], got 0"),
    ({"target": 150}, r"no hand of 2 cards that makes 150 with \+\*: pass more cards"),
    ({"operators": ""}, r"some of '\+-\*/', each once, got ''"),
    ({"operators": "++"}, r"each once, got '\+\+'"),
    ({"operators": "+^"}, r"got '\+\^'"),
    ({"faces": "tens"}, r"Did you mean 'ten'\?"),
    ({"entry": "tokens"}, r"Did you mean 'token'\?"),
    ({"max_turns": 5}, r"is 5, but a formula of 2 cards can have 6 tokens: pass max_turns=6"),
    ({"solve_reward": float("inf")}, r"solve_reward of .* got inf"),
]


def test_option_out_of_range_is_refused() -> None:
    for options, message in OPTION_OUT_OF_RANGE_IS_REFUSED:
        with pytest.raises(ConfigError, match=message):
            EZPoints(**options)


def test_a_target_that_no_four_cards_make_is_refused_at_the_reset() -> None:
    env = EZPoints(cards=4, target=1000, operators="+-")
    with pytest.raises(ConfigError, match=r"no hand of 4 cards that makes 1000 with \+-: pass more cards"):
        env.reset(seed=0)
