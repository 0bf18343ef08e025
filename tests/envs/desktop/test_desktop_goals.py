"""Goals of the desktop without a desktop: what they ask, how files are judged, what the oracle says when."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from turngym.benchmarks.suites import SUITES
from turngym.envs.desktop import sandbox
from turngym.envs.desktop.actions import read
from turngym.envs.desktop.env import SIZE, Desktop, files_text, windows_text
from turngym.envs.desktop.folder import Folder
from turngym.envs.desktop.goals.base import Goal, next_action
from turngym.envs.desktop.goals.table import GOALS
from turngym.envs.desktop.session import Window
from turngym.errors import MissingExtra

SEEDS = 40


def folder_of(path: Path, goal: Goal) -> Folder:
    folder = Folder(path, lambda _: ())
    for old in path.iterdir():
        old.unlink()
    folder.fill(goal.files)
    return folder


def build(name: str, seed: int) -> Goal:
    return GOALS[name](np.random.default_rng(seed))


def test_there_are_goals_for_both_programs_and_for_both_together() -> None:
    programs = {name: {command[0] for command in build(name, 0).programs} for name in GOALS}
    assert len(GOALS) >= 12
    for wanted in ({"mousepad"}, {"gnumeric"}, {"mousepad", "gnumeric"}):
        assert wanted in programs.values()


@pytest.mark.parametrize("name", GOALS)
def test_nothing_is_reached_at_the_beginning_and_every_plan_can_be_carried_out(name: str, tmp_path: Path) -> None:
    seen = set()
    for seed in range(SEEDS):
        goal = build(name, seed)
        folder = folder_of(tmp_path, goal)
        assert goal.progress(folder) == 0 and not goal.is_reached(folder)
        assert goal.text and not re.search(r"[{}]", goal.text)
        for text in (*goal.plan, *goal.repair):
            action = read(text)
            assert action is not None and action.kind != "done"
            assert all(x < SIZE[0] and y < SIZE[1] for x, y in (action.at, action.to))
        seen.add(goal.canonical)
        assert build(name, seed).canonical == goal.canonical
    assert len(seen) > SEEDS // 2


def test_a_text_is_judged_by_its_lines(tmp_path: Path) -> None:
    goal = build("write-note", 3)
    folder = folder_of(tmp_path, goal)
    plan = read(goal.plan[1])
    assert plan is not None
    for content, progress in ((plan.text, 1.0), (plan.text.splitlines()[0], 0.5), (plan.text * 2, 0.5), ("no", 0.0)):
        (tmp_path / "notes.txt").write_text(content)
        assert goal.progress(folder) == progress and goal.is_reached(folder) == (progress == 1.0)
    (tmp_path / "notes.txt").write_text(plan.text.rstrip())  # how the file ends does not matter
    assert goal.is_reached(folder)


def test_a_copy_counts_only_while_the_original_stays(tmp_path: Path) -> None:
    goal = build("save-copy", 1)
    folder = folder_of(tmp_path, goal)
    typed = read(goal.plan[-1])
    assert typed is not None
    copy = tmp_path / typed.text.strip()
    copy.write_bytes(goal.files["notes.txt"])
    assert goal.is_reached(folder)
    (tmp_path / "notes.txt").write_text("gone")
    assert goal.progress(folder) == 1 and not goal.is_reached(folder)


def test_the_oracle_follows_its_plan_and_begins_again_after_anything_else() -> None:
    goal = build("move-line", 0)
    plan = [*goal.plan, "done"]
    for length in range(len(plan)):
        assert next_action(goal, plan[:length]) == plan[length]
        assert next_action(goal, [*plan[:length], "wait"]) == plan[length]
    way, done = [*goal.repair, *plan], [plan[0], "click 5 5"]
    for action in way:
        assert next_action(goal, done) == action
        done.append(action)
    assert next_action(goal, ["key Escape", "click 1 1"]) == way[0]


def test_files_are_read_with_care(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "secret").write_text("of the host")
    folder = Folder(home, lambda _: ())
    assert files_text(folder) == "The folder ~ is empty."
    folder.fill({".config/x": b"hidden", "a.txt": b"one\ntwo\n", "b.txt": b"\xff\xfe"})
    (home / "link.txt").symlink_to(tmp_path / "secret")
    (home / "folder").mkdir()
    os.mkfifo(home / "pipe")
    with (home / "large.txt").open("wb") as file:
        file.truncate(2 * 1024 * 1024)
    assert folder.names() == ("a.txt", "b.txt")
    assert folder.text("link.txt") is None and folder.content("../secret") == b"of the host"  # names are the goals' own
    assert folder.lines("a.txt") == ["one", "two"] and folder.lines("none") == []
    assert files_text(folder) == "Saved in ~/a.txt:\n| one\n| two\nSaved in ~/b.txt:\n| ��"


def test_windows_are_told_topmost_first() -> None:
    menu, dialog = Window("", "menu", 1, 2, 30, 40, False), Window("Save As", "dialog", 5, 6, 70, 80, True)
    assert windows_text([]) == "There are no windows."
    assert windows_text([menu, dialog]).splitlines()[1:] == [
        "- menu at 1,2, 30 x 40",
        '- dialog "Save As" at 5,6, 70 x 80, has the focus',
    ]


def test_what_is_missing_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sandbox, "FONT", tmp_path / "none.ttf")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingExtra, match=r"Xvfb, openbox, .* apt-get install --no-.* xvfb openbox"):
        Desktop()
    monkeypatch.setattr(sandbox, "FONT", tmp_path)
    monkeypatch.setattr(sandbox, "PACKAGES", {})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r'python-xlib, .* pip install "turngym\[desktop\]"'):
        Desktop()


def test_the_suite_holds_every_goal_and_three_instances_of_each() -> None:
    suite = SUITES["desktop"]
    assert [entry.options["task"] for entry in suite.entries] == sorted(GOALS)
    assert sum(map(len, suite.families.values())) == len(GOALS) and "23 goals" in suite.description
    assert all(len(entry.find_seeds()) == 3 and entry.env_kwargs["split"] == "test" for entry in suite.entries)
