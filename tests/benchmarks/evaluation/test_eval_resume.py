"""A killed evaluation continues where it was: no finished episode is played again, and the results are equal."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from chat_servers import Body, Reply, chaotic, chat_server

from turngym.__main__ import main
from turngym.benchmarks.evaluation.folder import EvaluationFolder
from turngym.errors import CheckpointError, ConfigError, RunFolderExists

STALLING_AGENT = """
import time
from pathlib import Path
from turngym.agents.players.random import RandomAgent

class Stalling(RandomAgent):
    def __init__(self, settings):
        super().__init__(settings.seed)
    def act(self, requests):
        while Path("stall").exists() and is_over(*Path("stall").read_text().split()):
            time.sleep(0.01)
        return super().act(requests)

def is_over(file, after):
    return Path(file).exists() and Path(file).read_bytes().count(b"\\n") >= int(after)
"""
CONFIG = {"suite": {"name": "s"}, "environments": [{"label": "a", "seeds": [1, 2]}], "sampling": {"seed": 0}}


def lines(file: Path) -> list[bytes]:
    """Return the whole lines of a file that may be growing."""
    return file.read_bytes().split(b"\n")[:-1] if file.exists() else []


def killed(words: list[str], out: Path, after: int, folder: Path) -> list[bytes]:
    """Start an evaluation and kill it once so many episodes are finished; return their lines.

    The file ``stall`` in the folder tells whoever plays to stop there, so that the kill is never too late.
    """
    (folder / "stall").write_text(f"{out / 'episodes.jsonl'} {after}")
    command = [sys.executable, "-m", "turngym", "eval", *words, "--out", str(out), "--resume"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        while len(lines(out / "episodes.jsonl")) < after:
            assert process.poll() is None, process.stderr.read() if process.stderr else ""
            time.sleep(0.002)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        if process.stderr:
            process.stderr.close()
        (folder / "stall").unlink()
    assert process.returncode == -signal.SIGKILL and not (out / "results.json").exists()
    return lines(out / "episodes.jsonl")


def timeless(out: Path) -> tuple[Any, list[Any], bytes]:
    """Return results, episodes and transcripts without what a clock told."""
    results = json.loads((out / "results.json").read_text("utf8"))
    assert results["usage"].pop("latency") > 0
    rows = [json.loads(line) for line in lines(out / "episodes.jsonl")]
    for row in rows:
        row.pop("started")
        assert row["seats"]["player_0"].pop("latency") > 0
    return results, rows, (out / "transcripts.jsonl").read_bytes()


def check_two_kills(words: list[str], total: int, tmp_path: Path) -> None:
    """Play once without and once with two kills, and compare."""
    whole, out = tmp_path / "whole", tmp_path / "killed"
    assert main(["eval", *words, "--out", str(whole)]) == 0
    first = killed(words, out, total // 5, tmp_path)
    second = killed(words, out, len(first) + total // 4, tmp_path)
    assert total > len(second) > len(first) and second[: len(first)] == first
    assert main(["eval", *words, "--out", str(out), "--resume"]) == 0
    assert timeless(out) == timeless(whole)
    # each line tells how long its episode took: a second game would not take the same time to the nanosecond
    assert set(second) <= set(lines(out / "episodes.jsonl"))
    assert len(lines(out / "episodes.jsonl")) == len(lines(whole / "episodes.jsonl")) == total


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_two_kills_change_nothing_with_a_chaotic_server(tmp_path: Path) -> None:
    def stalling(body: Body) -> Reply:
        while (stall := tmp_path / "stall").exists():
            file, after = stall.read_text().split()
            if len(lines(Path(file))) < int(after):
                break
            time.sleep(0.01)
        return chaotic(body)

    with chat_server(stalling) as server:
        words = ["turngym/FrozenLake-v0", "--agent", f"openai:m@{server.url}", "--episodes", "20", "--repeats", "2"]
        words += ["--num-envs", "4", "--server", "wait=0.001", "--server", "retries=2"]
        check_two_kills(words, 40, tmp_path)
        results = json.loads((tmp_path / "killed" / "results.json").read_text("utf8"))
        assert results["usage"]["lost"] > 0 and results["usage"]["retries"] > 0 and results["complete"]
        assert "pass@2" in results["environments"]["turngym/FrozenLake-v0"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_two_kills_change_nothing_in_a_suite_with_baselines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stalling_agents.py").write_text(STALLING_AGENT)
    monkeypatch.syspath_prepend(tmp_path)
    words = [
        "textgames",
        "--agent",
        "module:stalling_agents.Stalling",
        "--episodes",
        "1",
        "--num-envs",
        "2",
        "--baselines",
    ]
    check_two_kills(words, 19, tmp_path)
    assert (tmp_path / "killed" / "baselines.jsonl").exists()


INTERRUPTED_AGENT = """
from turngym.agents.players.random import RandomAgent

class Tired(RandomAgent):
    turns = 12
    def __init__(self, settings):
        super().__init__(settings.seed)
    def act(self, requests):
        Tired.turns -= 1
        if Tired.turns == 0:
            raise KeyboardInterrupt
        return super().act(requests)
"""


def test_an_interrupt_keeps_what_is_finished_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tired_agents.py").write_text(INTERRUPTED_AGENT)
    monkeypatch.syspath_prepend(tmp_path)
    words = ["eval", "turngym/FrozenLake-v0", "--agent", "module:tired_agents.Tired", "--episodes", "8"]
    words += ["--num-envs", "2"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 130
    assert f"{tmp_path / 'out'} keeps the finished episodes: --resume continues" in capsys.readouterr().err
    kept = lines(tmp_path / "out" / "episodes.jsonl")
    assert 0 < len(kept) < 8
    assert main([*words, "--out", str(tmp_path / "out"), "--resume"]) == 0
    assert main([*words, "--out", str(tmp_path / "whole")]) == 0
    assert timeless(tmp_path / "out") == timeless(tmp_path / "whole")
    assert set(kept) <= set(lines(tmp_path / "out" / "episodes.jsonl"))


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    """Give the folder of a finished evaluation."""
    out = tmp_path / "out"
    assert main(["eval", "turngym/FrozenLake-v0", "--agent", "random", "--episodes", "6", "--out", str(out)]) == 0
    return out


def resumed(out: Path, *more: str) -> int:
    words = ["eval", "turngym/FrozenLake-v0", "--agent", "random", "--episodes", "6", "--out", str(out), "--resume"]
    return main([*words, *more])


def test_a_finished_evaluation_is_shown_again_and_not_played_again(finished: Path) -> None:
    before = {file.name: file.read_bytes() for file in finished.iterdir() if file.name != "metadata.json"}
    assert resumed(finished) == 0
    assert {name: (finished / name).read_bytes() for name in before} == before


@pytest.mark.parametrize("keep", [0, 1, 4])
def test_what_is_missing_is_played_and_a_line_cut_short_counts_as_missing(finished: Path, keep: int) -> None:
    before = timeless(finished)
    for name in ("episodes.jsonl", "transcripts.jsonl"):
        whole = (finished / name).read_bytes().splitlines(keepends=True)
        (finished / name).write_bytes(b"".join(whole[:keep]) + whole[keep][:40])
    (finished / "results.json").unlink()
    assert resumed(finished) == 0
    assert timeless(finished) == before


def test_an_episode_without_its_transcript_is_played_again(finished: Path) -> None:
    """A power failure can take the end of one file and leave that of the other."""
    before = timeless(finished)
    whole = (finished / "transcripts.jsonl").read_bytes().splitlines(keepends=True)
    (finished / "transcripts.jsonl").write_bytes(b"".join(whole[1:]))
    assert resumed(finished) == 0
    assert timeless(finished) == before


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--episodes", "5"], "has environments.0.seeds ["),
        (["--seed", "1"], "has environments.0.seeds ["),
        (
            ["--repeats", "2"],
            "has repeats 1, not 2: resume it as it was started, or pass another folder as --out.",
        ),
        (["--agent", "expert"], 'has agent "random", not "expert"'),
        (["--temperature", "0.5"], "has sampling.temperature 0.0, not 0.5"),
        (["--option", "slippery=true"], "has environments.0.label"),
    ],
)
def test_another_evaluation_is_not_mixed_into_the_folder(
    finished: Path, more: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {file.name: file.read_bytes() for file in finished.iterdir()}
    capsys.readouterr()
    assert resumed(finished, *more) == 2
    assert message in capsys.readouterr().err
    assert {file.name: file.read_bytes() for file in finished.iterdir()} == before


def test_how_episodes_are_run_may_change_between_runs(finished: Path) -> None:
    assert resumed(finished, "--num-envs", "2", "--schedule", "continuous", "--server", "retries=9") == 0


def test_a_folder_with_something_else_is_no_evaluation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert resumed(tmp_path) == 2
    assert f"{tmp_path} holds no evaluation to resume" in capsys.readouterr().err
    assert main(["eval", "turngym/FrozenLake-v0", "--agent", "random", "--resume"]) == 2
    assert "--resume continues with what a folder holds: pass the folder as --out." in capsys.readouterr().err


def row(task: int, **more: Any) -> dict[str, Any]:
    return {"label": "a", "task": task, "attempt": 0, **more}


def test_two_processes_do_not_write_one_folder(tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="this system has no locks of this kind")
    first = EvaluationFolder(tmp_path / "out", CONFIG, {})
    with pytest.raises(RunFolderExists, match="is being written by another evaluation"):
        EvaluationFolder(tmp_path / "out", CONFIG, {}, resume=True)
    first.close()
    EvaluationFolder(tmp_path / "out", CONFIG, {}, resume=True).close()


def test_a_damaged_line_in_the_middle_is_an_error_and_stays(tmp_path: Path) -> None:
    folder = EvaluationFolder(tmp_path / "out", CONFIG, {})
    for task in range(2):
        folder.add("", row(task), row(task))
    folder.close()
    file = tmp_path / "out" / "episodes.jsonl"
    damaged = file.read_bytes().replace(b'"task": 0', b'"task": ?')
    file.write_bytes(damaged)
    with pytest.raises(CheckpointError, match=r"line 1 of .*episodes.jsonl is not an episode: the file is damaged"):
        EvaluationFolder(tmp_path / "out", CONFIG, {}, resume=True)
    assert file.read_bytes() == damaged


def test_what_a_player_says_comes_back_as_it_was(tmp_path: Path) -> None:
    odd = "two\nlines, \u2028 a separator, \udc80 half a pair, \x00 and ☃"
    folder = EvaluationFolder(tmp_path / "out", CONFIG, {"started": "then"})
    folder.add("", row(0, text=odd), row(0, text=odd))
    folder.add("random", row(0, text="base"))
    folder.close()
    again = EvaluationFolder(tmp_path / "out", CONFIG, {"started": "now"}, resume=True)
    assert again.of("") == {("a", 0, 0): row(0, text=odd)} and again.metadata == {"started": "then"}
    assert again.of("random")["a", 0, 0]["text"] == "base"
    again.add("", row(1), row(1))
    again.finish([("a", 1, 0), ("a", 0, 0), ("a", 7, 0)], {}, {})
    again.close()
    assert [json.loads(line)["task"] for line in lines(tmp_path / "out" / "transcripts.jsonl")] == [1, 0]


def test_what_a_kill_left_before_the_first_file_was_whole_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / f".config.json.{os.getpid()}.tmp").write_text("{")
    EvaluationFolder(tmp_path, CONFIG, {}).close()
    with pytest.raises(RunFolderExists, match=r"--resume .* continues with the evaluation in it"):
        EvaluationFolder(tmp_path, CONFIG, {})
    with pytest.raises(ConfigError, match=r"has suite\.name"):
        EvaluationFolder(tmp_path, {**CONFIG, "suite": {"name": "t"}}, {}, resume=True)
