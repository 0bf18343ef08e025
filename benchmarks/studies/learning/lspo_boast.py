"""Exploitability of LSPO's model in Boast, a game of talk that is small enough to enumerate.

    python benchmarks/studies/learning/lspo_boast.py [--seeds 0 1 2]

Each seed warms a small model up on random play, and trains it by ``turngym train --game ... --algorithm lspo``. The
exploitability is that of the probabilities that the model gives to the legal sentences of every information set.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from turngym.agents.models.action_probabilities import action_chances, choices_by_anchor
from turngym.agents.models.embedded import EmbeddedConfig
from turngym.agents.models.loading import load_model
from turngym.benchmarks.studies.harness import arguments, write_result
from turngym.envs.multiagent.equilibria import evaluate_policy, game_tree
from turngym.envs.tablegames.boast import Boast
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.loop.job import train
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig
from turngym.trainers.settings.supervised import SupervisedConfig

CONFIG = TrainConfig(
    env="turngym.envs.tablegames.boast:Boast",
    env_options={},
    algorithm="lspo",
    algorithm_options={"lspo": {"solver_steps": 4000, "updates": 200, "decisions": 16}},
    iterations=3,
    max_seconds=0,
    control=False,
    embedded=EmbeddedConfig(hidden_size=32, layers=1, heads=2, vocabulary=400),
    warmup=SupervisedConfig(demonstrations=400, epochs=20, learning_rate=5e-3, batch_size=8),
    rollout=RolloutConfig(groups=300, group_size=1, format="plain", max_new_tokens=16),
    update=UpdateConfig(learning_rate=3e-3),
    evaluation=EvaluationConfig(episodes=0, every=0, curve_episodes=1),
)


def exploitability(config: TrainConfig, folder: Path) -> float:
    """Return how much the model in a folder loses in Boast to best responses."""
    model, tree = load_model(str(folder)), game_tree(Boast())
    played = make_task(config).gather(model, 0, 0)
    choices = choices_by_anchor(played, {each.name: each.actions for each in tree.sets})
    rollout = config.rollout
    chances = action_chances(
        model, list(choices.values()), format=rollout.format, temperature=1.0, max_new_tokens=rollout.max_new_tokens
    )
    table = dict(zip(choices, chances, strict=True))
    policy = np.array([table[each.name][action] for each in tree.sets for action in each.actions])
    return evaluate_policy(tree, tree.normalised(policy)).exploitability


def trained(seed: int) -> dict[str, Any]:
    """Return the exploitability before and after the training of a seed."""
    config, spent = replace(CONFIG, seed=seed), time.process_time()
    with TemporaryDirectory() as folder:
        train(config, Path(folder) / "run")
        before, after = (exploitability(config, Path(folder) / "run" / name) for name in ("warmup", "model"))
    print(f"seed {seed}: {before:.4f} to {after:.4f}", flush=True)
    return {"seed": seed, "before": before, "after": after, "processor_seconds": time.process_time() - spent}


def main() -> None:
    """Train each seed and write the figures."""
    parser = arguments(__doc__, "lspo_boast.json")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="seeds")
    options = parser.parse_args()
    torch.set_num_threads(1)
    write_result(options.out, {"runs": [trained(seed) for seed in options.seeds]}, "torch", "transformers")


if __name__ == "__main__":
    main()
