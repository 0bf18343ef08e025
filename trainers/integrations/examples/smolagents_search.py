"""smolagents answers questions of SearchQA, with its own agent, model and prompts.

turngym train --env turngym/SearchQA-v0 --agent.command "python smolagents_search.py"
"""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.request import Request, urlopen

from smolagents import LogLevel, OpenAIServerModel, ToolCallingAgent, tool

SEARCHES = 7
"""One less than the turns of the environment: the last one is for the answer."""


def environment(body: Any = None) -> Any:
    """Look at the environment, or act in it."""
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(os.environ["TURNGYM_ENV_URL"], data, headers)) as response:
        return json.load(response)


@tool
def search(words: str) -> str:
    """Search for passages.

    Args:
        words: Search query.
    """
    return str(environment({"action": f"<search>{words}</search>"})["observation"])


def main() -> None:
    """Play one episode."""
    model = OpenAIServerModel("turngym", api_base=os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"])
    agent = ToolCallingAgent([search], model, max_steps=SEARCHES, verbosity_level=LogLevel.ERROR)
    answer = agent.run(environment()["observation"])
    environment({"action": f"<answer>{answer}</answer>"})


if __name__ == "__main__":
    main()
