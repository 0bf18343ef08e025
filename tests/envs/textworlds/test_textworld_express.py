"""TextWorldExpress, played for real in Java processes that several games share."""

import json
import random
from collections.abc import Iterator
from typing import Any

import gymnasium
import pytest
from express import EASY_MAP, easy
from gymnasium.utils.env_checker import check_env

import turngym  # noqa: F401  (registers the environments)
from turngym.envs.textworlds.textworld_express.env import UNKNOWN_ACTION, TextWorldExpress
from turngym.envs.textworlds.textworld_express.games import GAMES
from turngym.errors import ConfigError, EpisodeOver, UnknownName

__all__ = ["easy"]  # fixture

Pair = tuple[TextWorldExpress, TextWorldExpress]


@pytest.fixture(scope="module", params=sorted(GAMES))
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Two environments of one game."""
    first, second = (TextWorldExpress(game=request.param, split="test") for _ in range(2))
    yield first, second
    first.close()
    second.close()


def play(env: TextWorldExpress, seed: int, num_turns: int = 12) -> list[Any]:
    """Return all that an episode of random legal actions shows, some of them ill-formed."""
    choice = random.Random(seed)
    seen: list[Any] = [env.reset(seed=seed)]
    for turn in range(num_turns):
        action = choice.choice(seen[-1][-1]["legal_actions"])
        seen.append((action, *env.step("gibberish" if turn == 3 else action)))
        if seen[-1][3] or seen[-1][4]:
            break
    return seen


def as_bytes(seen: list[Any]) -> bytes:
    return json.dumps(seen).encode()


def win(env: TextWorldExpress) -> list[float]:
    """Follow the gold path to the end; return the rewards."""
    rewards = []
    while env._running:
        _, reward, _, _, info = env.step(env.expert_action())
        assert info["action_is_valid"]
        rewards.append(reward)
    return rewards


def test_the_gold_path_wins_every_game(pair: Pair) -> None:
    env = pair[0]
    for task in (0, 1, "test/999"):
        env.reset(seed=0, options={"task": task})
        rewards = win(env)
        _, info = env.restore(env.snapshot())
        assert sum(rewards) == pytest.approx(1.0)
        assert (info["success"], info["score"], info["progress"]) == (1, 1.0, 1.0)
        assert info["legal_actions"] == ()


def test_equal_seeds_give_equal_bytes_in_two_environments_with_different_pasts(pair: Pair) -> None:
    first, second = pair
    play(second, seed=77)
    second.reset(seed=78)
    second.expert_action()
    for seed in (1, 2):
        assert as_bytes(play(first, seed)) == as_bytes(play(second, seed))
    assert as_bytes(play(first, 1)) != as_bytes(play(first, 2))


def test_the_gold_path_is_a_function_of_the_task(pair: Pair) -> None:
    """The package walks at random, without a seed, in two of its games."""
    paths = []
    for env in pair:
        env.reset(seed=0, options={"task": 5})
        paths.append((env.expert_action(), env._gold))
    assert paths[0] == paths[1]


def test_a_branch_from_a_snapshot_equals_the_original_continuation(pair: Pair) -> None:
    first, second = pair
    first.reset(seed=4)
    first.step("nonsense")
    for _ in range(3):
        first.step(first.expert_action())
    saved = first.snapshot()
    assert second.restore(saved) == first.restore(saved)
    while first._running:
        action = first.expert_action()
        assert second.expert_action() == action
        assert first.step(action) == second.step(action)
    assert first.reset() == second.reset(), "the generator must be part of the snapshot"


def test_text_that_is_no_action_changes_nothing(pair: Pair) -> None:
    env = pair[0]
    _, before = env.reset(seed=3)
    for text in ("", "   ", "\ud800", "take\x00", "漢字🙂\n", "help", "move " * 5_000, "look around; inventory"):
        observation, reward, terminated, truncated, info = env.step(text)
        assert (observation, reward, terminated, truncated) == (UNKNOWN_ACTION, 0.0, False, False)
        assert info == {**before, "action_is_valid": False}


def test_legal_actions_are_sorted_and_known_to_the_instructions(pair: Pair) -> None:
    env = pair[0]
    _, info = env.reset(seed=6)
    verbs = {form.split()[0] for form in GAMES[env.game].actions}
    while env._running:
        legal = info["legal_actions"]
        assert list(legal) == sorted(set(legal))
        if env.game != "simonsays":  # its verbs are as many as Simon's whims
            assert {action.split()[0] for action in legal} <= verbs
        info = env.step(env.expert_action())[-1]
    assert all(f"- {form}" in env.instructions for form in GAMES[env.game].actions)


def test_the_anchor_says_only_what_looking_shows_and_counts_no_turns(pair: Pair) -> None:
    env = pair[0]
    _, info = env.reset(seed=8)
    if env.game == "simonsays":
        pytest.skip("simonsays has no place to look at: its anchor is what Simon said")
    for _ in range(4):
        looked, *_, later = env.step("look around")
        carried = env.step("inventory")[0]
        assert later["anchor"] == info["anchor"]
        assert later["anchor"].startswith("\n\n".join([env._reply.task, looked, carried]))
        rest = later["anchor"].removeprefix("\n\n".join([env._reply.task, looked, carried]))
        assert rest == "".join(f"\n\n{action}: {text}" for action, text in sorted(env._notes.items()))
        info = env.step(env.expert_action())[-1]


def test_the_coin_can_be_taken_only_where_it_is_seen() -> None:
    env = TextWorldExpress(game="coin", params={"numLocations": 3, "includeDoors": 0})
    for task in range(6):
        _, info = env.reset(options={"task": task})
        while env._running:
            assert ("take coin" in info["legal_actions"]) == ("a coin" in env._reply.look)
            info = env.step(env.expert_action())[-1]
    env.close()


def test_a_lost_game_ends_with_score_minus_one() -> None:
    env = TextWorldExpress(game="simonsays", params="numDistractors=2")
    observation, info = env.reset(seed=1)
    first = env.expert_action()
    assert first in observation
    info = env.step(first)[-1]
    wrong = next(action for action in info["legal_actions"] if action != env.expert_action())
    _, reward, terminated, truncated, info = env.step(wrong)
    assert (terminated, truncated, info["success"], info["score"], info["progress"]) == (True, False, 0, -1.0, 0.0)
    assert reward == pytest.approx(-1.2)
    with pytest.raises(EpisodeOver, match="call reset"):
        env.step(first)
    with pytest.raises(EpisodeOver, match="call reset"):
        env.expert_action()
    env.close()


def test_the_turn_limit_truncates(easy: TextWorldExpress) -> None:
    easy.reset(seed=0)
    for turn in range(12):
        *_, terminated, truncated, info = easy.step("inventory")
        assert (terminated, truncated) == (False, turn == 11)
    assert info["success"] == 0


def test_the_first_observation_states_the_task_and_later_ones_only_what_is_new(easy: TextWorldExpress) -> None:
    first, _ = easy.reset(seed=0)
    assert first.startswith("Your task is to take the coin")
    assert "You are in the" in first
    assert easy.step("INVENTORY ")[0] == "Inventory:\n  a map"


def test_the_expert_follows_after_a_look_and_says_so_when_the_path_is_left(easy: TextWorldExpress) -> None:
    _, info = easy.reset(options={"task": "train/0"})
    expected = easy.expert_action()
    easy.step("inventory")
    assert easy.expert_action() == expected
    easy.step(next(action for action in info["legal_actions"] if action.startswith("put map")))
    with pytest.raises(ConfigError, match="has left the gold path"):
        easy.expert_action()


def test_tasks_are_chosen_by_name_number_or_seed(easy: TextWorldExpress) -> None:
    assert easy.tasks()[7] == "train/7"
    by_name = easy.reset(options={"task": "train/7"})
    assert by_name == easy.reset(options={"task": 7})
    drawn = {easy.reset(seed=seed)[0] for seed in range(20)}
    assert len(drawn) > 10
    with pytest.raises(UnknownName, match="no task named 'test/7'"):
        easy.reset(options={"task": "test/7"})
    with pytest.raises(ConfigError, match=r"must be in \[0, 999\], got 1000"):
        easy.reset(options={"task": 1000})


def test_gymnasium_accepts_it() -> None:
    env = gymnasium.make("turngym/TextWorldExpress-v0", game="mapreader", params=EASY_MAP, render_mode="ansi")
    assert isinstance(env, TextWorldExpress)
    check_env(env, skip_render_check=True)
    env.reset(seed=0)
    assert "Your task is" in str(env.render())
    env.close()


def test_the_gold_path_holds_only_actions_that_do_something() -> None:
    """The package's own path through a kitchen opens again what is open."""
    env = TextWorldExpress(game="cookingworld", max_turns=150)
    env.reset(options={"task": "train/850"})
    given = env._given_gold()
    env.reset(options={"task": "train/850"})
    rewards = win(env)
    assert env._success == 1
    assert len(rewards) < len(given)
    env.close()
