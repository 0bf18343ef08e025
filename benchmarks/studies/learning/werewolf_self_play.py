"""Werewolf with 5 seats by self-play: games won against random and rule-based players, before and after, on both sides.

Arm, written down before it ran, three seeds: the embedded model with a warm-up that imitates random play, then
self-play with role-conditioned advantage estimation, half of the games against itself, the rest against one of its four
newest frozen selves or random players. No talk (``talk_rounds=0``): what can be learnt is whom to look at, to protect,
to kill and to vote for. Intervals are bootstraps over the seeds of games, every seed played once with either side.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from typing import Any

from run_queue import RESULTS, RUNS, machine, write_results

from turngym.agents.models.embedded import EmbeddedConfig
from turngym.agents.prompting.prompts import PromptConfig
from turngym.trainers.engine.learner import UpdateConfig
from turngym.trainers.loop.job import train
from turngym.trainers.loop.sft import SupervisedConfig
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, SelfPlayConfig, TrainConfig

SEEDS = (0, 1, 2)
SECONDS = 400.0
SIDES = ("village", "werewolves")


def config_of(seed: int) -> TrainConfig:
    """Return the settings of a run."""
    return TrainConfig(
        env="turngym/WerewolfSmall-v0",
        env_options={"talk_rounds": 0},
        algorithm="rae",
        algorithm_options={"rae": {"entropy_coef": 0.02, "invalid_penalty": 1.0, "dual_clip": 3.0}},
        iterations=400,
        max_seconds=SECONDS,
        seed=seed,
        control=False,
        checkpoint_every=20,
        embedded=EmbeddedConfig(hidden_size=64, layers=2, heads=4, vocabulary=512),
        warmup=SupervisedConfig(demonstrations=80, epochs=14),
        rollout=RolloutConfig(
            groups=48,
            group_size=1,
            format="plain",
            max_new_tokens=6,
            prompt=PromptConfig(instructions=False, history=1),
        ),
        update=UpdateConfig(learning_rate=3e-4, minibatches=2),
        evaluation=EvaluationConfig(episodes=100, every=0, curve_episodes=1),
        self_play=SelfPlayConfig(
            opponents=("self", "self", "past:4", "random"),
            freeze_every=10,
            evaluation_opponents=("random", "rule_based"),
        ),
    )


def run(seed: int) -> RunFolder:
    """Train with one seed, or go on with a run that was broken off."""
    path = RUNS / f"werewolf-seed{seed}"
    if (path / "done").exists():
        return RunFolder(path)
    is_resumable = (path / "warmup" / "done").exists()
    if not is_resumable:
        shutil.rmtree(path, ignore_errors=True)
    train(config_of(seed), path, resume=is_resumable)
    return RunFolder(path)


def shares(evaluations: Mapping[str, Any]) -> dict[str, Any]:
    """Return stage -> opponent -> side -> share of games won, with its interval."""
    found: dict[str, Any] = {}
    for stage in ("warmup", "final"):
        for opponent, suffix in (("random", ""), ("rule_based", "-vs-rule_based")):
            for side in SIDES:
                success = evaluations[f"{stage}-sampled{suffix}-side-{side}"]["success"]
                found.setdefault(stage, {}).setdefault(opponent, {})[side] = success
    return found


def main() -> int:
    """Run what is missing, print the table, write ``benchmarks/results/werewolf_self_play.json``."""
    folders = {seed: run(seed) for seed in SEEDS}
    runs = {}
    for seed, folder in folders.items():
        last = folder.metrics()[-1]
        runs[f"seed{seed}"] = {
            "won": shares(folder.evaluations()),
            "iterations": last["iteration"] + 1,
            "turns": last["turns_total"],
            "training_seconds": last["time/seconds_total"],
        }
    write_results("werewolf_self_play", {"machine": machine(), "arm": config_of(0).as_json(), "runs": runs})
    for name, each in runs.items():
        for opponent in ("random", "rule_based"):
            for side in SIDES:
                before, after = (each["won"][stage][opponent][side] for stage in ("warmup", "final"))
                print(
                    f"{name} as {side:10} against {opponent:10}: "
                    f"{100 * before['value']:.1f} % ({100 * before['low']:.1f} to {100 * before['high']:.1f}) before, "
                    f"{100 * after['value']:.1f} % ({100 * after['low']:.1f} to {100 * after['high']:.1f}) after"
                )
    print(f"results: {RESULTS / 'werewolf_self_play.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
