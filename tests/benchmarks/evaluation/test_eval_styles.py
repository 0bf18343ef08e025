"""Evaluations in a style of prompting, and the best of several attempts: what is played, kept, counted and checked."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_servers import Body, ChatServerForTests, Reply, chat_server

from turngym.__main__ import main
from turngym.benchmarks.verification.verify import verify

GUESS = "turngym/GuessTheNumber-v0"
WORDS = ["--option", "high=8", "--option", "max_turns=4", "--episodes", "6", "--server", "wait=0.001"]


def learner(body: Body) -> Reply:
    """Guess one number for as long as the game continues, and in each try the one after those that were noted."""
    system, last = body["messages"][0]["content"], body["messages"][-1]["content"]
    if "did not solve the task" in last:
        number = re.findall(r"<action>(\d+)</action>", last)[-1]
        return Reply(f"It was not {number}.", usage=(70, 6))
    noted = re.findall(r"It was not (\d+)\.", system)
    return Reply(f"<action>{len(noted) + 1}</action>", usage=(30, 4))


@pytest.fixture
def server() -> Iterator[ChatServerForTests]:
    with chat_server(learner) as running:
        yield running


def evaluation(server: ChatServerForTests, out: Path, *words: str) -> dict[str, Any]:
    """Play, and return the results of the only environment."""
    agent = ["--agent", f"openai:model@{server.url}"]
    assert main(["eval", GUESS, *agent, *WORDS, "--out", str(out), *words]) == 0
    results = json.loads((out / "results.json").read_text())
    (numbers,) = results["environments"].values()
    return {**results, "numbers": numbers}


def rows_of(out: Path, name: str = "episodes") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / f"{name}.jsonl").read_text("utf8").splitlines()]


def timeless(out: Path) -> list[Any]:
    rows = rows_of(out)
    for row in rows:
        del row["started"], row["seats"]["player_0"]["latency"]
    return rows


REFLEXION = ["--style", "reflexion:keep=9", "--repeats", "4"]


def test_reflexion_solves_more_with_every_try(server: ChatServerForTests, tmp_path: Path) -> None:
    found = evaluation(server, tmp_path / "out", *REFLEXION)
    rows = rows_of(tmp_path / "out")
    assert len(rows) == 24, "every try is played and kept"
    by_task: dict[int, list[int]] = {}
    for row in sorted(rows, key=lambda row: row["attempt"]):
        by_task.setdefault(row["task"], []).append(row["success"])
    for k in range(1, 5):
        share = sum(any(tries[:k]) for tries in by_task.values()) / 6
        assert found["numbers"][f"solved_by_try_{k}"]["value"] == pytest.approx(share)
    assert found["numbers"]["solved_by_try_4"]["value"] > found["numbers"]["solved_by_try_1"]["value"]
    assert not any(name.startswith(("pass@", "pass^")) for name in found["numbers"]), "tries that learn are not draws"


def test_the_first_action_of_a_try_follows_from_the_failures_before(server: ChatServerForTests, tmp_path: Path) -> None:
    evaluation(server, tmp_path / "out", *REFLEXION)
    for row in rows_of(tmp_path / "out"):
        earlier = [r for r in rows_of(tmp_path / "out") if r["task"] == row["task"] and r["attempt"] < row["attempt"]]
        assert set(row["actions"]) == {str(1 + sum(not r["success"] for r in earlier))}


def test_reflections_are_counted_and_kept_with_the_try_that_they_are_for(
    server: ChatServerForTests, tmp_path: Path
) -> None:
    found = evaluation(server, tmp_path / "out", *REFLEXION)
    rows, told = rows_of(tmp_path / "out"), rows_of(tmp_path / "out", "transcripts")
    notes = [[note for turn in each["turns"] for note in turn.get("notes", [])] for each in told]
    failed = {(row["task"], row["attempt"]) for row in rows if not row["success"]}
    for row, own in zip(rows, notes, strict=True):
        is_due = (row["task"], row["attempt"] - 1) in failed
        assert [note["purpose"] for note in own] == ["reflection"] * is_due
        seat = row["seats"]["player_0"]
        assert (seat["calls"], seat["tokens_in"]) == (row["length"] + is_due, 30 * row["length"] + 70 * is_due)
    assert found["usage"]["calls"] == len(server.requests)


def test_a_reflexion_that_was_cut_short_goes_on_as_if_it_had_not_been(
    server: ChatServerForTests, tmp_path: Path
) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    evaluation(server, whole, *REFLEXION)
    evaluation(server, cut, *REFLEXION)
    for left in (20, 9, 3):
        for name in ("episodes", "transcripts"):  # what a kill leaves: episodes in the order in which they ended
            lines = [json.loads(line) for line in (cut / f"{name}.jsonl").read_text().splitlines()]
            lines.sort(key=lambda row: (row["attempt"], row["task"]))
            (cut / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines[:left]))
        (cut / "results.json").unlink()
        evaluation(server, cut, *REFLEXION, "--resume")
        assert timeless(cut) == timeless(whole)
        assert (cut / "transcripts.jsonl").read_bytes() == (whole / "transcripts.jsonl").read_bytes()


def test_without_a_folder_tries_are_remembered_too(
    server: ChatServerForTests, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with_folder = evaluation(server, tmp_path / "out", *REFLEXION)
    capsys.readouterr()
    agent = ["--agent", f"openai:model@{server.url}"]
    assert main(["eval", GUESS, *agent, *WORDS, *REFLEXION, "--json"]) == 0
    without = json.loads(capsys.readouterr().out)
    assert without["environments"] == with_folder["environments"]


def test_a_single_try_of_reflexion_is_refused(server: ChatServerForTests, tmp_path: Path) -> None:
    agent = ["--agent", f"openai:model@{server.url}"]
    assert main(["eval", GUESS, *agent, "--style", "reflexion", "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists() and not server.requests


@pytest.mark.parametrize("style", ["react", "summary:budget=250,keep=1", "reflexion", "critic:by=expert"])
def test_a_submission_tells_its_style_and_is_accepted(style: str, server: ChatServerForTests, tmp_path: Path) -> None:
    evaluation(server, tmp_path / "out", "--style", style, "--repeats", "2")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["sampling"]["style"] == style and config["style"]["name"] == style.partition(":")[0]
    found = verify(tmp_path / "out", replay=1.0)
    assert found.is_accepted and found.label == "replayed", found.findings


@pytest.mark.parametrize("change", ["texts", "options", "name", "gone", "shape"])
def test_a_style_that_was_changed_afterwards_is_found(change: str, server: ChatServerForTests, tmp_path: Path) -> None:
    out = tmp_path / "out"
    evaluation(server, out, "--style", "summary", "--repeats", "2")
    config = json.loads((out / "config.json").read_text())
    if change == "texts":
        config["style"]["texts"]["task"] = "Think."
    elif change == "options":
        config["style"]["options"]["keep"] = 7
    elif change == "name":
        config["sampling"]["style"] = "react"
    elif change == "gone":
        del config["style"]
    else:
        config["style"] = 3
    (out / "config.json").write_text(json.dumps(config))
    assert "prompt" in {finding.name for finding in verify(out, replay=0).findings}


def test_another_style_is_another_evaluation(
    server: ChatServerForTests, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluation(server, tmp_path / "out", "--style", "react")
    agent = ["--agent", f"openai:model@{server.url}"]
    words = [*WORDS, "--style", "summary", "--out", str(tmp_path / "out"), "--resume"]
    assert main(["eval", GUESS, *agent, *words]) == 2
    assert "style" in capsys.readouterr().err


# The best of several attempts.


def guesser(body: Body) -> Reply:
    """Guess some number that depends on the request, and judge well a try that ends with the right one."""
    system, last = body["messages"][0]["content"], body["messages"][-1]["content"]
    if "Judge whether" in system:
        return Reply(f"Score: {9 if 'correct' in last.lower() else 2}", usage=(11, 2))
    return Reply(f"<action>{1 + body['seed'] % 8}</action>", usage=(30, 4))


@pytest.fixture
def guessing() -> Iterator[ChatServerForTests]:
    with chat_server(guesser) as running:
        yield running


@pytest.mark.parametrize("verifier", ["progress", "model"])
def test_the_chosen_attempt_is_the_best_scored_one(verifier: str, guessing: ChatServerForTests, tmp_path: Path) -> None:
    found = evaluation(guessing, tmp_path / "out", "--best-of", "3", "--verifier", verifier)
    rows = rows_of(tmp_path / "out")
    assert len(rows) == 18, "all of them are kept"
    picked, oracle = [], []
    for task in range(6):
        own = sorted((row for row in rows if row["task"] == task), key=lambda row: row["attempt"])
        scores = [row["verifier"]["score"] for row in own]
        picked.append(own[scores.index(max(scores))]["success"])
        oracle.append(max(row["success"] for row in own))
    numbers = found["numbers"]
    mean = sum(row["success"] for row in rows) / 18
    assert numbers["chosen_of_3"]["value"] == pytest.approx(sum(picked) / 6)
    assert numbers["oracle_of_3"]["value"] == pytest.approx(sum(oracle) / 6) == numbers["pass@3"]["value"]
    assert numbers["mean_of_3"]["value"] == pytest.approx(mean) == numbers["success"]["value"]
    assert numbers["gain_of_3"]["value"] == pytest.approx(sum(picked) / 6 - mean)
    assert sum(picked) == sum(oracle) and 0 < mean < sum(oracle) / 6, "a good verifier, and attempts that differ"
    assert found["verifier"]["name"] == verifier
    assert found["verifier"]["usage"]["calls"] == (18 if verifier == "model" else 0)
    assert verify(tmp_path / "out", replay=1.0).is_accepted


def test_a_verifier_never_sees_how_a_try_ended(
    guessing: ChatServerForTests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_verifiers.py").write_text(
        "class Curious:\n"
        "    def __init__(self, settings):\n"
        "        pass\n"
        "    def score(self, trajectory):\n"
        "        assert trajectory.success == -1 and trajectory.reward_sum == 0\n"
        "        assert trajectory.score != trajectory.score and not trajectory.terminated\n"
        "        return len(trajectory.turns)\n"
        "class Blank:\n"
        "    def __init__(self, settings):\n"
        "        pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    try:
        name = "module:my_verifiers.Curious"
        evaluation(guessing, tmp_path / "out", "--best-of", "2", "--verifier", name)
        assert all(row["verifier"]["score"] == row["length"] for row in rows_of(tmp_path / "out"))
        words = ["--best-of", "2", "--verifier", "module:my_verifiers.Blank", "--agent", "random"]
        assert main(["eval", GUESS, *words]) == 2
    finally:
        sys.modules.pop("my_verifiers", None)


def test_scores_that_were_changed_are_found(guessing: ChatServerForTests, tmp_path: Path) -> None:
    out = tmp_path / "out"
    evaluation(guessing, out, "--best-of", "3", "--verifier", "progress")
    rows = rows_of(out)
    solved = {(row["task"], row["attempt"]) for row in rows if row["success"]}

    def favour(row: dict[str, Any]) -> dict[str, Any]:
        row["verifier"]["score"] = -float((row["task"], row["attempt"]) in solved)
        return row

    (out / "episodes.jsonl").write_text("".join(json.dumps(favour(row)) + "\n" for row in rows))
    assert "aggregate" in {finding.name for finding in verify(out, replay=0).findings}


@pytest.mark.parametrize("change", [3, {}, {"score": "x", "usage": {}}, {"score": 1.0}])
def test_scores_of_a_wrong_shape_are_found(change: Any, guessing: ChatServerForTests, tmp_path: Path) -> None:
    out = tmp_path / "out"
    evaluation(guessing, out, "--best-of", "2", "--verifier", "progress")
    rows = rows_of(out)
    rows[2]["verifier"] = change
    (out / "episodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert {finding.name for finding in verify(out, replay=0).findings} == {"schema"}


def test_a_verifier_that_was_paid_otherwise_is_found(guessing: ChatServerForTests, tmp_path: Path) -> None:
    out = tmp_path / "out"
    evaluation(guessing, out, "--best-of", "2", "--verifier", "model")
    results = json.loads((out / "results.json").read_text())
    results["verifier"]["usage"]["tokens_in"] -= 1
    (out / "results.json").write_text(json.dumps(results))
    assert {finding.name for finding in verify(out, replay=0).findings} == {"usage"}


@pytest.mark.parametrize("words", [["--best-of", "3"], ["--verifier", "progress"], ["--best-of", "1"]])
def test_both_words_go_together(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", GUESS, "--agent", "random", *words]) == 2
    assert "--best-of" in capsys.readouterr().err


def test_a_model_that_asks_none_cannot_judge(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", GUESS, "--agent", "random", "--best-of", "2", "--verifier", "model"]) == 2
    assert "model:openai:MODEL@URL" in capsys.readouterr().err
