"""What an evaluation counts and shows: usage, repeats, a time budget that hides nothing, and a live table."""

import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_servers import Reply, chaotic, chat_server

from turngym.__main__ import main
from turngym.agents.episodes.rollout import rollout
from turngym.agents.players import make_agent
from turngym.agents.trajectory import EpisodeSpec
from turngym.agents.usage import Usage, total
from turngym.benchmarks.cli.terminal.evaluation import LiveTable, usage_text
from turngym.benchmarks.evaluation.plan import Execution, Plan
from turngym.benchmarks.evaluation.records import Evaluation, results
from turngym.benchmarks.evaluation.run import EvaluationRun, Watcher
from turngym.benchmarks.suites import Suite, SuiteEntry
from turngym.envs.vector import make_vec
from turngym.terminal.console import Console

LAKE = "turngym/FrozenLake-v0"
HANOI = "turngym/TowerOfHanoi-v0"
KEY = "a-key-that-nobody-may-see"


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf8").splitlines()]


def small_plan(repeats: int = 1) -> Plan:
    entries = (SuiteEntry(LAKE, episodes=4), SuiteEntry(HANOI, {"discs": 2, "start": "random"}, episodes=3))
    suite = Suite("small", 1, "Two.", entries)
    return Plan(suite, tuple(entry.find_seeds() for entry in entries), repeats)


def played(plan: Plan, agent: str = "random", **options: Any) -> Evaluation:
    return EvaluationRun(plan, make_agent(agent), agent, **options).run()


def test_a_chaotic_server_costs_no_episode_and_every_call_is_in_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TURNGYM_API_KEY", KEY)
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"m": {"input": 2.0, "output": 8.0}}))
    out = tmp_path / "out"
    with chat_server(chaotic) as server:
        words = ["eval", LAKE, "--agent", f"openai:m@{server.url}", "--episodes", "25", "--out", str(out)]
        settings = ["retries=2", "wait=0.001", "concurrency=8", f"prices={prices}"]
        assert main([*words, *[word for setting in settings for word in ("--server", setting)]]) == 0
    episodes = lines_of(out / "episodes.jsonl")
    seats = [episode["seats"]["player_0"] for episode in episodes]
    found = json.loads((out / "results.json").read_text("utf8"))
    assert len(episodes) == found["environments"][LAKE]["success"]["n_games"] == 25 and found["complete"]
    turns = sum(episode["length"] for episode in episodes)
    calls = len(server.requests)
    assert sum(seat["calls"] for seat in seats) == found["usage"]["calls"] == calls
    assert sum(seat["retries"] for seat in seats) == found["usage"]["retries"] == calls - turns > 0
    assert [episode["status"] == "agent_error" for episode in episodes] == [seat["lost"] > 0 for seat in seats]
    assert 0 < sum(seat["lost"] for seat in seats) == found["usage"]["lost"] < turns
    for key in ("tokens_in", "tokens_out", "unmetered", "latency", "cost"):
        assert found["usage"][key] == pytest.approx(sum(seat[key] for seat in seats)) and found["usage"][key] > 0
    money = (2.0 * found["usage"]["tokens_in"] + 8.0 * found["usage"]["tokens_out"]) / 1e6
    assert found["usage"]["cost"] == pytest.approx(money)
    kinds = {kind for seat in seats for kind in seat["failures"]}
    assert {kind: sum(seat["failures"].get(kind, 0) for seat in seats) for kind in kinds} == found["usage"]["failures"]
    assert found["environments"][LAKE]["faults"]["value"] == 0, "the environment did nothing wrong"
    assert all(KEY.encode() not in file.read_bytes() for file in out.iterdir())
    config = json.loads((out / "config.json").read_text("utf8"))
    assert config["agent_details"]["request"] == {"model": "m", "temperature": 0.0, "top_p": 1.0, "max_tokens": 256}
    assert config["sampling"]["server"]["retries"] == 2
    shown = " ".join(capsys.readouterr().out.split())
    assert "turns without an answer" in shown and "the first http_500: oops" in shown


def test_without_any_answer_there_is_no_score(capsys: pytest.CaptureFixture[str]) -> None:
    with chat_server(lambda body: Reply(status=401, raw=b"no such key")) as server:
        assert main(["eval", LAKE, "--agent", f"openai:m@{server.url}", "--episodes", "2"]) == 2
    out, err = capsys.readouterr()
    assert "success" not in out and "no such key" in err and "Traceback" not in err


def test_repeats_play_each_task_again_and_give_pass_at_k(tmp_path: Path) -> None:
    words = ["eval", LAKE, "--agent", "random", "--episodes", "5"]
    assert main([*words, "--out", str(tmp_path / "once")]) == 0
    assert main([*words, "--repeats", "3", "--out", str(tmp_path / "thrice")]) == 0
    rows = lines_of(tmp_path / "thrice" / "episodes.jsonl")
    assert [(row["task"], row["attempt"]) for row in rows] == [(t, a) for t in range(5) for a in range(3)]
    assert len({row["seed"] for row in rows}) == len({row["instance"] for row in rows}) == 5
    first = [row["actions"] for row in rows if row["attempt"] == 0]
    assert first == [row["actions"] for row in lines_of(tmp_path / "once" / "episodes.jsonl")], "repeats only add"
    assert any(rows[i]["actions"] != rows[i + 1]["actions"] for i in range(0, 15, 3)), "another attempt, another draw"
    found = json.loads((tmp_path / "thrice" / "results.json").read_text("utf8"))
    numbers = found["environments"][LAKE]
    by_task = [[row["success"] for row in rows if row["task"] == task] for task in range(5)]
    assert numbers["pass@3"]["value"] == sum(map(any, by_task)) / 5
    assert numbers["pass^3"]["value"] == sum(map(all, by_task)) / 5
    assert numbers["pass@1"]["value"] == pytest.approx(numbers["success"]["value"])
    assert numbers["success"]["n_games"] == 15 and numbers["success"]["n_blocks"] == 5 and found["repeats"] == 3
    assert "pass@1" not in json.loads((tmp_path / "once" / "results.json").read_text("utf8"))["environments"][LAKE]


def allow(count: int) -> Callable[[], bool]:
    """Return a function that says yes so many times."""
    left = [count]

    def may_begin() -> bool:
        left[0] -= 1
        return left[0] >= 0

    return may_begin


def test_episodes_that_may_not_begin_are_left_out_and_those_begun_are_finished() -> None:
    vector = make_vec(LAKE, 2, autoreset_mode="disabled")
    specs = [EpisodeSpec(i, i) for i in range(9)]
    whole = rollout(vector, make_agent("random"), specs)
    part = rollout(vector, make_agent("random"), specs, may_begin=allow(3))
    assert rollout(vector, make_agent("random"), specs, may_begin=allow(0)) == []
    vector.close()
    assert 3 <= len(part) < 9 and all(t.terminated or t.truncated for t in part)
    assert part == whole[: len(part)]


def test_a_time_budget_lists_what_it_left_out_and_resume_plays_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["eval", LAKE, "--agent", "random", "--episodes", "6", "--repeats", "2", "--out"]
    assert main([*words, str(tmp_path / "cut"), "--time-budget", "1e-9", "--baselines"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "INCOMPLETE: the time budget left 12 of 12 episodes out." in shown and "not played" in shown
    found = json.loads((tmp_path / "cut" / "results.json").read_text("utf8"))
    config = json.loads((tmp_path / "cut" / "config.json").read_text("utf8"))
    assert not found["complete"] and "baselines" not in found and found["mean"]["value"] is None
    asked = [(seed, attempt) for seed in config["environments"][0]["seeds"] for attempt in range(2)]
    assert [(each["seed"], each["attempt"]) for each in found["unplayed"][LAKE]] == asked
    assert main([*words, str(tmp_path / "cut"), "--resume", "--time-budget", "60"]) == 0
    assert main([*words, str(tmp_path / "whole")]) == 0
    for name in ("cut", "whole"):
        found = json.loads((tmp_path / name / "results.json").read_text("utf8"))
        assert found["complete"] and "unplayed" not in found
        assert found["environments"][LAKE]["success"]["n_games"] == 12
    rows = [lines_of(tmp_path / name / "episodes.jsonl") for name in ("cut", "whole")]
    assert [row["actions"] for row in rows[0]] == [row["actions"] for row in rows[1]]


class Stopping(Watcher):
    """Has a clock on which the time is over once some episodes are finished."""

    def __init__(self, after: int) -> None:
        self.left = after

    def add(self, row: Any) -> None:
        self.left -= 1

    def clock(self) -> float:
        return 0.0 if self.left > 0 else 1e12


def test_in_a_suite_played_and_unplayed_episodes_add_up() -> None:
    plan, watcher = small_plan(repeats=2), Stopping(3)
    found = played(plan, time_budget=60.0, execution=Execution(1), watcher=watcher, clock=watcher.clock)
    numbers = results(found)
    assert {label: len(rows) for label, rows in numbers["unplayed"].items()} == {
        LAKE: 8 - 3,
        plan.suite.entries[1].label: 6,
    }
    assert numbers["environments"][LAKE]["success"]["n_games"] == 3
    assert numbers["environments"][plan.suite.entries[1].label]["success"] == {
        "value": None,
        "stderr": None,
        "ci_low": None,
        "ci_high": None,
        "n_games": 0,
        "n_blocks": 0,
        "method": "no episodes",
        "higher_is_better": True,
    }
    assert numbers["mean"]["value"] is None, "a mean over the environments that happened to be first would mislead"
    json.dumps(numbers, allow_nan=False)


def test_usage_adds_up_and_comes_back_from_json() -> None:
    parts = [
        Usage(5, 1, 2, 1, 0, 1, 0.5, 0.25, {"timeout": 1}),
        Usage(7, 2, 1, latency=0.25),
        Usage(1, 1, 3, 2, 1, 0, 1.0, 0.5, {"timeout": 1, "http_500": 2}),
    ]
    assert total(parts) == Usage(13, 4, 6, 3, 1, 1, 1.75, 0.75, {"timeout": 2, "http_500": 2})
    assert total([]) == Usage() and total(parts[1:2]).cost is None
    assert [Usage.from_json(json.loads(json.dumps(part.as_json()))) for part in parts] == parts
    assert usage_text(total(parts)) == (
        "13 tokens in, 4 out, 6 calls, 3 retries, 4 failed requests (2 http_500, 2 timeout), "
        "1 turns without an answer, cost 0.7500 USD"
    )


def test_the_live_table_shows_what_is_done_and_what_came_out() -> None:
    console = Console(width=100, record=True, quiet=False, file=io.StringIO())
    plan = small_plan()

    class LongerPlan(LiveTable):
        def start(self, plan: Plan) -> None:
            super().start(replace(plan, seeds=(plan.seeds[0], (*plan.seeds[1], 0, 0))))

    with LongerPlan(console) as table:
        found = played(plan, watcher=table)
        console.print(table.renderable())
        assert "tokens" not in console.export_text(clear=False), "the random agent reads none"
        seat = Usage(tokens_in=1234, tokens_out=5, calls=3, retries=2, failures={"timeout": 2}).as_json()
        table.add({"label": LAKE, "success": 1, "score": 1.0, "length": 1, "seats": {"player_0": seat}})
        console.print(table.renderable())
    text = " ".join(console.export_text().split())
    own = found.result.results[0]
    assert f"{LAKE} 4/4 {100 * own.success.value:.1f} {own.score.value:.3f} {own.turns.value:.1f}" in text
    assert "7/9" in text and "8/9" in text and "start=random 3/5" in text
    assert "1,234 tokens in, 5 out" in text and "2 retries, 2 failed requests (2 timeout)" in text


def test_on_a_terminal_the_table_lives_and_json_stays_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")  # a dumb one shows no live table
    words = ["eval", LAKE, "--agent", "random", "--episodes", "3"]
    assert main(words) == 0
    assert "3/3" in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["environments"][LAKE]["success"]["n_games"] == 3 and not shown.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--repeats", "0"], "--repeats must be at least 1, got 0."),
        (["--time-budget", "0"], "--time-budget must be above 0 minutes, got 0.0."),
        (["--time-budget", "nan"], "--time-budget must be above 0 minutes, got nan."),
        (["--server", "retries"], "--server takes KEY=VALUE"),
    ],
)
def test_a_wrong_number_is_explained(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", LAKE, "--agent", "random", *words]) == 2
    assert message in capsys.readouterr().err
