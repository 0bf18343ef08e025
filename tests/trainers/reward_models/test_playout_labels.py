"""Labels of turns by playouts from the states around them, and the model that is fitted to them."""

import json
import math
from pathlib import Path
from typing import Any

import gymnasium
import pytest
import torch
from reward_games import walk

import turngym
from turngym.__main__ import main
from turngym.benchmarks import recorded_states
from turngym.envs.core import TextEnv
from turngym.errors import ConfigError
from turngym.trainers.reward_models.base.playouts import Playout, label_by_playouts, read_playouts, turn_labels
from turngym.trainers.reward_models.base.recordings import read_trajectories
from turngym.trainers.reward_models.shepherd import Shepherd, ShepherdConfig

LAKE = "turngym/FrozenLake-v0"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random walks on small lakes, continued from every turn by the expert and by the random player."""
    folder = tmp_path_factory.mktemp("playouts") / "base"
    turngym.evaluate(LAKE, "random", episodes=6, options={"split": "train", "size": 3}, out=folder)
    for agent, repeats in (("expert", 1), ("random", 2)):
        turngym.evaluate(recorded_states(f"{folder}@every"), agent, repeats=repeats, seed=1, out=folder / agent)
    return folder


def left_by_expert(env: TextEnv[Any], saved: bytes) -> float:
    """Turns that the expert takes from a snapshot to the goal."""
    _, info = env.restore(saved)
    count = 0
    while info["success"] < 0 and count < 50:
        *_, info = env.step(env.expert_action())
        count += 1
    return count if info["success"] == 1 else math.inf


def test_the_expert_s_labels_are_those_of_its_play_from_snapshots(base: Path) -> None:
    episodes = read_trajectories(base)
    found = label_by_playouts(episodes, read_playouts(base / "expert"), "steps")
    env = gymnasium.make(LAKE, size=3, split="train").unwrapped
    assert isinstance(env, TextEnv)
    seen = set()
    for episode, labels in zip(episodes, found, strict=True):
        assert labels is not None
        env.reset(seed=episode.spec.seed)
        for turn, label in zip(episode.turns, labels, strict=True):
            before = env.snapshot()
            *_, terminated, truncated, info = env.step(turn.action)
            after = env.snapshot()
            ended = 0.0 if info["success"] == 1 else math.inf
            left = ended if terminated or truncated else left_by_expert(env, after)
            assert label == (left < left_by_expert(env, before))
            if not (terminated or truncated):
                env.restore(after)
            seen.add(label)
    assert seen == {0.0, 1.0}


def test_shares_are_those_of_the_rows(base: Path) -> None:
    rows = [json.loads(line) for line in (base / "random" / "episodes.jsonl").read_text().splitlines()]
    episodes, playouts = read_trajectories(base), read_playouts(base / "random")
    shares, anys = (label_by_playouts(episodes, playouts, label) for label in ("share", "any"))
    for task, (episode, share, one) in enumerate(zip(episodes, shares, anys, strict=True)):
        assert share is not None and one is not None and share[-1] == one[-1] == (episode.success == 1)
        for turn in range(1, len(episode.turns)):
            own = [row["success"] == 1 for row in rows if (row["state"]["task"], row["state"]["turn"]) == (task, turn)]
            assert len(own) == 2 and share[turn - 1] == sum(own) / 2 and one[turn - 1] == any(own)


def test_worked_labels_loss_and_gradient() -> None:
    won, lost = Playout(True, 3), Playout(False, 9)
    states = [[won], [won] * 6 + [lost] * 2, [lost]]
    assert turn_labels(states, "share") == [0.75, 0.0] and turn_labels(states, "any") == [1.0, 0.0]
    assert turn_labels([[won], [won._replace(turns=2), lost], [lost], [won]], "steps") == [1.0, 0.0, 1.0]
    for dtype, tolerance in ((torch.float64, 1e-9), (torch.float32, 1e-6)):
        outputs = torch.tensor([2.0, 0.0], dtype=dtype, requires_grad=True)
        error = Shepherd(ShepherdConfig()).loss([[1.0, 0.75]])(outputs, torch.tensor([0, 0]), [0])
        error.backward()
        assert float(error.detach()) == pytest.approx((math.log1p(math.exp(-2)) + math.log(2)) / 2, abs=tolerance)
        assert outputs.grad is not None
        assert outputs.grad.tolist() == pytest.approx([(1 / (1 + math.exp(-2)) - 1) / 2, -0.125], abs=tolerance)


def test_a_fitted_model_pays_what_was_labelled_right() -> None:
    right = [walk("rlr", progress=[0, 1, 0, 1], instance=str(k)) for k in range(8)]
    model = Shepherd(ShepherdConfig(dimensions=512, baseline=0.5))
    assert model.fit([*right, walk("rr"), walk("l", progress=[0, 7.0])])["left_out"] == 2
    [own] = model.rewards([walk("rlr")])
    assert own[0] > 0.3 > -0.3 > own[1] and own[2] > 0.3
    assert model.score(walk("rl")) == pytest.approx(own[1] + 0.5) and math.isnan(model.score(walk("")))


def test_the_commands_label_and_fit(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["label-progress", str(base), "--playouts", str(base / "expert"), "--label", "steps"]
    assert main([*words, "-o", str(tmp_path / "out")]) == 0
    assert "6 of 6 episodes labelled by" in capsys.readouterr().out
    fit = ["fit-reward", str(tmp_path / "out" / "labelled.jsonl"), "--model", "shepherd", "--option", "epochs=1"]
    assert main([*fit, "-o", str(tmp_path / "fitted"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["episodes"] == 6
    other = tmp_path / "other"
    turngym.evaluate(LAKE, "expert", episodes=2, options={"size": 3}, out=other)
    for folders, message in (
        ([str(base), "--playouts", str(base)], "no episode that continues"),
        ([str(base), "--playouts", str(tmp_path / "nothing")], "holds no recorded episodes"),
        ([str(other), "--playouts", str(base / "expert")], "continues none of the 2 episodes"),
    ):
        assert main(["label-progress", *folders, "-o", str(tmp_path / "new")]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("row", ["{}", '{"state": 3, "status": "ok"}', '{"state": {}, "status": "ok", "length": "x"}'])
def test_malformed_playouts_are_refused(row: str, tmp_path: Path) -> None:
    (tmp_path / "episodes.jsonl").write_text('{"state": null}\n' + row + "\n")
    with pytest.raises(ConfigError, match="holds no"):
        read_playouts(tmp_path)
