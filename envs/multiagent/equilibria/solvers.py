"""The solvers by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from turngym.envs.multiagent.equilibria.cfr import CFR, VARIANTS
from turngym.envs.multiagent.equilibria.fictitious import FictitiousPlay
from turngym.envs.multiagent.equilibria.psro import DoubleOracle
from turngym.envs.multiagent.equilibria.sampling import MonteCarloCFR
from turngym.envs.multiagent.equilibria.tree import Floats, GameTree
from turngym.errors import UnknownName, nearest


class Solver(Protocol):
    """Approaches an equilibrium by iterations."""

    def step(self) -> None:
        """Run one iteration."""

    def average(self) -> Floats:
        """Return the average policy, the one that approaches an equilibrium."""
        ...


SOLVERS: Mapping[str, Callable[[GameTree, int], Solver]] = {
    **{name: partial(lambda variant, tree, seed: CFR(tree, variant), variant) for name, variant in VARIANTS.items()},
    "fictitious": lambda tree, seed: FictitiousPlay(tree),
    "psro": lambda tree, seed: DoubleOracle(tree),
    "external": lambda tree, seed: MonteCarloCFR(tree, "external", seed),
    "outcome": lambda tree, seed: MonteCarloCFR(tree, "outcome", seed),
}
"""Name -> maker of a solver from a game and a seed."""

_NETWORKS = {"deep": "DeepCFR(tree)", "nfsp": "NFSP(tree)", "deep-psro": "DeepPSRO(tree)"}
"""Solvers of a higher layer, for the message."""


def make_solver(name: str, tree: GameTree, seed: int = 0) -> Solver:
    """Return a solver.

    Args:
        name: A name of :data:`SOLVERS`.
        tree: The game.
        seed: Seed of the solvers that sample.

    Raises:
        UnknownName: There is no such solver.
        ConfigError: It does not solve games of this kind.
    """
    if name in _NETWORKS:
        raise UnknownName(
            f"{name} needs networks: use {_NETWORKS[name]} of turngym.trainers.equilibria, or `turngym solve`."
        )
    if name not in SOLVERS:
        raise UnknownName(f"no solver named {name!r}. {nearest(name, SOLVERS)}")
    return SOLVERS[name](tree, seed)
