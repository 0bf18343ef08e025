"""The style of cases: which solved episodes are shown, in which format, and how many."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_servers import QUICK, Body, ChatServerForTests, Reply, chat_server, request

from turngym.__main__ import main
from turngym.agents.players import AgentSettings, make_agent
from turngym.agents.prompting.styles import make_style
from turngym.errors import ConfigError

LAKE = "turngym/FrozenLake-v0"
OPTIONS = ["--option", "size=3", "--option", "view=coordinates"]


def imitator(body: Body) -> Reply:
    """Answer as an example did where it saw what is seen now, and go left elsewhere."""
    system, now = body["messages"][0]["content"], body["messages"][-1]["content"]
    examples = dict(re.findall(r"Seen: ((?:(?!\nAnswer: )[\s\S])*)\nAnswer: (.*)", system))
    return Reply(examples.get(now, "<action>left</action>"), usage=(30, 4))


@pytest.fixture
def server() -> Iterator[ChatServerForTests]:
    with chat_server(imitator) as running:
        yield running


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cases") / "expert"
    words = ["eval", LAKE, "--agent", "expert", "--split", "train", "--episodes", "24", "--out", str(path)]
    assert main([*words, *OPTIONS]) == 0
    return path


def success(server: ChatServerForTests, out: Path, *words: str) -> float:
    agent = ["--agent", f"openai:model@{server.url}", "--server", "wait=0.001", "--episodes", "8", "--out", str(out)]
    assert main(["eval", LAKE, *OPTIONS, *agent, *words]) == 0
    (numbers,) = json.loads((out / "results.json").read_text())["environments"].values()
    return float(numbers["success"]["value"])


def test_a_model_that_follows_examples_solves_more_held_out_tasks_with_more_of_them(
    server: ChatServerForTests, folder: Path, tmp_path: Path
) -> None:
    without = success(server, tmp_path / "plain")
    few = success(server, tmp_path / "few", "--style", f"cases:folder={folder},k=1")
    many = success(server, tmp_path / "many", "--style", f"cases:folder={folder},k=20,share=1")
    assert without <= few <= many and without < 0.3 and many > 0.8
    style = json.loads((tmp_path / "few" / "config.json").read_text())["style"]
    assert set(style["options"]) == {"k", "share", "cases", "cases_sha256"}, "cases are named by content, not by place"


def system_of(server: ChatServerForTests, style: str, observation: str, **prompt: Any) -> str:
    settings = AgentSettings(prompt=prompt, server=QUICK, style=style)
    make_agent(f"openai:model@{server.url}", settings).act([request(turn=0, observation=observation)])
    return str(server.requests[-1]["messages"][0]["content"])


def test_the_most_similar_cases_that_fit_are_shown(server: ChatServerForTests, folder: Path) -> None:
    known = make_style(f"cases:folder={folder}").known  # type: ignore[attr-defined]
    wanted = known[5]
    shown = system_of(server, f"cases:folder={folder},k=2", wanted[0].observation)
    first, second = re.split(r"Example \d\n", shown)[1:]
    answers = [f"Seen: {turn.observation}\nAnswer: <action>{turn.action}</action>" for turn in wanted]
    assert first.strip() == "\n".join(answers), "written in the format of the model that reads it"
    assert second and "Example 3" not in shown
    small = system_of(server, f"cases:folder={folder},k=9,share=0.001", wanted[0].observation)
    assert "Example" not in small


def test_a_folder_without_solved_episodes_is_refused(tmp_path: Path, folder: Path) -> None:
    words = ["eval", LAKE, *OPTIONS, "--agent", "scripted:left", "--episodes", "2", "--out", str(tmp_path / "left")]
    assert main(words) == 0
    for text, message in (
        (f"cases:folder={tmp_path / 'left'}", "has no solved episode with its turns"),
        (f"cases:folder={tmp_path / 'nothing'}", "there is no folder"),
        ("cases", "needs an evaluation to take them from: cases:folder=FOLDER"),
        (f"cases:folder={folder},k=0", "k of the style 'cases' must be"),
        (f"cases:folder={folder},share=2", "share of the style 'cases' must be"),
    ):
        with pytest.raises(ConfigError, match=message):
            make_style(text)
