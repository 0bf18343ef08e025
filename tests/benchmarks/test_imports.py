"""Logs of other suites: read as evaluations, bounded, and refused in a sentence where they are broken."""

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from small import agent_of, small_model

from turngym.__main__ import main
from turngym.benchmarks import compare, evaluate, export, load_submission
from turngym.benchmarks.evaluation.imported import as_folder
from turngym.envs.tools.tool_schema import write_call
from turngym.errors import ConfigError, TurngymError

HARBOR_MODELS = "harbor.models.trajectories.trajectory"


def contents(folder: Path) -> list[Any]:
    return [json.loads(path.read_text("utf8")) for path in sorted(folder.iterdir())]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Episodes of a model that keeps its conversation, and the same as ATIF."""
    folder = tmp_path_factory.mktemp("played")
    agent, options = agent_of(small_model(), "conversation"), {"view": "coordinates", "max_turns": 4}
    evaluate("turngym/Sokoban-v0", agent, episodes=3, options=options, out=folder / "own")
    export(folder / "own", "atif", folder / "atif")
    return folder


def test_a_round_trip_through_atif_is_equal(played: Path, tmp_path: Path) -> None:
    with as_folder(played / "atif") as folder:
        again, own = load_submission(folder), load_submission(played / "own")
        assert again.episodes == own.episodes
        assert again.transcripts == own.transcripts
        export(folder, "atif", tmp_path / "again")
    assert [{**each, "session_id": ""} | {"agent": 0} for each in contents(tmp_path / "again")] == [
        {**each, "session_id": ""} | {"agent": 0} for each in contents(played / "atif")
    ]
    assert compare(played / "own", played / "atif").overall.equal == 3


def test_every_sampled_token_has_its_id_and_log_probability(played: Path) -> None:
    steps = [step for each in contents(played / "atif") for step in each["steps"] if step["source"] == "agent"]
    metrics = [step["metrics"] for step in steps]
    assert steps and all(len(each["logprobs"]) == len(each["completion_token_ids"]) > 0 for each in metrics)
    assert all(each["prompt_tokens"] == len(each["prompt_token_ids"]) > 0 for each in metrics)
    first, second = metrics[0], metrics[1]
    known = first["prompt_token_ids"] + first["completion_token_ids"]
    assert second["prompt_token_ids"][: len(known)] == known, "a conversation continues to the token"


@pytest.mark.integration
def test_harbors_own_models_validate_every_file(played: Path) -> None:
    models = pytest.importorskip(HARBOR_MODELS, reason="needs the package harbor on the path (Python 3.12)")
    for each in contents(played / "atif"):
        assert models.Trajectory.model_validate(each).schema_version == "ATIF-v1.8"


FOREIGN: dict[str, Any] = {
    "schema_version": "ATIF-v1.5",
    "agent": {"name": "other", "version": "1"},
    "steps": [
        {"step_id": 1, "source": "user", "message": [{"type": "text", "text": "Fix it."}, {"type": "image"}]},
        {"step_id": 2, "source": "agent", "message": "old", "is_copied_context": True},
        {
            "step_id": 3,
            "source": "agent",
            "message": "I look.",
            "reasoning_content": "Where?",
            "tool_calls": [{"tool_call_id": "a", "function_name": "shell", "arguments": {"command": "ls"}}],
            "observation": {"results": [{"source_call_id": "a", "content": "x.py"}]},
            "metrics": {"completion_token_ids": [4, 5], "logprobs": [-0.5, -0.25]},
        },
        {"step_id": 4, "source": "agent", "message": "Done."},
    ],
}


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), "utf8")
    return path


def read(path: Path) -> Any:
    with as_folder(path, scored=False) as folder:
        return load_submission(folder)


def test_a_log_may_be_the_folder_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "run.json", FOREIGN)
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert len(read(Path("..")).transcripts) == 1


def test_a_trajectory_of_another_agent_is_shown_turn_by_turn(tmp_path: Path) -> None:
    [transcript] = read(write(tmp_path / "run.json", FOREIGN)).transcripts
    first, second = transcript["turns"]
    assert first["observation"] == "Fix it.\n[image]" and second["observation"] == "x.py"
    assert first["action"] == write_call("shell", {"command": "ls"}) and second["action"] == "Done."
    assert first["notes"] == [{"purpose": "reasoning", "text": "Where?"}]
    assert first["completion_ids"] == [4, 5]


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ('{"completion_token_ids": [1, 2], "logprobs": [-1.0]}', "1 log-probabilities for 2 tokens"),
        ('{"completion_token_ids": [1], "logprobs": [NaN]}', "NaN is not a number"),
        ('{"completion_token_ids": [1], "logprobs": [-1e400]}', "too large"),
        ('{"completion_token_ids": [1], "logprobs": ["x"]}', "must be finite numbers"),
        ('{"completion_token_ids": [1.5]}', "must be whole numbers"),
    ],
)
def test_numbers_that_are_none_are_refused(metrics: str, message: str, tmp_path: Path) -> None:
    text = json.dumps(FOREIGN).replace('{"completion_token_ids": [4, 5], "logprobs": [-0.5, -0.25]}', metrics)
    (tmp_path / "run.json").write_text(text, "utf8")
    with pytest.raises(ConfigError, match=message):
        read(tmp_path / "run.json")


def trial(job: Path, number: int, reward: float | None) -> None:
    folder = job / f"task-{number}__x"
    result: dict[str, Any] = {"task_name": f"org/task-{number}", "agent_info": {"name": "terminus", "version": "2"}}
    result["verifier_result"] = None if reward is None else {"rewards": {"reward": reward}}
    if reward is None:
        result["exception_info"] = {"exception_type": "TimeoutError", "exception_message": "too slow"}
    result["agent_result"] = {"n_input_tokens": 10, "n_output_tokens": 2, "cost_usd": 0.5}
    write(folder / "result.json", result)
    write(folder / "config.json", {})
    write(folder / "agent" / "trajectory.json", FOREIGN)


def test_two_jobs_of_harbor_are_compared_task_by_task(tmp_path: Path) -> None:
    for job, rewards in (("a", (0.0, 1.0, None)), ("b", (1.0, 1.0, 0.5))):
        for number, reward in enumerate(rewards):
            trial(tmp_path / job, number, reward)
    found = compare(tmp_path / "a", tmp_path / "b")
    assert (found.overall.gained, found.overall.equal) == (2, 1)
    rows = read(tmp_path / "a").episodes
    assert [row["status"] for row in rows] == ["ok", "ok", "env_error"]
    assert rows[0]["seats"]["player_0"]["cost"] == 0.5
    outside = write(tmp_path / "secret.json", {**FOREIGN, "steps": [{"source": "agent", "message": "secret"}]})
    file = tmp_path / "a" / "task-1__x" / "agent" / "trajectory.json"
    file.unlink()
    file.symlink_to(outside)
    assert "secret" not in json.dumps(read(tmp_path / "a").transcripts), "no link is followed"


def test_traces_of_verifiers_keep_the_sampled_tokens(tmp_path: Path) -> None:
    nodes: list[dict[str, Any]] = [
        {"message": {"role": "user", "content": "2 + 2?"}},
        {"message": {"role": "assistant"}, "token_ids": [9, 1, 2], "mask": [False, True, True], "logprobs": [-1, -2]},
    ]
    rewards = {"exact": {"score": 1.0, "weight": 0.5}, "short": {"score": 0.5, "weight": 1.0}}
    line = {"task": {"id": "sum"}, "ok": True, "errors": [], "traces": [{"nodes": nodes, "rewards": rewards}]}
    (tmp_path / "traces.jsonl").write_text(json.dumps(line) + "\n", "utf8")
    found = read(tmp_path / "traces.jsonl")
    assert found.episodes[0]["score"] == 1.0 and found.episodes[0]["block_id"] == "sum"
    assert found.transcripts[0]["turns"][0]["completion_ids"] == [1, 2]
    nodes[1]["logprobs"] = [-1]
    (tmp_path / "traces.jsonl").write_text(json.dumps(line) + "\n", "utf8")
    with pytest.raises(ConfigError, match="1 log-probabilities for 2 tokens"):
        read(tmp_path)


@pytest.mark.parametrize("name", ["log.eval", "log.json"])
def test_our_own_inspect_log_is_read_back(name: str, played: Path, tmp_path: Path) -> None:
    export(played / "own", "inspect", tmp_path / name)
    found, own = read(tmp_path / name), load_submission(played / "own")
    assert [(row["success"], row["score"], row["length"]) for row in found.episodes] == [
        (row["success"], row["score"], row["length"]) for row in own.episodes
    ]
    assert main(["view", str(tmp_path / name), "--out", str(tmp_path / "page.html")]) == 0


def zip_of(path: Path, content: bytes, method: int | None = None) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("header.json", json.dumps({"version": 2, "eval": {"model": "m", "task": "t"}}))
        file.writestr("samples/1_epoch_1.json", content)
    if method is not None:  # of every member, in its local header and in the table at the end
        raw = path.read_bytes()
        for mark, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
            parts = raw.split(mark)
            shift = offset - 4
            raw = mark.join([parts[0], *(p[:shift] + method.to_bytes(2, "little") + p[shift + 2 :] for p in parts[1:])])
        path.write_bytes(raw)
    return path


def test_a_zip_that_unpacks_to_too_much_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unpacks to more than 33,554,432 bytes: not read"):
        read(zip_of(tmp_path / "bomb.eval", b" " * (33 * 2**20)))
    with pytest.raises(ConfigError, match="is not a zip that can be read"):
        (tmp_path / "bad.eval").write_bytes(b"PK\x03\x04 nothing")
        read(tmp_path / "bad.eval")


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python reads Zstandard itself")
def test_zstandard_is_read_with_its_package_or_named(tmp_path: Path) -> None:
    with pytest.raises(TurngymError, match=r"packed with Zstandard.*pip install zstandard|cannot be unpacked"):
        read(zip_of(tmp_path / "z.eval", b"{}", 93))


def test_a_log_of_another_version_is_named(tmp_path: Path) -> None:
    content = {"version": 1, "eval": {"model": "m", "task": "t"}, "samples": []}
    with pytest.raises(ConfigError, match="has version 1 of Inspect AI's logs; 2 is read"):
        read(write(tmp_path / "log.json", content))


def test_a_leaderboard_ranks_logs_on_the_same_tasks_and_says_what_it_does_not_know(
    played: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = tmp_path / "logs"
    for job, rewards in (("a", (0.0, 1.0, 0.0)), ("b", (1.0, 1.0, 1.0)), ("c", (1.0, 1.0))):
        for number, reward in enumerate(rewards):
            trial(logs / job, number, reward)
    (logs / "bad.eval").write_bytes(b"PK\x03\x04 nothing")
    outside = tmp_path / "outside"
    trial(outside, 0, 1.0)
    plain = write(tmp_path / "plain.json", FOREIGN)
    (logs / "link").symlink_to(outside)
    call = ["leaderboard", str(logs), str(plain), str(played / "atif"), str(played / "own"), "--json", "--replay", "0"]
    assert main([*call, "--out", str(tmp_path / "page.html")]) == 0
    board = json.loads(capsys.readouterr().out)
    tables = [([Path(row["folder"]).name for row in each["rows"]], each) for each in board["tables"]]
    assert sorted(names for names, _ in tables) == [["atif"], ["b", "a"], ["c"], ["own"]], "none is mixed"
    rows = {Path(row["folder"]).name: row for _, each in tables for row in each["rows"]}
    assert [rows[name]["status"] for name in ("a", "b", "atif")] == ["log"] * 3 and rows["own"]["status"] != "log"
    assert {"settings", "split", "rules"} < set(rows["b"]["unknown"]) and "metadata" not in rows["b"]
    assert rows["b"]["mean"]["value"] == 1.0 and rows["b"]["ranks"] == [1, 2] and rows["b"]["seconds"] is None
    left_out = {Path(each["folder"]).name: each["reason"] for each in board["left_out"]}
    assert left_out.keys() == {"bad.eval", "plain.json"} and "is not a zip that can be read" in left_out["bad.eval"]
    assert "has episodes without a score" in left_out["plain.json"]
    page = (tmp_path / "page.html").read_text("utf8")
    assert "tasks count as the same where their names are" in page and "read from logs" in page
