"""The page of a tournament, and the command that writes the page of whatever a folder holds."""

import json
from pathlib import Path
from typing import Any

import pytest
from page_reading import Reading, assert_harmless
from submissions import HOSTILE
from synthetic_runs import run_folder

from turngym.__main__ import main
from turngym.benchmarks.pages.tournament import sound_tournament, tournament_page
from turngym.benchmarks.tournaments.plan import TournamentPlan
from turngym.benchmarks.tournaments.run import play_tournament
from turngym.errors import ConfigError

KUHN = "turngym/KuhnPoker-v0"


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tournaments") / "kuhn"
    assert main(["tournament", KUHN, "--blocks", "6", "--out", str(path)]) == 0
    return path


def shown(path: Path) -> Reading:
    return Reading(tournament_page(sound_tournament(path)))


def copy(source: Path, target: Path, results: dict[str, Any], plan: dict[str, Any] | None = None) -> Path:
    target.mkdir()
    (target / "config.json").write_text(json.dumps(plan) if plan else (source / "config.json").read_text("utf8"))
    (target / "results.json").write_text(json.dumps(results))
    (target / "episodes.jsonl").write_text((source / "episodes.jsonl").read_text("utf8"))
    return target


def results_of(path: Path) -> Any:
    return json.loads((path / "results.json").read_text("utf8"))


def test_the_command_writes_the_page_at_the_end(played: Path) -> None:
    content = Reading((played / "page.html").read_text("utf8"))
    assert_harmless(content, scripts=2)
    found = results_of(played)
    assert f"{found['n_games']} games in 6 blocks" in content.text and "Tournament: KuhnPoker-v0" in content.text


def test_every_player_has_rank_rating_and_interval(played: Path) -> None:
    content, found = shown(played), results_of(played)
    head = content.rows[0]
    assert head[:7] == ["rank", "player", "Elo", "win %", "draw %", "score", "games"]
    for name, numbers in found["ratings"]["players"].items():
        row = next(row for row in content.rows if len(row) == len(head) and row[1] == name)
        elo = numbers["elo"]
        interval = f"{round(elo['ci_low'])} to {round(elo['ci_high'])}".replace("-", "−")
        assert row[2].startswith(f"{round(elo['value'])}".replace("-", "−"))
        assert ("fixed" if name == "random" else interval) in row[2]
        assert row[6] == str(found["players"][name]["all"]["win"]["n_games"])


def test_the_matrix_has_the_games_of_every_cell(played: Path) -> None:
    content, found = shown(played), results_of(played)
    cells = {(c["player"], c["opponent"]): c for c in found["win_matrix"] if c["side"] == "0"}
    names = sorted(found["players"])
    (head,) = [row for row in content.rows if row and row[0] == "" and sorted(row[1:]) == names]
    body = {row[0]: row[1:] for row in content.rows if len(row) == len(head) and "games" in row[1]}
    for (player, opponent), cell in cells.items():
        text = body[player][head.index(opponent) - 1]
        assert text.startswith(f"{100 * cell['points']['value']:.0f} ") and f"{cell['points']['n_games']} games" in text
    assert len(cells) == len(names) ** 2


def test_players_that_all_met_are_rated_against_the_field(played: Path, tmp_path: Path) -> None:
    found = results_of(played)
    names = sorted({cell["player"] for cell in found["win_matrix"]})
    rows = shown(played).rows
    start = rows.index(["player", "Nash skill", "Nash %", "alpha-rank %"]) + 1
    assert len(names) == 3 and sorted(row[0] for row in rows[start : start + 3]) == names
    found["win_matrix"] = [cell for cell in found["win_matrix"] if {cell["player"], cell["opponent"]} != {*names[:2]}]
    assert "Nash" not in shown(copy(played, tmp_path / "unmet", found)).text


def test_what_files_say_cannot_become_part_of_the_page(played: Path, tmp_path: Path) -> None:
    text = json.dumps(results_of(played)).replace("first_legal", "HOSTILE").replace("KuhnPoker", "HOSTILE")
    text = text.replace("HOSTILE", json.dumps(HOSTILE)[1:-1])
    plan = {**json.loads((played / "config.json").read_text("utf8")), "game": HOSTILE, "options": {HOSTILE: HOSTILE}}
    path = copy(played, tmp_path / "t", json.loads(text), {**plan, HOSTILE: [HOSTILE]})
    lines = (path / "episodes.jsonl").read_text("utf8").splitlines()
    nothing: dict[str, Any] = {"winners": [], "returns": {}, "scores": {}, "metrics": {}}
    broken = {**json.loads(lines[0]), **nothing, "match": HOSTILE, "status": "env_error", "fault": HOSTILE}
    (path / "episodes.jsonl").write_text("\n".join([*lines, json.dumps(broken)]) + "\n")
    content = shown(path)
    assert_harmless(content, scripts=2)
    assert "img" not in content.tags and content.text.count('<img src=x onerror="alert(1)">') > 5


def test_without_ratings_there_is_a_page_that_says_so(played: Path, tmp_path: Path) -> None:
    found = {**results_of(played), "ratings": None, "win_matrix": [], "differences": []}
    content = shown(copy(played, tmp_path / "t", found))
    assert "no ratings" in content.text and "Against one another" not in content.text
    assert content.row("–", "random")[2] == "–"


def test_a_game_of_roles_is_told_by_side_and_by_role(tmp_path: Path) -> None:
    plan = TournamentPlan("turngym/Werewolf-v0", {"random": "random", "first_legal": "first_legal"}, blocks=2)
    found, _ = play_tournament(plan, folder=tmp_path / "t")
    content = shown(tmp_path / "t")
    for role, numbers in found["players"]["random"]["by_role"].items():
        (row,) = [row for row in content.rows if row[:2] == [role, "random"]]
        assert row[2].startswith(f"{100 * numbers['win']['value']:.1f} ")
    assert len([row for row in content.rows if row[:1] == ["werewolves"]]) == 2


def test_damaged_results_are_refused_with_the_way_out(played: Path, tmp_path: Path) -> None:
    broken = results_of(played)
    del broken["players"]["random"]["usage"]
    with pytest.raises(ConfigError, match="rewrites it"):
        tournament_page(sound_tournament(copy(played, tmp_path / "a", broken)))
    with pytest.raises(ConfigError, match="rewrites it"):
        tournament_page(sound_tournament(copy(played, tmp_path / "b", {**broken, "win_matrix": 3})))
    for content, message in (("[]", "expected a table"), ("{", "not JSON"), ('{"a": NaN}', "not JSON")):
        (tmp_path / "a" / "results.json").write_text(content)
        with pytest.raises(ConfigError, match=message):
            sound_tournament(tmp_path / "a")
    (tmp_path / "a" / "results.json").unlink()
    with pytest.raises(ConfigError, match=r"results\.json: the file is missing.*--resume"):
        sound_tournament(tmp_path / "a")


def test_report_writes_the_page_of_a_tournament(played: Path, tmp_path: Path) -> None:
    before = (played / "page.html").read_text("utf8")
    (played / "page.html").unlink()
    assert main(["report", str(played)]) == 0
    assert (played / "page.html").read_text("utf8") == before
    assert main(["report", str(played), "-o", str(tmp_path)]) == 2, "a folder is not a file"
    assert main(["report", str(played), "--out", str(tmp_path / "other.html")]) == 0
    assert (tmp_path / "other.html").read_text("utf8") == before


def test_report_writes_the_page_of_a_training_run(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run", {"warmup-sampled": [0, 1] * 8, "final-sampled": [1] * 16}, iterations=4)
    assert main(["report", str(folder.path)]) == 0
    first = (folder.path / "report.html").read_text("utf8")
    assert_harmless(Reading(first), scripts=1)
    folder.append_metrics({"iteration": 4, "new/metric": 0.25})
    assert main(["report", str(folder.path)]) == 0
    assert "new/metric" in (folder.path / "report.html").read_text("utf8") and "new/metric" not in first
    (folder.path / "config.json").write_text("{")
    assert main(["report", str(folder.path), "-o", str(tmp_path / "r.html")]) == 0, "what is damaged is named on it"
    assert "damaged" in (tmp_path / "r.html").read_text("utf8")


def test_report_refuses_what_holds_nothing_to_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path / "gone")]) == 2
    assert "there is no folder" in capsys.readouterr().err
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "config.json").write_text("{}")
    assert main(["report", str(tmp_path)]) == 2
    assert "inner" in capsys.readouterr().err
    assert main(["report", str(tmp_path / "inner")]) == 2
    assert "training run, evaluation or tournament" in capsys.readouterr().err
    (tmp_path / "inner" / "config.json").write_text('{"suite": 3, "environments": 4}')
    assert main(["report", str(tmp_path / "inner")]) == 2
    assert "not a sound submission" in capsys.readouterr().err
