"""The journal: what is written is read again, whatever a kill cuts off; segments forget what is over."""

import itertools
import math
from pathlib import Path

import pytest

from turngym.agents.episodes.stream import OpenTurn
from turngym.agents.trajectory import EpisodeSpec, Trajectory, Turn
from turngym.errors import CheckpointError
from turngym.trainers.loop.asynchronous.history import (
    History,
    Record,
    begun_record,
    finished_record,
    planned_record,
    trained_record,
    turn_record,
    whole_records,
)
from turngym.trainers.records.journal import Journal


def turn(number: int, version: int, before: Turn | None = None) -> Turn:
    shown = (before.prompt_ids + before.completion_ids if before else ()) + (10 + number,)
    return Turn(
        f"sees {number}",
        "anchor",
        f"goes {number}",
        f"<{number}>",
        shown,
        (1, number),
        (-0.1, -1.0 / (number + 3)),
        reward=0.1 * number,
        columns={"distance": number, "parts": (0.5, math.pi), "name": "x"},
        policy_version=version,
        progress=0.25,
    )


def episode(spec: EpisodeSpec, versions: tuple[int, ...]) -> Trajectory:
    turns: list[Turn] = []
    for number, version in enumerate(versions):
        turns.append(turn(number, version, turns[-1] if turns else None))
    return Trajectory(spec, "env", "hash", turns, terminated=True, success=1, score=1.0, final_observation="end")


def specs(group: int) -> list[EpisodeSpec]:
    return [EpisodeSpec(group * 2 + member, 7 + group, group) for member in range(2)]


def story() -> list[Record]:
    """Three groups: one trained on, one with a finished and an open episode, one that has only been planned."""
    found: list[Record] = [planned_record(0, 0, specs(0))]
    for spec in specs(0):
        found += [begun_record(0, spec.episode), *whole_records(0, episode(spec, (0, 0, 0)))]
    found.append(planned_record(1, 0, specs(1)))
    first, second = specs(1)
    found += [begun_record(1, first.episode), begun_record(1, second.episode)]
    whole = episode(first, (0, 1))
    found.append(turn_record(1, OpenTurn(first, 0, whole.turns[0], None, b"s0")))
    going = episode(second, (0, 1, 2))
    found.append(turn_record(1, OpenTurn(second, 0, going.turns[0], None, b"t0")))
    found.append(turn_record(1, OpenTurn(first, 1, whole.turns[1], whole.turns[0], b"s1")))
    found.append(trained_record(0, [[0]], {"policy/staleness_0": 1.0}))
    found.append(finished_record(1, whole))
    found.append(turn_record(1, OpenTurn(second, 1, going.turns[1], going.turns[0], b"t1")))
    found.append(turn_record(1, OpenTurn(second, 2, going.turns[2], going.turns[1], b"t2")))
    found.append(planned_record(2, 1, specs(2)))
    return found


def written(folder: Path, records: list[Record]) -> Path:
    journal = Journal(folder)
    journal.open(0)
    for record in records:
        journal.append([record])
    journal.close()
    return folder / "000000.jsonl"


def versions(turns: list[Turn]) -> list[int]:
    return [each.policy_version for each in turns]


def test_episodes_come_back_exactly(tmp_path: Path) -> None:
    written(tmp_path, story())
    found = History.of(Journal(tmp_path).read(0), 0)
    assert found.groups[0].is_finished and found.to_train() == {0} and found.next_number == 3
    assert found.groups[0].whole() == [episode(spec, (0, 0, 0)) for spec in specs(0)]
    assert found.trained[0].rounds == [[0]] and found.trained[0].metrics == {"policy/staleness_0": 1.0}
    first, second = (found.groups[1].episodes[spec.episode] for spec in specs(1))
    assert first.whole == episode(specs(1)[0], (0, 1)) and versions(first.whole.turns) == [0, 1]
    going = episode(specs(1)[1], (0, 1, 2)).turns
    assert second.whole is None and second.state == b"t2" and second.turns == going
    assert versions(second.turns) == [0, 1, 2] and second.turns[0].columns["parts"] == (0.5, math.pi)
    assert not any(each.has_begun for each in found.groups[2].episodes.values())


def test_prompts_that_go_on_are_written_without_their_beginning(tmp_path: Path) -> None:
    [*_, last] = [record for record in story() if record["is"] == "turn"]
    assert last["shared"] and last["turn"]["prompt_ids"] == [12]


def test_a_kill_at_every_byte_loses_the_line_that_it_cut_and_no_other(tmp_path: Path) -> None:
    file = written(tmp_path, [record for record in story() if record.get("group", 2) >= 1][:6])
    content = file.read_bytes()
    ends = [k + 1 for k, byte in enumerate(content) if byte == 10]
    middle = {(one + other) // 2 for one, other in itertools.pairwise(ends)}
    for size in range(len(content)):
        file.write_bytes(content[:size])
        journal = Journal(tmp_path)
        records = journal.read(0)
        assert len(records) == sum(end <= size for end in ends)
        if size in middle or size + 1 in ends:  # not always: it waits for the disk
            History.of(records, 0)
            journal.keep(records)
            journal.open(0)
            journal.append([begun_record(1, 2)])
            journal.close()
            assert len(Journal(tmp_path).read(0)) == len(records) + 1


def test_a_tail_of_zeros_after_a_power_failure_is_left_out(tmp_path: Path) -> None:
    file = written(tmp_path, story())
    with file.open("ab") as end:
        end.write(bytes(4096))
    assert len(Journal(tmp_path).read(0)) == len(story())


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    file = written(tmp_path, story())
    lines = file.read_bytes().split(b"\n")
    file.write_bytes(b"\n".join([lines[0], lines[1][:-4], *lines[2:]]))
    with pytest.raises(CheckpointError, match=r"line 2 of .*000000.jsonl is damaged: delete the folder"):
        Journal(tmp_path).read(0)


def test_segments_begin_with_what_is_not_over_and_old_ones_go(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.open(0)
    for record in story():
        journal.append([record])
    journal.forget([0])
    journal.start_segment(1, {"is": "checkpoint", "iteration": 1, "next": 3}, oldest=0)
    journal.append([begun_record(2, 4)])
    assert journal.segments() == [0, 1], "the checkpoint before this one may be needed"
    later = History.of(Journal(tmp_path).read(1), 1)
    assert sorted(later.groups) == [1, 2] and later.next_number == 3 and not later.trained
    assert later.groups[2].episodes[4].has_begun and later.groups[1].episodes[3].state == b"t2"
    before = History.of(Journal(tmp_path).read(0), 0)
    assert before.to_train() == {0} and before.groups[0].is_finished and before.groups[2].episodes[4].has_begun
    journal.start_segment(4, {"is": "checkpoint", "iteration": 4, "next": 3}, oldest=1)
    assert journal.segments() == [1, 4]
    journal.close()


def test_a_checkpoint_without_a_segment_of_its_own_is_found_in_the_one_before(tmp_path: Path) -> None:
    written(tmp_path, story())
    found = History.of(Journal(tmp_path).read(1), 1)
    assert sorted(found.groups) == [1, 2] and not found.trained, "a kill between the checkpoint and its segment"


def test_segments_that_are_newer_than_the_checkpoint_alone_are_no_journal_of_it(tmp_path: Path) -> None:
    written(tmp_path, story()).rename(tmp_path / "000005.jsonl")
    journal = Journal(tmp_path)
    assert journal.read(2) == []
    journal.open(2)
    assert journal.segments() == [2]
    journal.close()
