"""Journeys: a model behind an API that follows its rules is judged without an invalid action, 16 at once."""

import json
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from chat_servers import Body, Reply, chat_server
from journey import start, works

ENVIRONMENTS = ["turngym/SearchQA-v0", "turngym/MathPython-v0", "turngym/WebShop-v0", "turngym/Household-v0"]


def following(body: Body) -> Reply:
    """Answer in the notation that the rules give, with a tool first where there is one."""
    rules, *past = [str(message["content"]) for message in body["messages"]]
    if "<search>" in rules:
        return Reply("Who? <search>river</search>" if len(past) == 1 else "Well. <answer>Spain</answer>")
    if "<python>" in rules:
        return Reply("Let me see. <python>print(6 * 7)</python>" if len(past) == 1 else "So <answer>42</answer>")
    if "search[" in rules:
        return Reply("I look for it.\nsearch[red shoes]" if len(past) % 4 == 1 else "Others.\nclick[back to search]")
    assert "<action>" in rules
    return Reply("I look around. <action>look</action>")


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_who_follows_the_rules_makes_no_invalid_action(env_id: str, tmp_path: Path) -> None:
    with chat_server(following) as server:
        words = ("eval", env_id, "--agent", f"openai:m@{server.url}", "--episodes", "16", "--num-envs", "16")
        answer = works(tmp_path, *words, "--server", "concurrency=16", "--option", "max_turns=12", "--out", "out")
        assert server.most_at_once <= 16
    assert answer.lines[0].startswith("prompts show the whole conversation; actions are native tool calls")
    assert re.search(r"invalid actions % +0\.0", answer.out), str(answer)
    again = works(tmp_path, *words, "--option", "max_turns=12", "--out", "out", "--resume", "--json").result
    [environment] = again["environments"].values()
    assert environment["success"]["n_games"] == 16 and again["prompts"] in answer.lines[0]


def calling(body: Body) -> Reply:
    """Run code, then answer, with the tools that the request declares."""
    assert [tool["function"]["name"] for tool in body["tools"]] == ["python", "answer"]
    assert "<python>" not in body["messages"][0]["content"]
    ran = any(message["role"] == "tool" for message in body["messages"])
    name, arguments = ("answer", {"text": "Spain"}) if ran else ("python", {"code": "print(6 * 7)"})
    call = {"id": "1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return Reply(raw=json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).encode())


def rejecting(body: Body) -> Reply:
    """Answer as llama.cpp without --jinja, and as the rules ask for where no tools are declared."""
    if "tools" in body:
        return Reply(status=500, raw=b'{"error": {"code": 500, "message": "tools param requires --jinja flag"}}')
    return following(body)


@pytest.mark.parametrize("answer", [calling, rejecting])
def test_own_questions_with_tools_are_asked_natively_or_else_in_tags(
    answer: Callable[[Body], Reply], tmp_path: Path
) -> None:
    lines = [json.dumps({"question": f"What is {number} squared?", "answer": number**2}) for number in range(20)]
    (tmp_path / "mine.jsonl").write_text("\n".join(lines))
    with chat_server(answer) as server:
        words = ("eval", "--data", "mine.jsonl", "--tools", "python", "--agent", f"openai:m@{server.url}")
        played = works(tmp_path, *words, "--split", "train", "--episodes", "4", "--num-envs", "4", "--json")
    [environment] = played.result["environments"].values()
    assert environment["invalid_actions"]["value"] == 0 and played.result["usage"]["lost"] == 0
    rejected = played.result["usage"]["failures"].get("tools", 0)
    assert played.result["usage"]["calls"] == 8 + rejected and bool(rejected) is (answer is rejecting)
    told = [line for line in played.err.splitlines() if "rejects declared tools" in line]
    assert len(told) == bool(rejected) and all("--jinja" in line for line in told)


def test_a_killed_evaluation_is_resumed_without_paying_for_an_episode_twice(tmp_path: Path) -> None:
    """Four episodes at once, of two turns each: the server holds what comes after the tenth request."""
    killed, held = threading.Event(), threading.Semaphore(0)

    def answer(body: Body) -> Reply:
        if len(server.requests) > 10 and not killed.is_set():
            held.release()
            killed.wait(300)
        return Reply("<action>up</action>")

    def rooms() -> Counter[str]:
        return Counter(str(body["messages"][1]["content"]) for body in server.requests)

    with chat_server(answer) as server:
        words = ["eval", "turngym/Sokoban-v0", "--agent", f"openai:m@{server.url}", "--option", "max_turns=2"]
        words += ["--episodes", "12", "--num-envs", "4", "--server", "concurrency=4", "--out", "out"]
        process = start(tmp_path, *words)
        assert all(held.acquire(timeout=300) for _ in range(4))  # each of the four is held
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        whole, _, _ = (tmp_path / "out" / "episodes.jsonl").read_text("utf8").rpartition("\n")
        finished = whole.splitlines()
        killed.set()
        before = rooms()
        result = works(tmp_path, *words, "--resume", "--json").result
        again = rooms() - before
    rows = (tmp_path / "out" / "episodes.jsonl").read_text("utf8").splitlines()
    assert len(finished) >= 3 and set(finished) <= set(rows) and len(rows) == 12  # nothing lost
    [environment] = result["environments"].values()
    assert environment["success"]["n_games"] == 12 and result["usage"]["lost"] == 0
    unfinished = [json.loads(row) for row in rows if row not in finished]
    assert sum(again.values()) == sum(row["length"] for row in unfinished)  # only these are played
