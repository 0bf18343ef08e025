"""Leduc poker: payoffs of whole hands, the private and the public card, the players."""

import pytest
from table_play import match, say, started

from turngym.envs.multiagent.equilibria import evaluate_policy, game_tree
from turngym.envs.tablegames.leduc_poker import LeducPoker, equilibrium, legal, paid
from turngym.errors import ConfigError

HANDS = [
    ("JQJ", "bet raise call check bet raise call", 13),
    ("JQK", "check check check check", -1),
    ("KQQ", "bet call bet call", -7),
    ("KKJ", "bet raise call bet raise call", 0),
    ("KJQ", "bet fold", 1),
    ("KJQ", "bet raise fold", -3),
    ("KJQ", "check bet raise call check bet fold", -5),
]


@pytest.mark.parametrize(("cards", "actions", "won"), HANDS)
def test_hands_pay_the_chips_of_the_loser(cards: str, actions: str, won: int) -> None:
    table = started(LeducPoker(), options={"cards": list(cards)})
    *before, last = say(table, *actions.split())
    assert table.is_over and last == (won, -won) and not any(map(any, before))
    assert table.game.winners() == (() if won == 0 else (0,) if won > 0 else (1,))
    assert any("shows" in line.text for line in table.log) == (actions.split()[-1] != "fold")


def test_hands_are_zero_sum_and_stake_up_to_thirteen_chips() -> None:
    tree = game_tree(LeducPoker())
    assert (tree.payoff.sum(axis=1) == 0).all()
    assert set(abs(tree.payoff[:, 0])) == {0, 1, 3, 5, 7, 9, 11, 13}


def test_at_most_two_bets_a_round() -> None:
    assert legal(["bet", "raise"]) == ("fold", "call") == legal(["check", "bet", "raise"])
    assert paid([["bet", "raise", "call"], ["bet", "raise", "call"]]) == (13, 13)


def test_the_public_card_is_shown_after_the_first_round_alone() -> None:
    table = started(LeducPoker(), options={"cards": ["K", "J", "Q"]})
    assert not any("Q" in line for view in table.views for line in view.lines)
    say(table, "check", "check")
    assert table.views[0].lines[-1] == "The public card is Q."
    assert table.views[0].anchor == "K: check check; Q:" and table.views[1].anchor == "J: check check; Q:"


def test_the_equilibrium_is_nearly_unexploitable() -> None:
    tree = game_tree(LeducPoker())
    assert evaluate_policy(tree, tree.policy(equilibrium().table)).exploitability < 0.003
    assert match(LeducPoker(), ["equilibrium", "equilibrium"]).is_over


@pytest.mark.parametrize(
    ("cards", "actions"),
    [
        ("KQJ", "bet call bet call"),
        ("JQJ", "check check bet call"),
        ("JKQ", "check bet fold"),
        ("KKQ", "bet raise call bet raise call"),
    ],
)
def test_honest_players_show_the_strength_of_their_hands(cards: str, actions: str) -> None:
    table = match(LeducPoker(), ["honest", "honest"], options={"cards": list(cards)})
    assert [action for _, action in table.actions] == actions.split()


def test_all_deals_come_up() -> None:
    dealt = {tuple(started(LeducPoker(), seed).game.state()["cards"]) for seed in range(400)}
    assert len(dealt) == 24


@pytest.mark.parametrize("cards", [5, "KJ", ["K", "J"], ["K", "K", "K"], ["K", "J", "A"], ["K", "J", ["Q"]]])
def test_impossible_deals_are_refused(cards: object) -> None:
    with pytest.raises(ConfigError, match="cards must be three of J, Q and K"):
        started(LeducPoker(), options={"cards": cards})


def test_actions_of_another_moment_are_illegal() -> None:
    table = started(LeducPoker())
    assert table.answer(0, "raise").reason == "You cannot raise now: answer check or bet."
    assert table.answer(0, "I will [fold]").rewards == (-13.0, 13.0)
