"""Every registered method trained by some ranks: gradients of every update and metrics of every iteration, as files.

Run as ``python rank_methods.py FOLDER STAGE`` by each of two ranks; tests call the same functions in one process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import algorithm_batches
import torch
from required import with_required
from safetensors.torch import save_file
from small import small_model
from torch import Tensor, nn

from turngym.agents.models.loading import LanguageModel
from turngym.agents.trajectory import Trajectory
from turngym.trainers.algorithms import ALGORITHMS
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.engine.ranks import Ranks
from turngym.trainers.engine.ranks.launch import launched
from turngym.trainers.loop.setup import build_algorithm, build_learner
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.loop.trainer import Trainer
from turngym.trainers.records.unwritten import folder_of_ranks
from turngym.trainers.settings.config import RolloutConfig, TrainConfig

torch.set_num_threads(1)

Change: TypeAlias = Callable[[list[Trajectory]], None]

CONFIG = TrainConfig(
    env="turngym/NumberLine-v0",
    env_options={"max_turns": 3, "highest": 3},
    iterations=2,
    max_seconds=0,
    checkpoint_every=2,
    control=False,
    rollout=RolloutConfig(groups=3, group_size=4, max_new_tokens=2),
    update=UpdateConfig(learning_rate=1e-2, minibatches=2, max_micro_batch_tokens=256),
)
OPTIONS: dict[str, dict[str, dict[str, object]]] = {
    "archer": {"archer": {"critic_iterations": 0, "critic_updates": 3}},
    "arpo": {"arpo": {"episodes_per_group": 6}},
    "bnpo": {"bnpo": {"highest": 10.0}},
    "grpo_s": {"grpo_s": {"threshold": 3.5}},
    "kto": {"kto": {"threshold": 3.5}},
    "nft": {"nft": {"threshold": 3.5}},
    "trpa": {"trpa": {"threshold": 3.5}},
    "vc_ppo": {"vc_ppo": {"pretrain_iterations": 1}},
    "vine_ppo": {"vine_ppo": {"num_rollouts": 2}},
}
DTYPES = {"float64": torch.float64, "float32": torch.float32}
ONE_GROUP, ALL_FAULTY, RESUMED = "one group", "all faulty", "resumed"
JOURNALED, REWARDED = "journaled", "rewarded"
LAUNCHERS_SIGNAL = 3.0
"""Seconds in which a launcher misses a rank; its signal ends nothing even if it comes later."""
METHODS = {"float64": sorted(ALGORITHMS), "float32": ["grpo", "ppo", "s_ppo"]}


class ExactNorm(nn.Module):
    """The norm of the model in the precision of its weights; its own computes in float32 always."""

    def __init__(self, norm: Any) -> None:
        super().__init__()
        self.weight: nn.Parameter = norm.weight
        self.epsilon = float(norm.variance_epsilon)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.weight * hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + self.epsilon)


def model_in(dtype: torch.dtype, seed: int = 0) -> LanguageModel:
    """A small model that computes everything in one precision."""
    model = small_model(seed, dtype=dtype)
    for module in list(model.network.modules()):
        for name, child in list(module.named_children()):
            if type(child).__name__.endswith("RMSNorm"):
                setattr(module, name, ExactNorm(child))
    return model


def paid_for_odd_tokens(found: list[Trajectory]) -> None:
    """Pay each turn for its odd tokens, so that there is something to learn; batches are equal to the bit."""
    for trajectory in found:
        for turn in trajectory.turns:
            turn.action_is_valid = turn.completion_ids[0] % 5 > 0
            turn.action = " ".join("odd" if token % 2 else "even" for token in turn.completion_ids)
            turn.reward = sum(token % 2 + token / 400 for token in turn.completion_ids)
            turn.logprobs = tuple(round(each, 5) for each in turn.logprobs)


def rounded(found: list[Trajectory]) -> None:
    """Make equal batches equal to the bit, and give the model something to fit."""
    for trajectory in found:
        trajectory.success = int(trajectory.spec.episode % 3 == 0)
        for turn in trajectory.turns:
            turn.logprobs = tuple(round(each, 5) for each in turn.logprobs)


def faulty(found: list[Trajectory]) -> None:
    """Let every episode break."""
    for trajectory in found:
        trajectory.fault, trajectory.truncated = "the environment broke", True


def _changed(play: Callable[..., list[Trajectory]], change: Change) -> Callable[..., list[Trajectory]]:
    def played(*args: Any, **kwargs: Any) -> list[Trajectory]:
        found = play(*args, **kwargs)
        change(found)
        return found

    return played


def config_of(method: str) -> TrainConfig:
    """Settings of a method's run."""
    return with_required(replace(CONFIG, algorithm=method, algorithm_options=OPTIONS.get(method, {})))


def train(
    ranks: Ranks,
    folder: Path,
    config: TrainConfig,
    dtype: torch.dtype = torch.float64,
    *,
    change: Change = paid_for_odd_tokens,
    resumes: bool = False,
    until: int = 0,
    on_iteration: Callable[[Mapping[str, Any]], None] = lambda record: None,
) -> list[Tensor]:
    """Train, and return the gradients that every update was made with."""
    algorithm = build_algorithm(config)
    taken: list[Tensor] = []
    model = model_in(dtype)
    with (
        folder_of_ranks(ranks, folder, None if resumes else config) as opened,
        closing(make_task(config, algorithm, ranks)) as task,
    ):
        task.gather = _changed(task.gather, change)  # type: ignore[method-assign]
        task.again = _changed(task.again, change)  # type: ignore[method-assign]
        task.branch = _changed(task.branch, change)  # type: ignore[method-assign]
        for module in algorithm.modules().values():
            module.to(dtype)
        learner = build_learner(config, model, algorithm, ranks)
        trainer = Trainer(replace(config, iterations=until or config.iterations), model, learner, task, opened)
        parameters = [*learner.policy_parameters, *learner.other_parameters]
        step = learner.optimizer.step

        def noted(*args: Any, **kwargs: Any) -> Any:
            taken.append(
                torch.cat(
                    [(torch.zeros_like(p) if p.grad is None else p.grad).reshape(-1).double() for p in parameters]
                )
            )
            return step(*args, **kwargs)

        learner.optimizer.step = noted  # type: ignore[method-assign]
        if resumes:
            trainer.resume()
        trainer.run(on_iteration, on_warning=lambda warning: None)
    return taken


def train_all(ranks: Ranks, folder: Path) -> None:
    """Train with every method, for longer where iterations depend on each other, and the awkward cases."""
    longer = {*algorithm_batches.WITH_HISTORY, *OPTIONS}
    for name, dtype in DTYPES.items():
        for method in METHODS[name]:
            iterations = CONFIG.iterations if name == "float64" and method in longer else 1
            _kept(ranks, folder, f"{method}-{name}", replace(config_of(method), iterations=iterations), dtype)
    one = replace(CONFIG, rollout=replace(CONFIG.rollout, groups=1), update=replace(CONFIG.update, minibatches=1))
    _kept(ranks, folder, ONE_GROUP, replace(one, algorithm="ppo"), torch.float64)
    _kept(ranks, folder, ALL_FAULTY, replace(CONFIG, algorithm="ppo"), torch.float64, faulty)
    played_by_first = replace(CONFIG, algorithm="grpo", rollout=replace(CONFIG.rollout, journal=True))
    _kept(ranks, folder, JOURNALED, played_by_first, torch.float64)
    rewarded = replace(CONFIG, algorithm="ppo", reward_model="progrm")
    _kept(ranks, folder, REWARDED, rewarded, torch.float64, rounded)


def _kept(
    ranks: Ranks,
    folder: Path,
    name: str,
    config: TrainConfig,
    dtype: torch.dtype,
    change: Change = paid_for_odd_tokens,
) -> None:
    try:
        taken = train(ranks, folder / name, config, dtype, change=change)
    except Exception as error:  # the other methods are still compared
        if ranks.is_first:
            (folder / f"{name}.error").write_text(f"{type(error).__name__}: {error}", "utf8")
        return
    if ranks.is_first:
        save_file({f"{index:04d}": gradient for index, gradient in enumerate(taken)}, folder / f"{name}.safetensors")


def first_stage(ranks: Ranks, folder: Path) -> None:
    """Everything, and the first two iterations of a run that others continue with."""
    train_all(ranks, folder)
    train(ranks, folder / RESUMED, RESUMED_CONFIG, until=2)


RESUMED_CONFIG = replace(config_of("ppo"), iterations=6)


def third_stage(ranks: Ranks, folder: Path) -> None:
    """The last two iterations; after the first of a further run, one rank is killed.

    The launcher is stopped until the other rank has left its training, so that its signal comes while the error is
    still on its way to the screen.
    """
    train(ranks, folder / RESUMED, RESUMED_CONFIG, resumes=True)

    def die(record: Mapping[str, Any]) -> None:
        if ranks.rank == 1:
            os.kill(os.getppid(), signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        train(ranks, folder / "killed", RESUMED_CONFIG, on_iteration=die)
    finally:
        os.kill(os.getppid(), signal.SIGCONT)
        time.sleep(LAUNCHERS_SIGNAL)


def main(words: Sequence[str]) -> None:
    """Run one stage as a rank."""
    with launched("cpu") as ranks:
        {"first": first_stage, "third": third_stage}[words[1]](ranks, Path(words[0]))
        print(json.dumps({"seconds": ranks.seconds}))


if __name__ == "__main__":
    main(sys.argv[1:])
