"""Game theory for small games: extensive form, exact best responses, and solvers of tabular policies."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.envs.multiagent.equilibria.cfr import CFR
    from turngym.envs.multiagent.equilibria.evaluation import Evaluation, best_response, evaluate_policy
    from turngym.envs.multiagent.equilibria.fictitious import FictitiousPlay
    from turngym.envs.multiagent.equilibria.psro import DoubleOracle, matrix_equilibrium
    from turngym.envs.multiagent.equilibria.sampling import MonteCarloCFR
    from turngym.envs.multiagent.equilibria.solvers import SOLVERS, make_solver
    from turngym.envs.multiagent.equilibria.tabular import TabularPlayer, TabularPolicy
    from turngym.envs.multiagent.equilibria.tree import GameTree, InformationSet, game_tree
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.envs.multiagent.equilibria.evaluation": ("Evaluation", "best_response", "evaluate_policy"),
            "turngym.envs.multiagent.equilibria.cfr": ("CFR",),
            "turngym.envs.multiagent.equilibria.fictitious": ("FictitiousPlay",),
            "turngym.envs.multiagent.equilibria.psro": ("DoubleOracle", "matrix_equilibrium"),
            "turngym.envs.multiagent.equilibria.sampling": ("MonteCarloCFR",),
            "turngym.envs.multiagent.equilibria.solvers": ("SOLVERS", "make_solver"),
            "turngym.envs.multiagent.equilibria.tabular": ("TabularPlayer", "TabularPolicy"),
            "turngym.envs.multiagent.equilibria.tree": ("GameTree", "InformationSet", "game_tree"),
        },
    )

__all__ = [
    "CFR",
    "SOLVERS",
    "DoubleOracle",
    "Evaluation",
    "FictitiousPlay",
    "GameTree",
    "InformationSet",
    "MonteCarloCFR",
    "TabularPlayer",
    "TabularPolicy",
    "best_response",
    "evaluate_policy",
    "game_tree",
    "make_solver",
    "matrix_equilibrium",
]
