"""Solvers of games with neural networks."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.trainers.equilibria.deep_cfr import DeepCFR, Reservoir
    from turngym.trainers.equilibria.features import Features, game_features
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.trainers.equilibria.deep_cfr": ("DeepCFR", "Reservoir"),
            "turngym.trainers.equilibria.features": ("Features", "game_features"),
        },
    )

__all__ = ["DeepCFR", "Features", "Reservoir", "game_features"]
