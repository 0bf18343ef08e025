"""The README's examples run and its commands parse."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from turngym import __main__ as main
from turngym.benchmarks.cli.train import parse_train

README = (Path(__file__).parent.parent / "README.md").read_text("utf8")
COMMANDS = [
    shlex.split(line, comments=True)
    for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("turngym ")
]


def test_the_examples_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) >= 3
    script = "\n".join(blocks)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1 1.0\n"


@pytest.mark.parametrize("command", [c for c in COMMANDS if c[1] == "train"], ids=" ".join)
def test_train_commands_parse(command: list[str]) -> None:
    if "--resume" in command:
        pytest.skip("resuming needs the run that it names")
    config, run_dir, _ = parse_train(command[2:])
    default = "rae" if "--game" in command else "gigpo"
    assert config.algorithm in " ".join(command) or config.algorithm == default
    assert run_dir.parts[0] == "runs"


def test_every_command_is_shown() -> None:
    shown = {command[1] for command in COMMANDS}
    assert shown == set(main.COMMANDS)
