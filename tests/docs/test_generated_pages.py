"""Generated pages are what their scripts would write now."""

import re
import subprocess
from pathlib import Path

import pytest
import warm

ROOT = Path(__file__).parents[2]


def check(script: str) -> subprocess.CompletedProcess[str]:
    modules = warm.HEAVY if script == "commands.py" else warm.LIGHT
    return warm.run(str(ROOT / "docs" / "generator" / script), "--check", timeout=600, modules=modules)


@pytest.mark.parametrize("script", ["environments.py", "commands.py", "pictures.py", "suites.py"])
def test_pages_are_up_to_date(script: str) -> None:
    done = check(script)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def test_every_environment_has_a_page() -> None:
    from turngym.envs.registration import specs

    pages = "".join(path.read_text("utf8") for path in (ROOT / "docs" / "environments").glob("*.md"))
    assert [env_id for env_id in specs() if f"`{env_id}`" not in pages] == []


@pytest.mark.parametrize("script", ["code_blocks.py", "commands.py", "families.py", "gallery.py"])
def test_the_examples_of_the_scripts_hold(script: str) -> None:
    folder = ROOT / "docs" / "generator"
    done = warm.run("-m", "doctest", str(folder / script), cwd=folder)
    assert done.returncode == 0, done.stdout


def test_code_in_pages_is_shown_as_it_is() -> None:
    """Markdown escapes what stands between backticks itself: `&lt;think>` appeared on the site."""
    for path in sorted((ROOT / "docs").rglob("*.md")):
        prose = re.sub(r"```.*?```", "", path.read_text("utf8"), flags=re.DOTALL)
        wrong = [code for code in re.findall(r"`([^`\n]+)`", prose) if re.search(r"&(lt|gt|amp);|\\\[", code)]
        assert not wrong, (path.name, wrong)
