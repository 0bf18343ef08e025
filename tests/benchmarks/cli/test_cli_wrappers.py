"""Wrappers from the command line: ``--wrapper`` of eval, train and play, and what is written down of it."""

import json
from pathlib import Path

import pytest

from turngym.__main__ import main
from turngym.benchmarks.cli.train import parse_train
from turngym.benchmarks.suites import SuiteEntry
from turngym.errors import ConfigError
from turngym.trainers.loop.setup import training_vector
from turngym.trainers.settings.config import TrainConfig
from turngym.wrappers.recording.replay import replay_transcript

HANOI = "turngym/TowerOfHanoi-v0"
FOUR = ["--wrapper", "history:k=4", "--wrapper", "turn_limit:limit=2"]


def test_an_evaluation_plays_under_its_wrappers_and_records_them(tmp_path: Path) -> None:
    words = ["eval", HANOI, "--agent", "expert", "--option", "discs=2", "--episodes", "1", "--json"]
    for name, wrappers in (("plain", []), ("wrapped", FOUR)):
        assert main([*words, *wrappers, "--out", str(tmp_path / name)]) == 0
    config = json.loads((tmp_path / "wrapped" / "config.json").read_text())["environments"][0]
    assert config["wrappers"] == ["history:k=4", "turn_limit:limit=2"]
    assert config["label"] == f"{HANOI} discs=2 history:k=4 turn_limit:limit=2"
    assert json.loads((tmp_path / "plain" / "config.json").read_text())["environments"][0]["wrappers"] == []
    games = [json.loads((tmp_path / name / "transcripts.jsonl").read_text()) for name in ("plain", "wrapped")]
    assert [len(game["turns"]) for game in games] == [3, 2] and [game["success"] for game in games] == [1, 0]
    assert games[1]["turns"][1]["observation"].startswith("Turn 1:\nA: 2 1")


def test_the_first_wrapper_is_the_innermost(tmp_path: Path) -> None:
    seen = []
    for order in (["history", "parse_action"], ["parse_action", "history"]):
        out = tmp_path / order[0]
        wrappers = [word for name in order for word in ("--wrapper", name)]
        words = ["eval", HANOI, "--agent", "expert", "--episodes", "1", "--json", "--out", str(out), *wrappers]
        assert main(words) == 0
        game = json.loads((out / "transcripts.jsonl").read_text())
        assert game["success"] == 1 and game["turns"][0]["action"] == "<action>A C</action>"
        seen.append("Your action: <action>A C</action>" in game["turns"][1]["observation"])
    assert seen == [False, True]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["eval", HANOI, "--agent", "expert", "--wrapper", "histry"], "no wrapper named 'histry'. Did you mean 'hist"),
        (["eval", HANOI, "--agent", "expert", "--wrapper", "history:l=3"], "the wrapper history has no option 'l'"),
        (["eval", HANOI, "--agent", "expert", "--wrapper", "history:"], "ends after its colon"),
        (["eval", "textgames", "--agent", "expert", "--wrapper", "history"], "has its own options and split"),
        (["play", HANOI, "--wrapper", "histry"], "no wrapper named 'histry'"),
        (["train", "--wrapper", "history:"], "ends after its colon"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_played(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) != 0
    assert message in " ".join(capsys.readouterr().err.split())


def test_training_records_its_wrappers_and_plays_under_them() -> None:
    words = [*FOUR, "--rollout.groups", "1", "--rollout.group-size", "2"]
    config, _, _ = parse_train(words)
    assert config.wrappers == ("history:k=4", "turn_limit:limit=2")
    assert TrainConfig.from_json(json.loads(json.dumps(config.as_json()))) == config
    with training_vector(config) as vector:
        assert vector.call("max_turns") == (2, 2)
        assert all("Earlier turns are shown first" in text for text in vector.call("instructions"))


def test_the_settings_of_a_run_from_before_there_were_wrappers_are_read() -> None:
    content = TrainConfig().as_json()
    del content["wrappers"]
    assert TrainConfig.from_json(content) == TrainConfig()


def test_the_label_of_an_entry_tells_wrappers_apart() -> None:
    plain, wrapped = SuiteEntry(HANOI), SuiteEntry(HANOI, wrappers=("history",))
    assert plain.label != wrapped.label and wrapped.label.endswith("history")
    with pytest.raises(ConfigError):
        TrainConfig(wrappers=("history:k",))


def test_a_person_plays_under_wrappers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Undo takes back what a wrapper remembers, and the transcript names the wrappers."""
    lines = iter(["A C", ":undo", "A B", "A C", ":hint"])

    def read(prompt: str = "") -> str:
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", read)
    assert main(["play", HANOI, "--seed", "1", *FOUR, "--save", str(tmp_path / "game.txt")]) == 0
    shown = capsys.readouterr().out
    assert "Your action: A B" in shown and "The episode ends after 2 turns." in shown
    assert shown.index("Your action: A C") < shown.index("Your action: A B")
    text = (tmp_path / "game.txt").read_text()
    assert [each["name"] for each in json.loads(text.splitlines()[0])["wrappers"]] == ["history", "turn_limit"]
    assert replay_transcript(text, is_trusted=True) == text and "Your action: A B" in text
