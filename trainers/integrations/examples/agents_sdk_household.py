"""The OpenAI Agents SDK does the chores of Household, with its own agent, runner and protocol (responses).

turngym train --env turngym/Household-v0 --agent.command "python agents_sdk_household.py"
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any
from urllib.request import Request, urlopen

from agents import (
    Agent,
    FunctionToolResult,
    ModelBehaviorError,
    RunContextWrapper,
    Runner,
    ToolsToFinalOutputResult,
    function_tool,
    set_default_openai_api,
    set_tracing_disabled,
)

MOST_CALLS = 200


def environment(body: Any = None) -> Any:
    """Look at the environment, or act in it."""
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(os.environ["TURNGYM_ENV_URL"], data, headers)) as response:
        return json.load(response)


@function_tool
def act(command: str) -> str:
    """Carry out one command in the household.

    Args:
        command: The command.
    """
    return str(environment({"action": command})["observation"])


def ends(context: RunContextWrapper[Any], results: list[FunctionToolResult]) -> ToolsToFinalOutputResult:
    """End the run with the episode, so that the model is not asked once more."""
    return ToolsToFinalOutputResult(is_final_output=environment()["done"], final_output=results[-1].output)


def main() -> None:
    """Play one episode."""
    set_tracing_disabled(True)  # or every run is sent to OpenAI
    if "--chat" in sys.argv:
        set_default_openai_api("chat_completions")
    seen = environment()
    agent = Agent(
        name="household", instructions=seen["instructions"], tools=[act], tool_use_behavior=ends, model="turngym"
    )
    messages: list[Any] = [{"role": "user", "content": seen["observation"]}]
    while not seen["done"]:
        try:
            result = Runner.run_sync(agent, messages, max_turns=MOST_CALLS)
            messages, said = result.to_input_list(), str(result.final_output)
        except ModelBehaviorError:  # the answer was cut off, or its call cannot be carried out
            said = ""
        seen = environment()
        if not seen["done"]:  # the model has called no tool: what it has said is its command
            seen = environment({"action": said})
            messages.append({"role": "user", "content": seen["observation"]})


if __name__ == "__main__":
    main()
