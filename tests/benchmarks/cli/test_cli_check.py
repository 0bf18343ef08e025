"""``turngym check`` for people who write environments: files, options, what it teaches, and what it prints."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from turngym.__main__ import main
from turngym.benchmarks.cli.check import SCHEMA
from turngym.envs.checks.table import RULES, WORTH

SUPPORT = Path(__file__).parents[2] / "support"
SOUND = f"{SUPPORT / 'sound_env.py'}:Sound"
FAULTY = f"{SUPPORT / 'faulty_states.py'}:"
QUICK = ("--episodes", "1", "--in-process")


def checked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Return the exit status, and what was printed."""
    status = main(["check", *words])
    return status, capsys.readouterr().out


def report(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """Return the one report of a check."""
    shown = json.loads(checked(capsys, *words, "--json")[1])
    assert shown["version"] == SCHEMA and shown["absent"] == []
    (found,) = shown["environments"]
    return dict(found)


def test_a_file_that_keeps_its_promises_gives_a_line_for_every_rule(capsys: pytest.CaptureFixture[str]) -> None:
    status, shown = checked(capsys, SOUND, *QUICK)
    assert status == 0
    lines = shown.splitlines()
    assert lines[0] == SOUND and lines[-1].startswith(f"{SOUND} passes: ")
    assert [line.split()[1] for line in lines[1:-1]] == list(RULES)
    assert {line.split()[0] for line in lines[1:-1]} == {"ok", "skip"}


def test_a_broken_promise_is_told_with_evidence_reason_and_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    status, shown = checked(capsys, FAULTY + "TellsInTheAnchor", *QUICK, "--seed", "4")
    assert status == 1
    rule = RULES["hidden-in-anchor"]
    start = shown.index("  FAIL  hidden-in-anchor  " + rule.promise)
    lines = shown[start:].splitlines()[1:6]
    assert lines[0].strip() == "seen  anchor tells a hidden fact (seed 4, turn 0)"
    assert lines[1].strip().startswith("expected  \"'0 to 63, ") and lines[2].strip().startswith("got")
    assert lines[3].strip() == f"why   {rule.why}" and lines[4].strip() == f"fix   {rule.fix}"
    assert shown.splitlines()[-1].startswith(f"{FAULTY}TellsInTheAnchor fails hidden-in-anchor; ")


def test_json_has_every_rule_with_its_status_and_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    found = report(capsys, FAULTY + "TellsInTheAnchor", *QUICK)
    assert (found["ok"], found["seed"], found["episodes"]) == (False, 0, 1)
    assert [rule["name"] for rule in found["rules"]] == list(RULES)
    (broken,) = [rule for rule in found["rules"] if rule["status"] == "failed"]
    (evidence,) = broken["evidence"]
    assert broken["name"] == "hidden-in-anchor" and broken["fix"] == RULES["hidden-in-anchor"].fix
    assert evidence["seen"] == "anchor tells a hidden fact" and (evidence["seed"], evidence["turn"]) == (0, 0)
    assert evidence["ours"] != evidence["theirs"]


def test_options_reach_the_environment(capsys: pytest.CaptureFixture[str]) -> None:
    game = f"{SUPPORT / 'sound_env.py'}:Optional"
    assert report(capsys, game, *QUICK, "--option", "prize=ring")["ok"]
    found = report(capsys, game, *QUICK, "--option", "prize=cup")
    assert found["rules"][0]["status"] == "failed"
    assert "ValueError: no prize cup" in found["rules"][0]["evidence"][0]["seen"]
    assert report(capsys, "turngym/GuessTheNumber-v0", *QUICK, "--option", "high=9", "--option", "view=interval")["ok"]


def test_the_verdict_names_the_target_with_its_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "verdict.md"
    words = ("turngym/GuessTheNumber-v0", *QUICK, "--option", "high=9", "--out", str(page))
    assert checked(capsys, *words)[1].splitlines()[-1].startswith("turngym/GuessTheNumber-v0 high=9 passes: ")
    assert page.read_text().startswith("# turngym/GuessTheNumber-v0 high=9 passes\n")


def test_the_rules_can_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    status, shown = checked(capsys, "--rules")
    assert status == 0
    for rule in (RULES | WORTH).values():
        assert f"{rule.name}  {rule.promise}" in shown and rule.why in shown and rule.fix in shown
    table = json.loads(checked(capsys, "--rules", "--json")[1])
    assert [rule["name"] for rule in table["rules"]] == [*RULES, *WORTH]
    assert set(table["rules"][0]) == {"name", "promise", "why", "fix", "after"}


def test_players_without_skill_are_compared_and_the_verdict_is_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "pages" / "verdict.md"
    status, shown = checked(
        capsys, f"{SUPPORT / 'silent_game.py'}:Silent", *QUICK, "--players", "20", "--out", str(page)
    )
    assert status == 1 and shown.splitlines()[-1].startswith(f"{SUPPORT / 'silent_game.py'}:Silent fails ")
    text = page.read_text()
    assert text.splitlines()[0].endswith("game.py:Silent fails")
    assert "Seeds from 0, episodes per rule: 1, 20 of each player." in text
    assert "seen: empty actions succeeded in 20 of 20 episodes" in text
    assert "## skill-pays" in text and "nothing: mean success 1, random legal 0 in 20 episodes, p = " in text
    assert "## expert-best" not in text and "| `expert-best` | passed |" in text
    assert checked(capsys, SOUND, "--players", "-1")[0] == 2


def test_all_tells_one_line_an_environment_and_what_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = ("turngym/GuessTheNumber-v0", "turngym/TowerOfHanoi-v0")
    monkeypatch.setattr("turngym.benchmarks.cli.check.text_env_ids", lambda: ids)
    status, shown = checked(capsys, "all", *QUICK)
    assert status == 0
    assert shown.splitlines() == [*(f"ok    {name}" for name in ids), "", "2 of 2 environments pass."]
    found = json.loads(checked(capsys, "all", *QUICK, "--json")[1])
    assert [report["name"] for report in found["environments"]] == list(ids)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "check needs an environment: an id, `module:Class`"),
        (["sokoban"], "Did you mean 'turngym/Sokoban-v0'?"),
        ([f"{SUPPORT / 'sound_env.py'}:Soumd"], "Did you mean 'Sound'?"),
        ([f"{SUPPORT / 'sound_envs.py'}:Sound"], "Did you mean 'sound_env.py'?"),
        ([SOUND, "--option", "sise=3"], "Sound has no option 'sise'"),
        ([SOUND, "--option", "size"], "--option takes KEY=VALUE"),
    ],
)
def test_wrong_usage_is_status_2_and_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", *words]) == 2
    shown = capsys.readouterr()
    assert message in shown.err and shown.err.startswith("error: ") and shown.err.count("\n") == 1
    assert shown.out == ""


def test_it_runs_as_a_program_in_the_authors_own_folder(tmp_path: Path) -> None:
    """The file imports a module beside it; nothing is installed; another process plays it too."""
    (tmp_path / "lore.py").write_text("WORDS = {'oak', 'elm', 'ash', 'fir', 'yew', 'box', 'bay', 'fig'}\n")
    (tmp_path / "grove.py").write_text(
        "from lore import WORDS\n"
        "from turngym.envs import Outcome, TextEnv\n\n\n"
        "class Grove(TextEnv[str]):\n"
        "    instructions = 'Say a tree.'\n\n"
        "    def __init__(self, *, max_turns=5, split='train', env_id='', render_mode=None):\n"
        "        super().__init__(max_turns=max_turns, split=split, env_id=env_id, render_mode=render_mode)\n"
        "        self.finite_instances = 8\n\n"
        "    def begin(self, task):\n"
        "        self.tree = self.draw(lambda generator: generator.choice(list(WORDS)), str)\n"
        "        return 'A tree.'\n\n"
        "    def apply_action(self, action):\n"
        "        return Outcome('', 0.0, action == self.tree, action == self.tree, action in WORDS)\n\n"
        "    def anchor(self):\n"
        "        return ''\n\n"
        "    def save_state(self):\n"
        "        return str(self.tree)\n\n"
        "    def load_state(self, state):\n"
        "        self.tree = state\n"
    )
    words = [sys.executable, "-m", "turngym", "check", "grove.py:Grove", "--json"]
    settings = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "5"}
    found = subprocess.run(words, cwd=tmp_path, env=settings, capture_output=True, text=True, check=False)
    assert found.returncode == 1 and not found.stderr
    (told,) = json.loads(found.stdout)["environments"]
    broken = {rule["name"] for rule in told["rules"] if rule["status"] == "failed"}
    assert broken == {"no-hash-order"}, "the order of the set decides which tree a seed means"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["grove.py", "lore.py"]
