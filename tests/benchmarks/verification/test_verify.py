"""``turngym verify``: a true submission is accepted, and every kind of forgery is found and named."""

import json
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tampering import CAREFUL, CARELESS, ENV, Files

from turngym.__main__ import main
from turngym.agents.recordings.submission import load_submission
from turngym.benchmarks.verification.findings import FINDINGS
from turngym.benchmarks.verification.verify import verify
from turngym.errors import ConfigError

EPISODES = 12
DERIVED = {"aggregate", "interval", "count", "normalised", "usage"}
"""What a changed episode also changes."""


@pytest.fixture(scope="module")
def true(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a submission as the command writes it; the random agent wins some games and loses others."""
    path = tmp_path_factory.mktemp("submissions") / "true"
    words = ["eval", ENV, "--agent", "random", "--episodes", str(EPISODES), "--seed", "5", "--baselines"]
    assert main([*words, "--out", str(path)]) == 0
    return path


@pytest.fixture
def files(true: Path, tmp_path: Path) -> Files:
    return Files(true, tmp_path / "forged")


def test_a_true_submission_is_accepted_and_replayed(true: Path) -> None:
    found = verify(true, replay=1, baselines=True)
    assert found.is_accepted and found.label == "replayed" and found.findings == ()
    assert found.episodes == found.replayed == EPISODES


def test_a_copy_that_was_only_written_anew_is_accepted(files: Files) -> None:
    assert verify(files.save(), replay=1).is_accepted
    files.fit()
    assert verify(files.save(), replay=1).is_accepted, "else the careful forgeries below would prove nothing"


def test_without_replay_it_is_only_self_reported(true: Path) -> None:
    found = verify(true, replay=0)
    assert found.is_accepted and found.label == "self-reported" and found.replayed == 0


@pytest.mark.parametrize("name", CARELESS)
def test_each_kind_of_tampering_is_rejected_by_its_name(name: str, files: Files) -> None:
    CARELESS[name](files)
    found = verify(files.save(), replay=0)
    names = {finding.name for finding in found.findings}
    assert found.label == "rejected" and name in names
    also = {
        "success": {"end"},
        "invalid-actions": {"usage"},
        "foreign-episode": {"missing-transcript", "results"},  # the method of the interval changes
        "duplicate-episode": {"results"},
        "missing-episode": {"missing-transcript"},
        "options": {"suite"},
        "verifier": {"results"},
    }
    assert names <= {name} | DERIVED | also.get(name, set()), "and nothing is blamed that was not touched"


@pytest.mark.parametrize("name", CAREFUL)
def test_a_forgery_in_which_all_files_fit_is_found_by_playing_again(name: str, files: Files) -> None:
    CAREFUL[name](files)
    files.fit()
    path = files.save()
    assert verify(path, replay=0).is_accepted, "nothing else shows it"
    found = verify(path, replay=1)
    assert found.label == "rejected" and name in {finding.name for finding in found.findings}


def test_every_finding_is_shown_by_a_tampering() -> None:
    assert set(CARELESS) | set(CAREFUL) == set(FINDINGS)


def test_better_luck_with_other_tasks_is_no_result(tmp_path: Path) -> None:
    """A forger plays many runs of seeds and passes off the best as the run that is asked for."""
    path = tmp_path / "lucky"
    assert main(["eval", ENV, "--agent", "random", "--episodes", "6", "--seed", "7", "--out", str(path)]) == 0
    config = json.loads((path / "config.json").read_text("utf8"))
    config["sampling"]["seed"] = 0
    (path / "config.json").write_text(json.dumps(config), "utf8")
    (finding,) = verify(path, replay=1).findings
    assert finding.name == "seeds" and "seed number 0" in finding.message


def test_one_lucky_task_played_often_is_no_result(files: Files) -> None:
    seeds = files.config["environments"][0]["seeds"]
    files.config["environments"][0]["seeds"] = [seeds[files.first(1)]] * EPISODES
    assert "seeds" in {finding.name for finding in verify(files.save(), replay=0).findings}


def test_a_baseline_played_by_another_player_is_found_by_playing_it_again(files: Files) -> None:
    """All files fit and every replay is true; but the episodes of ``random`` are not those of the random agent."""
    worst = [row for row in files.baselines if row["player"] == "random" and row["success"] == 0]
    path = files.path.parent / "always-left"
    words = ["eval", ENV, "--agent", "scripted:nonsense", "--episodes", str(EPISODES), "--seed", "5"]
    assert worst and main([*words, "--out", str(path)]) == 0
    lines = (path / "episodes.jsonl").read_text("utf8").splitlines()
    kept = [row for row in files.baselines if row["player"] != "random"]
    files.baselines = kept + [{**json.loads(line), "player": "random"} for line in lines]
    files.fit()
    forged = files.save()
    assert verify(forged, replay=1).is_accepted
    assert {finding.name for finding in verify(forged, replay=0, baselines=True).findings} == {"baseline"}


def test_a_sample_is_drawn_anew_unless_its_seed_is_given(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    CAREFUL["replay-observation"](files)
    files.fit()
    path = files.save()
    seeds = {verify(path, replay=0.05).seed for _ in range(3)}
    assert len(seeds) == 3, "a draw that can be foretold tells which episodes may be forged"
    assert not verify(path, replay=0.05).is_accepted, "where playing is cheap, all of them are played again"
    monkeypatch.setattr("turngym.benchmarks.verification.replay.SECONDS", 0.0)
    verdicts = [verify(path, replay=0.05, seed=seed) for seed in range(20)]
    assert {found.replayed for found in verdicts if found.is_accepted} == {1}
    caught = [not found.is_accepted for found in verdicts]
    assert any(caught) and not all(caught), "one of twelve episodes is forged, one is drawn"
    assert caught[:5] == [not verify(path, replay=0.05, seed=seed).is_accepted for seed in range(5)]


def test_repeated_attempts_are_checked_each(tmp_path: Path) -> None:
    path = tmp_path / "repeats"
    words = ["eval", ENV, "--agent", "random", "--episodes", "3", "--repeats", "4", "--out", str(path)]
    assert main(words) == 0
    assert verify(path, replay=1).replayed == 12
    rows = [json.loads(line) for line in (path / "episodes.jsonl").read_text("utf8").splitlines()]
    del rows[5]
    (path / "episodes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf8")
    names = {finding.name for finding in verify(path, replay=0).findings}
    assert {"missing-episode", "missing-transcript"} <= names


def test_an_evaluation_that_ran_out_of_time_is_told_as_incomplete(tmp_path: Path) -> None:
    path = tmp_path / "out-of-time"
    words = ["eval", ENV, "--agent", "random", "--episodes", "3", "--time-budget", "0.0000001", "--out", str(path)]
    assert main(words) == 0
    found = verify(path)
    assert [finding.name for finding in found.findings] == ["missing-episode"] * 3
    assert [finding.message for finding in found.findings] == [f"task {n} has no attempt 0" for n in range(3)]


def test_a_resumed_evaluation_is_as_good_as_one_in_one_go(true: Path, tmp_path: Path) -> None:
    path = tmp_path / "resumed"
    shutil.copytree(true, path)
    (path / "results.json").unlink()
    for name, kept in (("episodes", 5), ("transcripts", 5), ("baselines", 0)):
        lines = (path / f"{name}.jsonl").read_text("utf8").splitlines(keepends=True)
        (path / f"{name}.jsonl").write_text("".join(lines[:kept]), "utf8")
    assert {finding.name for finding in verify(path).findings} == {"schema"}
    words = ["eval", ENV, "--agent", "random", "--episodes", str(EPISODES), "--seed", "5", "--baselines"]
    assert main([*words, "--out", str(path), "--resume"]) == 0
    assert verify(path, replay=1, baselines=True).label == "replayed"
    numbers = [json.loads((each / "results.json").read_text("utf8"))["environments"] for each in (true, path)]
    assert numbers[0] == numbers[1]


def test_transcripts_are_optional_because_actions_are_enough(true: Path, tmp_path: Path) -> None:
    path = tmp_path / "bare"
    shutil.copytree(true, path)
    (path / "transcripts.jsonl").unlink()
    found = verify(path, replay=1)
    assert found.label == "replayed" and any("no transcripts" in note for note in found.notes)


@pytest.mark.parametrize("text", ["{", "[1]", '{"returns": NaN}', "[" * 100_000])
def test_damaged_files_are_findings_and_no_crash(text: str, true: Path, tmp_path: Path) -> None:
    path = tmp_path / "damaged"
    shutil.copytree(true, path)
    (path / "episodes.jsonl").write_text(text, "utf8")
    found = verify(path)
    assert {finding.name for finding in found.findings} == {"schema"} and found.replayed == 0


@pytest.mark.parametrize("change", [{"elo": 2000}, {"complete": False, "unplayed": {}}], ids=["name", "unplayed"])
def test_results_hold_nothing_beside_what_is_checked(change: dict[str, object], files: Files) -> None:
    files.results |= change
    (finding,) = verify(files.save(), replay=0).findings
    assert finding.name == "results"
    files.results["baselines"]["random"]["elo"] = 2000
    assert any("holds 'elo'" in each.message for each in verify(files.save(), replay=0).findings)


@pytest.mark.parametrize("value", ["0.5", None, True, [0.5], {}])
def test_only_a_number_is_a_number(value: object, files: Files) -> None:
    files.results["environments"][ENV]["turns"]["value"] = value
    (finding,) = verify(files.save(), replay=0).findings
    assert finding.name == "aggregate" and finding.place.endswith("turns")


@pytest.mark.parametrize("value", [None, [], {}, {"random": None}, {"random": {"environments": {}}}])
def test_misshapen_baselines_are_findings_and_no_crash(value: object, files: Files) -> None:
    files.results["baselines"] = value
    assert not verify(files.save(), replay=0).is_accepted


JUNK: tuple[Any, ...] = (None, -1, "x", [], {}, 1e308, True, 2**70, "evil:mod", [None], {"a": None}, 0.5)


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to everything inside of a JSON value; of a list, only to the first two."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*path, key)
        yield from paths(each, (*path, key))


@pytest.mark.parametrize("seed", range(30))
def test_junk_anywhere_is_answered_and_never_raised(seed: int, files: Files) -> None:
    draw = random.Random(seed)
    table = getattr(files, draw.choice(["config", "results", "results", "episodes", "transcripts", "baselines"]))
    *way, last = draw.choice(list(paths(table)))
    for key in way:
        table = table[key]
    if draw.random() < 0.2:
        del table[last]
    else:
        table[last] = draw.choice(JUNK)
    found = verify(files.save(), replay=1, seed=seed)
    assert found.label in ("rejected", "replayed"), "what nothing is computed from, such as a date, may be anything"


@pytest.mark.parametrize("env", ["evil_module:Evil-v0", "evil_module"])
def test_nothing_that_a_submission_names_is_imported(
    env: str, files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "evil_module.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    files.config["environments"][0]["env"] = env
    files.config["suite"]["name"] = files.results["suite"] = env
    found = verify(files.save(), replay=1)
    assert not found.is_accepted and any("not registered here" in note for note in found.notes)
    files.config["environments"][0] |= {"env": "turngym/TicTacToeSeat-v0", "options": {"game": "evil_module:Evil"}}
    found = verify(files.save(), replay=1)
    assert any("not one that a file may ask for" in note for note in found.notes) and "evil_module" not in sys.modules


def test_the_command_tells_names_places_and_the_way_to_repeat_the_draw(
    true: Path, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", str(true), "--seed", "3"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "is accepted, label: replayed." in shown and "that claim something among them (--seed 3)." in shown
    CARELESS["reward"](files)
    assert main(["verify", str(files.save()), "--seed", "3"]) == 1
    shown = capsys.readouterr().out
    assert "FAIL reward" in " ".join(shown.split()) and FINDINGS["reward"] in shown
    row = files.episodes[files.first(0)]
    assert f"task {row['task']}, attempt 0: the return is {row['returns']}, but the rewards sum to 0.0" in shown


def test_json_holds_every_finding_with_its_meaning(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    CARELESS["count"](files)
    assert main(["verify", str(files.save()), "--json", "--replay", "0"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["accepted"], found["label"], found["version"]) == (False, "rejected", 1)
    assert {finding["name"] for finding in found["findings"]} == {"count", "normalised"}
    finding = found["findings"][0]
    assert finding["name"] == "count" and finding["meaning"] == FINDINGS["count"]
    assert finding["message"] == "n_games is 1200, expected 12"


def test_what_is_no_submission_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="there is no folder"):
        verify(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="is not a submission: `turngym eval"):
        verify(tmp_path)
    (tmp_path / "config.json").write_text('{"pairing": "sides"}')
    with pytest.raises(ConfigError, match="is the folder of a tournament"):
        load_submission(tmp_path)
    assert not verify(tmp_path).is_accepted, "a tournament can be checked, this one lacks its files"
    assert main(["verify", str(tmp_path), "--replay", "5"]) == 2
    assert "--replay must be in [0, 1], got 5.0." in capsys.readouterr().err
    assert main(["verify", str(tmp_path), "--seed", "-1"]) == 2
    assert "--seed must be 0 or more, got -1." in capsys.readouterr().err
