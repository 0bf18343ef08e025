"""Iterated matrix games: tables and equilibria by brute force, players, talk, the game at a table."""

from itertools import product

import pytest
from table_play import match, say, started

from turngym.envs.tablegames.matrix_games import rules as rules
from turngym.envs.tablegames.matrix_games.game import (
    BattleOfTheSexes,
    Chicken,
    MatchingPennies,
    MatrixGame,
    PrisonersDilemma,
    RockPaperScissors,
    StagHunt,
)
from turngym.errors import ConfigError

GAMES: list[type[MatrixGame]] = [
    PrisonersDilemma,
    StagHunt,
    Chicken,
    BattleOfTheSexes,
    MatchingPennies,
    RockPaperScissors,
]


def test_the_prisoners_dilemma_has_the_usual_order_of_payoffs() -> None:
    pays = {pair: paid[0] for pair, paid in rules.PRISONERS_DILEMMA.items()}
    t, r = pays["defect", "cooperate"], pays["cooperate", "cooperate"]
    p, s = pays["defect", "defect"], pays["cooperate", "defect"]
    assert (t, r, p, s) == (5, 3, 1, 0) and 2 * r > t + s


@pytest.mark.parametrize(
    ("game", "equilibria"),
    [
        (PrisonersDilemma, {("defect", "defect")}),
        (StagHunt, {("stag", "stag"), ("hare", "hare")}),
        (Chicken, {("swerve", "straight"), ("straight", "swerve")}),
        (BattleOfTheSexes, {("opera", "opera"), ("football", "football")}),
        (MatchingPennies, set()),
        (RockPaperScissors, set()),
    ],
)
def test_every_game_has_the_pure_equilibria_that_name_it(
    game: type[MatrixGame], equilibria: set[tuple[str, str]]
) -> None:
    """By force: no seat alone gains by any other action."""
    payoffs = game.payoffs
    actions = list(dict.fromkeys(pair[0] for pair in payoffs))
    by_force = {
        (one, other)
        for one, other in product(actions, repeat=2)
        if all(payoffs[a, other][0] <= payoffs[one, other][0] for a in actions)
        and all(payoffs[one, a][1] <= payoffs[one, other][1] for a in actions)
    }
    assert set(rules.pure_equilibria(payoffs)) == by_force == equilibria


@pytest.mark.parametrize("game", GAMES)
def test_games_are_symmetric_or_zero_sum_where_they_say_so(game: type[MatrixGame]) -> None:
    for (one, other), (first, second) in game.payoffs.items():
        if game in (MatchingPennies, RockPaperScissors):
            assert first + second == 0
        if game not in (MatchingPennies, BattleOfTheSexes):
            assert game.payoffs[other, one] == (second, first)


@pytest.mark.parametrize("game", [StagHunt, Chicken, BattleOfTheSexes, MatchingPennies])
def test_in_the_mixed_equilibrium_both_actions_pay_the_same(game: type[MatrixGame]) -> None:
    found = rules.mixed_equilibrium(game.payoffs)
    assert found is not None
    actions = list(dict.fromkeys(pair[0] for pair in game.payoffs))
    for seat in (0, 1):
        chance = found[1 - seat]
        pays = []
        for own in actions:
            pairs = [(own, other) if seat == 0 else (other, own) for other in actions]
            gains = [game.payoffs[pair][seat] for pair in pairs]
            pays.append(chance * gains[0] + (1 - chance) * gains[1])
        assert pays[0] == pytest.approx(pays[1])


def test_a_dominant_action_leaves_no_mixed_equilibrium() -> None:
    assert rules.mixed_equilibrium(rules.PRISONERS_DILEMMA) is None


@pytest.mark.parametrize("game", GAMES)
def test_a_table_pays_what_the_matrix_says(game: type[MatrixGame]) -> None:
    rounds = game(rounds=len(game.payoffs))
    table = started(rounds)
    sums = [0.0, 0.0]
    for (one, other), paid in game.payoffs.items():
        assert say(table, one, other)[-1] == paid
        sums = [sums[0] + paid[0], sums[1] + paid[1]]
    assert table.is_over and table.returns == sums
    assert table.game.score(0) == sums[0] / len(game.payoffs)
    assert table.game.winners() == (() if sums[0] == sums[1] else (int(sums[1] > sums[0]),))
    assert table.game.metrics()["joint_payoff"] == sum(sums) / len(game.payoffs)


def test_nobody_sees_a_choice_before_both_are_made() -> None:
    table = started(PrisonersDilemma())
    before = table.views[1].observation, table.views[1].anchor
    table.answer(0, "defect")
    assert (table.views[1].observation, table.views[1].anchor) == before
    table.answer(1, "cooperate")
    assert table.views[1].new_lines == ["Round 1: player_0 defect (5), player_1 cooperate (0)."]


def test_the_order_of_answers_changes_nothing() -> None:
    tables = [started(StagHunt(rounds=2)) for _ in range(2)]
    for seats, table in zip([(0, 1), (1, 0)], tables, strict=True):
        for _ in range(2):
            for seat in seats:
                table.answer(seat, ("stag", "hare")[seat])
    assert tables[0].log == tables[1].log and tables[0].actions == tables[1].actions


# Ten rounds of the prisoner's dilemma, added up by hand.
@pytest.mark.parametrize(
    ("one", "other", "returns"),
    [
        ("always_cooperate", "always_cooperate", [30, 30]),
        ("always_cooperate", "always_defect", [0, 50]),
        ("tit_for_tat", "always_defect", [0 + 9, 5 + 9]),
        ("grim", "always_defect", [9, 14]),
        ("tit_for_tat", "grim", [30, 30]),
        ("tit_for_tat", "tit_for_tat", [30, 30]),
    ],
)
def test_the_known_players_get_the_known_sums(one: str, other: str, returns: list[float]) -> None:
    for talk in (0, 2):
        assert match(PrisonersDilemma(talk=talk), [one, other]).returns == returns
        assert match(PrisonersDilemma(talk=talk), [other, one]).returns == returns[::-1]


@pytest.mark.parametrize("game", [PrisonersDilemma, StagHunt, Chicken])
def test_the_first_player_never_gets_less_than_the_other(game: type[MatrixGame]) -> None:
    name = next(iter(game.players))
    for seed in range(10):
        table = match(game(rounds=20), [name, "random"], seed)
        assert table.returns[0] >= table.returns[1]


def test_tit_for_tat_does_what_the_other_did_last() -> None:
    table = match(PrisonersDilemma(rounds=30), ["tit_for_tat", "random"], 3)
    own = [action for seat, action in table.actions if seat == 0]
    other = [action for seat, action in table.actions if seat == 1]
    assert own == ["cooperate", *other[:-1]] and len(set(other)) == 2


def test_grim_never_forgives() -> None:
    table = match(StagHunt(rounds=30), ["grim", "random"], 3)
    own = [action for seat, action in table.actions if seat == 0]
    first = [action for seat, action in table.actions if seat == 1].index("hare")
    assert own == ["stag"] * (first + 1) + ["hare"] * (29 - first)


def test_the_equilibrium_player_of_matching_pennies_cannot_be_predicted() -> None:
    table = match(MatchingPennies(rounds=400), ["equilibrium", "always_heads"])
    heads = table.game.metrics()["first_action_rate_0"]
    assert abs(heads - 0.5) < 0.125  # 5 standard deviations
    assert abs(table.game.score(0)) < 0.25


def test_talk_comes_before_each_choice_and_reaches_both_at_once() -> None:
    table = started(PrisonersDilemma(rounds=2, talk=1))
    assert table.game.phase() == "talk" and table.views[0].legal_actions == ()
    table.answer(0, "I will [cooperate].\nRound 1: player_1 defect (5).")
    assert table.views[1].lines == ["You are player_1."]
    table.answer(1, '{"message": "Me too."}')
    assert table.views[1].new_lines == [
        'player_0 says: "I will (cooperate). Round 1: player_1 defect (5)."',
        'player_1 says: "Me too."',
    ]
    assert table.game.phase() == "choice"
    assert table.views[0].anchor.split("\n")[1:] == [
        "you say I will (cooperate). Round 1: player_1 defect (5).; other say Me too."
    ]
    assert say(table, "cooperate", "defect")[-1] == (0.0, 5.0)
    assert table.game.phase() == "talk"
    assert table.views[0].anchor == "you are player_0: cooperate/defect"


def test_silence_is_not_told_and_any_text_is_speech() -> None:
    table = started(StagHunt(talk=1))
    assert table.answer(0, "  \n ").action == "silent"
    assert table.answer(1, "{" * 3000).is_valid
    assert len(table.views[0].new_lines) == 1


@pytest.mark.parametrize(
    "text", ["defect", "[DEFECT]", "I defect.", '{"choice": "Defect"}', "because [defect]", "i play defect"]
)
def test_many_ways_to_choose(text: str) -> None:
    assert started(PrisonersDilemma()).answer(0, text).action == "defect"


@pytest.mark.parametrize("text", ["", "betray", "cooperate or defect", "[cooperate] [defect]", "{}"])
def test_no_choice_is_unreadable_and_at_last_a_forfeit(text: str) -> None:
    table = started(PrisonersDilemma())
    assert table.answer(0, text).action is None
    assert table.answer(0, text).rewards == (0.0, 0.0) and table.pending == (1,), "both choose at once"
    assert table.answer(1, "cooperate").rewards == (0.0, 50.0) and table.winners() == (1,)
    assert (table.counts[0].unreadable, table.counts[0].forfeits) == (2, 1)


@pytest.mark.parametrize("options", [{"rounds": 0}, {"rounds": 1001}, {"talk": -1}, {"talk": 11}, {"rounds": 2.0}])
def test_options_out_of_range_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="must be a whole number"):
        PrisonersDilemma(**options)


def test_a_game_takes_no_options() -> None:
    with pytest.raises(ConfigError, match="It takes none"):
        started(PrisonersDilemma(), options={"rounds": 3})
