"""Exports of a submission: what the files hold, and what is refused. The tools themselves read them in test_inspect."""

import json
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from turngym.__main__ import main
from turngym.agents import Agent, Decision, Request
from turngym.agents.recordings.submission import load_submission
from turngym.benchmarks import evaluate
from turngym.benchmarks.exports import EXPORTS, digest, export
from turngym.benchmarks.exports.source import plain
from turngym.errors import ConfigError, UnknownName

GUESS = "turngym/GuessTheNumber-v0"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of an evaluation of one environment with two attempts at each task."""
    path = tmp_path_factory.mktemp("evaluations") / "random"
    words = ["eval", GUESS, "--agent", "random", "--episodes", "3", "--repeats", "2", "--option", "high=9"]
    assert main([*words, "--out", str(path)]) == 0
    return path


def rows_of(folder: Path, name: str = "episodes") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text("utf8").splitlines()]


def log_of(folder: Path, out: Path) -> dict[str, Any]:
    (file,) = export(folder, "inspect", out)
    found: dict[str, Any] = json.loads(file.read_text("utf8"))
    return found


def test_a_log_has_every_episode_as_a_sample(folder: Path, tmp_path: Path) -> None:
    log = log_of(folder, tmp_path / "log.json")
    rows, told = rows_of(folder), rows_of(folder, "transcripts")
    assert [(s["id"], s["epoch"]) for s in log["samples"]] == [
        (f"{row['label']}:{row['task']}", row["attempt"] + 1) for row in rows
    ]
    for sample, row, transcript in zip(log["samples"], rows, told, strict=True):
        assert {name: score["value"] for name, score in sample["scores"].items()} == {
            "success": row["success"],
            "score": row["score"],
            "return": row["returns"],
        }
        roles = [message["role"] for message in sample["messages"]]
        assert roles == ["user", "assistant"] * row["length"] + ["user"]
        seen = [message["content"] for message in sample["messages"][::2]]
        assert seen == [t["observation"] for t in transcript["turns"]] + [transcript["final_observation"]]
        assert len({message["id"] for message in sample["messages"]}) == len(roles)


def test_a_log_repeats_every_number_with_its_error(folder: Path, tmp_path: Path) -> None:
    log = log_of(folder, tmp_path / "log.json")
    results = json.loads((folder / "results.json").read_text())
    ((label, numbers),) = results["environments"].items()
    scores = {score["name"]: score["metrics"] for score in log["results"]["scores"]}
    assert scores.keys() == numbers.keys() and next(iter(scores)) == "success"
    for metric, number in numbers.items():
        assert scores[metric][label]["value"] == scores[metric]["all"]["value"] == number["value"]
        if "stderr" in number:
            assert scores[metric][f"{label} stderr"]["value"] == number["stderr"]


def test_the_zip_holds_the_same_and_is_the_same_each_time(folder: Path, tmp_path: Path) -> None:
    log = log_of(folder, tmp_path / "log.json")
    (file,) = export(folder, "inspect", tmp_path / "log.eval")
    with zipfile.ZipFile(file) as parts:
        content = {name: json.loads(parts.read(name)) for name in parts.namelist()}
    assert {**content["header.json"], "samples": log["samples"]} == log
    assert [content[f"samples/{s['id']}_epoch_{s['epoch']}.json"] for s in log["samples"]] == log["samples"]
    assert [each["id"] for each in content["summaries.json"]] == [sample["id"] for sample in log["samples"]]
    before = file.read_bytes()
    assert export(folder, "inspect", file) == [file] and file.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == [file, tmp_path / "log.json"], "nothing else is left"


def test_lm_eval_has_a_file_of_samples_for_each_environment(folder: Path, tmp_path: Path) -> None:
    first, *samples = export(folder, "lm-eval", tmp_path / "out")
    assert first.name.startswith("results_2") and first.parent == tmp_path / "out" / "random"
    results = json.loads(first.read_text("utf8"))
    ((name, numbers),) = results["results"].items()
    assert name == "turngym_GuessTheNumber-v0_high=9" and numbers["alias"] == f"{GUESS} high=9"
    told = json.loads((folder / "results.json").read_text())["environments"][f"{GUESS} high=9"]
    for metric, number in told.items():
        assert numbers[f"{metric},none"] == number["value"]
        assert numbers.get(f"{metric}_stderr,none") == number.get("stderr")
        assert results["higher_is_better"][name][metric] == number["higher_is_better"]
    assert results["n-samples"] == {name: {"original": 6, "effective": 6}}
    (file,) = samples
    assert file.name == first.name.replace("results_", f"samples_{name}_") + "l"
    rows = [json.loads(line) for line in file.read_text("utf8").splitlines()]
    assert [row["success"] for row in rows] == [row["success"] for row in rows_of(folder)]
    assert [row["resps"][0] for row in rows] == [row["actions"] for row in rows_of(folder)]
    hashes = [row["doc_hash"] + row["prompt_hash"] + row["target_hash"] for row in rows]
    assert results["task_hashes"] == {name: digest(hashes)} and len(set(hashes)) == 6


def test_a_suite_is_a_group_with_its_mean(tmp_path: Path) -> None:
    assert main(["eval", "turngym-core", "--agent", "random", "--episodes", "1", "--out", str(tmp_path / "f")]) == 0
    results = json.loads(export(tmp_path / "f", "lm-eval", tmp_path / "lm")[0].read_text("utf8"))
    mean = json.loads((tmp_path / "f" / "results.json").read_text())["mean"]
    assert results["groups"]["turngym-core"]["success,none"] == mean["value"]
    assert set(results["group_subtasks"]["turngym-core"]) == set(results["n-samples"]) and len(results["configs"]) == 18
    log = log_of(tmp_path / "f", tmp_path / "log.json")
    assert log["results"]["scores"][0]["metrics"]["all"]["value"] == mean["value"]


def test_without_transcripts_the_actions_are_exported(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in folder.iterdir():
        if file.name != "transcripts.jsonl":
            (copy / file.name).write_bytes(file.read_bytes())
    sample = log_of(copy, tmp_path / "log.json")["samples"][0]
    said = [message["content"] for message in sample["messages"] if message["role"] == "assistant"]
    assert said == rows_of(copy)[0]["actions"]


def test_an_unfinished_evaluation_and_broken_episodes_are_marked(folder: Path, tmp_path: Path) -> None:
    submission = load_submission(folder)
    from turngym.benchmarks.exports.inspect import header, map_samples

    broken = {**submission.episodes[0], "status": "env_error", "fault": "it broke \ud800"}
    changed = type(submission)(
        folder,
        submission.metadata,
        submission.config,
        {**submission.results, "complete": False},
        (broken, *submission.episodes[1:]),
        submission.transcripts,
    )
    assert header(changed)["status"] == "cancelled"
    first = next(map_samples(changed))
    assert first["error"]["message"] == "it broke ?" and plain("a\ud800") == "a?"


def test_a_folder_cannot_make_an_export_write_elsewhere(folder: Path, tmp_path: Path) -> None:
    copy, out = tmp_path / "copy", tmp_path / "deep" / "out"
    copy.mkdir()
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, "agent": "../.."}))
    for file in export(copy, "lm-eval", out):
        assert file.is_relative_to(out) and ".." not in file.parts
    metadata = json.loads((copy / "metadata.json").read_text())
    (copy / "metadata.json").write_text(json.dumps({**metadata, "started": "../../x"}))
    with pytest.raises(ConfigError, match="started must be a time in ISO format"):
        export(copy, "lm-eval", out)


@pytest.mark.parametrize(
    ("format", "out", "message"),
    [("inspect", "log.txt", "ends with .json or .eval"), ("lm-eval", "results.json", "pass a folder")],
)
def test_a_wrong_kind_of_file_is_refused(format: str, out: str, message: str, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        export(folder, format, tmp_path / out)
    assert not list(tmp_path.iterdir())


def test_a_recording_shows_every_turn_and_no_control_characters_of_a_model(tmp_path: Path) -> None:
    texts = ["\x1b[2J\x07", "high\nnumber\ud800", "guess 5"]
    path = tmp_path / "evaluation"

    class Rude(Agent):
        def act(self, requests: Sequence[Request]) -> list[Decision]:
            return [Decision(texts.pop(0)) for _ in requests]

    evaluate(GUESS, Rude(), episodes=1, options={"high": 7, "max_turns": len(texts)}, out=path)
    (row,), (told,) = rows_of(path), rows_of(path, "transcripts")
    (file,) = export(path, "asciicast", tmp_path / "recordings")
    header, *events = map(json.loads, file.read_text("ascii").splitlines())
    assert (header["version"], header["title"]) == (2, f"{row['label']}, task {row['task']}, attempt 0")
    times, kinds, outputs = zip(*events, strict=True)
    assert list(times) == sorted(times) and set(kinds) == {"o"}
    shown = "".join(outputs)
    answers = [r"\x1b[2J\x07", "high\r\nnumber?", "guess 5"]
    for turn, answer in zip(told["turns"], answers, strict=True):
        assert turn["observation"].replace("\n", "\r\n") + f"\r\n\x1b[1;32m> {answer}\x1b[0m" in shown
    assert shown.count("\x1b") == 2 * (len(told["turns"]) + 1)
    with pytest.raises(ConfigError, match="pass another --out"):
        export(path, "asciicast", tmp_path / "recordings")


def test_observations_without_text_are_shown_by_entries_and_rows(folder: Path, tmp_path: Path) -> None:
    other = shutil.copytree(folder, tmp_path / "other")
    seen = {"position": [1, 2.5], "grid": [[0, 1], [1, 0]], "screen": [[[9] * 3] * 64] * 64, "note": None}
    told = rows_of(folder, "transcripts")
    rows = [{**row, "turns": [{**turn, "observation": seen} for turn in row["turns"]]} for row in told]
    (other / "transcripts.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    first, *_ = export(other, "asciicast", tmp_path / "recordings")
    output = json.loads(first.read_text().splitlines()[1])[2]
    assert output.startswith("position: 1 2.5\r\ngrid:\r\n0 1\r\n1 0\r\nscreen: (64 x 64 x 3 numbers)\r\nnote: \r\n")


def test_a_recording_says_that_the_environment_broke(folder: Path, tmp_path: Path) -> None:
    broken = shutil.copytree(folder, tmp_path / "broken")
    rows = [{**row, "fault": "exception: \x1b[2J" * (row["task"] == 1)} for row in rows_of(folder)]
    (broken / "episodes.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    ends = {file.name: file.read_text() for file in export(broken, "asciicast", tmp_path / "recordings")}
    assert {name for name, text in ends.items() if r", fault: exception: \\x1b[2J\u001b[0m" in text} == {
        "0-1-0.cast",
        "0-1-1.cast",
    }


def test_unknown_formats_and_folders_are_refused(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert set(EXPORTS) == {"asciicast", "atif", "chat", "hf", "inspect", "lm-eval", "parquet", "preference", "sft"}
    with pytest.raises(UnknownName, match=r"no export format named 'inspct'.*inspect") as raised:
        export(folder, "inspct", tmp_path / "log.json")
    assert main(["export", str(tmp_path), "--format", "inspect", "-o", str(tmp_path / "log.json")]) == 2
    assert "is not a submission" in capsys.readouterr().err and "inspect_tasks" not in str(raised.value)
    with pytest.raises(ConfigError, match=f"pass one, such as {folder}"):
        export(folder.parent, "inspect", tmp_path / "log.json")
    assert main(["export", str(folder), "--format", "inspect", "-o", str(tmp_path / "log.json")]) == 0
    assert "log.json" in capsys.readouterr().out
