"""Reward models that are fitted: worked numbers, what the parts add up to, fits, folders, recordings."""

import json
import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import torch
from reward_games import line_episodes, walk
from safetensors.torch import load_file, save_file
from small import small_model

import turngym  # noqa: F401
from turngym.__main__ import main
from turngym.agents.trajectory import Branch, EpisodeSpec
from turngym.errors import CheckpointError, ConfigError
from turngym.trainers.reward_models import load_reward_model, make_reward_model
from turngym.trainers.reward_models.base.fitted import FittedReward, ranking
from turngym.trainers.reward_models.base.model import rewarded
from turngym.trainers.reward_models.base.recordings import plain, read_trajectories, write_trajectories
from turngym.trainers.reward_models.progrm import ProgRM
from turngym.trainers.reward_models.spa import completed, outcome_loss, step_rewards
from turngym.wrappers.rewards.recipes import RecipeBook
from turngym.wrappers.wrapping import wrap

BOTH = ["progrm:dimensions=512", "spa:dimensions=512,bonus=0"]


def fitted(text: str, seed: int = 0) -> FittedReward[Any]:
    model = make_reward_model(text)
    assert isinstance(model, FittedReward)
    model.fit(line_episodes(), seed)
    return model


# Worked numbers.


def test_spa_loss_and_gradient_have_the_worked_numbers() -> None:
    parts = torch.tensor([0.2, 0.3, 0.1], dtype=torch.float64, requires_grad=True)
    loss = outcome_loss(parts, torch.tensor([0, 0, 0]), torch.tensor([1.0], dtype=torch.float64))
    loss.backward()
    assert float(loss.detach()) == pytest.approx(0.16, abs=1e-9)
    assert parts.grad is not None and parts.grad.tolist() == pytest.approx([-0.8] * 3, abs=1e-9)


def test_spa_step_rewards_have_the_worked_numbers() -> None:
    assert step_rewards([0.2, 0.3, 0.1], [True, False, True]) == pytest.approx([0.7, 0.3, 0.6])
    assert step_rewards([0.2, 0.3, 0.1], [True, False, False]) == pytest.approx([0.7, 0.3, 0.6]), "the last always"
    assert step_rewards([], []) == []


def test_an_episode_without_a_turn_adds_up_to_zero() -> None:
    loss = outcome_loss(torch.tensor([0.5]), torch.tensor([1]), torch.tensor([2.0, 0.5]))
    assert float(loss) == pytest.approx((4 + 0) / 2)
    assert completed([], 1.0) == []


def test_ranking_counts_pairs() -> None:
    assert ranking([1.0, 0.0], [0.5, 0.0]) == pytest.approx((1 + 1 + 0 + 0.5) / 4)


# What parts add up to.


def test_the_contributions_of_spa_add_up_to_its_prediction() -> None:
    model = fitted("spa:dimensions=512,bonus=0")
    for episode in line_episodes():
        [own] = model.rewards([episode])
        assert math.fsum(own) == pytest.approx(model.score(episode), abs=1e-6)


def test_exact_contributions_add_up_to_the_outcome() -> None:
    model = fitted("spa:dimensions=512,bonus=0,exact=true")
    for episode, after in zip(line_episodes(), rewarded(model, line_episodes()), strict=True):
        assert after.reward_sum == pytest.approx(episode.reward_sum, abs=1e-9)


def test_the_rewards_of_progrm_add_up_to_the_progress_at_the_end() -> None:
    model = fitted("progrm:dimensions=512")
    for episode, own in zip(line_episodes(), model.rewards(line_episodes()), strict=True):
        assert math.fsum(own) == pytest.approx(model.score(episode), abs=1e-6)


def test_going_in_circles_earns_nothing_net() -> None:
    """Once around, and the same circle again: what it ends with is what it began with."""
    model = fitted("progrm:dimensions=512")
    [own] = model.rewards([walk("rlrlrlrl")])
    for start in (2, 4, 6):
        assert math.fsum(own[start : start + 2]) == pytest.approx(0.0, abs=1e-6)


def test_a_progrm_that_only_shapes_adds_up_to_nothing() -> None:
    model = make_reward_model("progrm:dimensions=512,zero_when=over")
    model.fit(line_episodes())
    assert [math.fsum(own) for own in model.rewards(line_episodes())] == pytest.approx([0.0] * 24, abs=1e-9)


@pytest.mark.parametrize("text", BOTH)
def test_a_branch_is_paid_as_the_end_of_the_whole_episode(text: str) -> None:
    model = fitted(text)
    whole, parent = walk("rrlr"), walk("rrr")
    branch = walk("lr")
    for k, turn in enumerate(branch.turns):
        branch.turns[k] = replace(turn, observation=whole.turns[k + 2].observation)
    branch.final_observation = whole.final_observation
    branch.spec = EpisodeSpec(5, 0, 0, branch=Branch(parent, 2))
    assert model.rewards([branch])[0] == pytest.approx(model.rewards([whole])[0][2:], abs=1e-6)


# Fits.


@pytest.mark.parametrize("text", [*BOTH, "spa:dimensions=512,hidden=0,bonus=0", "progrm:hidden=0,match=state"])
def test_a_fit_tells_solved_from_failed(text: str) -> None:
    model = fitted(text)
    solved, failed = model.score(walk("rrlxrr", 1)), model.score(walk("rlxlxl"))
    assert solved > failed + 0.2


@pytest.mark.parametrize("text", BOTH)
def test_equal_seeds_give_equal_fits(text: str) -> None:
    one, two, other = fitted(text), fitted(text), fitted(text, seed=1)
    assert one.predictions(line_episodes()) == two.predictions(line_episodes()) != other.predictions(line_episodes())


def test_scores_do_not_see_the_outcome() -> None:
    for text in BOTH:
        model = fitted(text)
        assert model.score(walk("rrl", 1, rewards=[5, 5, 5])) == model.score(walk("rrl", 0))


def test_episodes_are_held_out_and_counted() -> None:
    broken = [walk("rr", fault="worker died"), walk("")]
    found = make_reward_model("spa").fit([*line_episodes(), *broken])
    assert found["episodes"] == 24 and found["left_out"] == 2 and found["held_out_episodes"] == 2
    assert "held_out_episodes" not in make_reward_model("spa").fit(line_episodes()[:5])


def test_progrm_leaves_out_tasks_that_nobody_solved_unless_recipes_are_shared() -> None:
    episodes = [*line_episodes(), walk("rrl", instance="hard")]
    assert make_reward_model("progrm").fit(episodes)["left_out"] == 1
    assert make_reward_model("progrm:scope=environment").fit(episodes)["left_out"] == 0
    with pytest.raises(ConfigError, match="scope=environment"):
        make_reward_model("progrm").fit([walk("rrl")])


def test_progrm_labels_failed_episodes_below_one() -> None:
    model = make_reward_model("progrm")
    assert isinstance(model, ProgRM)
    for episode, labels in zip(line_episodes(), model.targets(line_episodes()), strict=True):
        assert labels is not None and (labels[-1] == 1.0) == (episode.success == 1)


def test_progrm_takes_the_progress_of_the_environment_where_it_is_known() -> None:
    model = make_reward_model("progrm:labels=environment")
    assert isinstance(model, FittedReward)
    known = walk("rr", progress=[0.0, 0.5, 1.0])
    assert model.targets([known, walk("rr")]) == [[0.5, 1.0], None]


@pytest.mark.parametrize("text", BOTH)
def test_an_unfitted_model_leaves_rewards_alone_and_says_so_when_asked(text: str, tmp_path: Path) -> None:
    model = make_reward_model(text)
    episodes = line_episodes()
    assert all(one is two for one, two in zip(rewarded(model, episodes), episodes, strict=True))
    with pytest.raises(ConfigError, match="was not fitted yet"):
        model.score(episodes[0])
    with pytest.raises(ConfigError, match="nothing to save"):
        model.save(tmp_path)


def test_a_frozen_language_model_gives_features(tmp_path: Path) -> None:
    small_model().save(tmp_path / "model")
    model = fitted(f"progrm:features=model:{tmp_path / 'model'},epochs=60")
    together = model.predictions(line_episodes())
    alone = [model.predictions([each])[0] for each in line_episodes()]
    assert [value for own in together for value in own] == pytest.approx([v for own in alone for v in own], abs=1e-3)
    assert model.score(walk("rrr")) > model.score(walk("lll"))
    with pytest.raises(ConfigError, match="'ngrams', 'model:FOLDER' or 'trained:FOLDER'"):
        make_reward_model("spa:features=words").fit(line_episodes())


def test_a_language_model_is_fitted_with_its_head_and_saved_with_it(tmp_path: Path) -> None:
    language_model = small_model(layers=1)
    language_model.save(tmp_path / "model")
    model = fitted(f"spa:features=trained:{tmp_path / 'model'},epochs=3,learning_rate=0.003,outcome=success,bonus=0")
    found = model.predictions(line_episodes())
    alone = [model.predictions([each])[0] for each in line_episodes()]
    assert [value for own in found for value in own] == pytest.approx([v for own in alone for v in own], abs=1e-3)
    assert model.score(walk("rrr")) > model.score(walk("lll")) + 0.1
    model.save(tmp_path / "saved")
    saved = load_file(tmp_path / "saved" / "head.safetensors")
    before = language_model.network.base_model.state_dict()
    moved = {name: not torch.equal(saved[f"first.backbone.{name}"], weight) for name, weight in before.items()}
    assert moved and all(moved.values())
    assert load_reward_model(tmp_path / "saved").rewards(line_episodes()) == model.rewards(line_episodes())
    model.fit(line_episodes())
    assert model.predictions(line_episodes()) == found, "each fit begins with the model as it was"


# Folders.


@pytest.mark.parametrize("text", BOTH)
def test_a_saved_model_scores_the_same(text: str, tmp_path: Path) -> None:
    model = fitted(text)
    model.save(tmp_path / "saved")
    assert {path.suffix for path in (tmp_path / "saved").iterdir()} == {".json", ".safetensors"}
    loaded = load_reward_model(tmp_path / "saved")
    assert loaded.rewards(line_episodes()) == model.rewards(line_episodes())
    again = make_reward_model(f"{model.name}:path={tmp_path / 'saved'},weight=0.5")
    assert again.config.weight == 0.5 and again.config.dimensions == 512


def test_a_folder_is_checked(tmp_path: Path) -> None:
    fitted("spa:dimensions=512").save(tmp_path)
    with pytest.raises(ConfigError, match="holds the reward model 'spa', not 'progrm'"):
        make_reward_model(f"progrm:path={tmp_path}")
    with pytest.raises(ConfigError, match="was fitted with dimensions=512"):
        make_reward_model(f"spa:path={tmp_path},dimensions=64")
    (tmp_path / "head.safetensors").write_bytes(b"nothing")
    with pytest.raises(CheckpointError, match="is damaged"):
        load_reward_model(tmp_path)
    (tmp_path / "reward_model.json").write_text('{"format": "another"}')
    with pytest.raises(CheckpointError, match="its format is 'another'"):
        load_reward_model(tmp_path)


# Recordings.


def test_episodes_survive_writing_and_reading(tmp_path: Path) -> None:
    episodes = [walk("rrl", 1, progress=[0.0, 0.5, 0.7, 1.0]), walk("l\udc80\u2028")]
    write_trajectories(tmp_path / "all.jsonl", episodes)
    assert list(map(plain, read_trajectories(tmp_path))) == list(map(plain, episodes))


def test_what_the_wrapper_records_is_read(tmp_path: Path) -> None:
    env = wrap(gymnasium.make("turngym/GuessTheNumber-v0", low=1, high=3), f'record:folder="{tmp_path}"')
    env.reset(seed=4)
    rewards = []
    for guess in ("9", "1", "2", "3"):
        _, reward, terminated, truncated, info = env.step(guess)
        rewards.append(reward)
        if terminated or truncated:
            break
    env.close()
    [found] = read_trajectories(tmp_path)
    assert [turn.reward for turn in found.turns] == rewards and found.success == info["success"]
    assert [turn.action for turn in found.turns] == ["9", "1", "2", "3"][: len(rewards)]
    assert not found.turns[0].action_is_valid and found.turns[1].action_is_valid
    assert found.env_id == "turngym/GuessTheNumber-v0" and found.progress == info["progress"]


@pytest.mark.parametrize(
    "content", ["[1]\n", '{"turns": [{}], "success": 1, "final_observation": ""}\n', "no json\n{}\n"]
)
def test_other_files_are_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(content)
    with pytest.raises(ConfigError, match="recorded episodes"):
        read_trajectories(tmp_path)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no recorded episodes"):
        read_trajectories(tmp_path)
    (tmp_path / "reward_model.json").write_text(json.dumps({}))
    with pytest.raises(ConfigError, match="holds no recorded episodes"):
        read_trajectories(tmp_path)


def _changed(folder: Path, name: str = "spa", **settings: Any) -> None:
    content = json.loads((folder / "reward_model.json").read_text())
    content["name"], content["config"] = name, content["config"] | settings
    (folder / "reward_model.json").write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("spa", {"dimensions": 10**9, "hidden": 10**6}),
        ("spa", {"features": "model:somebody/their-model"}),
        ("milestones", {"patterns": ["(a+)+$"]}),
        ("os:system", {}),
        ("spa.py:Spa", {}),
        ("..model", {}),
    ],
)
def test_the_folder_of_somebody_else_makes_nothing_large_loads_no_model_and_imports_nothing(
    name: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    fitted("spa:dimensions=512").save(tmp_path)
    _changed(tmp_path, name, **settings)
    with pytest.raises(CheckpointError):
        load_reward_model(tmp_path)


@pytest.mark.parametrize("kind", ["nan", "pipe", "device"])
def test_weights_that_are_no_numbers_or_no_file_are_refused(kind: str, tmp_path: Path) -> None:
    fitted("spa:dimensions=512").save(tmp_path)
    file = tmp_path / "head.safetensors"
    weights = load_file(file)
    file.unlink()
    if kind == "nan":
        next(iter(weights.values())).view(-1)[0] = float("nan")
        save_file(weights, file)
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("/dev/zero")
    with pytest.raises(CheckpointError, match="is damaged"):
        load_reward_model(tmp_path)


def test_weights_are_never_unpickled_and_files_are_bounded(tmp_path: Path) -> None:
    fitted("spa:dimensions=512").save(tmp_path)
    ran = tmp_path / "ran"

    class Attack:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (ran,))

    torch.save({"first.weight": Attack()}, tmp_path / "head.safetensors")
    with pytest.raises(CheckpointError, match="is damaged"):
        load_reward_model(tmp_path)
    assert not ran.exists()
    with (tmp_path / "reward_model.json").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(CheckpointError, match="more than the"):
        load_reward_model(tmp_path)


def test_features_of_a_model_are_loaded_where_the_user_names_it_or_it_lies_here(tmp_path: Path) -> None:
    small_model().save(tmp_path / "model")
    features = f"model:{tmp_path / 'model'}"
    fitted(f"spa:features={features}").save(tmp_path / "saved")
    assert load_reward_model(tmp_path / "saved").is_ready
    (tmp_path / "model" / "model.safetensors").rename(tmp_path / "model" / "weights.bin")
    with pytest.raises(CheckpointError, match="pass that model yourself"):
        load_reward_model(tmp_path / "saved")


def _no_pipe(path: Path) -> None:
    os.mkfifo(path)


def _large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**40)


@pytest.mark.parametrize(
    "make",
    [
        _no_pipe,
        _large,
        lambda path: path.write_text('{"turns": [], "success": 1e999, "final_observation": ""}\n'),
        lambda path: path.write_text('{"turns": 3, "success": 1, "final_observation": ""}\n'),
        lambda path: path.write_text("[1]\n"),
        lambda path: path.write_text('{"turns":' * 10**5 + "\n{}\n"),
        lambda path: path.write_bytes(b"\xff\xfe\n"),
    ],
)
def test_recordings_of_somebody_else_are_bounded_and_checked(make: Callable[[Path], object], tmp_path: Path) -> None:
    make(tmp_path / "episodes.jsonl")
    with pytest.raises(ConfigError, match="holds no recorded episodes"):
        read_trajectories(tmp_path / "episodes.jsonl")
    make(tmp_path / "recipes.json")
    with pytest.raises(ConfigError, match="holds no recipes"):
        RecipeBook.read(tmp_path / "recipes.json")


OWN_MODEL = """
from turngym.trainers.reward_models.spa import SPA


class Mine(SPA):
    name = "mine"
"""


def test_a_reward_model_of_ones_own_is_fitted_by_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_trajectories(tmp_path / "episodes.jsonl", line_episodes())
    (tmp_path / "own_reward.py").write_text(OWN_MODEL)
    for name, out in (("own_reward.py:Mine", "one"), ("own_reward:Mine", "two")):
        assert main(["fit-reward", "episodes.jsonl", "--model", name, "-o", out]) == 0, capsys.readouterr().err
        assert make_reward_model(f"{name}:path={out}").score(walk("rrr")) != 0
    with pytest.raises(CheckpointError, match="holds no reward model"):
        load_reward_model(tmp_path / "one")
