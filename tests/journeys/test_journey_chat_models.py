"""Journeys: a Hugging Face folder with the chat template of a family is evaluated, watched and trained."""

import re
from pathlib import Path

import pytest
from chat_model_folders import family_folder
from journey import fails, works, works_as_printed

SOKOBAN = "turngym/Sokoban-v0"
SHORT = ("--option", "max_turns=2", "--max-new-tokens", "6")
TRAIN: tuple[str, ...] = ("train", "--env", SOKOBAN, "--no-control", "--iterations", "1", "--rollout.groups", "2")
TRAIN += ("--rollout.group-size", "2", "--rollout.max-new-tokens", "6", "--warmup.demonstrations", "0")
TRAIN += ("--evaluation.episodes", "2", "--evaluation.every", "0", "--env-options", "max_turns=2")

CUSTOM = ("thinking=strip", "template.enable_thinking=false")


def test_play_takes_the_settings_of_prompts(tmp_path: Path) -> None:
    family_folder("gemma", tmp_path / "model")
    played = works(tmp_path, "play", SOKOBAN, "--agent", "hf:model", "--seed", "3", *SHORT, "--format", "json")
    assert "turn limit reached after 2 turns" in played.out
    assert played.err.count("no role for the system") == 1 and ".py:" not in played.err
    fails(tmp_path, "play", SOKOBAN, "--agent", "hf:model", "--prompt", "histry=3", says=("'histry'", "history"))


@pytest.mark.integration
@pytest.mark.parametrize(
    ("family", "settings"), [("qwen", CUSTOM), ("llama", ()), ("gemma", CUSTOM), ("mistral", ())], ids=str
)
def test_a_folder_is_evaluated_trained_and_evaluated_again(
    family: str, settings: tuple[str, ...], tmp_path: Path
) -> None:
    family_folder(family, tmp_path / "model")
    prompt = [word for setting in settings for word in ("--prompt", setting)]
    words = ("eval", SOKOBAN, "--agent", "hf:model", "--episodes", "2", *SHORT, *prompt, "--json")
    found = works(tmp_path, *words).result
    [environment] = found["environments"].values()
    assert found["complete"] and environment["success"]["n_games"] == 2
    trained = works(tmp_path, *TRAIN, "--model", "model", "--run-dir", "run")
    said = re.search(r"(\S+) % after", trained.out)
    assert said is not None, str(trained)
    again = works_as_printed(tmp_path, trained.lines[-1].strip(), "--json")
    [environment] = again.result["environments"].values()
    assert f"{100 * environment['success']['value']:.1f}" == said[1] and "it plays in the same way here" in again.err
    assert "thinking" in (tmp_path / "run" / "report.html").read_text("utf8")
