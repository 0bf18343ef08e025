"""Generated pages are what their scripts would write now."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def check(script: str) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, str(ROOT / "docs" / "generator" / script), "--check"]
    return subprocess.run(call, capture_output=True, text=True, timeout=600, check=False)


@pytest.mark.parametrize("script", ["environments.py", "commands.py"])
def test_pages_are_up_to_date(script: str) -> None:
    done = check(script)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def test_every_environment_has_a_page() -> None:
    from turngym.envs.registration import specs

    pages = "".join(path.read_text("utf8") for path in (ROOT / "docs" / "environments").glob("*.md"))
    assert [env_id for env_id in specs() if f"`{env_id}`" not in pages] == []


@pytest.mark.parametrize("script", ["code_blocks.py", "commands.py", "families.py"])
def test_the_examples_of_the_scripts_hold(script: str) -> None:
    folder = ROOT / "docs" / "generator"
    call = [sys.executable, "-m", "doctest", str(folder / script)]
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout


def test_code_in_pages_is_shown_as_it_is() -> None:
    """Markdown escapes what stands between backticks itself: `&lt;think>` appeared on the site."""
    for path in sorted((ROOT / "docs").rglob("*.md")):
        prose = re.sub(r"```.*?```", "", path.read_text("utf8"), flags=re.DOTALL)
        wrong = [code for code in re.findall(r"`([^`\n]+)`", prose) if re.search(r"&(lt|gt|amp);|\\\[", code)]
        assert not wrong, (path.name, wrong)
