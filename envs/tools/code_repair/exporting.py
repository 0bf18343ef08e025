"""Programs to repair or write as Harbor folders."""

from __future__ import annotations

import json
from pathlib import Path

from turngym.envs.tools.code_repair.cases import CodeTask
from turngym.envs.tools.code_repair.grading import CALL
from turngym.envs.tools.code_repair.values import encode
from turngym.envs.tools.harbor.files import Entry

_HERE = Path(__file__).parent
_FILE = "/app/program.py"
_TOML = """schema_version = "1.4"
artifacts = ["/app/program.py"]

[metadata]
source = "turngym/CodeRepair-v0"

[agent]
timeout_sec = 600

[verifier]
timeout_sec = 300
environment_mode = "separate"

[environment]
memory_mb = 1024
network_mode = "no-network"
"""


def harbor_files(task: CodeTask, text: str, seconds: float, memory_mib: int) -> dict[str, Entry]:
    """Return the files of a Harbor folder in which a program is repaired or written, and judged as in the environment.

    Args:
        task: The task.
        text: Description for the agent.
        seconds: Time of one test.
        memory_mib: Memory of the program.
    """
    content = {
        "file": _FILE,
        "name": task.name,
        "inputs": [[encode(value) for value in values] for values in task.inputs],
        "outputs": [encode(value) for value in task.outputs],
        "seconds": seconds,
        "memory_mib": memory_mib,
    }
    texts = {
        "task.toml": _TOML,
        "instruction.md": f"{text}\n\nThe program is {_FILE}: change this file. It is run on the examples and on "
        f"hidden tests, {seconds:g} seconds for each, and must pass all.\n",
        "environment/Dockerfile": "FROM python:3.12-slim\nWORKDIR /app\nCOPY program.py .\n",
        "environment/program.py": task.start,
        "solution/solve.sh": f"cat > {_FILE} << 'END_OF_PROGRAM'\n{task.solution.rstrip()}\nEND_OF_PROGRAM\n",
        "tests/test.sh": "exec python3 -I /tests/exported.py\n",
        "tests/cases.json": json.dumps(content),
        "tests/call.py": CALL,
        **{f"tests/{name}.py": (_HERE / f"{name}.py").read_text("utf8") for name in ("exported", "values", "returned")},
    }
    return {name: Entry("file", 0o644, each.encode()) for name, each in texts.items()}
