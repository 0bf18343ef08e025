"""Tokens that servers keep in files of the user's own."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from turngym.errors import ConfigError
from turngym.web.access import own_token


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_token_is_random_kept_and_readable_by_its_owner_alone() -> None:
    before = os.umask(0)
    try:
        token, path = own_token("server")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and path.read_text() == token
    assert own_token("server") == (token, path) and own_token("other")[0] != token
    assert [each.name for each in sorted(path.parent.iterdir())] == ["other", "server"]


@pytest.mark.parametrize("kind", ["readable", "short", "link", "pipe", "folder", "empty"])
def test_a_file_that_others_may_have_written_is_not_trusted(tmp_path: Path, kind: str) -> None:
    token, path = own_token("server")
    (tmp_path / "foreign").write_text(token)
    if kind == "readable":
        path.chmod(0o644)
    elif kind in ("short", "empty"):
        path.write_text("secret" if kind == "short" else "")
    else:
        path.unlink()
        if kind == "folder":
            path.mkdir()
            with pytest.raises(ConfigError, match="pass --token"):
                own_token("server")
            return
        path.symlink_to(tmp_path / "foreign") if kind == "link" else os.mkfifo(path)
    again, path = own_token("server")
    assert again != token and stat.S_IMODE(path.lstat().st_mode) == 0o600


def test_a_cache_that_cannot_be_written_is_an_error(cache: Path) -> None:
    cache.write_text("")
    with pytest.raises(ConfigError, match="pass --token"):
        own_token("server")
