"""The journey from `turngym train` to everything that can be done with the model, as it is typed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from journey import fails, works, works_as_printed

pytestmark = pytest.mark.integration  # `test_trained_models.py` shows most of it in one process
SETTINGS_WORDS = (
    "--env-options view=coordinates max_turns=5 max_moves=2 --iterations 2 --no-control --embedded.hidden-size 16 "
    "--embedded.layers 1 --embedded.heads 2 --embedded.vocabulary 340 --warmup.demonstrations 60 --warmup.epochs 15 "
    "--rollout.groups 2 --rollout.group-size 2 --rollout.prompt.history 1 --evaluation.episodes 20 "
    "--evaluation.every 0 --seed 5 --wrapper invalid_action:penalty=0.1"
)
SETTINGS = SETTINGS_WORDS.split()
SOKOBAN, RUN = "turngym/Sokoban-v0", "runs/sokoban-gigpo-seed5"
MODEL = f"hf:{RUN}/model"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Return the folder that was trained in, and the lines that `train` printed."""
    folder = tmp_path_factory.mktemp("journey")
    return folder, works(folder, "train", *SETTINGS).lines


def test_the_printed_command_finds_the_success_of_the_training(trained: tuple[Path, list[str]]) -> None:
    folder, lines = trained
    (command,) = [line.strip() for line in lines if line.strip().startswith("turngym eval ")]
    (found,) = works_as_printed(folder, command, "--json").result["environments"].values()
    own = json.loads((folder / RUN / "evaluations" / "final-sampled.json").read_text())
    success = found["success"]["value"]
    assert success == own["success"]["value"] and found["return"]["value"] == own["reward_sum"]["value"]
    assert found["turns"]["value"] == own["turns"]["value"]
    assert found["invalid_actions"]["value"] == own["invalid_actions"] > 0, "the samples are the same, one by one"
    said = re.findall(r"([\d.]+) %(?: after| against)", " ".join(lines))
    assert set(said) == {f"{100 * success:.1f}"}, "one number, whatever it is compared with"
    assert found["success"]["n_games"] == 20


def test_an_evaluation_is_shown_checked_and_ranked(trained: tuple[Path, list[str]]) -> None:
    folder, _ = trained
    works(folder, "eval", SOKOBAN, "--agent", MODEL, "--episodes", "10", "--out", "mine")
    works(folder, "report", "mine")
    works(folder, "view", "mine", "-o", "view.html")
    assert "label: replayed" in works(folder, "verify", "mine").out
    assert "1 submission in 1 table" in works(folder, "leaderboard", "mine", "-o", "leaderboard.html").out
    for page in ("mine/report.html", "view.html", "leaderboard.html"):
        assert (folder / page).read_text("utf8").startswith("<!doctype html>"), page


def test_the_run_is_reported_and_viewed(trained: tuple[Path, list[str]]) -> None:
    folder, _ = trained
    assert f"{RUN}/report.html" in works(folder, "report", RUN).out
    works(folder, "view", RUN, "-o", "run.html")
    assert "turngym/Sokoban-v0" in (folder / "run.html").read_text("utf8")


def test_the_model_is_watched(trained: tuple[Path, list[str]]) -> None:
    answer = works(trained[0], "play", SOKOBAN, "--agent", MODEL, "--seed", "1")
    assert re.search(r"(solved|turn limit reached) after \d turns: return ", answer.out), str(answer)
    assert "it plays in the same way here" in answer.err


def test_the_model_meets_others(trained: tuple[Path, list[str]]) -> None:
    folder, _ = trained
    words = [
        "tournament",
        "turngym/TicTacToe-v0",
        "--players",
        "random",
        f"me={MODEL}",
        "--blocks",
        "1",
        "--out",
        "games",
    ]
    answer = works(folder, *words)
    assert "4 games in 1 block," in answer.out and "it plays turngym/TicTacToe-v0" in answer.err
    games = [json.loads(line) for line in (folder / "games" / "episodes.jsonl").read_text().splitlines()]
    assert len(games) == 4
    fails(folder, *words, says=("games exists already and is not empty", "--resume"), apart=False)
    works(folder, "report", "games")


@pytest.mark.parametrize(
    ("agent", "says"),
    [
        (f"{RUN}/model", f"Did you mean 'hf:{RUN}/model'?"),
        (f"hf:{RUN}", f"is the folder of a training run: its model is hf:{RUN}/model."),
        ("hf:runs/nothing", "runs/nothing"),
        ("broken.py", "Name a class or function in it, as in broken.py:Name."),
    ],
)
def test_a_model_that_is_named_wrongly_is_told_with_the_way_out(
    agent: str, says: str, trained: tuple[Path, list[str]]
) -> None:
    fails(trained[0], "eval", SOKOBAN, "--agent", agent, "--episodes", "1", says=(says,), apart=agent == "broken.py")


def test_training_into_the_same_folder_again_says_how_to_go_on(trained: tuple[Path, list[str]]) -> None:
    fails(trained[0], "train", *SETTINGS, says=(RUN, "resume"), apart=False)
