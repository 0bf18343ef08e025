"""A run in self-play warns of methods whose groups mix seats, and of no others."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from required import with_required

from turngym.agents.models.embedded import EmbeddedConfig
from turngym.errors import ConfigError, UnknownName
from turngym.terminal.console import Console
from turngym.trainers.algorithms import ALGORITHMS, build
from turngym.trainers.core.algorithm import Need
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.loop.job import train
from turngym.trainers.loop.setup import build_algorithm
from turngym.trainers.loop.sft import SupervisedConfig
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, SelfPlayConfig, TrainConfig

SMALL = TrainConfig(
    env="turngym/KuhnPoker-v0",
    env_options={},
    iterations=1,
    control=False,
    embedded=EmbeddedConfig(hidden_size=16, layers=1, heads=2, vocabulary=340),
    warmup=SupervisedConfig(demonstrations=5, epochs=1),
    rollout=RolloutConfig(groups=2, group_size=2, format="plain", max_new_tokens=2),
    evaluation=EvaluationConfig(episodes=0, every=0),
)
SENTENCE = "compares the episodes of a group, and in self-play those are of different seats"


def warning_of(name: str, env: str = SMALL.env, opponents: tuple[str, ...] = ("self",), reward_model: str = "") -> str:
    config = replace(
        SMALL, env=env, algorithm=name, self_play=SelfPlayConfig(opponents=opponents), reward_model=reward_model
    )
    config = with_required(config)
    algorithm = build_algorithm(config)
    task = make_task(config, algorithm)
    try:
        return task.warning(algorithm)
    finally:
        task.close()


@pytest.mark.parametrize("name", sorted({*ALGORITHMS, "grpo+epo", "dr_mas+epo"}))
def test_methods_that_compare_groups_warn_and_others_do_not(name: str) -> None:
    needs = build(name).needs
    if needs & {Need.SNAPSHOTS, Need.MIXTURES, Need.NOTES}:
        pytest.skip("it does not train on games")
    compares = Need.GROUPS in needs and not name.startswith(("dr_mas", "hierarchical_grpo", "m_grpo"))
    assert (SENTENCE in warning_of(name)) == compares


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("nash_md", {}, "leave out games between seats, or take"),
        ("igrpo", {}, "once more with another text in the prompt: leave out games between seats, or take"),
        ("igrpo", {"env": "turngym/GuessTheNumber-v0", "start": "runs/base@2"}, "leave out --start"),
        (
            "nash_md",
            {"env": "turngym/GuessTheNumber-v0", "update": UpdateConfig(sharding="full")},
            "leave out --update.sharding",
        ),
        (
            "nash_md",
            {"env": "turngym/GuessTheNumber-v0", "rollout": RolloutConfig(sampler="vllm")},
            "leave out --rollout.sampler",
        ),
    ],
)
def test_mixtures_and_notes_are_refused_where_they_cannot_be_played(
    name: str, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ConfigError, match=reason):
        make_task(replace(SMALL, algorithm=name, **changes), build(name))


@pytest.mark.parametrize(
    ("env", "opponents", "warns"),
    [
        (SMALL.env, ("self", "random"), True),
        (SMALL.env, ("random",), False),
        (SMALL.env, ("past:2", "random"), False),
        ("turngym/Werewolf-v0", ("self",), True),
        ("turngym/GuessTheNumber-v0", ("self",), False),
    ],
)
def test_only_groups_with_both_sides_of_a_game_mix_seats(env: str, opponents: tuple[str, ...], warns: bool) -> None:
    assert bool(warning_of("grpo", env, opponents)) == warns


@pytest.mark.parametrize(
    ("env", "role", "message"),
    [
        ("turngym/Werewolf-v0", "werewolfs", r"compares 'werewolfs', the role of no seat\. Did you mean 'werewolf'"),
        ("turngym/KuhnPoker-v0", "solver", r"the role of no seat\. Known: player_0, player_1"),
        ("turngym/GuessTheNumber-v0", "solver", "one agent: leave the role out"),
    ],
)
def test_roles_that_no_seat_has_are_refused_before_anything_is_played(env: str, role: str, message: str) -> None:
    def options(name: str) -> dict[str, dict[str, object]]:
        return {"hierarchical_grpo": {"within_game": name}}

    config = replace(SMALL, env=env, algorithm="hierarchical_grpo+epo", algorithm_options=options(role))
    with pytest.raises(UnknownName, match=message):
        make_task(config, build_algorithm(config))
    known = {"turngym/Werewolf-v0": "werewolf, seer", "turngym/KuhnPoker-v0": "player_1"}.get(env, "")
    config = replace(config, algorithm_options=options(known))
    make_task(config, build_algorithm(config)).close()


def test_a_reward_model_does_not_hide_it() -> None:
    assert SENTENCE in warning_of("grpo", reward_model="otc")


@pytest.mark.parametrize(("name", "count"), [("grpo", 1), ("dr_mas", 0)])
def test_a_run_says_so_once(name: str, count: int, tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=10_000)
    train(replace(SMALL, algorithm=name), tmp_path / "run", console=console)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().count(f"warning: {name} {SENTENCE}") == count
