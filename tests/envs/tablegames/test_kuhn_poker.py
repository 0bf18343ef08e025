"""Kuhn poker: the tree, the equilibria, and the game at a table."""

from itertools import product

import pytest
from table_play import match, say, started

from turngym.envs.multiagent.equilibria import best_response, evaluate_policy, game_tree
from turngym.envs.tablegames.kuhn_poker import rules
from turngym.envs.tablegames.kuhn_poker.game import KuhnPoker
from turngym.envs.tablegames.kuhn_poker.players import EquilibriumPlayer, PolicyPlayer
from turngym.errors import ConfigError

SETS = rules.information_sets()
TREE = game_tree(KuhnPoker())


def histories(history: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every complete hand."""
    actions = rules.legal(history)
    return [end for action in actions for end in histories((*history, action))] if actions else [history]


def exploitability(policy: rules.Policy) -> float:
    return evaluate_policy(TREE, TREE.policy(dict.fromkeys(TREE.seats, policy))).exploitability


def test_the_tree_has_five_ends_thirty_hands_and_twelve_information_sets() -> None:
    assert sorted(histories()) == [
        ("bet", "call"),
        ("bet", "fold"),
        ("check", "bet", "call"),
        ("check", "bet", "fold"),
        ("check", "check"),
    ]
    assert len(SETS) == 12 and sum(SETS.values()) == 6
    assert len(rules.DEALS) * len(histories()) == 30


def test_every_end_pays_the_pot_to_its_winner() -> None:
    """Written out once more: what each seat has put in, and who takes it."""
    for (first, second), history in product(rules.DEALS, histories()):
        put = [1, 1]
        for position, action in enumerate(history):
            put[position % 2] += action in ("bet", "call")
        has_folded, second_is_higher = history[-1] == "fold", "JQK".index(second) > "JQK".index(first)
        taker = len(history) % 2 if has_folded else int(second_is_higher)
        expected = put[1] if taker == 0 else -put[0]
        assert rules.winnings(first, second, history) == expected


def test_next_to_the_equilibria_there_are_none() -> None:
    """Negative oracle: a value of the family changed at one information set makes the policy exploitable."""
    base = rules.equilibrium(0.2)
    for name in SETS:
        first, second = rules.legal(tuple(name.split(" ")[1:]))
        chance = base[name][first]
        moved = chance - 0.1 if chance > 0.5 else chance + 0.1
        assert exploitability({**base, name: {first: moved, second: 1 - moved}}) > 1e-3, name


@pytest.mark.parametrize("alpha", [-0.1, 0.34, float("nan")])
def test_alpha_outside_of_the_family_is_refused(alpha: float) -> None:
    with pytest.raises(ConfigError, match=r"must be in \[0, 1/3\]"):
        rules.equilibrium(alpha)


def test_a_policy_with_a_hole_or_a_wrong_sum_is_refused() -> None:
    policy = rules.uniform()
    with pytest.raises(ConfigError, match="needs 'K bet'"):
        PolicyPlayer({name: chances for name, chances in policy.items() if name != "K bet"})
    with pytest.raises(ConfigError, match="needs 'J'"):
        PolicyPlayer({**policy, "J": {"raise": 1.0}})
    with pytest.raises(ConfigError, match="'Q' must add up to 1"):
        PolicyPlayer({**policy, "Q": {"check": 0.5, "bet": 0.4}})


def test_a_table_pays_what_the_rules_say() -> None:
    for deal in rules.DEALS:
        for history in histories():
            table = started(KuhnPoker(), options={"deals": [deal]})
            rewards = say(table, *history)
            won = float(rules.winnings(*deal, history))
            assert rewards[-1] == (won, -won) and not any(map(any, rewards[:-1]))
            assert table.is_over and table.game.winners() == ((0,) if won > 0 else (1,))
            has_shown = any("shows" in line.text for line in table.log)
            assert has_shown == (history[-1] != "fold")


def test_a_card_is_told_to_its_own_seat_only() -> None:
    table = started(KuhnPoker(), options={"deals": [["K", "Q"]]})
    assert table.views[0].lines == ["Your card is K. player_0 acts first."]
    assert table.views[1].lines == ["Your card is Q. player_0 acts first."]
    say(table, "bet", "fold")
    assert not any("Q" in line for line in table.views[0].lines)
    assert not any("K" in line for line in table.views[1].lines)


def test_the_first_seat_changes_with_every_hand() -> None:
    table = started(KuhnPoker(hands=3), options={"deals": [["K", "J"]] * 3})
    asked = []
    while not table.is_over:
        asked.append(table.pending[0])
        say(table, table.game.legal_actions(table.pending[0])[0])
    assert asked == [0, 1, 1, 0, 0, 1]
    assert table.returns == [3.0, -3.0] and table.game.score(0) == 1.0


def test_the_reward_of_a_match_can_be_its_result() -> None:
    table = started(KuhnPoker(hands=2, reward="win"), options={"deals": [["K", "J"], ["J", "K"]]})
    rewards = say(table, "bet", "call", "check", "check")
    assert rewards == [(0.0, 0.0)] * 3 + [(1.0, -1.0)]
    assert table.game.metrics() == {"chips_per_hand": 0.5, "showdown_rate": 1.0}


def test_a_match_that_ends_even_has_no_winner() -> None:
    table = started(KuhnPoker(hands=2, reward="win"), options={"deals": [["K", "J"], ["J", "K"]]})
    assert say(table, "check", "check", "check", "check")[-1] == (0.0, 0.0)
    assert table.game.winners() == ()


def test_all_six_deals_are_dealt_equally_often() -> None:
    game = KuhnPoker(hands=1000)
    counts = dict.fromkeys(rules.DEALS, 0)
    for seed in range(6):
        started(game, seed)
        for deal in game.state()["deals"]:
            counts[tuple(deal)] += 1
    # 6000 deals: 1000 each, standard deviation 29.
    assert all(abs(count - 1000) < 130 for count in counts.values())


def test_equilibrium_players_lose_an_eighteenth_as_first_seat() -> None:
    """The player plays its table: from 3,000 hands the probabilities of each information set are estimated."""
    counts: dict[str, dict[str, int]] = {name: {} for name in SETS}
    for seed in range(3):
        table = match(KuhnPoker(hands=1000), ["equilibrium", EquilibriumPlayer()], seed)
        hand = 0
        history: tuple[str, ...] = ()
        deals = table.game.state()["deals"]
        for seat, action in table.actions:
            assert action is not None
            name = rules.information_set(deals[hand][seat], history)
            counts[name][action] = counts[name].get(action, 0) + 1
            history = (*history, action)
            if not rules.legal(history):
                hand, history = hand + 1, ()
    expected = rules.equilibrium(1 / 6)
    for name, found in counts.items():
        total = sum(found.values())
        for action, chance in expected[name].items():
            # 5 standard deviations; exactly none where the probability is 0.
            slack = 5 * (chance * (1 - chance) / total) ** 0.5
            assert abs(found.get(action, 0) / total - chance) <= slack + 1e-12, name


def test_the_best_response_beats_a_bad_player_and_never_the_equilibrium() -> None:
    caller = {**rules.uniform(), **{f"{card} {h}": {"call": 1.0} for card in "JQK" for h in ("bet", "check bet")}}
    answer: dict[str, dict[str, float]] = {}
    for seat, name in enumerate(TREE.seats):
        response = best_response(TREE, TREE.policy(dict.fromkeys(TREE.seats, caller)), seat)[1]
        answer.update(TREE.table(response)[name])
    table = match(KuhnPoker(hands=1000), [PolicyPlayer(answer), PolicyPlayer(caller)])
    assert table.game.score(0) > 0.2
    even = match(KuhnPoker(hands=1000), [PolicyPlayer(answer), "equilibrium"])
    assert even.game.score(0) < 0.2


def test_many_ways_to_bet() -> None:
    for text in ["bet", "BET", "[Bet]", " bet. ", '{"action": "Bet"}', "I bet", "raise", "Well [bet 1]"]:
        table = started(KuhnPoker())
        assert table.answer(0, text).action == "bet"


def test_an_action_of_another_moment_is_illegal() -> None:
    table = started(KuhnPoker())
    answer = table.answer(0, "call")
    assert not answer.is_valid and answer.reason == "You cannot call now: answer check or bet."
    assert table.counts[0].illegal == 1
    assert table.answer(0, "call").rewards == (-2.0, 2.0), "no legal hand loses more"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hands": 0}, "hands of kuhn_poker must be a whole number"),
        ({"reward": "chip"}, "Did you mean 'chips'"),
        ({"rounds": 2}, "has no option 'rounds'"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        KuhnPoker(**options)


def test_deals_that_cannot_be_are_refused() -> None:
    for deals in [5, "KJ", [5], [["K", ["J"]]], [], [["K", "K"]], [["K", "A"]], [["K", "J"], ["K", "J"]]]:
        with pytest.raises(ConfigError, match="deals must be 1 pairs"):
            started(KuhnPoker(), options={"deals": deals})


def test_an_unknown_option_of_a_game_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no option 'deal'\. Did you mean 'deals'"):
        started(KuhnPoker(), options={"deal": []})
