"""mini-swe-agent works on repositories of Repo in their shell, with its own agent, model and prompts.

turngym train --env turngym/RepoShell-v0 --agent.command "python mini_swe_repo.py"
"""

from __future__ import annotations

import json
import os
import re
from typing import Any
from urllib.request import Request, urlopen

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or litellm asks the internet for a list of prices
os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")

from minisweagent.agents.default import AgentConfig, DefaultAgent
from minisweagent.config import get_config_from_spec
from minisweagent.environments.local import LocalEnvironment
from minisweagent.exceptions import InterruptAgentFlow
from minisweagent.models.litellm_model import LitellmModel


def environment(body: Any = None) -> Any:
    """Look at the environment, or act in it."""
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(os.environ["TURNGYM_ENV_URL"], data, headers)) as response:
        return json.load(response)


class Shell(LocalEnvironment):
    """The environment's shell; what mini-swe-agent prints to end its work is a submission."""

    def execute(self, action: dict[str, Any], cwd: str = "", *, timeout: int | None = None) -> dict[str, Any]:
        """Run a command in the environment."""
        seen = environment({"action": f"<bash>\n{action['command']}\n</bash>"})
        output = seen["observation"].removeprefix("<output>\n").removesuffix("\n</output>")
        code = re.search(r"\nExit code: (\d+)$", output)
        found = {"output": output, "returncode": int(code[1]) if code else 0, "exception_info": ""}
        if seen["done"]:
            raise InterruptAgentFlow({"role": "exit", "content": output, "extra": {"exit_status": "TurnsExceeded"}})
        try:
            self._check_finished(found)
        except InterruptAgentFlow:
            environment({"action": "<submit></submit>"})
            raise
        return found


def main() -> None:
    """Play one episode."""
    settings = get_config_from_spec("mini")
    model = LitellmModel(
        model_name="openai/turngym",
        cost_tracking="ignore_errors",
        **{
            **settings["model"],
            "model_kwargs": {"api_base": os.environ["OPENAI_BASE_URL"], "api_key": os.environ["OPENAI_API_KEY"]},
        },
    )
    prompts = {name: value for name, value in settings["agent"].items() if name in AgentConfig.model_fields}
    DefaultAgent(model, Shell(), **prompts).run(environment()["observation"])


if __name__ == "__main__":
    main()
