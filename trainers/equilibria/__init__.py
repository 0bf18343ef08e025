"""Solvers of games with neural networks."""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.trainers.equilibria.deep_cfr import DeepCFR, Reservoir
    from turngym.trainers.equilibria.deep_psro import DeepPSRO
    from turngym.trainers.equilibria.features import Features, game_features
    from turngym.trainers.equilibria.nfsp import NFSP
    from turngym.trainers.equilibria.sampled_games import SampledGames
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.trainers.equilibria.deep_cfr": ("DeepCFR", "Reservoir"),
            "turngym.trainers.equilibria.deep_psro": ("DeepPSRO",),
            "turngym.trainers.equilibria.features": ("Features", "game_features"),
            "turngym.trainers.equilibria.nfsp": ("NFSP",),
            "turngym.trainers.equilibria.sampled_games": ("SampledGames",),
        },
    )

__all__ = ["NFSP", "DeepCFR", "DeepPSRO", "Features", "Reservoir", "SampledGames", "game_features"]
