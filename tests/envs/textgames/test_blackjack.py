"""Blackjack as an environment: fixed deals that can be won, nothing told of hidden cards, best play by what is seen."""

import json
from typing import Any

import numpy as np
import pytest

from turngym.envs.textgames.blackjack.env import ACTIONS, Blackjack
from turngym.envs.textgames.blackjack.rules import outcomes
from turngym.envs.textgames.blackjack.solver import WINS, game_value
from turngym.errors import ConfigError


def dealt(env: Blackjack, *cards: int) -> Blackjack:
    """Deal given cards, through the snapshot: player, player, shown, hidden, then the rest; tens behind them."""
    env.reset(seed=0)
    content = json.loads(env.snapshot())
    content["state"]["deal"] = [*cards, *[10] * (len(content["state"]["deal"]) - len(cards))]
    env.restore(json.dumps(content).encode())
    return env


def finish(env: Blackjack, choose: Any) -> dict[str, Any]:
    is_over, info = False, dict[str, Any]()
    while not is_over:
        _, _, terminated, truncated, info = env.step(choose(env))
        is_over = terminated or truncated
    return info


def test_a_hand_is_played_to_its_end() -> None:
    env = dealt(Blackjack(), 13, 5, 9, 7, 1, 3)
    assert env._board == "You hold K 5 (15). The dealer shows 9."
    observation, reward, terminated, _, info = env.step("hit")
    assert observation == "You hold K 5 A (16). The dealer shows 9."
    assert (reward, terminated, info["legal_actions"]) == (0.0, False, ACTIONS) and info["progress"] == 16 / 21
    observation, reward, terminated, _, info = env.step(" Stand\n")
    assert observation == "You hold K 5 A (16). The dealer holds 9 7 3 (19). You lose."
    assert (reward, terminated, info["success"], info["progress"]) == (-1.0, True, 0, 0.0)


@pytest.mark.parametrize(
    ("cards", "actions", "reward", "end"),
    [
        ((10, 9, 9, 9), "stand", 3.0, "The dealer holds 9 9 (18). You win."),
        ((10, 9, 10, 9), "stand", 0.5, "It is a draw."),
        ((1, 13, 7, 7, 7), "stand", 5.0, "You win."),
        ((1, 13, 1, 12), "stand", 0.5, "It is a draw."),
        ((5, 6, 10, 10, 9), "hit stand", 0.5, "It is a draw."),
        ((10, 6, 10, 10, 6), "hit", -2.0, "That is more than 21. You lose."),
        ((10, 6, 10, 6), "stand", 3.0, "The dealer holds 10 6 10 (26). You win."),
    ],
)
def test_each_outcome_has_its_reward(cards: tuple[int, ...], actions: str, reward: float, end: str) -> None:
    env = dealt(Blackjack(win_reward=3, natural_reward=5, draw_reward=0.5, loss_reward=-2), *cards)
    steps = [env.step(action) for action in actions.split()]
    assert steps[-1][0].endswith(end) and steps[-1][1] == reward and steps[-1][2]
    assert steps[-1][4]["success"] == (reward >= 3)


@pytest.mark.parametrize("action", ["", "double", "hit me", "stand.", "1", "hit stand"])
def test_text_that_is_no_action_is_answered(action: str) -> None:
    env = dealt(Blackjack(step_reward=-0.5), 10, 5, 9, 7)
    observation, reward, terminated, _, info = env.step(action)
    assert observation == "Unknown action: answer with hit or stand. You hold 10 5 (15). The dealer shows 9."
    assert (reward, terminated, info["action_is_valid"]) == (-0.5, False, False)


@pytest.mark.parametrize("deck", ["endless", "single"])
def test_every_deal_can_be_won_by_some_play(deck: str) -> None:
    env = Blackjack(deck=deck)
    for seed in range(200):
        env.reset(seed=seed)
        wins = [hits for hits, end in enumerate(outcomes(env._deal)[0]) if end == 1]
        assert wins
        for _ in range(wins[0]):
            assert not env.step("hit")[2]
        assert env.step("stand")[4]["success"] == 1


def test_deals_that_cannot_be_won_are_dealt_if_asked_for() -> None:
    env = Blackjack(winnable=False)
    share = []
    for seed in range(1000):
        env.reset(seed=seed)
        share.append(1 in outcomes(env._deal)[0])
    assert 0.57 < np.mean(share) < 0.67


def test_a_turn_limit_counts_among_what_can_be_won() -> None:
    env = Blackjack(max_turns=1)
    for seed in range(100):
        env.reset(seed=seed)
        assert env.step("stand")[4]["success"] == 1


def test_a_single_deck_holds_every_card_four_times() -> None:
    env = Blackjack(deck="single")
    for seed in range(20):
        env.reset(seed=seed)
        assert sorted(env._deal) == sorted([rank for rank in range(1, 14) for _ in range(4)])


def test_expert_wins_as_often_as_best_play_and_random_play_less() -> None:
    """With every deal, the expert's rate is the value of the game; deals that can be won raise all rates alike."""
    generator = np.random.Generator(np.random.Philox(2))
    rates: dict[tuple[bool, str], float] = {}
    for winnable in (False, True):
        for name, choose in (
            ("expert", lambda env: env.expert_action()),
            ("random", lambda env: ACTIONS[int(generator.integers(2))]),
            ("stand", lambda env: "stand"),
        ):
            env = Blackjack(winnable=winnable)
            wins = []
            for seed in range(1500):
                env.reset(seed=seed)
                wins.append(finish(env, choose)["success"])
            rates[winnable, name] = float(np.mean(wins))
    best = game_value(WINS)
    assert rates[False, "expert"] == pytest.approx(best, abs=0.04)  # three standard errors
    assert rates[True, "expert"] == pytest.approx(best / 0.62, abs=0.05)
    for winnable in (False, True):
        assert rates[winnable, "random"] < rates[winnable, "stand"] - 0.02 < rates[winnable, "expert"] - 0.02


def test_expert_sees_only_what_the_player_sees() -> None:
    env = Blackjack()
    for seed in range(60):
        env.reset(seed=seed)
        action = env.expert_action()
        for _ in range(5):
            assert env.resample_hidden()
            assert env.expert_action() == action


def test_expert_with_a_single_deck_counts_the_cards_that_are_seen() -> None:
    """16 of four fours against 7: hit if every card is as likely as ever, stand if the small cards lie on the table."""
    actions = {}
    for deck in ("endless", "single"):
        env = dealt(Blackjack(deck=deck), 4, 4, 7, 7, 4, 4)
        assert env.expert_action() == "hit"
        env.step("hit")
        env.step("hit")
        assert env._board == "You hold 4 4 4 4 (16). The dealer shows 7."
        actions[deck] = env.expert_action()
    assert actions == {"endless": "hit", "single": "stand"}


@pytest.mark.parametrize("deck", ["endless", "single"])
def test_other_hidden_cards_fit_what_was_seen(deck: str) -> None:
    env = Blackjack(deck=deck)
    for seed in range(60):
        env.reset(seed=seed)
        if env._hand[0] + env._hand[1] < 11:
            env.step("hit")
        before, cards = env._info(), list(env._deal)
        assert env.resample_hidden()
        after = env._info()
        assert after == before and env._deal != cards
        assert env._deal[:3] == cards[:3] and env._deal[4 : 4 + env._hits] == cards[4 : 4 + env._hits]
        assert 1 in outcomes(env._deal)[0]
        if deck == "single":
            assert sorted(env._deal) == sorted(cards)


def test_nothing_is_hidden_after_the_end() -> None:
    env = dealt(Blackjack(), 10, 9, 9, 9)
    env.step("stand")
    assert not env.resample_hidden()
    with pytest.raises(ConfigError, match="after the episode has ended"):
        env.expert_action()


def test_deals_that_no_play_can_tell_apart_are_one_instance() -> None:
    env = Blackjack()
    env.reset(seed=3)
    shown = outcomes(env._deal)[1]
    other = [*env._deal[:shown], *[rank % 13 + 1 for rank in env._deal[shown:]]]
    assert env._name(other) == env._name(env._deal) == env.instance
    pictures = [13 if rank == 10 else rank for rank in env._deal]
    assert env._name(pictures) == env.instance, "pictures and tens count the same"


def test_instructions_tell_the_deck() -> None:
    assert "drawn from a full deck" in Blackjack().instructions
    assert "one deck of 52" in Blackjack(deck="single").instructions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"deck": "double"}, r"deck of .* got 'double'"),
        ({"winnable": 1}, r"winnable of .* must be True or False, got 1"),
        ({"natural_reward": float("nan")}, r"natural_reward of .* got nan"),
        ({"step_reward": -1e9}, r"step_reward of .* got -1000000000"),
    ],
)
def test_option_out_of_range_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Blackjack(**options)
