"""What the viewer reads: every kind of file, lazily, and whatever is broken in it."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from view_runs import HOSTILE, evaluation, hostile_record, recording, tournament, written

from turngym.benchmarks.pages.viewer import jsonl
from turngym.benchmarks.pages.viewer.forms import as_json, picture_of
from turngym.benchmarks.pages.viewer.jsonl import Broken, Lines, each_line, parsed
from turngym.benchmarks.pages.viewer.recordings import recording_form
from turngym.benchmarks.pages.viewer.replayed import replayed
from turngym.benchmarks.pages.viewer.runs import Run, open_run
from turngym.benchmarks.pages.viewer.summaries import Summary, matches, of_record, words_of
from turngym.errors import ConfigError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def opened(path: Path) -> Run:
    run = open_run(path)
    run.has_traces = True
    run.search()
    run.wait_for()
    return run


def forms(run: Run) -> list[dict[str, Any]]:
    return [run.form(summary) for summary in run.known]


# Lines.


@given(st.lists(st.binary(max_size=30).filter(lambda line: b"\n" not in line), max_size=20), st.booleans(), st.data())
@settings(max_examples=60)
def test_a_line_is_found_wherever_it_is_asked_for(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], ends: bool, data: st.DataObject
) -> None:
    content = b"\n".join(lines) + (b"\n" if ends and lines else b"")
    file = tmp_path_factory.mktemp("lines") / "file"
    file.write_bytes(content)
    *whole, rest = content.split(b"\n")
    expected = [line + b"\n" for line in whole] + ([rest] if rest else [])
    assert [line for _, line in each_line(file)] == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl, "_CHUNK", data.draw(st.integers(1, 40)))
        places = Lines(file)
        for number in data.draw(st.permutations(range(len(expected) + 2))):
            place = places.place(number)
            if number >= len(expected):
                assert place is None
            else:
                assert place is not None and jsonl.read(file, place) == expected[number]
                assert place.line == number + 1


def test_a_line_that_is_too_long_is_told_about_and_skipped(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"a" * 100 + b"\nshort\n" + b"b" * 30)
    found = list(each_line(file, longest=10))
    assert [(place.start, place.length, place.line) for place, _ in found] == [(0, 101, 1), (101, 6, 2), (107, 30, 3)]
    assert [len(line) for _, line in found] == [11, 6, 11]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"a": \n', "is not JSON"),
        (b'{"a"', "is cut short"),
        (b"[1]\n", "holds list"),
        (b"[" * 100_000 + b"\n", "is not JSON"),
        (b"\xff\xfe\n", "is not JSON"),
    ],
)
def test_a_broken_line_says_what_is_wrong(line: bytes, reason: str) -> None:
    with pytest.raises(Broken, match=f"line 4.*{reason}"):
        parsed(line, 4)


@given(st.dictionaries(st.sampled_from([*Summary.__slots__, "turns", "actions", "label", "match", "winners"]), JSON))
def test_any_record_gives_a_summary_and_json(record: dict[str, Any]) -> None:
    summary = of_record(record, 0, 0, jsonl.Place(0, 1, 1))
    assert json.loads(as_json(summary.row()))["n"] == 0 and isinstance(matches(summary, ["x"]), bool)


# Kinds of folders and files.


def test_an_evaluation_shows_rows_with_their_transcripts(tmp_path: Path) -> None:
    run = opened(evaluation(tmp_path / "run"))
    assert run.kind == "evaluation" and len(run.known) == 6
    assert [(each.task, each.attempt) for each in run.known] == [(str(task), k) for task in range(3) for k in range(2)]
    told = [json.loads(line) for line in (tmp_path / "run/transcripts.jsonl").read_text().splitlines()]
    for form, transcript in zip(forms(run), told, strict=True):
        assert [turn["seen"] for turn in form["turns"]] == [turn["observation"] for turn in transcript["turns"]]
        assert form["final"]["seen"] == transcript["final_observation"] and not form["notes"]
        assert "--seed " + str(transcript["seed"]) in form["replay"]["command"]
    assert all(each.trace and len(each.trace) == 4 * each.turns for each in run.known)


def test_transcripts_in_another_order_find_their_rows(tmp_path: Path) -> None:
    """As after a kill; one that is missing, or broken, leaves the actions."""
    run = opened(evaluation(tmp_path / "run"))
    expected = forms(run)
    file = tmp_path / "run/transcripts.jsonl"
    lines = file.read_text("utf8").splitlines()
    file.write_text("\n".join([lines[4], "{broken", *lines[1:4], lines[0]]) + "\n", "utf8")
    again = opened(tmp_path / "run")
    found = forms(again)
    assert found[:5] == expected[:5]
    assert found[5]["notes"][0] == "There is no transcript of this episode."
    assert [turn["action"] for turn in found[5]["turns"]] == [turn["action"] for turn in expected[5]["turns"]]
    file.unlink()
    assert "A replay shows what was seen." in forms(opened(tmp_path / "run"))[0]["notes"][0]


def test_a_replay_shows_what_was_recorded(tmp_path: Path) -> None:
    run = opened(evaluation(tmp_path / "run"))
    for form in forms(run):
        again = replayed(form["replay"], [turn["seen"] for turn in form["turns"]])
        assert again["seen"][:-1] == [turn["seen"] for turn in form["turns"]] and not again["note"]
        assert again["seen"][-1] == form["final"]["seen"] and again["instructions"]
    changed = {**form["replay"], "seed": form["replay"]["seed"] + 1, "actions": ["4"] * 4}
    assert "something else" in replayed(changed, ["another text"] * 4)["note"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"env": "os:path"}, "not registered"),
        ({"options": {"word_list": "/etc/passwd"}}, "no option 'word_list'"),
        ({"wrappers": ['tools:tools=["os:getcwd"]']}, "not declared safe"),
        ({"wrappers": ["recipe_progress:path=/etc/passwd"]}, "not one that a file may ask for"),
        ({"wrappers": ["caption_reward:labeller=os:system"]}, "not one that a file may ask for"),
        ({"env": "turngym/OpenEnv-v0", "options": {"url": "http://127.0.0.1:1"}}, "not declared safe"),
        ({"env": "turngym/Jericho-v0", "options": {"story": "story.z5"}}, "not declared safe"),
        ({"env": "turngym/CodeRepair-v0", "options": {"sandbox": "docker"}}, "not one that a file may ask for"),
        ({"env": "turngym/SearchQA-v0", "options": {"engine": "qdrant"}}, "not one that a file may ask for"),
        ({"header": {"options": {"file": "os:path"}}}, "could name a module or a file"),
        ({"header": {"wrappers": [{"name": "tools", "options": {"tools": ["os:getcwd"]}}]}}, "not declared safe"),
        ({"options": {"low": "x"}}, "cannot be played again"),
        ({"options": {"no such": 1}}, "cannot be played again"),
    ],
)
def test_a_file_cannot_make_a_replay_import_or_write_anything(change: dict[str, Any], reason: str) -> None:
    source = {"env": "turngym/GuessTheNumber-v0", "options": {}, "wrappers": [], "seed": 1, "actions": ["5"], **change}
    assert reason in replayed(source)["note"]


def test_a_recording_shows_what_was_seen_before_each_action(tmp_path: Path) -> None:
    run = opened(recording(tmp_path))
    assert [(each.seed, each.status) for each in run.known] == [("3", "ok"), ("", "ok"), ("5", "cut")]
    for form in forms(run):
        again = replayed(form["replay"], [turn["seen"] for turn in form["turns"]])
        assert again["seen"][:-1] == [turn["seen"] for turn in form["turns"]] and again["note"] == ""
    assert forms(run)[2]["notes"] == ["The episode was interrupted before its end."]


def test_pictures_of_a_recording_are_painted_again(tmp_path: Path) -> None:
    run = opened(recording(tmp_path, "turngym/Sokoban-v0", image=True, max_turns=3))
    form = run.form(run.known[0])
    assert form["replay"]["has_pictures"] and isinstance(form["turns"][0]["seen"], str)
    images = replayed(form["replay"])["images"]
    assert len(images) == len(form["turns"]) + 1 and all(picture_of(image) == image for image in images)


def test_a_game_shows_each_seat_what_it_saw_and_no_more(tmp_path: Path) -> None:
    run = opened(tournament(tmp_path / "games"))
    assert run.kind == "tournament" and {each.winner for each in run.known} <= {"village", "werewolves", "nobody"}
    for form in forms(run):
        assert not form["notes"] and len(form["seats"]) == 5
        for seat in range(5):
            told = "\n".join(event["text"] for event in form["events"] if seat in event.get("to", ()))
            asked = [turn["seen"] for turn in form["turns"] if turn["seat"] == seat]
            assert [f"You are player_{k}." in told for k in range(5)] == [k == seat for k in range(5)]
            for line in (line for text in asked for line in text.split("\n")[:-1]):
                assert line in told
        for seat, total in enumerate(each["return"] for each in form["seats"]):
            earned = sum(event["rewards"][seat] for event in form["events"] if "rewards" in event)
            assert earned == pytest.approx(total)


def test_a_game_of_other_rules_says_so(tmp_path: Path) -> None:
    path = tournament(tmp_path / "games")
    lines = [json.loads(line) for line in (path / "episodes.jsonl").read_text().splitlines()]
    lines[0]["transcript_sha256"] = "0" * 64
    lines[1]["env"], lines[2]["actions"] = "os:path", [[0, "no action"], ["x", "y"], 3]
    written(path / "episodes.jsonl", *lines)
    first, second, third, *_ = forms(opened(path))
    assert "tell another story" in first["notes"][0] and first["events"]
    assert "is not registered" in second["notes"][0] and second["turns"]
    assert "cannot be played again" in third["notes"][0] and len(third["turns"]) == 3


def test_a_training_run_shows_its_samples(tmp_path: Path) -> None:
    sample = {"env": "turngym/Sokoban-v0", "seed": 3, "turns": [{"observation": "x", "action": "up", "reward": 1}]}
    written(tmp_path / "samples/iteration-000040.jsonl", sample)
    written(tmp_path / "samples/final-greedy.jsonl", sample, sample)
    written(tmp_path / "config.json", {"env": "turngym/Sokoban-v0", "env_options": {"view": "grid"}})
    run = opened(tmp_path)
    assert [each.name for each in run.known] == ["final-greedy", "final-greedy", "iteration-000040"]
    splits = [form["replay"]["options"]["split"] for form in forms(run)]
    assert splits == ["test", "test", "train"] and "--option view=grid" in forms(run)[0]["replay"]["command"]


def test_what_cannot_be_viewed_says_what_can(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no episodes"):
        open_run(tmp_path)
    with pytest.raises(ConfigError, match="there is nothing at"):
        open_run(tmp_path / "missing")


# Broken and hostile files.


def test_broken_lines_stand_in_the_list_and_cost_no_other_line(tmp_path: Path) -> None:
    good = {"env": "e", "seed": 1, "turns": [{"action": "a", "reward": 2}]}
    lines = (good, "{half", "", {"no": "episode"}, "[]", good)
    run = opened(written(tmp_path / "run.jsonl", *lines, '{"env": "e", "turns": [', end=""))
    assert [each.status for each in run.known] == ["ok", "broken", "broken", "ok", "broken", "ok", "broken"]
    found = forms(run)
    assert [bool(form["fault"]) for form in found] == [False, True, True, True, True, False, True]
    assert "cut short" in found[-1]["fault"] and found[1]["facts"] == [["begins with", "{half\n"]]
    assert [each.returns for each in run.known if each.turns] == [2.0, 2.0]


def test_a_broken_line_within_a_recording_leaves_a_note(tmp_path: Path) -> None:
    file = recording(tmp_path) / "0000.jsonl"
    lines = file.read_text("utf8").splitlines()
    lines[3] = lines[3][:20]
    ends = [number for number, line in enumerate(lines) if '"kind": "end"' in line]
    del lines[ends[1]]
    file.write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:9], "utf8")
    run = opened(tmp_path)
    assert [(each.seed, each.status) for each in run.known] == [("3", "ok"), ("", "cut"), ("5", "cut")]
    first, second, third = forms(run)
    assert "line 4" in first["notes"][0] and "line 4" in run.known[0].fault
    assert "has no end" in second["notes"][0] and "is cut short" in " ".join(third["notes"]) + run.known[2].fault
    assert recording_form(b"\n\n", 1)["turns"] == []


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    run = opened(written(tmp_path / "run.jsonl", hostile_record()))
    (form,) = forms(run)
    assert "<" not in as_json(form) and json.loads(as_json(form))["turns"][0]["seen"] == HOSTILE
    assert len(form["turns"]) == 2 and "image" not in form["turns"][0] and "image" not in form["final"]
    assert form["turns"][0]["logprobs"] == [-0.5, None] and form["turns"][0]["advantages"] == [1.0, None]
    assert form["turns"][0]["reward"] is None and run.known[0].score is None


@given(
    st.dictionaries(
        st.sampled_from(["turns", "actions", "seed", "env", "match", "seat_map", "final_observation"]), JSON
    )
)
def test_any_record_becomes_a_form(tmp_path_factory: pytest.TempPathFactory, record: dict[str, Any]) -> None:
    folder = tmp_path_factory.mktemp("any")
    (form,) = forms(opened(written(folder / "run.jsonl", record)))
    assert json.loads(as_json(form)).keys() >= {"facts", "notes", "fault", "turns", "final", "replay"}


# Laziness.


def test_the_first_episode_is_there_before_the_last_one_is_read(tmp_path: Path) -> None:
    """The search is held up in the middle of the file: what comes before can be read."""
    good = {"env": "e", "seed": 1, "turns": [{"action": "a"}]}
    run = open_run(written(tmp_path / "run.jsonl", *[good] * 1000))
    gate, reached, original = threading.Event(), threading.Event(), run._scan

    def held_up() -> Any:
        for summary in original():
            if summary.index == 500:
                reached.set()
                assert gate.wait(60)
            yield summary

    run._scan = held_up  # type: ignore[method-assign]
    run.search()
    assert reached.wait(60) and not run.is_complete
    assert run.wait_for(1) == 500 and run.form(run.known[0])["turns"]
    gate.set()
    assert run.wait_for() == 1000 and run.is_complete


def test_words_of_a_query_must_all_occur() -> None:
    one = Summary(0, 0, jsonl.Place(0, 1, 1), "Sokoban", "turngym/Sokoban-v0", "70", "3", success=0, invalid=2)
    for query in ("soko failed", "seed:70", "task:3", "task:Sokoban#3", "INVALID", ""):
        assert matches(one, words_of(query)), query
    for query in ("solved", "seed:7", "task:30", "soko hanoi", "fault"):
        assert not matches(one, words_of(query)), query
