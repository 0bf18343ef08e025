"""The code blocks of every page run, in an empty folder."""

import contextlib
import os
import shlex
import sys
from pathlib import Path
from string import Template

import page_blocks
import pytest
import warm
from chat_servers import Reply, chat_server

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "docs" / "generator"))
import code_blocks  # noqa: E402  # the script of the documentation

PAGES = sorted(
    path for path in (ROOT / "docs").rglob("*.md") if "environments" not in path.parts and "reference" not in path.parts
)
RUN_ELSEWHERE = {"loop.md"}
"""``test_own_loop.py`` runs all blocks of this page."""
WITH_COMMANDS = [each for each in PAGES if "```sh" in each.read_text("utf8") and each.name not in RUN_ELSEWHERE]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT / "docs"))


def run(page: Path, folder: Path, **variables: str) -> None:
    """Run a page in a fork, or, where there are only commands, each of them in one."""
    found, environment = list(code_blocks.blocks(page.read_text("utf8"))), {**os.environ, **variables}
    if any(block.language == "python" and not block.title and not block.reason for block in found):
        trains = any(each in page.read_text("utf8") for each in ("turngym.train(", "\nturngym train"))
        modules = warm.HEAVY if trains else warm.LIGHT
        done = warm.run(page_blocks.__file__, str(page), cwd=folder, env=environment, modules=modules, timeout=600)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        return

    def start(line: str) -> None:
        words = [Template(word).safe_substitute(variables) for word in shlex.split(line, comments=True)]
        assert words[0] == "turngym", "other programs need a page with Python"
        done = warm.run("-m", *words, cwd=folder, env=environment)
        assert done.returncode == 0, line + done.stdout[-2000:] + done.stderr[-4000:]

    for block in found:
        with contextlib.chdir(folder):
            code_blocks.run(block, {}, str(page), start)


@pytest.mark.parametrize(
    "page",
    [each for each in PAGES if "```python" in (text := each.read_text("utf8")) and "```sh" not in text],
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
    with pytest.raises(SystemExit, match="has no --jsonn"):
        run(page, tmp_path)
