"""Turn tables, algorithms, the learner and the training loop.

A training loop of one's own takes ``build`` and ``prepare``; the README shows one.
"""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.trainers.algorithm import Algorithm, Credit, LossInputs, LossOutput, Need, Term
    from turngym.trainers.algorithms import ALGORITHMS, build
    from turngym.trainers.config import TrainConfig
    from turngym.trainers.job import train
    from turngym.trainers.learner import Learner
    from turngym.trainers.modifier import Modifier
    from turngym.trainers.prepared import PreparedBatch, prepare
    from turngym.trainers.scoring import Critic
    from turngym.trainers.turn_table import TurnTable
    from turngym.trainers.update_config import UpdateConfig
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.trainers.algorithm": ("Algorithm", "Credit", "LossInputs", "LossOutput", "Need", "Term"),
            "turngym.trainers.algorithms": ("ALGORITHMS", "build"),
            "turngym.trainers.config": ("TrainConfig",),
            "turngym.trainers.job": ("train",),
            "turngym.trainers.learner": ("Learner",),
            "turngym.trainers.modifier": ("Modifier",),
            "turngym.trainers.prepared": ("PreparedBatch", "prepare"),
            "turngym.trainers.scoring": ("Critic",),
            "turngym.trainers.turn_table": ("TurnTable",),
            "turngym.trainers.update_config": ("UpdateConfig",),
        },
    )

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Credit",
    "Critic",
    "Learner",
    "LossInputs",
    "LossOutput",
    "Modifier",
    "Need",
    "PreparedBatch",
    "Term",
    "TrainConfig",
    "TurnTable",
    "UpdateConfig",
    "build",
    "prepare",
    "train",
]
