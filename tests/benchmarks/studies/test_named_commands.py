"""Commands of studies that pages name: the script starts, and has the options, or the plan has the arms."""

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from turngym.benchmarks.study.plan import read_plan

ROOT = Path(__file__).parents[3]
STUDIES = ROOT / "benchmarks" / "studies"
_COMMAND = re.compile(r"(benchmarks/studies/[\w/]+\.(?:py|toml))([^`\n]*)(`?(?: of [0-9a-f]{7,40}\b)?)")
SCRIPTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in STUDIES.rglob("*.py")
    if "__main__" in path.read_text("utf8") and path.parent.name not in ("sides", "killed_runs")
)


def named() -> list[tuple[str, list[str]]]:
    """Return the file and the words behind it of every command that a page names for this version."""
    call = ["git", "ls-files", "--", "*.md"]
    names = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    found = [each for name in names for each in _COMMAND.findall((ROOT / name).read_text("utf8"))]
    return [(file, shlex.split(words, comments=True)) for file, words, end in found if " of " not in end]


NAMED = named()


@pytest.mark.parametrize("script", SCRIPTS)
def test_script_starts_and_has_the_options_that_pages_name(
    script: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [script, "--help"])
    monkeypatch.syspath_prepend(str((ROOT / script).parent))
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / script), run_name="__main__")
    assert ended.value.code == 0
    options = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", capsys.readouterr().out))
    wanted = {word for file, words in NAMED if file == script for word in words if re.match("--[a-z]", word)}
    assert wanted <= options


def test_plans_have_the_arms_that_pages_name() -> None:
    plans = [(file, words) for file, words in NAMED if file.endswith(".toml")]
    assert len(plans) > 10
    for file, words in plans:
        plan = read_plan(ROOT / file)
        assert words[:1] in ([], ["--arms"])
        assert plan.part(words[1:]).arms if words else plan.jobs


def test_every_script_that_pages_name_is_one_that_was_started() -> None:
    assert {file for file, _ in NAMED if file.endswith(".py")} <= set(SCRIPTS)


def test_folders_of_studies_have_at_most_15_files() -> None:
    for folder in (STUDIES, *(path for path in STUDIES.rglob("*") if path.is_dir() and path.name != "__pycache__")):
        assert sum(path.is_file() for path in folder.iterdir()) <= 15, folder
