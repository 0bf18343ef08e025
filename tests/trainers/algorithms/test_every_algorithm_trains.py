"""Methods of every kind learn something trivial in the real loop, and a resume brings everything back.

``test_bf16.py`` sends one method of each base class through the same loop for two iterations.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small import small_model

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.trainers.algorithms import build
from turngym.trainers.core.algorithm import Need
from turngym.trainers.engine.learner import UpdateConfig
from turngym.trainers.loop.setup import build_algorithm, build_learner
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.loop.trainer import Trainer
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import RolloutConfig, TrainConfig

torch.set_num_threads(1)

LEARNERS = (
    *("a3po", "archer", "arpo", "dapo", "epo", "grpo", "mappo", "mmd", "ppo"),
    *("rae", "reinforce", "remax", "replay", "s_ppo", "turn_ppo", "vc_ppo", "vine_ppo"),
)
"""One method for each way of collecting episodes, of changing gradients, and of keeping state, critics and columns."""

ITERATIONS = 7
CONFIG = TrainConfig(
    env="turngym/NumberLine-v0",
    env_options={"max_turns": 3, "highest": 3},
    iterations=ITERATIONS,
    max_seconds=0,
    checkpoint_every=ITERATIONS,
    control=False,
    rollout=RolloutConfig(groups=4, group_size=6, max_new_tokens=2),
    update=UpdateConfig(learning_rate=6e-2, minibatches=2),
)
STEPS = {"reinforce": 1e-1}
GROUPS = {"vc_ppo": 6, "mappo": 12}
"""One of VC-PPO's iterations trains its critic alone. MAPPO plays a game, which random tokens soon forfeit."""
RISES = {"remax": 0.05, "archer": 0.0}
"""Slow learners here: where greedy play is best already, nothing that ReMax samples has a positive advantage; ArCHer
first has to learn a critic from its replay."""

OPTIONS: dict[str, dict[str, dict[str, object]]] = {
    "archer": {"archer": {"critic_iterations": 3, "slow_rate": 0.3, "replay_ratio": 8, "critic_updates": 3}},
    "arpo": {"arpo": {"episodes_per_group": 9}},
    "vc_ppo": {"vc_ppo": {"pretrain_iterations": 1}},
    "vine_ppo": {"vine_ppo": {"num_rollouts": 2}},
}
"""Settings of methods that would not touch the policy for longer than these runs, or play much more than they need."""


def odd(trajectory: Trajectory) -> float:
    """The share of odd token ids in an episode."""
    tokens = [token for turn in trajectory.turns for token in turn.completion_ids]
    return sum(token % 2 for token in tokens) / max(len(tokens), 1)


def paying_odd_tokens(
    gather: Callable[..., list[Trajectory]], shares: list[float], sign: int
) -> Callable[..., list[Trajectory]]:
    """The same episodes, but each turn is paid for the odd tokens in it alone; actions say which are odd."""

    def paid(*args: Any, **kwargs: Any) -> list[Trajectory]:
        found = gather(*args, **kwargs)
        for trajectory in found:
            for turn in trajectory.turns:
                turn.action_is_valid = True
                turn.action = " ".join("odd" if token % 2 else "even" for token in turn.completion_ids)
                turn.reward = sign * sum(token % 2 for token in turn.completion_ids) / len(turn.completion_ids)
        if not (kwargs.get("greedy") or (len(args) > 3 and args[3])):
            shares.append(sum(map(odd, found)) / len(found))
        return found

    return paid


def trainer_of(algorithm: str, folder: RunFolder, model: LanguageModel) -> Trainer:
    rate = STEPS.get(algorithm, CONFIG.update.learning_rate)
    config = replace(CONFIG, algorithm=algorithm, update=replace(CONFIG.update, learning_rate=rate))
    config = replace(config, algorithm_options=OPTIONS.get(algorithm, {}))
    groups = GROUPS.get(algorithm, CONFIG.rollout.groups)
    config = replace(config, rollout=replace(config.rollout, groups=groups))
    if Need.JOINT_VIEWS in build(algorithm).needs:
        config = replace(config, env="turngym/KuhnPoker-v0", env_options={})
    method = build_algorithm(config)
    return Trainer(config, model, build_learner(config, model, method), make_task(config, method), folder)


def trained(algorithm: str, folder: RunFolder, model: LanguageModel, sign: int = 1) -> Sequence[float]:
    """Train; returns the share of odd tokens in each rollout."""
    trainer, shares = trainer_of(algorithm, folder, model), list[float]()
    trainer.task.gather = paying_odd_tokens(trainer.task.gather, shares, sign)  # type: ignore[method-assign]
    trainer.task.branch = paying_odd_tokens(trainer.task.branch, [], sign)  # type: ignore[method-assign]
    try:
        trainer.run()
    finally:
        trainer.task.close()
    return shares


def rise(shares: Sequence[float]) -> float:
    return (shares[-1] + shares[-2] - shares[0] - shares[1]) / 2


@pytest.mark.parametrize("algorithm", LEARNERS)
def test_it_learns_what_is_paid_and_a_resume_brings_all_back(algorithm: str, tmp_path: Path) -> None:
    folder, model = RunFolder.create(tmp_path / "run", CONFIG), small_model(layers=1)
    assert rise(trained(algorithm, folder, model)) > RISES.get(algorithm, 0.1)
    assert [record["iteration"] for record in folder.metrics()] == list(range(ITERATIONS))
    again = small_model(seed=5, layers=1)
    resumed = trainer_of(algorithm, folder, again)
    try:
        resumed.resume()
    finally:
        resumed.task.close()
    assert resumed.iteration == ITERATIONS
    after = again.network.state_dict()
    for name, value in model.network.state_dict().items():
        assert torch.equal(value, after[name]), name


def test_a_wrong_sign_would_be_noticed(tmp_path: Path) -> None:
    """Negative oracle: paid for even tokens, the share of odd ones falls."""
    assert rise(trained("ppo", RunFolder.create(tmp_path / "run", CONFIG), small_model(layers=1), sign=-1)) < -0.1
