"""What the viewer makes of single records, and where it draws lines."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from view_runs import written

from turngym.agents.core import Agent, Decision, Request
from turngym.agents.episodes.self_play import LEARNER, GameSpec, SelfPlay
from turngym.benchmarks.pages.viewer import runs
from turngym.benchmarks.pages.viewer.forms import facts_of, replay_of, turn_form
from turngym.benchmarks.pages.viewer.runs import open_run
from turngym.envs.delegation.game import Delegation
from turngym.trainers.records.samples import sample_of


def test_a_turn_keeps_all_that_was_recorded_of_it() -> None:
    turn = {
        "observation": {"text": "a board", "image": "iVBORw0KGgoAAAAN"},
        "prompt": "<|user|>a board",
        "prompt_continues": True,
        "completion": "up, I think",
        "action": "up",
        "reward": 1,
        "action_is_valid": False,
        "notes": [{"purpose": "summary", "text": "so far"}, "no note"],
        "tokens": ["up", 3],
        "logprobs": [-1, None],
        "advantages": [0.5],
        "speed": 7,
    }
    assert turn_form(turn) == {
        "seen": "a board",
        "image": "data:image/png;base64,iVBORw0KGgoAAAAN",
        "prompt": "<|user|>a board",
        "continues": True,
        "completion": "up, I think",
        "action": "up",
        "reward": 1.0,
        "valid": False,
        "notes": [["summary", "so far"]],
        "tokens": ["up", "3"],
        "logprobs": [-1.0, None],
        "advantages": [0.5],
        "more": [["speed", "7"]],
    }
    assert turn_form({}) == {"reward": None, "more": []}


class _Caller(Agent):
    """Calls a sub-agent in its second turn; sub-agents report at once."""

    def act(self, requests: Sequence[Request]) -> list[Decision]:
        texts = [
            "<report>7</report>" if each.info["seat"] else ["go", "<ask>help</ask>", "go"][each.turn]
            for each in requests
        ]
        return [Decision(action=text, completion=text) for text in texts]

    def forget(self, episode: int) -> None:
        """There is no memory."""


def test_a_sub_agent_links_to_the_turn_of_its_caller(tmp_path: Path) -> None:
    rules = {"env": "held:Held", "calls": 1, "env_options": {"max_turns": 2}}
    tables = SelfPlay(lambda: Delegation(**rules), 1, env_id="systems", final_prompts=False)
    with closing(tables):
        played = tables.play([GameSpec(3, 0)], {LEARNER: _Caller()})
    lines = [sample_of(trajectory) for trajectory in played]
    assert [(line["episode"], line.get("caller"), line.get("caller_turn")) for line in lines] == [
        (6, None, None),
        (7, 6, 1),
    ]
    run = open_run(written(tmp_path / "samples.jsonl", *lines)).search()
    run.wait_for()
    main, sub = map(run.form, run.known)
    assert "caller" not in main and sub["caller"] == {"n": 0, "seat": "player_0 main", "episode": 6, "turn": 1}
    alone = open_run(written(tmp_path / "alone.jsonl", {**lines[1], "caller_turn": "x"})).search()
    alone.wait_for()
    assert alone.form(alone.known[0])["caller"] == {"n": None, "seat": "", "episode": 6, "turn": None}


def test_facts_leave_out_what_is_empty() -> None:
    record = {"env": "e", "seed": 0, "options": {}, "score": 1 / 3, "terminated": False, "fault": "x", "winner": None}
    assert facts_of(record) == [["environment", "e"], ["seed", "0"], ["score", "0.333333"], ["terminated", "false"]]


def test_the_command_of_a_task_can_be_pasted_into_a_shell() -> None:
    known = {"env": "turngym/X-v0", "seed": 7, "options": {"word": "a b'; rm -rf", "n": 3}, "wrappers": ["history:k=4"]}
    found = replay_of(known, ["up"])
    assert found is not None
    assert found["command"] == (
        "turngym play turngym/X-v0 --seed 7 --option 'word=a b'\"'\"'; rm -rf' --option n=3 --wrapper history:k=4"
    )


@pytest.mark.parametrize("change", [{"seed": None}, {"seed": True}, {"seed": "7"}, {"env": 3}, {"is_game": True}])
def test_without_all_that_it_needs_nothing_can_be_played_again(change: dict[str, object]) -> None:
    assert replay_of({"env": "turngym/X-v0", "seed": 7, **change}, []) is None


def test_a_run_without_samples_shows_the_episodes_of_its_evaluations(tmp_path: Path) -> None:
    row = {"env": "turngym/Sokoban-v0", "seed": 3, "actions": ["up"], "success": 0}
    written(tmp_path / "evaluations" / "final-greedy.episodes.jsonl", row)
    written(tmp_path / "config.json", {"env": "turngym/Sokoban-v0", "env_options": {"view": "grid"}})
    run = open_run(tmp_path).search()
    assert run.wait_for() == 1 and run.kind == "training run" and run.known[0].name == "final-greedy"
    form = run.form(run.known[0])
    assert form["turns"][0]["action"] == "up" and "view=grid" in form["replay"]["command"]


def test_more_lines_than_a_list_can_hold_are_told_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "MOST_EPISODES", 10)
    run = open_run(written(tmp_path / "run.jsonl", *[{"actions": []}] * 11)).search()
    assert run.wait_for() == 10 and run.is_complete and run.problem == "Only the first 10 are listed."
    whole = open_run(written(tmp_path / "whole.jsonl", *[{"actions": []}] * 10)).search()
    assert whole.wait_for() == 10 and whole.problem == ""


def test_a_file_that_vanishes_meanwhile_is_told_about(tmp_path: Path) -> None:
    file = written(tmp_path / "run.jsonl", {"actions": ["up"]})
    run = open_run(file).search()
    run.wait_for()
    late = open_run(file)
    file.unlink()
    assert "No such file" in run.form(run.known[0])["fault"]
    late.search().wait_for()
    assert "Reading stopped" in late.problem and late.known == []
