"""Progress labels from solved episodes: longest common subsequences, recipes, labels."""

import itertools
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reward_games import walk

from turngym.trainers.reward_models.base.turns import key_steps, states, task_key
from turngym.wrappers.rewards.recipes import Recipe, canonical_action, lcs, matched, progress_labels, recipes

WORDS = st.text("abc", max_size=7)


def is_subsequence(part: tuple[str, ...], whole: str) -> bool:
    rest = iter(whole)
    return all(each in rest for each in part)


def longest_by_trying(first: str, second: str) -> int:
    """Return the length of the longest common subsequence, by trying every subsequence of the first."""
    return max(
        len(part)
        for size in range(len(first) + 1)
        for part in itertools.combinations(first, size)
        if is_subsequence(part, second)
    )


@settings(max_examples=100)
@given(WORDS, WORDS)
def test_an_lcs_is_common_and_as_long_as_any(first: str, second: str) -> None:
    found = lcs(first, second)
    assert is_subsequence(found, first) and is_subsequence(found, second)
    assert len(found) == longest_by_trying(first, second)


@settings(max_examples=100)
@given(WORDS, WORDS)
def test_matched_counts_the_lcs_of_every_prefix(steps: str, recipe: str) -> None:
    assert matched(steps, recipe) == [len(lcs(steps[: k + 1], recipe)) for k in range(len(steps))]


@settings(max_examples=60)
@given(st.lists(WORDS, max_size=6), st.sampled_from([0.3, 0.5, 1.0]))
def test_every_solved_episode_contains_a_recipe_and_none_is_empty(solved: list[str], similarity: float) -> None:
    found = recipes(solved, most=10, similarity=similarity)
    assert all(recipe.steps for recipe in found)
    assert sum(recipe.support for recipe in found) == sum(bool(steps) for steps in solved)
    for steps in filter(None, solved):
        assert any(is_subsequence(recipe.steps, steps) for recipe in found)


@settings(max_examples=60)
@given(st.lists(st.text("abc", min_size=1, max_size=7), min_size=1, max_size=5), WORDS)
def test_labels_never_fall_and_only_solved_episodes_reach_one(solved: list[str], other: str) -> None:
    known = recipes(solved)
    for steps, is_solved in [*((each, True) for each in solved), (other, False), (solved[0], False)]:
        labels = progress_labels(steps, known, is_solved)
        assert labels == sorted(labels) and len(labels) == len(steps)
        assert all(0 <= label <= 1 for label in labels)
        assert not labels or (labels[-1] == 1) == is_solved


def test_the_recipe_itself_rises_by_equal_steps() -> None:
    assert progress_labels("abcd", [Recipe(tuple("abcd"), 3)], is_solved=True) == [0.25, 0.5, 0.75, 1.0]


def test_worked_numbers_of_three_routes() -> None:
    """Two ways north, one way south: joined steps drop what only one of them did."""
    found = recipes(["NNE", "NNEE", "NxNE", "SSS", "SwSS"])
    assert found == [Recipe(("N", "N", "E"), 3), Recipe(("S", "S", "S"), 2)]
    assert progress_labels("SNSS", found, is_solved=False) == pytest.approx([1 / 3, 1 / 3, 2 / 3, 3 / 4])
    assert progress_labels("NNw", found, is_solved=False) == pytest.approx([1 / 3, 2 / 3, 2 / 3])


def test_a_long_detour_joins_the_recipe_that_it_contains() -> None:
    assert recipes(["ab", "xxxaxxxbxxx"]) == [Recipe(("a", "b"), 2)]


def test_a_recipe_keeps_its_share_of_steps() -> None:
    """``abcd`` and ``abpq`` share two of four steps: one recipe at 0.5, two at 0.75."""
    assert len(recipes(["abcd", "abpq"], similarity=0.5)) == 1
    assert len(recipes(["abcd", "abpq"], similarity=0.75)) == 2


def test_recipes_do_not_depend_on_the_order_of_episodes() -> None:
    solved = ["abc", "abxc", "pq", "pyq", "abc", "zzz"]
    shuffled = random.Random(0).sample(solved, len(solved))
    assert recipes(solved) == recipes(shuffled)


def test_the_least_supported_recipes_go_first() -> None:
    assert recipes(["ab", "ab", "cd", "ef", "ef"], most=2) == [Recipe(("a", "b"), 2), Recipe(("e", "f"), 2)]


@pytest.mark.parametrize("is_solved", [True, False])
def test_an_empty_episode_has_no_label(is_solved: bool) -> None:
    assert progress_labels("", [Recipe(("a",), 1)], is_solved) == []
    assert recipes([""]) == []


def test_without_recipes_a_failed_episode_has_no_progress() -> None:
    assert progress_labels("abc", [], is_solved=False) == [0.0, 0.0, 0.0]


def test_actions_lose_what_differs_between_equal_steps() -> None:
    page = "a form\n[3] textbox Name\n[14] button Send"
    goal = "Send the name Ann"
    assert canonical_action(goal, page, "Click('14')") == "click(button send)"
    assert canonical_action(goal, page, "fill('3', 'Ann')") == "fill(textbox name, '{goal}')"
    assert canonical_action(goal, page, "fill('3', 'Bob')") == "fill(textbox name, 'bob')"
    assert canonical_action("", "", "  Move   UP ") == "move up"


def test_steps_are_actions_or_states() -> None:
    episode = walk("rrl")
    assert key_steps(episode, "action") == ("r", "r", "l")
    assert key_steps(episode, "state") == ("at 1", "at 2", "at 1")
    assert states(walk("")) == []


def test_tasks_without_a_hash_are_told_by_what_was_seen_first() -> None:
    assert task_key(walk("r", instance="x")) == "line x"
    assert task_key(walk("r", instance="")) == task_key(walk("ll", instance="")) != task_key(walk("", instance=""))
