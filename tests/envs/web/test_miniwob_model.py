"""A journey in MiniWoB: a model behind an API that follows the rules makes no invalid action."""

import re
from pathlib import Path

import pytest
from chat_servers import Body, Reply, chat_server
from journey import works
from miniwob_pages import pool

pytestmark = pytest.mark.integration
__all__ = ["pool"]  # fixture


def clicking(body: Body) -> Reply:
    """Click the button that the task names, by the number that the page gives it."""
    page = str(body["messages"][-1]["content"])
    wanted = re.search(r'^Task: Click on the "(.+?)" button', page)
    assert wanted is not None, page
    button = re.search(rf'^\[(\d+)\] button "{re.escape(wanted[1])}"', page, re.MULTILINE)
    assert button is not None, page
    return Reply(f"The button is there. <action>click {button[1]}</action>")


def test_who_follows_the_rules_solves_every_page(tmp_path: Path) -> None:
    with chat_server(clicking) as server:
        words = ("eval", "turngym/MiniWoB-v0", "--agent", f"openai:m@{server.url}", "--episodes", "8")
        result = works(
            tmp_path, *words, "--num-envs", "4", "--server", "concurrency=4", "--out", "out", "--json"
        ).result
    [environment] = result["environments"].values()
    assert environment["success"]["value"] == 1 and environment["invalid_actions"]["value"] == 0
    assert result["usage"]["lost"] == 0
