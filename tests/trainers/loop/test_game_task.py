"""Training on games between seats: opponents, frozen copies, the same numbers after a resume, the command line."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from turngym.agents.episodes.self_play import LEARNER
from turngym.agents.models.action_probabilities import action_chances, choices_by_anchor
from turngym.agents.models.embedded import EmbeddedConfig
from turngym.agents.models.loading import LanguageModel
from turngym.benchmarks.cli.train import parse_train
from turngym.envs.tablegames.kuhn_poker.rules import information_sets, uniform
from turngym.errors import CheckpointError, ConfigError, UnknownName
from turngym.trainers.algorithms import build
from turngym.trainers.engine.learner import UpdateConfig
from turngym.trainers.loop.job import train
from turngym.trainers.loop.setup import build_algorithm, build_learner, initial_model, policy_agent
from turngym.trainers.loop.sft import SupervisedConfig
from turngym.trainers.loop.tasks.factory import make_task
from turngym.trainers.loop.tasks.game_task import GameTask
from turngym.trainers.loop.tasks.opponent_pool import PastSelves
from turngym.trainers.loop.tasks.task import EnvTask
from turngym.trainers.loop.trainer import Trainer
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import (
    EvaluationConfig,
    RolloutConfig,
    SelfPlayConfig,
    TrainConfig,
)

torch.set_num_threads(1)
KUHN = "turngym/KuhnPoker-v0"
SMALL = TrainConfig(
    env=KUHN,
    env_options={},
    algorithm="rae",
    iterations=4,
    max_seconds=0,
    checkpoint_every=2,
    embedded=EmbeddedConfig(hidden_size=16, layers=1, heads=2, vocabulary=340),
    warmup=SupervisedConfig(demonstrations=30, epochs=30, learning_rate=5e-3),
    rollout=RolloutConfig(groups=6, group_size=1, format="plain", max_new_tokens=2),
    evaluation=EvaluationConfig(episodes=3, every=2, curve_episodes=2),
    self_play=SelfPlayConfig(
        opponents=("self", "past:2", "random"), freeze_every=1, evaluation_opponents=("random", "equilibrium")
    ),
)


def numbers(folder: Path) -> list[dict[str, Any]]:
    """Return the metrics without wall-clock times."""
    records = RunFolder(folder).metrics()
    return [{k: v for k, v in record.items() if not k.startswith("time/")} for record in records]


def test_opponents_are_drawn_by_group_and_sides_taken_in_turns() -> None:
    config = replace(SMALL, rollout=replace(SMALL.rollout, groups=40, group_size=3))
    task = GameTask(config)
    model = initial_model(config, task.texts)
    for iteration in (0, 1, 2):
        task.past.notice(model, iteration)
    specs = task.specs(3)
    assert [spec.number for spec in specs] == list(range(120))
    for group in range(40):
        mine = [spec for spec in specs if spec.group == group]
        assert len(mine) == 3 and len({(spec.seed, spec.opponent, spec.side) for spec in mine}) == 1
    assert {spec.opponent for spec in specs} == {LEARNER, "random", "past-000001", "past-000002"}
    assert [spec.side % 2 for spec in specs[::3]] == [0, 1] * 20
    assert len({spec.seed for spec in specs}) == 40
    assert {spec.seed for spec in task.specs(3, attempt=1)}.isdisjoint(spec.seed for spec in specs)


def test_an_evaluation_with_oneself_gives_all_seats_to_the_learner_once_per_seed() -> None:
    task = GameTask(replace(SMALL, self_play=SelfPlayConfig(evaluation_opponents=("self", "random"))))
    alone, with_random, *sides = task.evaluate(initial_model(SMALL, task.texts), "final", 0.0)
    assert (alone.name, with_random.name, len(sides)) == ("final", "final-vs-random", 2)
    assert [each.spec.seed for each in alone.trajectories] == [each.spec.seed for each in sides[0].trajectories]
    assert all(each.policy == LEARNER for each in alone.trajectories) and len(with_random.trajectories) == 6


def model_of(value: float) -> LanguageModel:
    task = GameTask(SMALL)
    model = initial_model(SMALL, task.texts)
    with torch.no_grad():
        next(model.network.parameters()).fill_(value)
    return model


def first_weight(model: LanguageModel) -> float:
    return float(next(model.network.parameters()).flatten()[0].detach())


def test_past_selves_are_frozen_copies_and_the_oldest_go(tmp_path: Path) -> None:
    past, model = PastSelves(keep=2, every=10), model_of(0.0)
    for iteration in range(0, 41, 5):
        with torch.no_grad():
            next(model.network.parameters()).fill_(float(iteration))
        past.notice(model, iteration)
    assert past.newest(5) == ["past-000030", "past-000040"]
    assert [first_weight(past.model(name)) for name in past.newest(2)] == [30.0, 40.0]
    assert not any(p.requires_grad for p in past.model("past-000030").network.parameters())
    past.save(tmp_path, oldest_checkpoint=35)
    resumed = PastSelves(keep=2, every=10)
    resumed.load(tmp_path, model, iteration=45)
    assert [first_weight(resumed.model(name)) for name in resumed.newest(2)] == [30.0, 40.0]
    resumed.load(tmp_path, model, iteration=40)
    assert resumed.newest(2) == ["past-000030"]


def test_past_selves_that_no_checkpoint_needs_are_removed_and_damage_is_told(tmp_path: Path) -> None:
    past, model = PastSelves(keep=2, every=1), model_of(1.0)
    for iteration in range(6):
        past.notice(model, iteration)
        past.save(tmp_path, oldest_checkpoint=max(0, iteration - 2))
    assert [path.stem for path in sorted(tmp_path.iterdir())] == [f"past-{k:06d}" for k in (2, 3, 4, 5)]
    (tmp_path / "past-000005.safetensors").write_bytes(b"broken")
    with pytest.raises(CheckpointError, match=r"past-000005.* is damaged"):
        past.load(tmp_path, model, 6)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert train(SMALL, folder).finished
    return folder


def test_a_run_on_a_game_leaves_everything_behind(whole: Path) -> None:
    folder = RunFolder(whole)
    records = folder.metrics()
    assert [record["iteration"] for record in records] == [0, 1, 2, 3]
    assert {"eval/success", "eval/success_vs_random", "eval/reward_vs_equilibrium"} <= records[1].keys()
    assert f"credit/baseline/{KUHN}/player_0" in records[-1]
    assert max(record["train/logprob_gap"] for record in records) < 1e-4
    names = set(folder.evaluations())
    assert {"final-sampled", "final-sampled-side-0", "final-greedy-vs-equilibrium-side-1", "warmup-sampled"} <= names
    assert len(folder.evaluated_episodes("final-sampled")) == 6
    assert len(folder.evaluated_episodes("final-sampled-side-1")) == 3
    assert not (whole / "control").exists(), "random play is nothing to imitate for longer"
    assert (whole / "report.html").exists() and not folder.instances()


def test_a_run_that_stopped_goes_on_to_the_same_numbers(whole: Path, tmp_path: Path) -> None:
    seen: list[int] = []

    def stop(model: LanguageModel, record: Mapping[str, Any]) -> None:
        seen.append(record["iteration"])
        if record["iteration"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(SMALL, tmp_path / "run", watch=stop)
    assert seen == [0, 1, 2]
    assert train(SMALL, tmp_path / "run", resume=True).finished
    assert numbers(tmp_path / "run") == numbers(whole)


def test_a_method_for_seats_with_a_critic_and_a_history_trains_and_resumes(tmp_path: Path) -> None:
    rollout = replace(SMALL.rollout, groups=3, group_size=2)
    config = replace(SMALL, algorithm="mappo+epo", iterations=2, rollout=rollout, checkpoint_every=1)
    config = replace(
        config, evaluation=EvaluationConfig(episodes=0, every=0, curve_episodes=1), self_play=SelfPlayConfig()
    )
    assert train(config, tmp_path / "whole").finished

    def stop(model: LanguageModel, record: Mapping[str, Any]) -> None:
        if record["iteration"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "run", watch=stop)
    train(config, tmp_path / "run", resume=True)
    assert numbers(tmp_path / "run") == numbers(tmp_path / "whole")
    assert all(record["train/grad_norm"] > 0 for record in numbers(tmp_path / "run"))


def test_a_task_is_a_game_or_an_environment() -> None:
    game = make_task(SMALL, build("mappo"))
    assert isinstance(game, GameTask) and game.tables.joint_views
    plain = make_task(SMALL, build("rae"))
    assert isinstance(plain, GameTask) and not plain.tables.joint_views
    env = make_task(replace(SMALL, env="turngym/GuessTheNumber-v0"))
    assert isinstance(env, EnvTask)
    env.close()
    own = make_task(replace(SMALL, env="turngym.envs.tablegames.kuhn_poker:KuhnPoker", env_options={"hands": 2}))
    assert isinstance(own, GameTask)


def test_wrong_settings_are_told_before_anything_is_played() -> None:
    with pytest.raises(ConfigError, match=r"mappo needs what all seats of a game know, and turngym/Sokoban-v0 has one"):
        build_algorithm(TrainConfig(algorithm="mappo"))
    with pytest.raises(UnknownName, match=r"no player of kuhn_poker named 'equilibrum'. Did you mean 'equilibrium'\?"):
        GameTask(replace(SMALL, self_play=SelfPlayConfig(evaluation_opponents=("equilibrum",))))
    with pytest.raises(UnknownName, match=r"no player named 'pst:4'. Did you mean 'past:4'\?"):
        GameTask(replace(SMALL, self_play=SelfPlayConfig(opponents=("self", "pst:4"))))
    with pytest.raises(ConfigError, match=r"frozen copies are written past:N with N of at least 1, got 'past'"):
        SelfPlayConfig(opponents=("past",))
    with pytest.raises(ConfigError, match=r"freeze_every must be a whole number of at least 1, got 0"):
        SelfPlayConfig(freeze_every=0)
    with pytest.raises(ConfigError, match=r"opponents must name at least one player"):
        SelfPlayConfig(opponents=())
    with pytest.raises(ConfigError, match=r"beta1 must be a number of at least 0 and below 1, got 1"):
        UpdateConfig(beta1=1.0)
    with pytest.raises(ConfigError, match=r"wrappers go around environments with one agent"):
        GameTask(replace(SMALL, wrappers=("history:k=2",)))


@pytest.mark.parametrize(
    ("self_play", "limit"),
    [
        (SelfPlayConfig(opponents=("self",)), 0.0),
        (SelfPlayConfig(opponents=("past:2", "random")), 0.0),
        (SelfPlayConfig(opponents=("random", "equilibrium"), matching="squared"), 0.0),
        (SelfPlayConfig(opponents=("random", "equilibrium")), 0.5),
    ],
)
def test_a_falling_reward_is_a_collapse_only_against_opponents_that_stay_the_same(
    self_play: SelfPlayConfig, limit: float, tmp_path: Path
) -> None:
    config = replace(SMALL, self_play=self_play)
    task = GameTask(config)
    model = initial_model(config, task.texts)
    learner = build_learner(config, model, build_algorithm(config))
    trainer = Trainer(config, model, learner, task, RunFolder.create(tmp_path / "run", config))
    rewards = [0.9] * 20 + [0.0] * 20
    warned = [trainer.watchdog.look({"rollout/reward_sum": reward, "rollout/episodes": 6}) for reward in rewards]
    assert trainer.watchdog.config.reward_drop == limit
    assert any("the reward has collapsed" in words for each in warned for words in each) == (limit > 0)


def test_the_command_line_takes_a_game() -> None:
    argv = ["--game", KUHN, "--self-play.opponents", "self", "past:3", "--rae.decay", "0.9"]
    config, run_dir, resume = parse_train(argv)
    assert (config.env, config.algorithm, resume) == (KUHN, "rae", False)
    assert config.self_play.opponents == ("self", "past:3") and config.self_play.num_past == 3
    quickstart = {"dual_clip": 3.0, "entropy_coef": 0.01, "invalid_penalty": 0.1}
    assert config.algorithm_options == {"rae": {**quickstart, "decay": 0.9}}
    assert str(run_dir) == "runs/kuhnpoker-rae-seed0"
    assert TrainConfig.from_json(json.loads(json.dumps(config.as_json()))) == config
    with pytest.raises(UnknownName, match=r"Did you mean 'turngym/KuhnPoker-v0'\?"):
        parse_train(["--game", "turngym/KuhnPokr-v0"])
    seat = "turngym/KuhnPokerSeat-v0"
    with pytest.raises(UnknownName, match=r"It is one seat of turngym/KuhnPoker-v0: take turngym/KuhnPoker-v0\."):
        parse_train(["--game", seat])
    assert parse_train(["--env", seat])[0].env == seat


def test_chances_are_the_frequencies_with_which_a_model_plays() -> None:
    """200 games of the sampler against the distribution that is read."""
    task = GameTask(SMALL)
    model = initial_model(SMALL, task.texts)
    games = task._games_of(policy_agent(SMALL, model), 200, "probe")
    turns = [turn for game in games for turn in game.turns if turn.anchor == "K"]
    choices = choices_by_anchor(games, {name: tuple(chances) for name, chances in uniform().items()})
    assert choices.keys() <= information_sets().keys() and "K" in choices
    [chances] = action_chances(model, [choices["K"]], format="plain", temperature=1.0, max_new_tokens=1)
    first = [model.tokenizer.encode(action)[0] for action in chances]
    for token, chance in zip(first, chances.values(), strict=True):
        same_prompt = [turn for turn in turns if turn.prompt_ids == choices["K"].prompt_ids]
        share = sum(turn.completion_ids[0] == token for turn in same_prompt) / len(same_prompt)
        assert abs(share - chance) < 4 * (chance / len(same_prompt)) ** 0.5 + 0.02
    longer = action_chances(model, [choices["K"]], format="plain", temperature=1.0, max_new_tokens=2)
    assert all(longer[0][action] < chance for action, chance in chances.items())
