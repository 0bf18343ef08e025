"""Folders of runs, evaluations and tournaments: each command says what it was given, where that is something else."""

import json
from itertools import permutations
from pathlib import Path

import pytest

from turngym.__main__ import main
from turngym.benchmarks.arena.folder import ArenaFolder
from turngym.benchmarks.arena.plan import started
from turngym.benchmarks.evaluation.folder import EvaluationFolder
from turngym.benchmarks.tournaments.folder import TournamentFolder
from turngym.storage.folders import Kind, folder_kind
from turngym.trainers.records.run_folder import RunFolder
from turngym.trainers.settings.config import TrainConfig

CONFIGS: dict[Kind, dict[str, object]] = {
    "training run": {"env": "turngym/Sokoban-v0", "algorithm": "gigpo"},
    "evaluation": {"suite": {"name": "textgames"}, "environments": []},
    "tournament": {"pairing": "round_robin", "game": "turngym/KuhnPoker-v0", "blocks": 4},
    "arena": {"arena": 1, "stages": []},
}
RESUMES: dict[Kind, list[str]] = {
    "training run": ["train", "--resume", "--run-dir"],
    "evaluation": ["eval", "turngym/FrozenLake-v0", "--agent", "random", "--episodes", "1", "--resume", "--out"],
    "tournament": ["tournament", "turngym/KuhnPoker-v0", "--players", "random", "first_legal", "--resume", "--out"],
    "arena": ["arena"],
}


def folder_of(kind: Kind, path: Path) -> Path:
    path.mkdir()
    (path / "config.json").write_text(json.dumps(CONFIGS[kind]))
    return path


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_folder_is_known_by_what_it_holds(kind: Kind, tmp_path: Path) -> None:
    assert folder_kind(folder_of(kind, tmp_path / "folder")) == kind
    assert folder_kind(tmp_path) is None and folder_kind(tmp_path / "nothing") is None


@pytest.mark.parametrize(("kind", "wanted"), list(permutations(CONFIGS, 2)))
def test_resuming_a_folder_of_another_kind_names_both(
    kind: Kind, wanted: Kind, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It used to be called damaged, which makes its owner look for a fault that is not there."""
    folder = folder_of(kind, tmp_path / "folder")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main([*RESUMES[wanted], str(folder)]) == 2
    assert f"is the folder of a{'n' if kind[0] in 'ae' else ''} {kind}, not of a" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("resume", [True, False], ids=["resume", "new"])
@pytest.mark.parametrize("wanted", RESUMES)
def test_a_file_is_no_folder(wanted: Kind, resume: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An empty file "is not empty" was the answer."""
    file = tmp_path / "file"
    file.touch()
    words = [word for word in RESUMES[wanted] if resume or word != "--resume"]
    assert main([*words, str(file)]) == 2
    told = capsys.readouterr().err
    assert str(file) in told and ("is a file, where a folder is needed" in told or "there is no run in" in told)
    assert not file.read_bytes()


@pytest.mark.parametrize("kind", CONFIGS)
def test_half_a_file_that_a_kill_left_does_not_take_a_folder(kind: Kind, tmp_path: Path) -> None:
    """A run of a study that was killed while its first file was written could never be begun again."""
    half = tmp_path / ".config.json.4711.tmp"
    half.write_text('{"env"')
    if kind == "training run":
        with RunFolder.locked(tmp_path, TrainConfig()):
            pass
    elif kind == "evaluation":
        EvaluationFolder(tmp_path, CONFIGS[kind], {}).close()
    elif kind == "arena":
        folder = ArenaFolder(tmp_path)
        folder.begin(started())
        folder.close()
    else:
        TournamentFolder(tmp_path, CONFIGS[kind], resume=False).close()
    assert (tmp_path / "config.json").is_file()
