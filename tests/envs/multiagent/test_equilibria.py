"""Trees, best responses and solvers of small games, against known values."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from table_play import match

from turngym.benchmarks.tournaments.plan import TournamentPlan
from turngym.benchmarks.tournaments.run import play_tournament
from turngym.envs.multiagent import make_game, make_player
from turngym.envs.multiagent.equilibria import (
    SOLVERS,
    DoubleOracle,
    GameTree,
    TabularPlayer,
    TabularPolicy,
    best_response,
    evaluate_policy,
    game_tree,
    make_solver,
    matrix_equilibrium,
)
from turngym.envs.multiagent.equilibria.chance import EveryDraw
from turngym.envs.tablegames.kuhn_poker import rules
from turngym.errors import ConfigError, TurngymError, UnknownName

KUHN = game_tree(make_game("turngym/KuhnPoker-v0"))
LEDUC = game_tree(make_game("turngym/LeducPoker-v0"))
DICE = game_tree(make_game("turngym/LiarsDice-v0", faces=3))


def solved(name: str, tree: GameTree, iterations: int) -> tuple[float, float]:
    """Return exploitability and value for the first seat of the average policy."""
    solver = make_solver(name, tree)
    for _ in range(iterations):
        solver.step()
    found = evaluate_policy(tree, solver.average())
    return found.exploitability, found.values[0]


def test_trees_have_the_known_sizes() -> None:
    assert [len(tree.sets) for tree in (KUHN, LEDUC, DICE)] == [12, 288, 192]
    for tree in (KUHN, LEDUC, DICE):
        ends = np.setdiff1d(np.arange(len(tree.parent)), tree.parent)
        assert np.bincount(tree.parent[1:], tree.edges(tree.uniform())[1:])[tree.parent[1:]] == pytest.approx(1)
        assert tree.reach(tree.edges(tree.uniform()))[ends].sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("tree", "exploitability", "value"),
    [(KUHN, 0.458333, 0.125), (LEDUC, 2.373611, -0.078125)],
    ids=["kuhn", "leduc"],
)
def test_uniform_play_is_as_exploitable_as_in_openspiel(tree: GameTree, exploitability: float, value: float) -> None:
    found = evaluate_policy(tree, tree.uniform())
    assert (found.exploitability, found.values[0]) == pytest.approx((exploitability, value), abs=1e-6)


@pytest.mark.parametrize(
    ("name", "tree", "iterations", "exploitability"),
    [
        ("cfr", KUHN, 10, 0.068699),
        ("cfr", KUHN, 100, 0.008226),
        ("cfr+", KUHN, 10, 0.032687),
        ("cfr+", KUHN, 100, 0.001194),
        ("fictitious", KUHN, 1, 0.3125),
        ("fictitious", KUHN, 10, 0.083333),
        ("cfr", LEDUC, 10, 0.888579),
        ("cfr", LEDUC, 100, 0.095716),
        ("cfr+", LEDUC, 10, 0.610439),
        ("cfr+", LEDUC, 100, 0.013416),
        ("cfr+", DICE, 10, 0.044206),
        ("cfr+", DICE, 100, 0.00048),
    ],
)
def test_solvers_follow_the_curves_of_openspiel(
    name: str, tree: GameTree, iterations: int, exploitability: float
) -> None:
    """OpenSpiel 2.0.2 on kuhn_poker, leduc_poker and liars_dice(dice_sides=3)."""
    assert solved(name, tree, iterations)[0] == pytest.approx(exploitability, abs=2e-6)


@pytest.mark.parametrize(
    ("tree", "value", "iterations"), [(KUHN, -1 / 18, 300), (LEDUC, -0.0856, 300), (DICE, 1 / 9, 300)]
)
def test_values_of_the_games_are_the_known_ones(tree: GameTree, value: float, iterations: int) -> None:
    assert solved("cfr+", tree, iterations)[1] == pytest.approx(value, abs=1e-3)


@pytest.mark.parametrize("name", sorted(SOLVERS))
def test_every_solver_approaches_the_equilibrium_of_kuhn_poker(name: str) -> None:
    exploitability, value = solved(name, KUHN, 3000 if name in ("external", "outcome") else 300)
    assert exploitability < 0.06 and value == pytest.approx(-1 / 18, abs=0.05)


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (5, 3), (12, 12)])
def test_matrix_games_are_solved(shape: tuple[int, int]) -> None:
    """Neither seat gains by leaving the equilibrium; small whole payoffs have many ties, and rows are there twice."""
    generator = np.random.default_rng(shape)
    for _ in range(20):
        payoffs = generator.integers(-2, 3, shape).astype(float)
        rows, columns, value = matrix_equilibrium(np.concatenate([payoffs, payoffs]))
        rows = rows[: shape[0]] + rows[shape[0] :]
        assert min(*rows, *columns) >= 0 and (rows.sum(), columns.sum()) == pytest.approx((1, 1))
        assert (payoffs @ columns).max() == pytest.approx(value, abs=1e-9) == (rows @ payoffs).min()


@pytest.mark.parametrize("scale", [1e-10, 1e8, 1e12])
def test_the_scale_of_payoffs_does_not_change_their_equilibrium(scale: float) -> None:
    payoffs = np.random.default_rng(0).normal(size=(6, 6))
    for offset in (0.0, 100.0):
        rows, columns, value = matrix_equilibrium((payoffs + offset) * scale)
        assert (payoffs @ columns).max() == pytest.approx(value / scale - offset, abs=1e-9)
        assert (rows @ payoffs).min() == pytest.approx(value / scale - offset, abs=1e-9)


def test_double_oracle_ends_in_the_equilibrium_of_kuhn_poker() -> None:
    solver, found = DoubleOracle(KUHN), []
    while not solver.is_solved:
        found.append(evaluate_policy(KUHN, solver.average()).exploitability)
        solver.step()
    assert found == pytest.approx([11 / 24, 5 / 12, 1 / 6, 11 / 120, 1 / 9, 13 / 192, 0], abs=1e-9)
    assert evaluate_policy(KUHN, solver.average()).values[0] == pytest.approx(-1 / 18)
    sizes = [len(each) for each in solver.populations]
    solver.step()
    assert sizes == [7, 7] == [len(each) for each in solver.populations]


def test_cfr_plus_needs_fewer_iterations_than_double_oracle_in_leduc_poker() -> None:
    for iterations, exploitability in ((10, 1.562312), (20, 0.651450)):
        assert solved("psro", LEDUC, iterations)[0] == pytest.approx(exploitability, abs=1e-5)
        assert solved("cfr+", LEDUC, iterations)[0] < exploitability


def test_double_oracle_refuses_games_that_are_not_zero_sum() -> None:
    with pytest.raises(ConfigError, match="zero-sum games of two seats, and prisoners_dilemma is none"):
        make_solver("psro", game_tree(make_game("turngym/PrisonersDilemma-v0", rounds=1)))


def test_sampling_solvers_depend_on_the_seed_alone() -> None:
    solvers = [make_solver("outcome", LEDUC, seed) for seed in (1, 1, 2)]
    for solver in solvers:
        for _ in range(50):
            solver.step()
    first, same, other = [solver.average() for solver in solvers]
    assert (first == same).all() and (first != other).any()


def test_a_best_response_is_the_best_of_all_pure_policies() -> None:
    policy = KUHN.normalised(np.random.default_rng(3).random(KUHN.size))
    for seat in (0, 1):
        own = [each for each in KUHN.sets if each.seat == seat]
        worth = []
        for picks in product((0, 1), repeat=len(own)):
            pure = policy.copy()
            for each, pick in zip(own, picks, strict=True):
                pure[[each.start + pick, each.start + 1 - pick]] = 1, 0
            worth.append(KUHN.values(pure, seat)[0])
        value, response = best_response(KUHN, policy, seat)
        assert value == pytest.approx(max(worth)) == KUHN.values(response, seat)[0]


@pytest.mark.parametrize("alpha", [0.0, 0.2, 1 / 3])
def test_the_equilibria_of_kuhn_poker_are_not_exploitable(alpha: float) -> None:
    known = rules.equilibrium(alpha)
    found = evaluate_policy(KUHN, KUHN.policy({seat: known for seat in KUHN.seats}))
    assert found.exploitability < 1e-12 and found.values[0] == pytest.approx(-1 / 18)


def test_seats_that_decide_at_once_do_not_see_each_other() -> None:
    tree = game_tree(make_game("turngym/RockPaperScissors-v0", rounds=1))
    assert len(tree.sets) == 2 and evaluate_policy(tree, tree.uniform()).exploitability == 0
    rock = tree.policy({tree.seats[each.seat]: {each.name: {"rock": 1.0}} for each in tree.sets})
    assert evaluate_policy(tree, rock).exploitability == 1


@pytest.mark.parametrize(
    ("game", "options", "message"),
    [
        ("turngym/KuhnPokerMatch-v0", {"hands": 2}, "perfect recall"),
        ("turngym/TicTacToe-v0", {}, "perfect recall"),
        ("turngym/SimpleNegotiation-v0", {}, "too large to enumerate"),
        ("turngym/Hanabi-v0", {}, "too large to enumerate"),
        ("turngym/AvalonSilent-v0", {}, "more than 2,000 histories"),
        ("turngym/LiarsDiceFive-v0", {"dice": 1}, "more than 2,000 histories"),
    ],
)
def test_games_that_cannot_be_enumerated_are_refused(game: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        game_tree(make_game(game, **options), most_nodes=2000)


def test_every_draw_takes_all_outcomes_with_their_probabilities() -> None:
    draws = EveryDraw()
    found = list(draws.outcomes(lambda: (draws.choice("ab"), tuple(draws.permutation(3)[: draws.integers(1, 3)]))))
    assert len(found) == 24 and sum(chance for chance, _ in found) == 1
    orders = [order.tolist() for _, order in draws.outcomes(lambda: draws.permutation([3, 1, 2]))]
    assert len(orders) == 6 and sorted(orders)[0] == [1, 2, 3], "an array, as of a generator"
    with pytest.raises(ConfigError, match=r"generator\.normal\(\) cannot be enumerated"):
        list(draws.outcomes(lambda: draws.normal()))


def saved(path: Path, tree: GameTree = KUHN) -> Path:
    table = tree.table(tree.normalised(np.random.default_rng(0).random(tree.size)))
    TabularPolicy(tree.name, table, tree.settings, {"solver": "none"}).save(path)
    return path


def test_a_policy_survives_its_file(tmp_path: Path) -> None:
    policy = TabularPolicy.load(saved(tmp_path / "policy.json"))
    assert policy.game == "kuhn_poker" and policy.about == {"solver": "none"}
    assert KUHN.table(KUHN.policy(policy.table)) == policy.table


def test_a_policy_plays_its_probabilities_and_anything_where_it_has_none() -> None:
    chances = {"player_0": {card: {"check": 0.25, "bet": 0.75} for card in "JQK"}}
    player = TabularPlayer(TabularPolicy("kuhn_poker", chances))
    first = [match(make_game("turngym/KuhnPoker-v0"), [player, "random"], seed).actions[0][1] for seed in range(400)]
    assert 260 < first.count("bet") < 340
    assert match(make_game("turngym/KuhnPoker-v0"), ["random", player]).is_over


def test_a_file_plays_in_a_tournament(tmp_path: Path) -> None:
    file = saved(tmp_path / "policy.json")
    players = {"table": f"tabular:{file}", "random": "random"}
    results, games = play_tournament(TournamentPlan("turngym/KuhnPoker-v0", players, blocks=2))
    assert {row["fault"] for row in games} == {""} and len(games) == 8 and results


BROKEN = {
    "not JSON": "{",
    "another format": json.dumps({"format": "x"}),
    "no table": json.dumps({"format": "turngym tabular policy 1", "game": "kuhn_poker"}),
    "a wrong sum": json.dumps(
        {"format": "turngym tabular policy 1", "game": "kuhn_poker", "table": {"player_0": {"J": {"bet": 0.5}}}}
    ),
    "a wrong shape": json.dumps({"format": "turngym tabular policy 1", "game": "kuhn_poker", "table": {"player_0": 1}}),
    "another game": json.dumps({"format": "turngym tabular policy 1", "game": "leduc_poker", "table": {}}),
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_files_are_refused(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.json"
    file.write_text(BROKEN[kind])
    with pytest.raises(ConfigError, match=r"policy\.json|policy of player_0|probabilities of player_0"):
        make_player(f"tabular:{file}", make_game("turngym/KuhnPoker-v0"))


def test_players_with_wrong_arguments_are_refused(tmp_path: Path) -> None:
    game = make_game("turngym/KuhnPoker-v0")
    for name, error, message in [
        ("tabular", ConfigError, "write tabular:FILE"),
        ("tabular:nowhere.json", UnknownName, "no file nowhere.json"),
        (f"tabular:{tmp_path}", ConfigError, "cannot be read as a policy"),
        ("random:2", ConfigError, "takes no argument"),
        ("tabluar:x.json", TurngymError, "tabluar"),
    ]:
        with pytest.raises(error, match=message):
            make_player(name, game)


def test_unknown_solvers_are_refused() -> None:
    with pytest.raises(UnknownName, match=r"no solver named 'cfr-'\. Did you mean 'cfr"):
        make_solver("cfr-", KUHN)
    with pytest.raises(UnknownName, match=r"use NFSP\(tree\) of turngym\.trainers\.equilibria"):
        make_solver("nfsp", KUHN)
