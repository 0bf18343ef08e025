"""What the environments say where the programs of the system that they need are not installed."""

import sys
from pathlib import Path

import pytest

from turngym.envs.desktop import sandbox
from turngym.envs.tools.sandbox import make_sandbox
from turngym.errors import MissingExtra


@pytest.fixture(autouse=True)
def no_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))


def test_the_desktop_names_its_programs_and_its_extra_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "Xlib", raising=False)
    monkeypatch.delitem(sys.modules, "six", raising=False)
    with pytest.raises(MissingExtra) as caught:
        sandbox.require_programs("the desktop")
    text = str(caught.value)
    assert "needs Xvfb, openbox, mousepad, gnumeric, bwrap" in text and "the package python-xlib" in text
    assert "apt-get install" in text and 'pip install "turngym[desktop]"' in text


def test_the_sandbox_names_its_program() -> None:
    with pytest.raises(MissingExtra, match="needs the program bwrap: apt-get install bubblewrap"):
        make_sandbox("bubblewrap")
