"""The README is short, its examples run, its commands parse, and what it links to exists."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from turngym import __main__ as main
from turngym.benchmarks.cli.train import parse_train

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf8")
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
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=900, check=False
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


def test_every_command_is_shown_on_a_page() -> None:
    pages = [README, *(path.read_text("utf8") for path in (ROOT / "docs").rglob("*.md") if path.name != "commands.md")]
    shown = {word for page in pages for word in re.findall(r"turngym ([a-z-]+)", page)}
    assert set(main.COMMANDS) <= shown


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 120


def test_what_it_links_to_exists() -> None:
    for link in sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))):
        assert (ROOT / link).exists()


@pytest.mark.parametrize("script", sorted(set(re.findall(r"python (benchmarks/\S+\.py)", README))))
def test_the_scripts_that_it_names_exist(script: str) -> None:
    assert (ROOT / script).is_file()
