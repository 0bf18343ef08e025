"""Journeys: a model behind an API that follows its rules is judged without an invalid action, 16 at once."""

import re
from pathlib import Path

import pytest
from chat_servers import Body, Reply, chat_server
from journey import works

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
