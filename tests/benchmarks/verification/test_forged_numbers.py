"""A law: no number of an episode can be changed so that a published number looks better and nothing says so."""

import copy
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from submissions import play
from tampering import Files

from turngym.agents.episodes.evaluate import record_of
from turngym.agents.recordings.submission import load_submission
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.benchmarks.leaderboard.entries import read_entries
from turngym.benchmarks.leaderboard.table import build_leaderboard
from turngym.benchmarks.suites import SUITES, Suite, SuiteEntry
from turngym.benchmarks.verification.verify import verify
from turngym.errors import ConfigError

SCORED = "forged-numbers"
LAKE, BANDIT = "turngym/FrozenLake-v0", "turngym/BernoulliBandit-v0"
CHEAPER = ("turns", "invalid_actions", "faults", "context", "seconds", "usage")
"""Published numbers of which less is better."""
SETTINGS = ("task", "attempt", "seed")
"""Numbers that say which episode it is."""


@pytest.fixture(scope="module", autouse=True)
def scored() -> Iterator[None]:
    """Register a suite whose number is the score, of an environment whose scores can be negative."""
    entry = SuiteEntry(BANDIT, {"horizon": 10}, 5)
    SUITES.register(SCORED)(Suite(SCORED, 1, "Scores.", (entry,), metric="score"))
    yield
    SUITES._forget(SCORED, __name__)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory, scored: None) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("forged")
    more = ("--seed", "5", "--baselines", "--best-of", "2", "--verifier", "progress")
    return {
        "success": play(folder / "success", "random", *more, episodes=4),
        "score": play(folder / "score", "random", target=SCORED, episodes=5),
    }


def published(path: Path) -> dict[str, float]:
    """Return every number that is shown of a submission, as if more were better."""
    entries, left_out = read_entries([path])
    assert not left_out
    (table,) = build_leaderboard(entries).as_json()["tables"]
    (entry,) = table["rows"]
    (metrics,) = json.loads((path / "results.json").read_text("utf8"))["environments"].values()
    kept = ("folder", "name", "ranks", "status", "complete", "episodes", "metadata", "families", "environments")
    numbers = dict(_numbers({**metrics, **{key: each for key, each in entry.items() if key not in kept}}))
    return {name: -value if name.startswith(CHEAPER) else value for name, value in numbers.items()}


def _numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for key, each in value.items():
            if key not in ("ci_low", "ci_high", "stderr", "n_games", "n_blocks", "n_turns", "higher_is_better"):
                yield from _numbers(each, f"{name}.{key}" if name else key)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, float(value)


def ways(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every number inside of a row, None among them: a cost may be given where there is none."""
    for key, each in value.items():
        if isinstance(each, dict):
            yield from ways(each, (*path, key))
        elif (each is None or isinstance(each, int | float)) and not isinstance(each, bool):
            yield (*path, key)


def changed(row: dict[str, Any], way: tuple[Any, ...], change: float) -> None:
    *outer, last = way
    for key in outer:
        row = row[key]
    row[last] = (row[last] or 0) + change


CHANGES: tuple[float, ...] = (1, 1e6, -1, -0.001)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", ["success", "score"])
def test_no_number_of_an_episode_makes_a_published_one_better_unseen(
    name: str, change: float, originals: dict[str, Path], tmp_path: Path
) -> None:
    true = published(originals[name])
    first = Files(originals[name], tmp_path / "first").episodes
    rows = [number for _, number in sorted({row["success"]: number for number, row in enumerate(first)}.items())]
    rows = [rows[0] if change > 0 else rows[-1]]  # more for a failure, less for a success
    tried = accepted = 0
    for number in rows:
        for way in ways(first[number]):
            if way[0] in SETTINGS:
                continue
            files = Files(originals[name], tmp_path / f"{number}-{'-'.join(way)}")
            for row in (files.episodes[number], *([files.told(number)] if way in (("score",), ("success",)) else [])):
                changed(row, way, change)
            if way == ("returns",):
                files.told(number)["turns"][-1]["reward"] += change
            try:
                files.fit()
            except (TypeError, ValueError):
                continue  # nothing can be computed from it
            tried += 1
            found = verify(files.save(), seed=0)
            if found.is_accepted:
                accepted += 1
                better = {
                    key for key, value in published(files.path).items() if value > true.get(key, -math.inf) + 1e-9
                }
                metric = files.config["suite"]["metric"]
                seen = {
                    key.split(".")[0].replace("mean", metric) if key.startswith("mean.") else key.split(".")[0]
                    for key in better
                }
                assert seen <= found.not_recomputed.keys(), (way, change, better)
    assert tried > 10 and accepted < tried


def break_one(files: Files, **claims: Any) -> None:
    """Turn the worst episode into one that broke, as a forger would."""
    number = min(range(len(files.episodes)), key=lambda each: files.episodes[each]["score"])
    broken = {"status": "env_error", "fault": "it broke", "terminated": False, "truncated": True}
    files.episodes[number] |= {**broken, "score": 0.0, "success": 0, "returns": 0.0, **claims}
    files.told(number).update({key: files.episodes[number][key] for key in ("score", "success")})


@pytest.mark.parametrize("claims", [{"score": 1e6}, {"success": 1}, {"returns": 5.0}, {"score": 0.5}])
def test_a_row_that_broke_claims_nothing(claims: dict[str, Any], originals: dict[str, Path], tmp_path: Path) -> None:
    files = Files(originals["score"], tmp_path / "forged")
    break_one(files, **claims)
    files.fit()
    path = files.save()
    found = verify(path, replay=1)
    assert "schema" in {finding.name for finding in found.findings} and found.label == "rejected"
    assert "it broke, so it has success 0" in " ".join(finding.message for finding in found.findings)
    with pytest.raises(ConfigError, match="it broke"):  # so no other command computes a mean from it
        load_submission(path)


def test_where_scores_can_be_negative_a_broken_row_weakens_the_label(
    originals: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngym.benchmarks.verification.tasks._MOST_ERRORS", 1.0)
    assert verify(originals["score"]).label == "replayed"
    files = Files(originals["score"], tmp_path / "forged")
    break_one(files)
    files.fit()
    found = verify(files.save())
    assert found.label == "partly replayed" and "score" in found.not_recomputed


@pytest.mark.parametrize("score", [1.5, -5.0, 1e6])
def test_a_score_lies_in_the_range_of_its_environment(score: float, originals: dict[str, Path], tmp_path: Path) -> None:
    files = Files(originals["score"], tmp_path / "forged")
    for each in (files.episodes[0], files.told(0)):
        each["score"] = score
    files.fit()
    (finding,) = verify(files.save(), replay=0).findings
    assert finding.name == "score" and "lie in -" in finding.message


def verifier_knows(files: Files) -> None:
    for row in files.episodes:
        row["verifier"]["score"] = float(row["success"])


def test_verifier_scores_set_to_the_outcome_are_named(originals: dict[str, Path], tmp_path: Path) -> None:
    files = Files(originals["success"], tmp_path / "forged")
    verifier_knows(files)
    files.fit()
    found = verify(files.save())
    assert found.is_accepted and "verifier" in found.not_recomputed["chosen_of_2"]
    entries, _ = read_entries([files.path], lambda folder: verify(folder))
    (table,) = build_leaderboard(entries).as_json()["tables"]
    assert "chosen_of_2" in table["rows"][0]["not_recomputed"]


def _usage(**values: Any) -> Callable[[Files], None]:
    return lambda files: files.episodes[0]["seats"]["player_0"].update(values)


def _metadata(**values: Any) -> Callable[[Files], None]:
    return lambda files: files.metadata.update(values)


def _environment(**values: Any) -> Callable[[Files], None]:
    def forge(files: Files) -> None:
        files.config["environments"][0].update(copy.deepcopy(values))
        if "options" in values:
            for row in [*files.episodes, *files.baselines]:
                row["options"] = values["options"]

    return forge


def _seed(seed: Any) -> Callable[[Files], None]:
    return lambda files: files.config["sampling"].update(seed=seed)


def _cut_after_a_lost_answer(files: Files) -> None:
    """Stop an episode after its first turn and tell that the agent lost an answer."""
    row, told = files.episodes[0], files.told(0)
    told["turns"] = told["turns"][:1]
    illegal = int(not told["turns"][0]["action_is_valid"])
    row |= {"actions": row["actions"][:1], "length": 1, "returns": told["turns"][0]["reward"], "success": 0}
    row |= {"status": "agent_error", "terminated": False, "truncated": False, "illegal": illegal}
    row["seats"]["player_0"].update(lost=1, illegal=illegal)
    told["success"] = 0


FORGED: dict[str, tuple[Callable[[Files], None], str]] = {
    "negative tokens": (_usage(tokens_in=-5), "schema"),
    "a negative cost": (_usage(cost=-1.0), "schema"),
    "a negative latency": (_usage(latency=-1.0), "schema"),
    "negative calls": (_usage(calls=-1), "schema"),
    "lost answers of an episode without errors": (_usage(lost=1), "usage"),
    "an end before the start": (_metadata(finished="1926-01-01T00:00:00+00:00"), "schema"),
    "no date": (_metadata(date="2199-13-45"), "schema"),
    "a date to come": (_metadata(date="2199-12-31"), "date"),
    "a long name": (_metadata(name="x" * 2_000_000), "schema"),
    "a long story": (_metadata(contact="x" * 2_000_000), "schema"),
    "an option of another kind": (_environment(options={"split": "test", "size": "huge"}), "options"),
    "an option that is not there": (_environment(options={"split": "test", "siez": 4}), "options"),
    "a split that is not there": (_environment(options={"split": "exam"}), "options"),
    "a wrapper that is not there": (_environment(wrappers=["nonsense"]), "options"),
    "an option of a wrapper that is not there": (_environment(wrappers=["history:x=2"]), "options"),
    "a wrapper that cannot be read": (_environment(wrappers=["history:"]), "options"),
    **{f"{seed!r} as seed": (_seed(seed), "schema") for seed in (None, "abc", 0.5, True, [0])},
    "a seed of other tasks": (_seed(7), "seeds"),
    "an episode that stops after a lost answer": (_cut_after_a_lost_answer, "end"),
    "another start of an episode": (lambda files: files.episodes[0].update(started="2020-01-01"), "date"),
}


@pytest.mark.parametrize("name", FORGED)
def test_what_cannot_be_is_a_finding(name: str, originals: dict[str, Path], tmp_path: Path) -> None:
    forge, finding = FORGED[name]
    files = Files(originals["success"], tmp_path / "forged")
    forge(files)
    files.fit()
    found = verify(files.save())
    assert finding in {each.name for each in found.findings}, found


def test_a_suite_of_one_environment_is_known_where_it_cannot_be_made(
    originals: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("turngym.benchmarks.verification.tasks.refused", lambda environment: "not here")
    assert verify(originals["success"], replay=0).is_accepted
    files = Files(originals["success"], tmp_path / "forged")
    files.config["suite"].update(version=99, protocol="anything", metric="score")
    files.results.update(version=99, metric="score")
    files.fit()
    found = [each.message for each in verify(files.save(), replay=0).findings if each.name == "suite"]
    assert [message.split()[0] for message in found] == ["version", "metric", "protocol"]


def test_a_copy_under_another_name_is_named(originals: dict[str, Path], tmp_path: Path) -> None:
    files = Files(originals["success"], tmp_path / "copy")
    files.metadata["name"] = "mine"
    other = play(tmp_path / "other", "random", "--seed", "6", "--best-of", "2", "--verifier", "progress", episodes=4)
    entries, _ = read_entries([originals["success"], files.save(), other])
    tables = build_leaderboard(entries).as_json()["tables"]
    shared = {
        row["name"]: row["same_episodes"] for table in tables for row in table["rows"] if row["folder"] != str(other)
    }
    assert shared == {"random": {str(files.path): 8}, "mine": {str(originals["success"]): 8}}
    assert [row["same_episodes"] for table in tables for row in table["rows"] if row["folder"] == str(other)] == [{}]


def test_an_episode_that_broke_is_written_without_a_score() -> None:
    turn = Turn("", "", "", reward=3.0)
    broken = Trajectory(EpisodeSpec(0, 0), turns=[turn], success=1, score=0.7, fault="it broke", truncated=True)
    row = record_of(broken)
    assert (row["success"], row["score"], row["returns"], row["status"]) == (0, 0.0, 0.0, "env_error")
