"""The files of a release: PyPI accepts them, and the workflow that publishes them holds no secret."""

import subprocess
import sys
from pathlib import Path

import built
import pytest

WORKFLOW = (built.ROOT / ".github" / "workflows" / "release.yml").read_text("utf8")


@pytest.mark.integration
def test_twine_accepts_sdist_and_wheel(tmp_path: Path) -> None:
    pytest.importorskip("twine")
    package = built.build(tmp_path / "package")
    call = [sys.executable, "-m", "twine", "check", "--strict", str(package.sdist), str(package.wheel)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == 2


def test_a_release_is_checked_and_published_without_a_stored_token() -> None:
    steps = ["python -m build", "python -m twine check --strict dist/*", "needs: build", "gh-action-pypi-publish"]
    places = [WORKFLOW.index(step) for step in steps]
    assert places == sorted(places)
    assert "id-token: write" in WORKFLOW[places[2] :] and "id-token" not in WORKFLOW[: places[2]]
    assert "secrets." not in WORKFLOW and "password" not in WORKFLOW
