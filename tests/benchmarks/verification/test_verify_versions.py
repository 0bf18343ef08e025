"""An evaluation whose rules have another hash here: the finding says whether versions differ, and which."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from submissions import changed, play

from turngym.agents.recordings.submission import load_submission
from turngym.benchmarks.evaluation.records import versions
from turngym.benchmarks.verification.tasks import ruleset_findings


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(tmp_path_factory.mktemp("played") / "run", episodes=2)


def message_of(folder: Path) -> str:
    found = [each for each in ruleset_findings(load_submission(folder)) if each.place.startswith("config.json")]
    assert len(found) == 1
    return found[0].message


def with_other_rules(**packages: str) -> Callable[[Any], None]:
    def change(config: Any) -> None:
        config["environments"][0]["ruleset_hash"] = "0" * 64
        config["packages"].update(packages)

    return change


def test_a_difference_of_versions_is_named_as_the_cause(played: Path, tmp_path: Path) -> None:
    told = message_of(changed(played, tmp_path / "run", config=with_other_rules(python="3.19.1", numpy="9" * 99)))
    here = versions()
    assert f"it was played with other versions (python '3.19.1', here {here['python']}; " in told
    assert f"numpy '{'9' * 30}', here {here['numpy']}): verify it with those" in told


def test_the_same_versions_leave_other_rules(played: Path, tmp_path: Path) -> None:
    told = message_of(changed(played, tmp_path / "run", config=with_other_rules()))
    assert "other rules or options, as the versions of Python and packages are the same" in told
