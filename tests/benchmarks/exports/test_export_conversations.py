"""Exports of conversations: what the files hold, of evaluations and of training runs, and what is refused."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from turngym.__main__ import main
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.benchmarks.exports import export
from turngym.errors import ConfigError, MissingExtra
from turngym.trainers.records.run_folder import RunFolder

GUESS = "turngym/GuessTheNumber-v0"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of an evaluation in which some episodes are solved."""
    path = tmp_path_factory.mktemp("evaluations") / "random"
    words = ["eval", GUESS, "--agent", "random", "--episodes", "6", "--option", "high=9", "--option", "max_turns=6"]
    assert main([*words, "--out", str(path)]) == 0
    return path


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf8").splitlines()]


def test_a_conversation_has_the_rules_and_every_turn(folder: Path, tmp_path: Path) -> None:
    (file,) = export(folder, "chat", tmp_path / "chat.jsonl")
    rows, told = rows_of(folder / "episodes.jsonl"), rows_of(folder / "transcripts.jsonl")
    found = rows_of(file)
    assert len(found) == len(rows) == 6
    for each, row, transcript in zip(found, rows, told, strict=True):
        system, *messages = each["messages"]
        assert system == {"role": "system", "content": transcript["instructions"]}  # bare actions need no format
        assert [m["role"] for m in messages] == ["user", "assistant"] * row["length"]
        assert [m["content"] for m in messages[::2]] == [turn["observation"] for turn in transcript["turns"]]
        assert [m["content"] for m in messages[1::2]] == row["actions"]
        assert (each["success"], each["score"], each["return"]) == (row["success"] == 1, row["score"], row["returns"])
        assert each["rewards"] == [turn["reward"] for turn in transcript["turns"]] and each["advantages"] is None
        assert each["valid"] == [turn["action_is_valid"] for turn in transcript["turns"]]
    assert list(tmp_path.iterdir()) == [file], "nothing else is left"


def test_episodes_of_a_fault_are_left_out(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    rows = rows_of(copy / "episodes.jsonl")
    rows[0]["status"], rows[1]["status"] = "env_error", "agent_error"
    (copy / "episodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert len(rows_of(export(copy, "chat", tmp_path / "chat.jsonl")[0])) == len(rows) - 2


def test_only_solved_episodes_where_asked_for(folder: Path, tmp_path: Path) -> None:
    solved = [row for row in rows_of(folder / "episodes.jsonl") if row["success"]]
    assert 0 < len(solved) < 6
    out = tmp_path / "sft.jsonl"
    assert main(["export", str(folder), "--format", "sft", "--success", "-o", str(out)]) == 0
    found = rows_of(out)
    assert [list(each) for each in found] == [["messages"]] * len(solved)
    assert [each["messages"][-1] for each in found] == [
        {"role": "assistant", "content": row["actions"][-1]} for row in solved
    ]
    with pytest.raises(ConfigError, match="--success is for chat, sft, parquet and hf"):
        export(folder, "inspect", tmp_path / "log.json", success=True)


@pytest.mark.parametrize(
    ("prompt", "format", "system"),
    [
        ({}, "plain", ["Count."]),
        ({"instructions": True}, "plain", ["Count.\nAnswer format: write the action and nothing else."]),
        ({"instructions": False}, "plain", []),
        ({"system": "Be brief. {format}"}, "boxed", ["Be brief. Answer format: write the action as \\boxed{...}."]),
    ],
)
def test_the_rules_are_those_that_the_policy_was_shown(
    prompt: dict[str, Any], format: str, system: list[str], tmp_path: Path
) -> None:
    played = Trajectory(EpisodeSpec(0, 7), GUESS, turns=[Turn("one?", "", "1")], terminated=True, instructions="Count.")
    RunFolder(tmp_path / "run").write_samples("iteration-000005", [played])
    (tmp_path / "run" / "config.json").write_text(json.dumps({"rollout": {"prompt": prompt, "format": format}}))
    (row,) = rows_of(export(tmp_path / "run", "chat", tmp_path / "chat.jsonl")[0])
    assert [message["content"] for message in row["messages"]] == [*system, "one?", "1"]


def kept(run: RunFolder, *episodes: tuple[int, list[str], float]) -> None:
    """Keep episodes of a task, whose answers are sent back and whose last one is paid."""
    played = []
    for seed, answers, total in episodes:
        seen = ["Go?", *answers]
        turns = [Turn(said, "", answer) for said, answer in zip(seen, answers, strict=False)]
        turns[-1] = replace(turns[-1], reward=total)
        played.append(Trajectory(EpisodeSpec(0, seed), GUESS, turns=turns, terminated=True))
    run.write_samples("iteration-000005", played)


def test_pairs_are_answers_to_the_same_prompt_in_the_same_task(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    one, two = ["left", "up"], ["left", "down"]
    kept(run, (1, one, 1.0), (1, two, 0.0), (1, ["right"], 0.25), (2, ["left"], 0.0), (2, ["left"], 1.0), (3, one, 1.0))
    first, second = rows_of(export(tmp_path / "run", "preference", tmp_path / "pairs.jsonl")[0])
    assert [first[name][-1]["content"] for name in ("prompt", "chosen", "rejected")] == ["Go?", "left", "right"]
    assert (first["margin"], first["episodes"], first["seed"]) == (0.25, [2, 1], 1), "the mean of 1 and 0 against .25"
    assert [each["content"] for each in second["prompt"]] == ["Go?", "left", "left"]
    assert [second[name][0] for name in ("chosen", "rejected")] == [
        {"role": "assistant", "content": "up"},
        {"role": "assistant", "content": "down"},
    ]


def test_prompts_that_differ_in_an_image_alone_make_no_pair(tmp_path: Path) -> None:
    turns = {answer: Turn("Go?", "", answer, reward=float(answer == "left")) for answer in ("left", "right", "up")}
    pictures = {"left": b"a hill", "right": b"a lake", "up": b"a hill"}
    played = [
        Trajectory(EpisodeSpec(0, 1), GUESS, turns=[replace(turn, pictures=(pictures[answer],))], terminated=True)
        for answer, turn in turns.items()
    ]
    RunFolder(tmp_path / "run").write_samples("iteration-000005", played)
    [pair] = rows_of(export(tmp_path / "run", "preference", tmp_path / "pairs.jsonl")[0])
    assert [pair[name][0]["content"] for name in ("chosen", "rejected")] == ["left", "up"]


@pytest.mark.parametrize("images", [5, True, "abc", {"a": 1}, [["a"]], None])
def test_damaged_images_are_refused(images: object, folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    rows = rows_of(copy / "transcripts.jsonl")
    rows[0]["turns"][0]["images"] = images
    (copy / "transcripts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(ConfigError, match="line 1, turn 1: images must be a list of strings"):
        export(copy, "preference", tmp_path / "pairs.jsonl")
    run = tmp_path / "run"
    (run / "samples").mkdir(parents=True)
    sample = {**rows_of(folder / "episodes.jsonl")[0], "turns": rows[0]["turns"]}
    (run / "samples" / "0.jsonl").write_text(json.dumps(sample) + "\n")
    with pytest.raises(ConfigError, match="the episode 0:0 is damaged: images"):
        export(run, "preference", tmp_path / "pairs.jsonl")


def test_a_folder_without_a_pair_says_how_to_get_some(tmp_path: Path) -> None:
    kept(RunFolder(tmp_path / "run"), (1, ["left"], 0.5), (1, ["right"], 0.5), (2, ["left"], 1.0))
    with pytest.raises(ConfigError, match=r"run has no pair.*--repeats 8"):
        export(tmp_path / "run", "preference", tmp_path / "pairs.jsonl")
    with pytest.raises(ConfigError, match="a pair needs a worse episode too"):
        export(tmp_path / "run", "preference", tmp_path / "pairs.jsonl", success=True)


def test_a_training_run_has_advantages(tmp_path: Path) -> None:
    turns = [Turn("one?", "", "1", "<action>1</action>", logprobs=(0.0, 0.0), reward=0.5), Turn("two?", "", "2")]
    played = Trajectory(EpisodeSpec(0, 7), GUESS, turns=turns, terminated=True, success=1, instructions="Count.")
    broken = Trajectory(EpisodeSpec(1, 8), GUESS, turns=turns[:1], fault="lost")
    run = RunFolder(tmp_path / "run")
    run.write_samples("iteration-000005", [played, broken], None, [[[0.25, -0.25], []], None])
    run.write_samples("iteration-000010", [played])
    first, second = rows_of(export(tmp_path / "run", "chat", tmp_path / "chat.jsonl")[0])
    assert first["id"] == "iteration-000005:0" and first["advantages"] == [[0.25, -0.25], []]
    assert first["rewards"] == [0.5, 0.0] and second["advantages"] is None
    rules = "Count.\nAnswer format: write the action as <action>...</action>."  # as the completion does
    contents = [message["content"] for message in first["messages"]]
    assert contents == [rules, "one?", "<action>1</action>", "two?", "2"]


def test_a_failed_export_keeps_what_was_there(folder: Path, tmp_path: Path) -> None:
    out, empty = tmp_path / "chat.jsonl", tmp_path / "run"
    out.write_text("before")
    empty.mkdir()
    (empty / "metrics.jsonl").write_text("")
    with pytest.raises(ConfigError, match=r"run has no episode with turns.*--evaluation.every"):
        export(empty, "chat", out)
    (empty / "samples").mkdir()
    (empty / "samples" / "a.jsonl").write_text('{"turns": 3}\n')
    with pytest.raises(ConfigError, match="lacks what an export needs"):
        export(empty, "chat", out)
    (empty / "samples" / "a.jsonl").write_text("{")
    with pytest.raises(ConfigError, match=r"a.jsonl cannot be read: line 1"):
        export(empty, "chat", out)
    assert out.read_text() == "before" and set(tmp_path.iterdir()) == {out, empty}


@pytest.mark.parametrize(
    ("format", "out", "told"),
    [
        ("chat", "a.json", "ends with .jsonl"),
        ("sft", "a", "ends with .jsonl"),
        ("parquet", "a.csv", "ends with .parquet"),
        ("hf", "a.parquet", "a data set is a folder"),
    ],
)
def test_a_wrong_output_is_refused(format: str, out: str, told: str, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=told):
        export(folder, format, tmp_path / out)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("format", "name"), [("sft", "episodes.jsonl"), ("inspect", "results.json"), ("hf", "")])
def test_no_file_of_the_folder_is_overwritten(format: str, name: str, folder: Path) -> None:
    before = {each: each.read_bytes() for each in folder.iterdir()}
    with pytest.raises(ConfigError, match="would be overwritten: pass another --out"):
        export(folder, format, folder / name)
    assert {each: each.read_bytes() for each in folder.iterdir()} == before


def test_a_folder_with_other_files_is_no_data_set(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(ConfigError, match="holds other files: pass a new folder"):
        export(folder, "hf", tmp_path)
    assert (tmp_path / "README.md").read_text() == "mine" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("reward", ["NaN", "1" + "0" * 400])
def test_a_reward_that_json_has_no_number_for_is_refused(reward: str, tmp_path: Path) -> None:
    (tmp_path / "samples").mkdir()
    turn = f'{{"observation": "", "completion": "a", "action": "a", "action_is_valid": true, "reward": {reward}}}'
    row = f'{{"status": "ok", "env": "x", "seed": 1, "success": 1, "score": 1, "returns": 1, "turns": [{turn}]}}'
    (tmp_path / "samples" / "a.jsonl").write_text(row + "\n")
    with pytest.raises(ConfigError, match=r"lacks what an export needs|cannot be read"):
        export(tmp_path, "chat", tmp_path / "chat.jsonl")
    assert not (tmp_path / "chat.jsonl").exists()


def test_parquet_needs_a_package(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyarrow", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match="pip install pyarrow"):
        export(folder, "parquet", tmp_path / "a.parquet")
    assert not list(tmp_path.iterdir())


@pytest.mark.integration
@pytest.mark.parametrize("library", ["pyarrow", "polars"])
def test_tables_hold_the_same(library: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = pytest.importorskip(library)
    if library == "polars":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    expected = rows_of(export(folder, "chat", tmp_path / "chat.jsonl")[0])
    (file,) = export(folder, "parquet", tmp_path / "a.parquet")
    if library == "polars":
        assert reader.read_parquet(file).to_dicts() == expected
        return
    assert importlib.import_module("pyarrow.parquet").read_table(file).to_pylist() == expected
    export(folder, "hf", tmp_path / "set")
    datasets = pytest.importorskip("datasets")
    rows = datasets.load_dataset(str(tmp_path / "set"), split="train", cache_dir=str(tmp_path / "cache"))
    assert list(rows) == expected
