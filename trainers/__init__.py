"""Turn tables, algorithms, the learner and the training loop.

Custom training loops use ``build`` and ``prepare``; the README shows one.
"""

from typing import TYPE_CHECKING

from turngym.exports import lazy_names

if TYPE_CHECKING:
    from turngym.trainers.algorithms import ALGORITHMS, build
    from turngym.trainers.algorithms.base.modifier import Modifier
    from turngym.trainers.core.algorithm import Algorithm, Credit, LossInputs, LossOutput, Need, Term
    from turngym.trainers.core.turn_table import TurnTable
    from turngym.trainers.core.update_config import UpdateConfig
    from turngym.trainers.engine.learner import Learner
    from turngym.trainers.engine.optimizer import adamw
    from turngym.trainers.engine.prepared import PreparedBatch, prepare
    from turngym.trainers.engine.scoring import Critic
    from turngym.trainers.loop.job import train
    from turngym.trainers.settings.config import TrainConfig
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "turngym.trainers.core.algorithm": ("Algorithm", "Credit", "LossInputs", "LossOutput", "Need", "Term"),
            "turngym.trainers.algorithms": ("ALGORITHMS", "build"),
            "turngym.trainers.settings.config": ("TrainConfig",),
            "turngym.trainers.loop.job": ("train",),
            "turngym.trainers.engine.learner": ("Learner",),
            "turngym.trainers.algorithms.base.modifier": ("Modifier",),
            "turngym.trainers.engine.optimizer": ("adamw",),
            "turngym.trainers.engine.prepared": ("PreparedBatch", "prepare"),
            "turngym.trainers.engine.scoring": ("Critic",),
            "turngym.trainers.core.turn_table": ("TurnTable",),
            "turngym.trainers.core.update_config": ("UpdateConfig",),
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
    "adamw",
    "build",
    "prepare",
    "train",
]
