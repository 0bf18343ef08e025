"""The code blocks of every page run, in an empty folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from chat_servers import Reply, chat_server

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path for path in (ROOT / "docs").rglob("*.md") if "environments" not in path.parts and "reference" not in path.parts
)
WITH_COMMANDS = [each for each in PAGES if "```sh" in each.read_text("utf8")]
SCRIPT = ROOT / "docs" / "generator" / "code_blocks.py"


def name(page: Path) -> str:
    return str(page.relative_to(ROOT / "docs"))


def run(page: Path, folder: Path, **variables: str) -> None:
    call = [sys.executable, "-W", "error", str(SCRIPT), str(page)]
    done = subprocess.run(
        call, cwd=folder, capture_output=True, text=True, timeout=600, check=False, env={**os.environ, **variables}
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


@pytest.mark.parametrize(
    "page",
    [each for each in PAGES if "```python" in each.read_text("utf8") and each not in WITH_COMMANDS],
    ids=name,
)
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    run(page, tmp_path)


@pytest.mark.integration
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name)
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    with chat_server(lambda body: Reply("<answer>7</answer>")) as server:
        server.models = ("my-model",)
        run(page, tmp_path, URL=server.url)


def test_a_block_that_fails_fails_its_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n", "utf8")
    with pytest.raises(AssertionError, match="assert x == 2"):
        run(page, tmp_path)


def test_an_option_that_does_not_exist_fails_a_block_that_is_not_run(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- not run: slow -->\n```sh\nturngym list --jsonn\n```\n", "utf8")
    with pytest.raises(AssertionError, match="has no --jsonn"):
        run(page, tmp_path)
