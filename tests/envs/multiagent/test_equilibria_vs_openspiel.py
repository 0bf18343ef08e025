"""Trees and solvers against OpenSpiel: the same exploitability and value after the same iterations."""

import pytest

from turngym.envs.multiagent import make_game
from turngym.envs.multiagent.equilibria import evaluate_policy, game_tree, make_solver

pyspiel = pytest.importorskip("pyspiel", reason="open_spiel is in .venvs/games only: run make test-integration")
pytestmark = pytest.mark.integration
GAMES = {
    "kuhn_poker": ("turngym/KuhnPoker-v0", {}),
    "leduc_poker(suit_isomorphism=True)": ("turngym/LeducPoker-v0", {}),
    "liars_dice(dice_sides=3)": ("turngym/LiarsDice-v0", {"faces": 3}),
    "liars_dice(dice_sides=4)": ("turngym/LiarsDice-v0", {"faces": 4}),
}


@pytest.mark.parametrize("solver", ["cfr", "cfr+"])
@pytest.mark.parametrize("theirs", GAMES)
def test_solvers_do_what_openspiels_do(theirs: str, solver: str) -> None:
    game_id, options = GAMES[theirs]
    tree, game = game_tree(make_game(game_id, **options)), pyspiel.load_game(theirs)
    our, their = make_solver(solver, tree), {"cfr": pyspiel.CFRSolver, "cfr+": pyspiel.CFRPlusSolver}[solver](game)
    for iteration in range(1, 31):
        our.step()
        their.evaluate_and_update_policy()
        if iteration in (1, 10, 30):
            found = evaluate_policy(tree, our.average())
            average = their.average_policy()
            assert found.exploitability == pytest.approx(pyspiel.exploitability(game, average), abs=1e-9)
            returns = pyspiel.expected_returns(game.new_initial_state(), average, -1, True)
            assert found.values == pytest.approx(returns, abs=1e-9)
