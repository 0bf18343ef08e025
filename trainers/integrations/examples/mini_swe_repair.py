"""mini-swe-agent repairs programs of CodeRepair in a shell, with its own agent, model and sandbox.

turngym train --env turngym/CodeRepair-v0 --agent.command "python mini_swe_repair.py"
"""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.request import Request, urlopen

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # or litellm asks the internet for a list of prices
os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")

from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.extra.bubblewrap import BubblewrapEnvironment
from minisweagent.exceptions import Submitted
from minisweagent.models.litellm_model import LitellmModel

SYSTEM = "You repair programs with a shell."
TASK = """{{task}}

The program is program.py in your folder: change it with the tool bash. Each command runs in a new shell. The command
`submit` hands the file in as one attempt and shows the results."""


def environment(body: Any = None) -> Any:
    """Look at the environment, or act in it."""
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(os.environ["TURNGYM_ENV_URL"], data, headers)) as response:
        return json.load(response)


class Workshop(BubblewrapEnvironment):
    """A folder with the program, where ``submit`` is an attempt."""

    def execute(self, action: dict[str, Any], cwd: str = "", *, timeout: int | None = None) -> dict[str, Any]:
        """Run a command; if it submits, hand the program in."""
        command = f"submit() {{ touch .submit; }}\n{action['command']}"
        found: dict[str, Any] = super().execute({"command": command}, cwd, timeout=timeout)
        handed = super().execute({"command": "rm .submit 2>&- && cat program.py"}, cwd)
        if handed["returncode"] == 0:
            seen = environment({"action": f"<code>\n{handed['output']}\n</code>"})
            found["output"] += seen["observation"]
            if seen["done"]:
                raise Submitted({"role": "exit", "content": "", "extra": {"exit_status": "done", "submission": ""}})
        return found


def main() -> None:
    """Play one episode."""
    observation = environment()["observation"]
    usual = Workshop().config.wrapper_args
    workshop = Workshop(wrapper_args=["--clearenv", *usual, "--unshare-net", "--unshare-pid", "--die-with-parent"])
    program = observation.partition("```python\n")[2].partition("\n```")[0]
    (workshop.working_dir / "program.py").write_text(program + "\n")
    model = LitellmModel(
        model_name="openai/turngym",
        model_kwargs={"api_base": os.environ["OPENAI_BASE_URL"], "api_key": os.environ["OPENAI_API_KEY"]},
        cost_tracking="ignore_errors",
    )
    DefaultAgent(model, workshop, system_template=SYSTEM, instance_template=TASK, step_limit=20).run(observation)


if __name__ == "__main__":
    main()
