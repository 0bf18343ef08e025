"""METRICS.md and the runs agree: every name that is logged is written down, and every name written down is logged."""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from algorithm_batches import METHODS
from required import with_required
from small import small_model

from turngym.agents.models.loading import set_format
from turngym.agents.models.rollout_servers.client import PolicyClient
from turngym.agents.models.rollout_servers.config import ServedConfig
from turngym.agents.models.rollout_servers.pool import ServerPool
from turngym.agents.prompt_text import PromptConfig
from turngym.trainers.algorithms import build
from turngym.trainers.core.algorithm import Need
from turngym.trainers.engine.learner import UpdateConfig
from turngym.trainers.loop.setup import build_algorithm, build_learner
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.loop.trainer import Trainer
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, SelfPlayConfig, TrainConfig

TRAINERS = Path(__file__).parents[2] / "trainers"
ROW = re.compile(r"^\| `([\w/]+)` \| (.*?) \| (.*?)\|$", re.MULTILINE)
DOCUMENTED = {name: formula for name, formula, _ in ROW.findall((TRAINERS / "METRICS.md").read_text("utf8"))}
OF_PROGRAMS = {name for name in DOCUMENTED if name.startswith("rollout/gateway_")}
"""Logged where agent programs play: tests/trainers/integrations/gateway/test_gateway_programs.py."""
OF_WORKERS = {"rollout/workers_lost", "time/hand_over_seconds"}
"""Logged where Ray is: tests/trainers/loop/test_rollout_workers.py."""
OF_RANKS = {"time/communication"}
"""Logged by several ranks: tests/trainers/engine/ranks/test_rank_methods.py."""
OF_STARTS = {"rollout/continued", "rollout/recorded_turns"}
"""Logged where groups start from recorded states: tests/trainers/loop/test_starts.py."""
OF_CURRICULA = {name for name in DOCUMENTED if name.startswith("curriculum/")}
"""Logged where a curriculum chooses tasks: tests/trainers/loop/test_curriculum_task.py."""
OF_LSPO = {name for name in DOCUMENTED if name.startswith("lspo/")} | {"loss/preferences"}
"""Logged by lspo, in games of talk: tests/trainers/lspo/test_lspo_training.py."""
TINY = TrainConfig(
    env="turngym/NumberLine-v0",
    env_options={"max_turns": 4, "highest": 3},
    iterations=1,
    max_seconds=0,
    control=False,
    rollout=RolloutConfig(groups=2, group_size=2, max_new_tokens=2),
    update=UpdateConfig(minibatches=2),
    evaluation=EvaluationConfig(episodes=0, every=0, curve_episodes=1),
)
OPTIONS: dict[str, dict[str, Any]] = {"arpo": {"arpo": {"episodes_per_group": 3}}}


def records(config: TrainConfig, folder: Path, dtype: torch.dtype = torch.float32) -> list[dict[str, Any]]:
    """Train without a warm-up."""
    method = build_algorithm(config)
    task, model, run = make_task(config, method), small_model(layers=1), RunFolder.create(folder, config)
    set_format(model.network, dtype)
    learner = build_learner(config, model, method)
    try:
        Trainer(config, model, learner, task, run, lambda: task.curve_point(model)).run()
    finally:
        task.close()
    return run.metrics()


def names(found: Iterable[dict[str, Any]]) -> set[str]:
    """The names in some records, players, sides and environments written as in the documentation."""
    everything = {re.sub(r"_on_[\w-]+$", "_on_ENVIRONMENT", name) for record in found for name in record}
    players = {re.sub(r"_vs_\w+$", "_vs_PLAYER", name) for name in everything}
    return {re.sub(r"_as_\w+_vs_", "_as_SIDE_vs_", name) for name in players}


def config_of(algorithm: str) -> TrainConfig:
    return with_required(replace(TINY, algorithm=algorithm, algorithm_options=OPTIONS.get(algorithm, {})))


def of_page(algorithm: str) -> set[str]:
    """The names on the pages of the parts of a method; ``<...>`` and the like stand for anything."""
    page = TRAINERS / "algorithms" / f"{algorithm}.md"
    text = page.read_text("utf8") if page.exists() else ""
    return set(re.findall(r"`((?:credit|loss|rollout|train)/[^`]+)`", text))


@pytest.mark.parametrize("algorithm", METHODS)
def test_methods_log_documented_names_and_the_same_ones(algorithm: str, tmp_path: Path) -> None:
    logged = names(records(config_of(algorithm), tmp_path / "run"))
    pages = of_page(algorithm)
    patterns = [re.escape(name).replace("ENVIRONMENT/ROLE", ".*").replace("NAME", ".*") for name in pages]
    unknown = {n for n in logged - DOCUMENTED.keys() if not any(re.fullmatch(p, n) for p in patterns)}
    assert not unknown, f"write them into METRICS.md or {algorithm}.md"
    assert {name for name in pages if name.startswith("train/")} <= logged
    needs = build(algorithm).needs
    shared = {name for name in DOCUMENTED if name.startswith(("policy/entropy_first", "policy/entropy_last"))}
    shared |= {"loss/policy", "loss/clip_fraction_token", "loss/clip_fraction_turn", "loss/approx_kl", "rollout/faults"}
    shared |= {"policy/ess", "policy/ess_turn", "policy/ratio_max", "policy/kl_sampler", "policy/kl_sampler_last"}
    shared |= {"policy/staleness_mean", "policy/staleness_max", "policy/entropy_sampled"}
    shared |= {"train/grad_norm", "train/grad_norm_clipped", "train/logprob_gap"}
    if Need.VALUES in needs:
        shared |= {"credit/explained_variance", "train/grad_norm_critic"}
    assert shared <= logged


def test_every_documented_name_is_logged_by_one_of_these_runs(tmp_path: Path) -> None:
    with_reference = {"ppo": {"kl_coef": 0.1, "entropy_coef": 0.01, "reward_kl_coef": 0.01}}
    evaluated = EvaluationConfig(episodes=0, every=1, curve_episodes=2)
    long = replace(TINY, env_options={"max_turns": 40, "highest": 30}, rollout=replace(TINY.rollout, groups=1))
    mixed = replace(
        TINY, env_options={}, envs=("turngym/NumberLine-v0", "turngym/GuessTheNumber-v0"), evaluation=evaluated
    )
    game = replace(TINY, env="turngym/KuhnPoker-v0", env_options={}, algorithm="grpo", evaluation=evaluated)
    talk = PromptConfig(mode="conversation", instructions=False)
    repeating = RolloutConfig(groups=1, group_size=2, temperature=0.1, max_new_tokens=16, draft_tokens=4, prompt=talk)
    runs = [
        replace(long, algorithm="ppo", algorithm_options=with_reference, evaluation=evaluated),
        replace(game, self_play=SelfPlayConfig(opponents=("past:1", "random"), matching="linear")),
        config_of("arpo"),
        replace(mixed, algorithm="grpo"),
        replace(TINY, algorithm="grpo", update=UpdateConfig(old_logprobs="trainer")),
        replace(TINY, algorithm="grpo", rollout=replace(TINY.rollout, schedule="async")),
        replace(TINY, algorithm="grpo", rollout=repeating),
    ]
    logged = names(record for number, run in enumerate(runs) for record in records(run, tmp_path / str(number)))
    logged |= names(records(replace(TINY, algorithm="grpo"), tmp_path / "float16", torch.float16))
    logged |= ServerPool([PolicyClient("http://127.0.0.1:1")], frozenset(), ServedConfig()).metrics().keys()
    assert DOCUMENTED.keys() - logged == OF_WORKERS | OF_PROGRAMS | OF_RANKS | OF_LSPO | OF_STARTS | OF_CURRICULA


def test_every_name_has_a_formula() -> None:
    assert len(DOCUMENTED) > 50
    assert all(formula.strip() for formula in DOCUMENTED.values())
