"""The style of cases: which solved episodes are shown, in which format, and how many."""

import json
import re
import shutil
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
OPTIONS = ["--option", "hole_share=0.1", "--option", "view=coordinates"]


def way(lake: str) -> tuple[int, int]:
    """Return how far the goal is below and to the right of the player."""
    row, column, goal_row, goal_column = map(int, re.findall(r"\d+", lake)[:4])
    return goal_row - row, goal_column - column


def imitator(body: Body) -> Reply:
    """Answer as an example did from where the goal lay in the same direction, and go left elsewhere."""
    system, now = body["messages"][0]["content"], body["messages"][-1]["content"]
    examples = {way(seen): answer for seen, answer in re.findall(r"Seen: (player.*)\nAnswer: (.*)", system)}
    return Reply(examples.get(way(now), "<action>left</action>"), usage=(30, 4))


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
    assert without <= few <= many and without < 0.3 and many > 0.6
    style = json.loads((tmp_path / "few" / "config.json").read_text())["style"]
    assert set(style["options"]) == {"k", "share", "cases", "cases_sha256"}, "cases are named by content, not by place"


def system_of(server: ChatServerForTests, style: str, observation: str, **prompt: Any) -> str:
    settings = AgentSettings(prompt=prompt, server=QUICK, style=style)
    make_agent(f"openai:model@{server.url}", settings).act([request(turn=0, observation=observation)])
    return str(server.requests[-1]["messages"][0]["content"])


def test_the_most_similar_cases_that_fit_are_shown(server: ChatServerForTests, folder: Path) -> None:
    known = make_style(f"cases:folder={folder}").known  # type: ignore[attr-defined]
    now = known[5][0].observation
    shown = system_of(server, f"cases:folder={folder},k=2", now)
    parts = [part.strip() for part in re.split(r"Example \d\n", shown)[1:]]
    texts = {
        "\n".join(f"Seen: {turn.observation}\nAnswer: <action>{turn.action}</action>" for turn in turns): turns
        for turns in known
    }
    assert len(parts) == 2 and set(parts) <= set(texts), "written in the format of the model that reads them"
    assert all(texts[part][0].observation != now for part in parts), "a case of the task itself is not an example"
    small = system_of(server, f"cases:folder={folder},k=9,share=0.001", now)
    assert "Example" not in small

    assert "Example" not in system_of(server, f"cases:folder={folder},k=2,turns=true", now)
    messages = [(each["role"], each["content"]) for each in server.requests[-1]["messages"]]
    said = [
        pair
        for part in reversed(parts)
        for turn in texts[part]
        for pair in (("user", turn.observation), ("assistant", f"<action>{turn.action}</action>"))
    ]
    assert messages[1:] == [*said, ("user", now)], "the same cases as turns, the most similar one last"


def test_a_folder_without_solved_episodes_is_refused(tmp_path: Path, folder: Path) -> None:
    words = ["eval", LAKE, *OPTIONS, "--agent", "scripted:left", "--episodes", "1", "--split"]
    for split in ("train", "test"):
        assert main([*words, split, "--option", "max_turns=1", "--out", str(tmp_path / split)]) == 0
    shutil.copytree(folder, tmp_path / "alias")
    config = (tmp_path / "alias" / "config.json").read_text().replace('"train"', '"valid_unseen"')  # ALFWorld's name
    (tmp_path / "alias" / "config.json").write_text(config)
    for text, message in (
        (f"cases:folder={tmp_path / 'train'}", "none of the 1 episodes in .* is a solved one"),
        (f"cases:folder={tmp_path / 'test'}", "was played on the split 'test'; expected train or dev"),
        (f"cases:folder={tmp_path / 'alias'}", "was played on the split 'valid_unseen'; expected train or dev"),
        (f"cases:folder={tmp_path / 'nothing'}", "there is no folder"),
        ("cases:folder=2026", "there is no folder 2026"),
        (f"cases:folder={folder},k={10**20}", "k of the style 'cases' must be"),
        ("cases", "needs an evaluation to take them from: cases:folder=FOLDER"),
        (f"cases:folder={folder},k=0", "k of the style 'cases' must be"),
        (f"cases:folder={folder},share=2", "share of the style 'cases' must be"),
        (f"cases:folder={folder},turns=2", "turns of the style 'cases' must be true or false"),
    ):
        with pytest.raises(ConfigError, match=message):
            make_style(text)


def test_cases_of_another_environment_are_refused(
    server: ChatServerForTests, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = ["--agent", f"openai:model@{server.url}", "--style", f"cases:folder={folder}", "--episodes", "1"]
    assert main(["eval", "turngym/GuessTheNumber-v0", *agent]) == 2 and not server.requests
    assert f"the cases in {folder} are of {LAKE}, but turngym/GuessTheNumber-v0 is played" in capsys.readouterr().err
