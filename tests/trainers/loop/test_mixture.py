"""Several environments in one run: draws by weight, groups within one environment, metrics of each, resumes."""

import dataclasses
import math
import os
import signal
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from forked import run_forked
from small import small_model

from turngym.agents.models.embedded import EmbeddedConfig
from turngym.agents.models.loading import LanguageModel
from turngym.agents.players import settings_for
from turngym.agents.trajectory import Branch, Trajectory
from turngym.benchmarks.cli.options.trained_models import environment_as_trained, tell
from turngym.benchmarks.cli.options.training_words import words_of
from turngym.benchmarks.cli.terminal.training import evaluation_commands, result_sentences
from turngym.benchmarks.cli.train import parse_train
from turngym.errors import TurngymError
from turngym.trainers.loop.job import train
from turngym.trainers.loop.setup import build_algorithm
from turngym.trainers.loop.sft import SupervisedConfig
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.loop.tasks.mixture_task import drawn
from turngym.trainers.loop.tasks.parts import WHOLE, Part
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig

LABELS = ("NumberLine", "GuessTheNumber")
LINE, GUESS, POKER = "turngym/NumberLine-v0", "turngym/GuessTheNumber-v0", "turngym/KuhnPoker-v0"
TALK = ("turngym/WerewolfSmall-v0", "turngym/Werewolf-v0")
MIXED = TrainConfig(
    envs=(LINE, GUESS),
    weights=(2.0, 1.0),
    per_env={"NumberLine": {"env_options": {"max_turns": 6}, "rollout": {"format": "boxed"}}},
    env_options={"max_turns": 7},
    algorithm="grpo",
    iterations=4,
    max_seconds=0,
    checkpoint_every=2,
    control=False,
    embedded=EmbeddedConfig(hidden_size=16, layers=1, heads=2, vocabulary=400),
    warmup=SupervisedConfig(demonstrations=6, epochs=1),
    rollout=RolloutConfig(groups=6, group_size=2, max_new_tokens=3, sampler="transformers"),
    evaluation=EvaluationConfig(episodes=2, every=2, curve_episodes=2),
)

TWO_METHODS = replace(MIXED, per_env={**MIXED.per_env, "GuessTheNumber": {"algorithm": "ppo+epo"}})


def played(config: TrainConfig, part: Part = WHOLE) -> list[Trajectory]:
    task = make_task(config)
    try:
        return task.gather(small_model(), 1, 0, part=part)
    finally:
        task.close()


def told(found: list[Trajectory]) -> list[Any]:
    return [(each.env_id, each.spec.group, each.spec.seed, [turn.completion for turn in each.turns]) for each in found]


def test_every_environment_gets_its_share_and_the_draw_depends_on_its_key_alone() -> None:
    for key in range(20):
        counts = Counter(drawn([3, 1, 0], 10, key))
        assert counts[0] in (7, 8) and counts[1] == 10 - counts[0] and not counts[2]
        assert drawn([3, 1, 0], 10, key) == drawn([3, 1, 0], 10, key)
    many = Counter(place for key in range(400) for place in drawn([5, 2, 1], 1, key))
    assert abs(many[0] / 400 - 5 / 8) < 0.08 and many[2] > 20
    assert len({tuple(drawn([1, 1], 8, 0, iteration)) for iteration in range(20)}) > 10


def test_groups_stay_within_one_environment_and_are_those_of_a_run_on_it_alone() -> None:
    found = played(MIXED)
    groups = {group: {each.env_id for each in found if each.spec.group == group} for group in range(6)}
    assert all(len(names) == 1 for names in groups.values()) and {LINE, GUESS} == set.union(*groups.values())
    assert len({each.spec.episode for each in found}) == len(found) == 12
    for member in MIXED.members:
        mine = [each for each in told(found) if each[0] == member.config.env]
        alone = told(played(member.config))
        assert mine and [each for each in alone if each[1] in {one[1] for one in mine}] == mine


def test_the_parts_of_workers_are_the_whole() -> None:
    parts = [each for index in range(4) for each in told(played(MIXED, Part(index, 4)))]
    assert parts == told(played(MIXED))


def test_branches_continue_in_their_environment() -> None:
    config = replace(MIXED, algorithm="vine_ppo", warmup=replace(MIXED.warmup, demonstrations=0))
    task, model = make_task(config, build_algorithm(config)), small_model()
    found = task.gather(model, 0, 1)
    branches = [Branch(each, 0) for each in found[::-1]]
    again = task.branch(model, 0, branches, 0)
    task.close()
    assert [each.env_id for each in again] == [each.env_id for each in found[::-1]]
    assert [each.instance for each in again] == [each.instance for each in found[::-1]]
    assert len({each.spec.episode for each in (*found, *again)}) == 24


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert train(TWO_METHODS, folder).finished
    return folder


def test_metrics_and_evaluations_of_each_are_next_to_the_totals(whole: Path) -> None:
    folder = RunFolder(whole)
    records = folder.metrics()
    for record in records:
        counts = [record[f"rollout/episodes_on_{label}"] for label in LABELS]
        assert sum(counts) == record["rollout/episodes"] and counts == [8, 4]
        total = sum(n * record[f"rollout/turns_on_{each}"] for n, each in zip(counts, LABELS, strict=True))
        assert math.isclose(total / 12, record["rollout/turns"])
        assert {"loss/NumberLine/policy", "loss/GuessTheNumber/policy", "loss/GuessTheNumber/value"} <= record.keys()
    point = records[1]
    shares = [point["eval/success_on_NumberLine"], point["eval/success_on_GuessTheNumber"]]
    assert math.isclose(point["eval/success"], sum(shares) / 2)
    assert {f"rollout/{name}_on_NumberLine" for name in ("success", "reward_sum", "faults")} <= point.keys()
    evaluations = folder.evaluations()
    assert evaluations["final-greedy-on-GuessTheNumber"]["env_id"] == GUESS
    together = evaluations["final-greedy"]["success"]
    assert together["count"] == sum(evaluations[f"final-greedy-on-{each}"]["success"]["count"] for each in LABELS)
    page = (whole / "report.html").read_text("utf8")
    assert "grpo on NumberLine; ppo+epo on GuessTheNumber" in page and "<h3>GuessTheNumber</h3>" in page
    assert len(result_sentences(folder, "greedy")) == 3
    first, second = evaluation_commands(folder, folder.config(), "greedy")
    assert first.startswith(f"turngym eval {LINE} --agent") and "max_turns" not in first
    assert second.startswith(f"turngym eval {GUESS} --agent") and not {"--option", "--format"} & {*second.split()}


@pytest.mark.parametrize("place", ["model", "warmup", "checkpoints/000004"])
def test_the_model_is_played_on_each_environment_as_it_was_trained_there(
    place: str, whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = f"hf:{whole / place}"
    for member in RunFolder(whole).config().members:
        config = member.config
        options, wrappers = environment_as_trained(agent, config.env, {}, ())
        settings = settings_for(agent, config.env)
        assert (options, wrappers) == (config.env_options, config.wrappers)
        assert (settings.format, settings.max_new_tokens) == (config.rollout.format, config.rollout.max_new_tokens)
        assert settings.prompt == dataclasses.asdict(config.rollout.prompt)
        tell(agent, config.env, options, wrappers, settings)
        told = capsys.readouterr().err
        assert f"was trained on {config.env} with" in told and "it plays in the same way here" in told


def test_a_killed_run_resumes_to_the_same_numbers(whole: Path, tmp_path: Path) -> None:
    killed = tmp_path / "killed"

    def kill(model: LanguageModel, record: Mapping[str, Any]) -> None:
        if record["iteration"] == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    assert run_forked(lambda: train(TWO_METHODS, killed, watch=kill)) == -signal.SIGKILL
    assert train(RunFolder(killed).config(), killed, resume=True).finished
    pairs = [
        [{name: value for name, value in record.items() if not name.startswith("time/")} for record in each.metrics()]
        for each in (RunFolder(whole), RunFolder(killed))
    ]
    assert pairs[0] == pairs[1] and RunFolder(whole).evaluations() == RunFolder(killed).evaluations()


def test_a_game_and_an_environment_train_together() -> None:
    config = replace(MIXED, envs=(LINE, POKER), env_options={}, per_env={})
    found = played(config)
    assert {each.env_id for each in found} == {LINE, POKER}
    assert len({each.spec.episode for each in found}) == len(found)


def test_the_command_line_files_and_python_give_the_same_settings(tmp_path: Path) -> None:
    words = ["--env", LINE, GUESS, "--weights", "2", "1", "--seed", "3", "--per-env"]
    config, folder, _ = parse_train([*words, "NumberLine.env_options.max_turns=4", "NumberLine.rollout.format=boxed"])
    assert config.envs == (LINE, GUESS) and config.weights == (2.0, 1.0) and config.env == LINE
    first, second = (member.config for member in config.members)
    assert first.env_options == {"max_turns": 4} and first.rollout.format == "boxed"
    assert second.env == GUESS and second.env_options == {} and second.rollout.format == "auto"
    assert folder.name == "numberline+guessthenumber-gigpo-seed3"
    file = tmp_path / "run.toml"
    file.write_text(
        f'env = ["{LINE}", "{GUESS}"]\nweights = [2, 1]\nseed = 3\n[per_env.NumberLine]\n'
        'env_options = {max_turns = 4}\nrollout = {format = "boxed"}\n'
    )
    assert parse_train(["--config", str(file)])[0] == config
    RunFolder.create(tmp_path / "run", config)
    assert parse_train(["--config", str(tmp_path / "run")])[0] == config == RunFolder(tmp_path / "run").config()
    other, _, _ = parse_train(["--config", str(file), "--env", LINE])
    assert not (other.envs or other.weights or other.per_env) and other.members[0].config == other


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([LINE, GUESS, "--weights", "1"], "weights of the run must be one for each of the 2 environments, got 1"),
        ([LINE, GUESS, "--weights", "1", "-1"], "must be finite and at least 0, got -1"),
        ([LINE, GUESS, "--weights", "1", "nan"], "weights of the run must be a list, each a number, got (1.0, nan)"),
        ([LINE, GUESS, "--weights", "0", "0"], "must have a positive, finite sum"),
        ([LINE, GUESS, "--weights", "1e308", "1e308"], "must have a positive, finite sum"),
        ([LINE, LINE], "must be different, got turngym/NumberLine-v0 twice"),
        ([LINE, "turngym/GuessTheNumbr-v0"], "GuessTheNumber"),
        ([LINE, "--weights", "1"], "weights of the run is for several environments"),
        ([LINE, "--per-env", "NumberLine.env_options.a=1"], "per_env of the run is for several environments"),
        ([LINE, GUESS, "--per-env", "Guess.rollout.format=tag"], "'Guess', which is none of NumberLine, GuessTheNum"),
        ([LINE, GUESS, "--per-env", "NumberLine.seed=3"], "cannot set seed for NumberLine"),
        ([LINE, GUESS, "--per-env", "NumberLine.rollout.groups=3"], "cannot set rollout.groups for NumberLine"),
        ([LINE, GUESS, "--per-env", "NumberLine=3"], "must be a table of settings for NumberLine, got 3"),
        ([LINE, GUESS, "--per-env", "NumberLine.rollout.prompt.histor=3"], "histor"),
        ([LINE, GUESS, "--per-env", "NumberLine"], "--per-env takes KEY=VALUE, such as FrozenLake.env_options.size=4"),
        ([LINE, GUESS, "--per-env", "a.b=1", "a=2"], "--per-env sets a as a value and as a table"),
        ([], "--env takes one id or several"),
    ],
)  # fmt: skip
def test_wrong_input_is_one_sentence(words: list[str], message: str) -> None:
    with pytest.raises(TurngymError) as caught:
        parse_train(["--env", *words])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rollout": replace(MIXED.rollout, journal=True)}, "asynchronous rollouts and journals play one environment"),
        ({"env_options": {"max_turn": 3}, "per_env": {}}, "max_turn"),
        ({"envs": TALK, "algorithm": "lspo", "env_options": {}, "per_env": {}}, "lspo trains on one game"),
        ({"per_env": {"NumberLine": {"algorithm": "grp"}}}, "no algorithm named 'grp'.*grpo"),
        (
            {"per_env": {"NumberLine": {"algorithm_options": {"grpo": {"kl_coef": "nan"}}}}},
            "kl_coef .* must be a number",
        ),
        ({"per_env": {"NumberLine": {"algorithm": "dapo"}}}, "dapo decides which episodes are played"),
        ({"envs": (LINE, POKER), "algorithm": "vine_ppo", "env_options": {}, "per_env": {}}, "games between seats"),
    ],
)
def test_what_a_mixture_cannot_do_is_refused_before_anything_is_played(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(TurngymError, match=message):
        train(replace(MIXED, **changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_train_of_python_takes_lists() -> None:
    words = words_of(
        {"envs": [LINE, GUESS], "weights": [1, 2], "per_env": {"NumberLine": {"wrappers": ["history:k=2"]}}}, [], ""
    )
    config, _, _ = parse_train(words)
    assert config.envs == (LINE, GUESS) and config.weights == (1.0, 2.0)
    assert [member.config.wrappers for member in config.members] == [("history:k=2",), ()]
