"""``turngym tournament``: the tables, the JSON, the folder, and the messages."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small import small_model

from turngym.__main__ import main
from turngym.agents.intervals import Estimate
from turngym.benchmarks.cli.tournament import Arguments, anchor_of, plan_of, players_of
from turngym.benchmarks.statistics.estimates import as_json
from turngym.benchmarks.tournaments.folder import TournamentFolder
from turngym.benchmarks.tournaments.run import play_tournament
from turngym.benchmarks.tournaments.tables import remarks, tables_of
from turngym.errors import ConfigError

KUHN, TOE = "turngym/KuhnPoker-v0", "turngym/TicTacToe-v0"


def tournament(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """Return what a tournament prints as JSON."""
    assert main(["tournament", *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_without_players_all_of_the_game_and_the_generic_ones_meet(capsys: pytest.CaptureFixture[str]) -> None:
    found = tournament(capsys, KUHN, "--blocks", "5")
    assert list(found["players"]) == sorted(["random", "first_legal", "equilibrium"])
    assert found["n_games"] == 5 * 9 and found["n_blocks"] == 5


def test_the_json_is_that_of_the_function(capsys: pytest.CaptureFixture[str]) -> None:
    found = tournament(capsys, TOE, "--players", "random", "best=minimax", "--blocks", "3", "--seed", "4")
    expected, _ = play_tournament(plan_of(Arguments(TOE, ("random", "best=minimax"), 3, 4)))
    for player in [*found["players"].values(), *expected["players"].values()]:
        player["usage"] = {key: value for key, value in player["usage"].items() if "latency" not in key}
    assert found == json.loads(json.dumps(expected)) and set(found["players"]) == {"random", "best"}


def test_the_tables_show_ratings_by_side_and_who_beat_whom(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["tournament", TOE, "--players", "random", "minimax", "--blocks", "8", "--anchor", "random=1000"]
    assert main(words) == 0
    shown = capsys.readouterr().out
    rows = [line.split() for line in shown.splitlines() if line.strip()]
    minimax, random = (next(row for row in rows if row[0] == name) for name in ("minimax", "random"))
    assert rows.index(minimax) < rows.index(random), "the strongest first"
    assert random[1:3] == ["1000", "fixed"] and int(minimax[1]) > 1100 and minimax[-2:] == ["0.0", "0"]
    assert [row[2] for row in rows if row[0] == "seat"] == ["minimax", "random"] * 2
    assert "points %, seat 0 against seat 1" in shown and "advantage of seat 0 where random plays both" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


@pytest.mark.parametrize("elo", [-0.0, -0.4])
def test_what_rounds_to_zero_is_shown_without_a_sign(elo: float) -> None:
    found, _ = play_tournament(plan_of(Arguments(TOE, ("random", "minimax"), 2)))
    numbers = as_json(Estimate(elo, 0.1, elo - 0.05, elo + 0.05, 20, 10, "bootstrap by block"))
    found["ratings"]["players"]["random"]["elo"] = numbers
    for player in found["ratings"]["by_side"].values():
        for side in player.values():
            side["elo"] = numbers
    for side in found["ratings"]["side_advantage"].values():
        side["elo"] = numbers
    cells = [cell for _, table in tables_of(found) for column in table.columns for cell in column.cells]
    shown = [*map(str, cells), *remarks(found)]
    assert "0 to 0" in shown and any("0 Elo (0 to 0)" in line for line in shown)
    assert not [text for text in shown if "-0" in text]


def test_what_a_reader_must_know_is_remarked() -> None:
    numbers = {"elo": as_json(Estimate(10.0, 5.0, 1.0, 20.0, 20, 10, "bootstrap by block"))}
    ratings = {
        "anchor": None,
        "prior": 1.0,
        "side_advantage": {"few": numbers, "many": numbers},
        "groups": [[["a", "few"], ["b", "many"]], [["c", "few"]]],
        "by_side": {"a": {"few": {"extreme": "all won"}, "0": {"extreme": None}}},
    }
    faults = {"agent_errors": 2, "env_errors": 1, "first_fault": "few at seat 1: ValueError('no')"}
    lines = list(remarks({"n_blocks": 10, "ratings": ratings, "partners": [], **faults}))
    assert lines[0] == "advantage of few among equals: 10 Elo (1 to 20)" and len(lines) == 5
    assert lines[1].endswith("cannot be compared: a as few, b as many; c as few")
    assert lines[2] == "a as few all won: its rating is limited only by the prior"
    assert lines[3].startswith("games with a fault of a player: 2, of the rules: 1")
    assert lines[4] == "the first: few at seat 1: ValueError('no')"
    assert next(remarks({"ratings": None, "partners": []})).startswith("no ratings")


def test_games_without_sides_have_one_table_fewer() -> None:
    plan = plan_of(Arguments(TOE, ("random", "first_legal"), 2, sides="alike"))
    found, _ = play_tournament(plan)
    assert found["pairing"] == "pairs" and found["n_games"] == 4
    assert len(list(tables_of(found))) == 2
    assert {cell["side"] for cell in found["win_matrix"]} == {""} and not found["ratings"]["side_advantage"]


def test_a_folder_holds_plan_games_and_results_and_can_be_continued(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["tournament", KUHN, "--players", "random", "first_legal", "--out", str(tmp_path / "t")]
    assert main([*words, "--blocks", "3"]) == 0
    assert f"written to {tmp_path / 't'}" in capsys.readouterr().out.replace("\n", "")
    files = {"config.json", "episodes.jsonl", "options.json", "page.html", "results.json"}
    assert {file.name for file in (tmp_path / "t").iterdir()} == files
    config = json.loads((tmp_path / "t" / "config.json").read_text())
    assert config["players"] == {"random": "random", "first_legal": "first_legal"} and config["pairing"] == "sides"
    assert main([*words, "--blocks", "5"]) == 2
    assert "--resume (resume=True in Python) continues" in capsys.readouterr().err
    assert main([*words, "--blocks", "5", "--resume"]) == 0
    assert json.loads((tmp_path / "t" / "results.json").read_text())["n_games"] == 20
    assert len((tmp_path / "t" / "episodes.jsonl").read_text().splitlines()) == 20
    assert "20 games in 5 blocks" in (tmp_path / "t" / "page.html").read_text("utf8")
    capsys.readouterr()
    assert main([*words, "--blocks", "5", "--resume", "--seed", "1"]) == 2
    assert "has seed 0, not 1" in capsys.readouterr().err


def test_an_interrupt_says_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    add = TournamentFolder.add

    def interrupted(self: TournamentFolder, record: dict[str, Any]) -> None:
        add(self, record)
        if len(self.records) == 5:
            raise KeyboardInterrupt

    words = ["tournament", KUHN, "--players", "random", "first_legal", "--out", str(tmp_path / "t"), "--blocks", "3"]
    monkeypatch.setattr(TournamentFolder, "add", interrupted)
    assert main(words) == 130
    assert "the same command with --resume continues" in capsys.readouterr().out
    monkeypatch.undo()
    assert len((tmp_path / "t" / "episodes.jsonl").read_text().splitlines()) == 5
    assert main([*words, "--resume"]) == 0


def test_a_language_model_plays_and_its_tokens_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small_model().save(tmp_path / "model")
    words = ["--max-new-tokens", "3", "--format", "plain", "--prompt", "instructions=false", "--blocks", "2"]
    found = tournament(capsys, KUHN, "--players", "random", f"mine=hf:{tmp_path / 'model'}", *words)
    usage = found["players"]["mine"]["usage"]
    assert usage["calls"] > 0 and 0 < usage["tokens_out_per_call"] <= 3 and usage["tokens_in_per_call"] > 3
    assert usage["faults"] == 0 and usage["forfeits_per_call"] > 0, "it has not learnt the words"


def test_options_reach_the_game(capsys: pytest.CaptureFixture[str]) -> None:
    found = tournament(capsys, KUHN, "--players", "random", "first_legal", "--blocks", "2", "--option", "hands=4")
    assert found["game"]["length"]["value"] >= 8


def test_names_and_anchors_are_read() -> None:
    assert players_of(["a=hf:x=y", "random", "b=scripted:bet,pass"]) == {
        "a": "hf:x=y",
        "random": "random",
        "b": "scripted:bet,pass",
    }
    assert players_of(["hf:/run/x=1"]) == {"hf:/run/x=1": "hf:/run/x=1"}, "no name before a path"
    assert anchor_of("") == ("", 0.0) and anchor_of("random") == ("random", 0.0)
    assert anchor_of("hf:a=b=-20.5") == ("hf:a=b", -20.5)
    with pytest.raises(ConfigError, match=r"got 'bluff, then fold': write bluff_then_fold=scripted:bet,pass"):
        players_of(["bluff, then fold=scripted:bet,pass"])
    with pytest.raises(ConfigError, match="got '': write mine=random"):
        players_of(["=random"])
    with pytest.raises(ConfigError, match="--players has 'random' twice: give one another name, such as other=random"):
        players_of(["random", "random"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["turngym/ChessSeat-v0"], "It is one seat of turngym/Chess-v0: take turngym/Chess-v0."),
        (["turngym/KhnPoker-v0"], "no game named 'turngym/KhnPoker-v0'. Did you mean 'turngym/KuhnPoker-v0'?"),
        ([KUHN, "--players", "random", "equilibium"], "named 'equilibium'. Did you mean 'equilibrium'?"),
        ([KUHN, "--players", "random", "scritped:bet"], "no agent named 'scritped'. Did you mean 'scripted'?"),
        ([KUHN, "--players", "random,first_legal"], "takes one word for each, such as random first_legal"),
        ([KUHN, "--players", "random"], "needs two players at least, got 1"),
        ([KUHN, "--blocks", "0"], "--blocks must be at least 1, got 0."),
        ([KUHN, "--retries", "-1"], "--retries must be at least 0, got -1."),
        ([KUHN, "--tables", "0"], "--tables must be at least 1, got 0."),
        ([KUHN, "--prior", "0"], "--prior must be finite and at least 1e-06, got 0.0."),
        ([KUHN, "--pairing", "mixd"], "no pairing named 'mixd'. Did you mean 'mixed'?"),
        ([KUHN, "--sides", "apat"], "no treatment of sides named 'apat'. Did you mean 'apart'?"),
        ([KUHN, "--anchor", "rand"], "no player named 'rand' to anchor the ratings at. Did you mean 'random'?"),
        ([KUHN, "--anchor", "random=high"], "--anchor takes NAME or NAME=ELO, such as random=1000"),
        ([KUHN, "--anchor", "random=nan"], "the Elo of the anchor must be a finite number, got nan"),
        ([KUHN, "--option", "hnds=4"], "has no option 'hnds'. Did you mean 'hands'?"),
        ([KUHN, "--temperature", "-1"], "--temperature must be 0 or more"),
        ([KUHN, "--format", "tga"], "no action format named 'tga'. Did you mean 'tag'?"),
        ([KUHN, "--resume"], "--resume needs the folder of the tournament: pass it as --out."),
    ],
)
def test_a_wrong_word_is_explained(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tournament", *words]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: ") and message in shown and shown.count("\n") == 1


WITHOUT_TORCH = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "tokenizers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocker())
from turngym.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def test_players_without_a_model_need_no_torch() -> None:
    words = ["tournament", KUHN, "--players", "random", "equilibrium", "bets=scripted:bet", "--blocks", "2", "--json"]
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["agent_errors"] == 0


def test_a_werewolf_tournament_counts_by_team_and_by_role(capsys: pytest.CaptureFixture[str]) -> None:
    found = tournament(capsys, "turngym/WerewolfSmall-v0", "--players", "random", "rule_based", "--blocks", "12")
    assert found["pairing"] == "sides" and found["n_games"] == 48 and found["env_errors"] == found["agent_errors"] == 0
    for player in found["players"].values():
        village, wolves = (player["by_side"][side]["win"] for side in ("village", "werewolves"))
        assert village["n_games"] == wolves["n_games"] == 12
        assert {"seer", "doctor", "villager", "werewolf"} <= player["by_role"].keys()
    won = {
        (cell["player"], cell["opponent"]): cell["wins"] for cell in found["win_matrix"] if cell["side"] == "village"
    }
    assert won["rule_based", "random"] > won["random", "rule_based"]
