"""The contextual bandit: a low-rank world, readers of one split only, and LinUCB that learns whom a book suits."""

import json
from typing import Any

import numpy as np
import pytest

from turngym.envs.instances import split_of
from turngym.envs.textgames.bandit.contextual import ContextualBandit
from turngym.envs.textgames.bandit.metrics import fit_regret_curve
from turngym.envs.textgames.bandit.players import LinUCB
from turngym.envs.textgames.bandit.readers import (
    MIDDLE,
    STRENGTH,
    THEMES,
    TITLES,
    draw_books,
    draw_themes,
    mean_ratings,
    readers,
)
from turngym.errors import ConfigError
from turngym.seeding import stream

LEVELS = {"loves": 1.0, "likes": 0.5, "does not mind": 0.0, "dislikes": -0.5, "hates": -1.0}


def finish(env: ContextualBandit, player: str, seed: int) -> list[float]:
    """Play to the end and return the regret after each turn."""
    env.expert = player
    generator = stream("random player", seed)
    regrets: list[float] = []
    terminated = False
    while not terminated:
        action = env.names[int(generator.integers(env.arms))] if player == "random" else env.expert_action()
        terminated = env.step(action)[2]
        regrets.append(env.regret)
    return regrets


def test_readers_are_told_in_words_as_they_are() -> None:
    """Oracle: read the tastes back out of the sentence."""
    for split in ("train", "dev", "test"):
        people = readers(split)
        for profile, tastes in zip(people.profiles, people.tastes, strict=True):
            words = profile.split(" who ")[1].replace(" and ", ", ").split(", ")
            assert [LEVELS[word.rsplit(" ", 1)[0]] for word in words] == tastes.tolist()
            assert [word.rsplit(" ", 1)[1] for word in words] == list(THEMES)


def test_readers_belong_to_one_split_by_their_words() -> None:
    groups = {split: set(readers(split).profiles) for split in ("train", "dev", "test")}
    assert sum(map(len, groups.values())) == len(set().union(*groups.values()))
    for split, profiles in groups.items():
        assert {split_of(profile) for profile in profiles} == {split}
        env = ContextualBandit(split=split)
        for seed in range(5):
            env.reset(seed=seed)
            assert set(env._profiles) <= profiles and split_of(env.instance) == split


def test_the_table_of_ratings_has_rank_five() -> None:
    generator = stream("rank")
    books = draw_books(generator, draw_themes(generator, 30))
    table = mean_ratings(readers("train").tastes, books) - MIDDLE
    assert np.linalg.matrix_rank(table) == 5 == len(STRENGTH)
    assert table[4, 7] == pytest.approx(sum(readers("train").tastes[4] * STRENGTH * books[7]))


def test_what_is_told_of_a_book_is_part_of_it() -> None:
    generator = stream("books")
    themes = draw_themes(generator, 3000)
    assert all(main != second for main, second in themes)
    assert np.bincount(np.ravel(themes)).min() > 1000
    books = draw_books(generator, themes)
    rows = np.arange(3000)
    main, second = np.array(themes).T
    assert books[rows, main].mean() == pytest.approx(1.0, abs=0.03)
    assert books[rows, second].mean() == pytest.approx(0.5, abs=0.03)
    books[rows, main] -= 1.0
    books[rows, second] -= 0.5
    assert books.mean() == pytest.approx(0.0, abs=0.02) and books.std() == pytest.approx(0.4, abs=0.02)


def test_linucb_has_less_regret_than_random_play_and_grows_slower_than_linearly() -> None:
    env = ContextualBandit(horizon=400)
    curves = {}
    for player in ("ucb", "greedy", "random"):
        runs = []
        for seed in range(12):
            env.reset(seed=seed)
            runs.append(finish(env, player, seed))
        curves[player] = np.mean(runs, axis=0)
    final = {player: curve[-1] for player, curve in curves.items()}
    assert final["ucb"] < final["greedy"] < 0.4 * final["random"]
    slopes = {player: fit_regret_curve(curve, gap=0.5).slope for player, curve in curves.items()}
    assert slopes["ucb"] < 0.2 * slopes["random"]


def test_the_expert_mostly_succeeds_and_random_play_does_not() -> None:
    env = ContextualBandit(split="test")
    rates = {}
    for player in ("ucb", "random"):
        successes = []
        for seed in range(60):
            env.reset(seed=seed)
            finish(env, player, seed)
            successes.append(env._success)
        rates[player] = np.mean(successes)
    assert rates["ucb"] >= 0.9 and rates["random"] <= 0.1, rates


def test_the_expert_is_linucb_on_what_was_seen() -> None:
    env = ContextualBandit(arms=4, horizon=30)
    env.reset(seed=1)
    learner = LinUCB(4, 5)
    for turn in range(30):
        assert env.expert_action() == env.names[learner.choose(env._tastes[turn])]
        arm = turn % 4
        reward = env.step(env.names[arm])[1]
        learner.update(env._tastes[turn], arm, reward - MIDDLE)


def test_greedy_leaves_the_bonus_out() -> None:
    env = ContextualBandit(arms=2, horizon=10, expert="greedy")
    env.reset(seed=0)
    assert env._learner("greedy").alpha == 0.0 and env._learner("ucb").alpha == 0.5


def test_regret_compares_with_the_best_book_of_each_reader() -> None:
    env = ContextualBandit(horizon=20)
    env.reset(seed=3)
    books = draw_books(stream("bandit ratings", env._reward_key), env._themes)
    regret = random_regret = 0.0
    for turn in range(20):
        means = mean_ratings(env._tastes[turn : turn + 1], books)[0]
        info = env.step(env.names[turn % 10])[4]
        regret += means.max() - means[turn % 10]
        random_regret += means.max() - means.mean()
        assert env.regret == pytest.approx(regret) and info["score"] == pytest.approx(1 - regret / random_regret)


def test_ratings_vary_around_their_means() -> None:
    env = ContextualBandit(horizon=3000, noise=0.7)
    env.reset(seed=0)
    books = draw_books(stream("bandit ratings", env._reward_key), env._themes)
    errors = env._ratings - mean_ratings(env._tastes, books)
    assert errors.mean() == pytest.approx(0.0, abs=0.02) and errors.std() == pytest.approx(0.7, abs=0.02)
    exact = ContextualBandit(noise=0.0)
    exact.reset(seed=0)
    assert exact._ratings.max() <= 3 + 1.5 * 5.0


def test_the_first_observation_tells_the_books_and_later_ones_the_next_reader() -> None:
    env = ContextualBandit(arms=2, horizon=3)
    first = env.reset(seed=0)[0].splitlines()
    assert first[0] == "Books:" and [line.split(":")[0] for line in first[1:3]] == list(TITLES[:2])
    assert first[3] == f"The reader is {env._profiles[0]}. Choose a book."
    observation, reward, *_ = env.step("Nine Doors ")
    assert observation == f"nine doors: reward {reward:g}\nThe reader is {env._profiles[1]}. Choose a book."
    env.step("nine doors")
    assert "reader" not in env.step("nine doors")[0]


def test_views_show_the_table_and_the_guide() -> None:
    env = ContextualBandit(arms=2, horizon=5, view="summary")
    env.reset(seed=0)
    reward = env.step("nine doors")[1]
    assert str(env._observation).splitlines()[1:3] == [
        "the salt lantern: not recommended yet",
        f"nine doors: recommended once, mean rating {reward:.2f}",
    ]
    guide = ContextualBandit(arms=2, horizon=5, view="guide")
    guide.reset(seed=0)
    lines = guide.step("nine doors")[0].splitlines()[1:3]
    numbers = [[float(part.rsplit(" ", 1)[1]) for part in line.split(", ")[-2:]] for line in lines]
    values = [estimate + extra for estimate, extra in numbers]
    assert guide.names[int(np.argmax(values))] == guide.expert_action()
    estimates, extras = guide._learner("ucb").parts(guide._tastes[1])
    assert numbers == [[round(3 + e, 2), round(x, 2)] for e, x in zip(estimates.tolist(), extras.tolist(), strict=True)]


def test_the_anchor_tells_states_apart_and_forgets_the_order() -> None:
    """The same reader and book at other turns is the same knowledge; another book or rating is not."""
    env = ContextualBandit(arms=3, horizon=6, noise=0.0)
    env.reset(seed=2)
    env._profiles = [env._profiles[0]] * 6
    env._tastes = np.tile(env._tastes[:1], (6, 1))
    env._set_ratings()
    anchors: dict[tuple[str, ...], str] = {}
    for order in (("the salt lantern", "nine doors"), ("nine doors", "the salt lantern"), ("nine doors", "nine doors")):
        env._replay([], [])
        for title in order:
            arm = env.names.index(title)
            env._record(len(env.pulls), arm, env._reward(0, arm))
        anchors[order] = env.anchor()
    first, second, third = anchors.values()
    assert first == second != third


def test_other_hidden_facts_fit_what_was_told() -> None:
    env = ContextualBandit()
    env.reset(seed=4)
    for turn in range(8):
        env.step(env.names[turn])
    before, state, expert = env._info(), json.loads(env.snapshot())["state"], env.expert_action()
    ratings = env._ratings.copy()
    assert env.resample_hidden() and (env._ratings != ratings).any()
    after, other = env._info(), json.loads(env.snapshot())["state"]
    assert {**after, "score": 0} == {**before, "score": 0}
    assert other["pulled"] == state["pulled"] and other["received"] == state["received"]
    assert other["hidden"] == state["hidden"] and other["keys"] != state["keys"]
    assert env.expert_action() == expert
    twin = ContextualBandit()
    twin.restore(env.snapshot())
    assert str(twin.step("nine doors")) == str(env.step("nine doors"))


def test_answers_that_name_no_book_can_be_replaced() -> None:
    env = ContextualBandit(horizon=10, on_invalid="replace")
    env.reset(seed=0)
    for _ in range(10):
        observation, _, terminated, _, info = env.step("the best one")
        assert not info["action_is_valid"] and f"{env.names[env.pulls[-1]]} was chosen at random." in observation
    assert terminated and env.max_turns == 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arms": 31}, r"arms of .* \[2, 30\], got 31"),
        ({"noise": -0.1}, r"noise of .* got -0\.1"),
        ({"expert": "thompson"}, r"expert of .* got 'thompson'"),
        ({"horizon": 9}, r"horizon of .* \[10, 50000\], got 9"),
    ],
)
def test_option_out_of_range_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ContextualBandit(**options)
