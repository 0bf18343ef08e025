"""LSPO as a run: the abstract game, recorded situations, a run folder that resumes to the same numbers."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from turngym.agents.episodes.self_play import LEARNER, GameSpec, PlayerAgent, SelfPlay
from turngym.agents.episodes.situations import SITUATION, Situation
from turngym.agents.models.embedded import EmbeddedConfig
from turngym.agents.models.loading import LanguageModel
from turngym.benchmarks.cli.train import parse_train
from turngym.benchmarks.studies.learning.lspo_boast import exploitability
from turngym.envs.multiagent import make_game
from turngym.envs.tablegames.boast import BELIEFS, BOASTS, CHALLENGES, MODEST, Boast
from turngym.errors import ConfigError, RunStopped
from turngym.trainers.algorithms import build
from turngym.trainers.core.update_config import UpdateConfig
from turngym.trainers.loop.job import train
from turngym.trainers.loop.setup import build_algorithm
from turngym.trainers.lspo.abstract_game import LatentSolver, Talk
from turngym.trainers.lspo.latent import latent_space
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import EvaluationConfig, RolloutConfig, TrainConfig
from turngym.trainers.settings.supervised import SupervisedConfig

torch.set_num_threads(1)
BOAST = "turngym.envs.tablegames.boast:Boast"
SMALL = TrainConfig(
    env=BOAST,
    env_options={},
    algorithm="lspo",
    algorithm_options={"lspo": {"solver_steps": 50, "updates": 4, "decisions": 4}},
    iterations=2,
    max_seconds=0,
    checkpoint_every=1,
    embedded=EmbeddedConfig(hidden_size=16, layers=1, heads=2, vocabulary=400),
    warmup=SupervisedConfig(demonstrations=60, epochs=16, learning_rate=1e-2, batch_size=8),
    rollout=RolloutConfig(groups=24, group_size=1, format="plain", max_new_tokens=16),
    evaluation=EvaluationConfig(episodes=0, every=0, curve_episodes=1),
)


def talk(*kinds: tuple[str, ...], seat: str) -> Talk:
    """Return speeches with one latent strategy for each kind."""
    texts = [text for kind in kinds for text in kind]
    vectors = np.array([[text in kind for kind in kinds] for text in texts], float)
    return Talk(latent_space(texts, vectors, len(kinds)), {seat: sorted(texts)})


def test_the_sampled_solver_finds_the_equilibrium_between_latent_strategies() -> None:
    talks = {"player_0": talk(MODEST, BOASTS, seat="player_0"), "player_1": talk(BELIEFS, CHALLENGES, seat="player_1")}
    solver = LatentSolver(Boast(), talks)
    for _ in range(3000):
        solver.step()
    boast = f"strategy {talks['player_0'].space.clusters[BOASTS[0]]}"
    doubt = f"strategy {talks['player_1'].space.clusters[CHALLENGES[0]]}"
    found = {name: solver.average(name) or {} for name in solver.weights}
    assert found["player_0: your card is high"][boast] > 0.97
    assert found["player_0: your card is low"][boast] == pytest.approx(1 / 3, abs=0.06)
    heard = f"player_1: player_0 says: {talks['player_0'].space.representative(BOASTS[0])}"
    assert found[heard][doubt] == pytest.approx(2 / 3, abs=0.06)
    assert solver.average("player_1: nothing") is None


def test_seats_speak_their_own_words_where_they_have_any() -> None:
    space = latent_space(["a", "b", "c"], np.array([[0.0], [0.1], [9.0]]), 2)
    found = Talk(space, {"player_0": ["a", "c"], "player_1": ["b"]}).of("player_1")
    assert sorted(found.values()) == [("b",), ("c",)]


def test_turns_of_werewolf_record_situations_of_its_abstraction() -> None:
    tables = SelfPlay(lambda: make_game("turngym/Werewolf-v0", num_seats=5), 2, env_id="", situations=True)
    agent = PlayerAgent(tables.vector.tables, "rule_based")
    played = tables.play([GameSpec(number, number) for number in range(4)], {LEARNER: agent})
    kept = [Situation.of_text(str(turn.columns[SITUATION])) for each in played for turn in each.turns]
    spoken = [each for each in kept if each.is_speech]
    assert spoken and all(each.action.startswith("say") and not each.actions for each in spoken)
    acts = [each for each in kept if not each.is_speech]
    assert all(each.action in [text for texts in each.actions.values() for text in texts] for each in acts)
    assert {name for each in acts for name in each.actions} >= {"vote other", "kill other", "save self", "abstain"}
    assert all("player_" not in each.view for each in kept)


def test_the_abstract_game_of_werewolf_is_solved_with_recorded_words() -> None:
    talks = {"werewolf": talk(("say I suspect player_1.",), ("say",), seat="player_0")}
    solver = LatentSolver(make_game("turngym/Werewolf-v0", num_seats=5, max_days=2), talks)
    for _ in range(2):
        solver.step()
    assert any(name.startswith("werewolf: talk") for name in solver.weights)
    assert any(name.startswith("villager: vote") for name in solver.weights)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "whole"
    assert train(SMALL, folder).finished
    return folder


def numbers(folder: Path) -> list[dict[str, Any]]:
    records = RunFolder(folder).metrics()
    return [{k: v for k, v in record.items() if not k.startswith("time/")} for record in records]


def test_a_run_leaves_metrics_report_model_and_the_solution(whole: Path) -> None:
    records = numbers(whole)
    assert all(record["loss/preferences"] > 0 and record["train/grad_norm"] > 0 for record in records)
    assert all(record["lspo/information_sets"] > 0 and record["lspo/speeches"] >= 2 for record in records)
    assert all(record["lspo/comparisons"] > 0 and record["lspo/strategies"] >= 2 for record in records)
    assert records[-1]["train/updates"] == 8 and (whole / "model" / "config.json").exists()
    state = json.loads((whole / "checkpoints" / "000002" / "state.json").read_text("utf8"))["algorithm"]
    assert max(map(len, state["strategies"].values())) == records[-1]["lspo/strategies"]
    assert sum(map(len, state["speeches"].values())) == records[-1]["lspo/speeches"]
    assert any(name.startswith("player_0: your card is") for name in state["policy"])
    assert list(whole.glob("*.html"))


def test_a_run_that_stopped_continues_to_the_same_numbers(whole: Path, tmp_path: Path) -> None:
    def stop(model: LanguageModel, record: Mapping[str, Any]) -> None:
        if record["iteration"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(SMALL, tmp_path / "run", watch=stop)
    assert train(SMALL, tmp_path / "run", resume=True).finished
    assert numbers(tmp_path / "run") == numbers(whole)


def test_wrong_uses_are_refused_before_anything_is_played(tmp_path: Path) -> None:
    for env in ("turngym/FrozenLake-v0", "turngym/KuhnPoker-v0"):
        with pytest.raises(ConfigError, match=f"nobody speaks in {env}: train on a game of talk such as turngym/Were"):
            build_algorithm(TrainConfig(env=env, env_options={}, algorithm="lspo"))
    with pytest.raises(ConfigError, match="lspo has no loss that a modifier could change, got 'lspo\\+epo'"):
        build("lspo+epo")
    with pytest.raises(ConfigError, match="clusters must be a whole number of at least 1"):
        build("lspo", {"lspo": {"clusters": 0}})


def test_a_policy_that_says_nothing_legal_is_to_be_warmed_up_longer(tmp_path: Path) -> None:
    rollout = replace(SMALL.rollout, max_new_tokens=1)
    config = replace(SMALL, warmup=replace(SMALL.warmup, demonstrations=4, epochs=1), rollout=rollout)
    with pytest.raises(RunStopped, match=r"nothing legal in the 24 games of iteration 1: .*-tokens \(here 1\)"):
        train(config, tmp_path / "run")


def test_the_command_line_takes_the_options_of_lspo() -> None:
    config, _, _ = parse_train(["--game", "turngym/Werewolf-v0", "--algorithm", "lspo", "--lspo.clusters", "3"])
    assert (config.algorithm, config.algorithm_options) == ("lspo", {"lspo": {"clusters": 3}})
    assert config.env == "turngym/Werewolf-v0"


@pytest.mark.integration
def test_the_model_of_a_run_comes_nearer_to_the_equilibrium(tmp_path: Path) -> None:
    config = replace(
        SMALL,
        iterations=1,
        algorithm_options={"lspo": {"solver_steps": 2000, "updates": 150, "decisions": 8}},
        embedded=EmbeddedConfig(hidden_size=32, layers=1, heads=2, vocabulary=400),
        warmup=SupervisedConfig(demonstrations=400, epochs=20, learning_rate=5e-3, batch_size=8),
        rollout=replace(SMALL.rollout, groups=300),
        update=UpdateConfig(learning_rate=3e-3),
    )
    train(config, tmp_path / "run")
    before, after = (exploitability(config, tmp_path / "run" / name) for name in ("warmup", "model"))
    assert before > 0.15 and after < 0.75 * before
